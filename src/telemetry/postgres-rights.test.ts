import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDatabase, onConnection, type TestDatabase } from "../../test/services/database.js";
import { sharedPostgres } from "../../test/services/shared-postgres.js";
import { sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import type { RecorderProblem } from "./late-recorder.js";
import { PostgresRecorder } from "./postgres.js";

const server = await sharedPostgres();
let database: TestDatabase;
let recorders: PostgresRecorder[] = [];

beforeEach(async () => {
  if (server !== null) database = await createDatabase(server);
});

afterEach(async () => {
  await Promise.all(recorders.map((recorder) => recorder.close()));
  recorders = [];
  await database?.dispose();
});

function recorderOf(dsn: string, options: object = {}) {
  const recorder = new PostgresRecorder({ dsn, ...options });
  recorders.push(recorder);
  const told: RecorderProblem[] = [];
  recorder.onProblem((problem) => told.push(problem));
  return { recorder, told };
}

/** The tables as their owner makes them. */
async function createTables(): Promise<void> {
  const { recorder } = recorderOf(database.url());
  recorder.open(sampleOpen(1_000), false);
  await recorder.flush();
  await recorder.close();
  await database.sql("DELETE FROM open_attempts");
}

const count = async (table = "llm_calls") => Number((await database.sql(`SELECT count(*) FROM ${table}`))[0]?.count);

describe.skipIf(server === null)("a role with INSERT on an existing table and nothing else", () => {
  beforeEach(async () => {
    await createTables();
    await database.sql(`GRANT INSERT ON llm_calls TO ${database.role}`);
  });

  test("outside facts, on a bare connection: the table is visible, INSERT passes, CREATE is denied", async () => {
    await onConnection(database.url("role"), async (client) => {
      expect((await client.query("SELECT to_regclass('llm_calls') AS found")).rows).toEqual([{ found: "llm_calls" }]);
      await client.query("INSERT INTO llm_calls (call_id) VALUES ('x') ON CONFLICT DO NOTHING");
      const denied = { code: "42501" };
      // On the table that exists: the right is checked before IF NOT EXISTS.
      await expect(client.query("CREATE TABLE IF NOT EXISTS llm_calls (a int)")).rejects.toMatchObject(denied);
      await expect(client.query("CREATE INDEX IF NOT EXISTS i ON llm_calls (scope)")).rejects.toMatchObject(denied);
      await expect(client.query("SELECT 1 FROM llm_calls")).rejects.toMatchObject(denied);
      const withTarget = "INSERT INTO llm_calls (call_id) VALUES ('y') ON CONFLICT (call_id) DO NOTHING";
      await expect(client.query(withTarget)).rejects.toMatchObject(denied);
    });
  });

  test("records every row, without a word and without DDL", async () => {
    const before = database.ddl().length;
    const { recorder, told } = recorderOf(database.url("role"));
    for (let number = 0; number < 300; number++) recorder.record(sampleRecord(number), false);
    await recorder.record(sampleRecord(300), true);
    expect(await count()).toBe(301);
    expect(recorder.stats()).toEqual({ written: 301, queued: 0, dropped: 0, problem: null });
    expect(told).toEqual([]);
    expect(database.ddl().slice(before)).toEqual([]);
  });

  test("does without the journal, and says so once", async () => {
    const { recorder, told } = recorderOf(database.url("role"));
    for (let number = 0; number < 5; number++) await recorder.open(sampleOpen(number), true);
    for (let number = 0; number < 5; number++) recorder.record(sampleRecord(number), false);
    await recorder.flush();
    expect(await count()).toBe(5);
    expect(await count("open_attempts")).toBe(0);
    expect(told.map(({ code }) => code)).toEqual(["PG_TELEMETRY_CREATE"]);
    expect(told[0]?.message).toContain("no right to SELECT, INSERT, DELETE on open_attempts");
    expect(recorder.stats()).toMatchObject({ written: 5, dropped: 0 });
  });

  test("keeps the journal with the three rights that it needs", async () => {
    await database.sql(`GRANT SELECT, INSERT, DELETE ON open_attempts TO ${database.role}`);
    const before = database.ddl().length;
    const { recorder, told } = recorderOf(database.url("role"));
    await recorder.open(sampleOpen(1), true);
    await recorder.open(sampleOpen(2), true);
    await recorder.record(sampleRecord(1), true);
    expect(await database.sql("SELECT call_id FROM open_attempts")).toEqual([{ call_id: sampleOpen(2).callId }]);
    expect(told).toEqual([]);
    expect(database.ddl().slice(before)).toEqual([]);
  });

  test("goes on without columns that it can't add, and names them once", async () => {
    await database.sql("ALTER TABLE llm_calls DROP COLUMN route, DROP COLUMN final");
    const { recorder, told } = recorderOf(database.url("role"));
    for (let number = 0; number < 3; number++) await recorder.record(sampleRecord(number), true);
    expect(await count()).toBe(3);
    expect(told.map(({ code }) => code)).toEqual(["PG_TELEMETRY_COLUMN"]);
    expect(told[0]?.message).toMatch(
      /columns route, final of "llm_calls" can't be added \(must be owner.*rows go on without/,
    );
  });

  test("keeps its rows when the right is taken away, and writes them when it comes back", async () => {
    const { recorder, told } = recorderOf(database.url("role"));
    await recorder.record(sampleRecord(1), true);
    await database.sql(`REVOKE INSERT ON llm_calls FROM ${database.role}`);
    recorder.record(sampleRecord(2), false);
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ written: 1, queued: 1, dropped: 0 });
    expect(told.at(-1)?.message).toContain("the role needs USAGE on the schema and INSERT on llm_calls");
    await database.sql(`GRANT INSERT ON llm_calls TO ${database.role}`);
    await recorder.flush();
    expect(recorder.stats()).toEqual({ written: 2, queued: 0, dropped: 0, problem: null });
  });
});

describe.skipIf(server === null)("a missing table", () => {
  test("is created with its indexes by a role that may", async () => {
    const { recorder, told } = recorderOf(database.url());
    await recorder.record(sampleRecord(1), true);
    const indexes = await database.sql("SELECT indexname FROM pg_indexes WHERE tablename = 'llm_calls' ORDER BY 1");
    expect(indexes.map(({ indexname }) => indexname)).toEqual([
      "llm_calls_created_at",
      "llm_calls_pkey",
      "llm_calls_session_id",
    ]);
    expect(told).toEqual([]);
  });

  test("that can't be created ends the recording after one warning", async () => {
    const { recorder, told } = recorderOf(database.url("role"));
    for (let number = 0; number < 100; number++) recorder.record(sampleRecord(number), false);
    await recorder.flush();
    expect(told.map(({ code }) => code)).toEqual(["PG_TELEMETRY_CREATE"]);
    expect(told[0]?.message).toContain("permission denied for schema public. No row can be written");
    // Later entries cost nothing and wait for nothing; they are counted.
    expect(recorder.record(sampleRecord(100), true)).toBeUndefined();
    expect(recorder.open(sampleOpen(101), true)).toBeUndefined();
    await recorder.flush();
    await recorder.close();
    expect(recorder.stats()).toMatchObject({ written: 0, queued: 0, dropped: 102 });
    expect(told).toHaveLength(1);
  });

  test("in a database that can't be written for now is waited for", async () => {
    await database.sql(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
    const { recorder, told } = recorderOf(database.url());
    recorder.record(sampleRecord(1), false);
    await recorder.flush();
    expect(told.map(({ code }) => code)).toEqual(["PG_TELEMETRY_PROBE"]);
    expect(recorder.stats()).toMatchObject({ queued: 1, dropped: 0 });
    await onConnection(server!.url("postgres"), async (client) => {
      await client.query(`ALTER DATABASE ${database.name} RESET default_transaction_read_only`);
      // As after a switch to another server: the old connections are gone.
      await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [database.name]);
    });
    await recorder.flush();
    expect(recorder.stats()).toEqual({ written: 1, queued: 0, dropped: 0, problem: null });
  });

  test("of twelve first starts at once comes to be once, and nobody loses a row", async () => {
    const workers = Array.from({ length: 12 }, () => recorderOf(database.url()));
    let commits: (Promise<void> | undefined)[] = [];
    await onConnection(database.url(), async (client) => {
      // A creation that nobody sees yet holds all of them at the same point.
      await client.query("BEGIN; CREATE TABLE llm_calls (a int)");
      commits = workers.flatMap(({ recorder }, worker) => [
        recorder.open(sampleOpen(1_000 + worker), true),
        recorder.record(sampleRecord(worker), true),
      ]);
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${database.name}'`;
      while ((await database.sql(waiting)).length < 12) await sleep(20);
      await client.query("ROLLBACK");
    });
    await Promise.all(commits);
    expect(await count()).toBe(12);
    expect(await count("open_attempts")).toBe(12);
    expect(workers.flatMap(({ told }) => told)).toEqual([]);
    expect(database.ddl().filter((text) => text.startsWith(`CREATE TABLE "llm_calls"`))).toHaveLength(12);
  });

  test("is looked for in the schema that is named, and along the search path", async () => {
    await database.sql("CREATE SCHEMA audit");
    const named = recorderOf(database.url(), { table: "audit.calls" });
    await named.recorder.record(sampleRecord(1), true);
    expect(await count("audit.calls")).toBe(1);
    const path = recorderOf(`${database.url()}?options=-csearch_path%3Daudit`, { table: "calls" });
    await path.recorder.record(sampleRecord(2), true);
    expect(await count("audit.calls")).toBe(2);
  });

  test("is made again when somebody drops it", async () => {
    const { recorder } = recorderOf(database.url());
    await recorder.record(sampleRecord(1), true);
    await database.sql("DROP TABLE llm_calls");
    await recorder.record(sampleRecord(2), true);
    expect(await count()).toBe(1);
  });
});

/** As the Python original makes it: 22 columns, with types of its own. */
const ORIGINAL = `CREATE TABLE llm_calls (
  call_id varchar(64) PRIMARY KEY, session_id varchar(128), parent_call_id varchar(64), scope varchar(32), operation varchar(32),
  provider varchar(64), source_name varchar(64), model varchar(128), messages jsonb, response text, thinking text,
  prompt_tokens integer, completion_tokens integer, usage_source varchar(16), latency_ms integer, ttft_ms integer,
  cost numeric(18, 9), error text, created_at timestamptz NOT NULL DEFAULT now(), cached_prompt_tokens integer,
  model_reported varchar(128), sampling jsonb)`;

describe.skipIf(server === null)("a table of others", () => {
  test("of the original with 22 columns is completed by its owner, and takes rows in its own types", async () => {
    await database.sql(ORIGINAL);
    await database.sql("INSERT INTO llm_calls (call_id, scope) VALUES ('old', 'LLM')");
    const { recorder, told } = recorderOf(database.url());
    await recorder.record(sampleRecord(1), true);
    // Cut texts are no JSON, counts may be too large, names too long.
    const odd = { messages: "[{…", promptTokens: 2 ** 31 + 5, latencyMs: 12.7, provider: "p".repeat(100) };
    await recorder.record(sampleRecord(2, odd), true);
    expect(told).toEqual([]);
    const rows = await database.sql(
      "SELECT messages, prompt_tokens, latency_ms, length(provider) AS length, cost::text, final FROM llm_calls ORDER BY call_id",
    );
    expect(rows.slice(0, 2)).toEqual([
      expect.objectContaining({ messages: [{ role: "user", content: "hi" }], latency_ms: 57, cost: "0.000123456" }),
      { messages: "[{…", prompt_tokens: null, latency_ms: 13, length: 64, cost: "0.000123456", final: "1" },
    ]);
    const columns = await database.sql(
      "SELECT count(*) FROM information_schema.columns WHERE table_name = 'llm_calls'",
    );
    expect(columns).toEqual([{ count: "32" }]);
  });

  test("of the original is accepted as it is by a role with INSERT alone", async () => {
    await database.sql(`${ORIGINAL}; GRANT INSERT ON llm_calls TO ${database.role}`);
    const { recorder, told } = recorderOf(database.url("role"));
    await recorder.record(sampleRecord(1), true);
    expect(await count()).toBe(1);
    expect(told.map(({ code }) => code)).toEqual(["PG_TELEMETRY_COLUMN"]);
    expect(told[0]?.message).toContain("reasoning_tokens, outcome, attempt, request_id, status_code");
  });

  test("that only has the same name is left alone", async () => {
    await database.sql("CREATE TABLE llm_calls (id int)");
    const { recorder, told } = recorderOf(database.url());
    recorder.record(sampleRecord(1), false);
    await recorder.flush();
    expect(told.map(({ message }) => message.split(": ").at(-1))).toEqual(["it has no call_id. No row can be written"]);
    expect(database.ddl().filter((text) => text.startsWith("ALTER"))).toEqual([]);
  });
});
