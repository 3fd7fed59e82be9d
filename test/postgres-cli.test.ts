import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../src/cli/program.js";
import { GatewayClient } from "../src/index.js";
import { PostgresRecorder } from "../src/telemetry/postgres.js";
import { sampleOpen, sampleRecord } from "../src/testing/contracts/recorder.js";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { fakeTerminal, makeFolder, sourceEnv, startCli } from "./cli-harness.js";
import { createDatabase, onConnection, type TestDatabase } from "./services/database.js";
import { eventually } from "./services/processes.js";
import { sharedRedis } from "./services/redis.js";
import { sharedPostgres } from "./services/shared-postgres.js";

/** Telemetry in PostgreSQL from end to end: environment, file and code; what the commands write, and read back. */

const PASSWORD = "sesame-open-5512";

const server = await sharedPostgres();
let folder: ReturnType<typeof makeFolder>;
let home: string;
let provider: SimulatedProvider;
let database: TestDatabase;
let dsn: string;

beforeEach(async () => {
  if (server === null) return;
  folder = makeFolder();
  home = process.cwd();
  process.chdir(folder.path);
  provider = await startSimulatedProvider({ answer: ({ question }) => `You said: ${question}` });
  database = await createDatabase(server);
  // The server asks for no password, so any will do; none of its letters may ever be seen.
  dsn = database.url().replace("postgres@", `postgres:${PASSWORD}@`);
});

afterEach(async () => {
  if (server === null) return;
  await provider.stop();
  await database.dispose();
  process.chdir(home);
  folder.remove();
});

const fromEnv = () => ({
  ...sourceEnv(provider.baseUrl),
  PGW_TELEMETRY_BACKEND: "postgres",
  PGW_TELEMETRY_PG_DSN: dsn,
});

async function cli(args: readonly string[], env: Record<string, string> = {}) {
  const terminal = fakeTerminal({ env });
  const code = await runCli(args, terminal);
  const all = terminal.out() + terminal.err();
  expect(all).not.toContain(PASSWORD);
  return { code, out: terminal.out(), err: terminal.err() };
}

const outcomes = async () =>
  (await database.sql("SELECT outcome FROM llm_calls ORDER BY call_id")).map(({ outcome }) => outcome);

/** The id of a process that is no more. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ["-e", "0"]);
  await new Promise((resolve) => child.on("exit", resolve));
  return child.pid ?? 0;
}

describe.skipIf(server === null)("the backend postgres", () => {
  it("is chosen by the environment, by a file, and in code", async () => {
    const call = { messages: [{ role: "user", content: "hi" }] };
    await using one = GatewayClient.fromEnv("LLM", { env: fromEnv() });
    await one.chat(call);
    await one.close();
    writeFileSync("dsn.txt", `${dsn}\n`);
    writeFileSync(
      "polygateway.yaml",
      `scopes:
  LLM:
    sources: [{ name: sim_1, baseUrl: "${provider.baseUrl}", apiKey: none, model: m }]
process:
  telemetryBackends: [postgres]
  postgresDsnFile: dsn.txt
`,
    );
    await using two = GatewayClient.fromConfig("polygateway.yaml", "LLM");
    await two.chat(call);
    await two.close();
    const sources = [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "m" }];
    await using three = new GatewayClient({ scope: "LLM", sources, telemetry: new PostgresRecorder(dsn) });
    await three.chat(call);
    await three.close();
    expect(await outcomes()).toEqual(["success", "success", "success"]);
    expect((await cli(["check"], {})).out).toContain(`Telemetry: PostgreSQL at ${database.url()}`);
  });

  it("needs its address, which is never shown", async () => {
    const { PGW_TELEMETRY_PG_DSN: _, ...without } = fromEnv();
    const missing = await cli(["check"], without);
    expect(missing.code).toBe(1);
    expect(missing.out).toContain("PGW_TELEMETRY_PG_DSN");
    expect(missing.out).toContain("is not set, although PGW_TELEMETRY_BACKEND names postgres");
    const wrong = await cli(["check"], { ...fromEnv(), PGW_TELEMETRY_PG_DSN: `mysql://me:${PASSWORD}@h/d` });
    expect(wrong.code).toBe(1);
    expect(wrong.out).toContain("does not begin with postgres:// or postgresql://");
    const idle = await cli(["check", "--json"], { ...fromEnv(), PGW_TELEMETRY_BACKEND: "jsonl" });
    expect(idle.out).toContain("has no effect while PGW_TELEMETRY_BACKEND doesn't name postgres");
    expect(JSON.parse(idle.out).process.postgresDsn).toBe(database.url());
    const wrongPort = await cli(["check"], {
      ...fromEnv(),
      PGW_TELEMETRY_PG_DSN: `postgres://me:${PASSWORD}@h:port/d`,
    });
    expect(wrongPort.out).toContain("PGW_TELEMETRY_PG_DSN = postgres://…");
  });

  it("keeps a batch's rows, which report, trace, reconcile and prune read back", async () => {
    const line = (id: string) =>
      JSON.stringify({
        custom_id: id,
        method: "POST",
        url: "/v1/chat/completions",
        body: { messages: [{ role: "user", content: id }] },
      });
    writeFileSync("in.jsonl", ["a", "b", "c"].map((id) => `${line(id)}\n`).join(""));
    const run = await cli(["batch", "in.jsonl", "-o", "out.jsonl"], fromEnv());
    expect(run).toMatchObject({ code: 0 });
    expect(readFileSync("out.jsonl", "utf8").trimEnd().split("\n")).toHaveLength(3);
    const report = await cli(["report"], fromEnv());
    expect(report.out).toContain(`Telemetry in ${database.url()}`);
    expect(report.out).toContain("3, 100.0 % answered");
    expect(JSON.parse((await cli(["report", "--db", dsn, "--json", "--since", "1h"])).out)).toMatchObject({
      file: database.url(),
      total: { calls: 3 },
    });
    expect((await cli(["report", "--db", dsn, "--since", "2999-01-01"])).out).toContain("No calls recorded.");
    expect((await cli(["trace", "b", "--db", dsn])).out).toContain("success");
    const books = await cli(["reconcile", "--db", dsn, "--out", "out.jsonl"]);
    expect(books.out).toContain("The books balance.");
    const prune = ["telemetry", "prune", "--older-than", "1s", "--db", dsn];
    await database.sql("UPDATE llm_calls SET created_at = now() - interval '1 day' WHERE parent_call_id <> 'b'");
    expect((await cli([...prune, "--dry-run"])).out).toContain("2 rows would be deleted from");
    expect((await cli(["telemetry", "prune", "--older-than", "1h"], fromEnv())).out).toContain(
      `2 rows deleted from ${database.url()}, 1 row kept.`,
    );
    expect(await outcomes()).toEqual(["success"]);
  });

  it("keeps the rows of all workers of a batch", async () => {
    const redis = await sharedRedis();
    if (redis === null) return;
    const line = (id: number) =>
      JSON.stringify({
        custom_id: `l${id}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: { messages: [{ role: "user", content: `${id}` }] },
      });
    writeFileSync("in.jsonl", Array.from({ length: 40 }, (_, id) => `${line(id)}\n`).join(""));
    const backends = { REDIS_URL: `${redis.url}/41`, PGW_LIMITER_BACKEND: "redis", PGW_BREAKER_BACKEND: "redis" };
    const args = ["batch", "in.jsonl", "-o", "out.jsonl", "--workers", "2", "--quiet"];
    const { code, stderr } = await startCli(args, { folder: folder.path, env: { ...fromEnv(), ...backends } }).finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(await outcomes()).toEqual(Array(40).fill("success"));
    expect((await cli(["reconcile", "--db", dsn, "--out", "out.jsonl"])).out).toContain("The books balance.");
  });

  it("gives what a dead process left open its row", async () => {
    const recorder = new PostgresRecorder(dsn);
    const worker = `${hostname()}:${await deadPid()}:x`;
    await recorder.open(sampleOpen(1, { worker, startedAtMs: Date.now() - 60_000 }), true);
    await recorder.record(sampleRecord(2), true);
    await recorder.close();
    const repaired = await cli(["reconcile", "--db", dsn]);
    expect(repaired.out).toContain("1 attempt sent with unknown outcome, possibly billed");
    expect(repaired).toMatchObject({ code: 0 });
    expect((await outcomes()).sort()).toEqual(["abandoned", "abandoned", "success"]);
    expect(await database.sql("SELECT * FROM open_attempts")).toEqual([]);
    expect((await cli(["reconcile", "--db", dsn])).out).toContain("nothing was left open by dead processes");
  });

  it("waits for the last statement of a dead process, and ends no call a second time", async () => {
    const recorder = new PostgresRecorder(dsn);
    const worker = `${hostname()}:${await deadPid()}:x`;
    const startedAtMs = Date.now() - 60_000;
    await recorder.open(sampleOpen(1, { worker, startedAtMs }), true);
    await recorder.record(
      sampleRecord(2, { requestId: sampleOpen(1).requestId, worker, final: false, attempt: 1 }),
      true,
    );
    await recorder.close();
    let books: Promise<Awaited<ReturnType<typeof cli>>> | undefined;
    await onConnection(dsn, async (client) => {
      await client.query("BEGIN; DELETE FROM open_attempts");
      await client.query(
        "INSERT INTO llm_calls (call_id, request_id, worker, outcome, attempt, final) VALUES ($1, $2, $3, 'success', 2, 1)",
        [sampleOpen(1).callId, sampleOpen(1).requestId, worker],
      );
      books = cli(["reconcile", "--db", dsn]);
      const blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
      while ((await database.sql(blocked)).length === 0) await sleep(20);
      await client.query("COMMIT");
    });
    expect(await books).toMatchObject({ code: 0 });
    expect((await cli(["reconcile", "--db", dsn])).out).toContain("The books balance.");
    expect(await database.sql("SELECT outcome FROM llm_calls WHERE final = 1")).toEqual([{ outcome: "success" }]);
  });

  it("without the table is told as such by whoever reads it, instead of empty books", async () => {
    const asks = [["report"], ["reconcile"], ["trace", "a"], ["telemetry", "prune", "--older-than", "1d"]];
    for (const ask of asks) {
      const none = await cli([...ask, "--db", dsn]);
      expect(none).toMatchObject({ code: 1, out: "" });
      expect(none.err).toContain(`${database.url()} has no telemetry in a table llm_calls. Give another --db`);
    }
    await cli(["telemetry", "migrate", "--db", dsn]);
    expect((await cli(["reconcile", "--db", dsn])).out).toContain("The books balance.");
    for (const ask of asks) {
      const other = await cli([...ask, "--db", dsn, "--table", "audit.nope"]);
      expect(other).toMatchObject({ code: 1, out: "" });
      expect(other.err).toContain("has no telemetry in a table audit.nope");
    }
  });

  it("has tables of the names that the recorder takes, and no other", async () => {
    const refused = ["", "a b", 'a"b', "1a", "a.b.c", "a".repeat(49), "open_attempts", "audit.open_attempts", "schéma"];
    for (const table of refused) {
      for (const ask of [["telemetry", "migrate"], ["telemetry", "index"], ["report"]]) {
        const { code, err } = await cli([...ask, "--db", dsn, "--table", table]);
        expect([code, table]).toEqual([1, table]);
        expect(err).toMatch(/A table's name has letters, digits and _/);
      }
      expect(() => new PostgresRecorder({ dsn, table })).toThrow("is no table name");
    }
    // The longest leaves room for the names of all its indexes.
    const longest = "a".repeat(48);
    expect((await cli(["telemetry", "migrate", "--db", dsn, "--table", longest])).code).toBe(0);
    expect((await cli(["telemetry", "index", "--db", dsn, "--table", longest])).code).toBe(0);
    expect((await cli(["telemetry", "index", "--db", dsn, "--table", longest])).out).toContain("has these indexes");
    const recorder = new PostgresRecorder({ dsn, table: "b".repeat(48) });
    await recorder.record(sampleRecord(1), true);
    await recorder.close();
  });

  it("is made and upgraded by `telemetry migrate`", async () => {
    const made = await cli(["telemetry", "migrate", "--db", dsn, "--table", "fresh"]);
    expect(made.out).toBe(
      `Created in ${database.url()}: table fresh with 32 columns, table open_attempts with 10 columns.\n`,
    );
    await database.sql("DROP TABLE open_attempts");
    await database.sql(
      "CREATE TABLE llm_calls (call_id text PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), scope text)",
    );
    const first = await cli(["telemetry", "migrate", "--db", dsn]);
    expect(first.out).toMatch(/^Created in .*: table open_attempts with 10 columns\.\nAdded to .*: llm_calls\.\w+/);
    expect(first.out).toMatch(/llm_calls\.outcome.*index llm_calls_created_at, index llm_calls_session_id\.\n$/);
    expect((await cli(["telemetry", "migrate"], fromEnv())).out).toContain("is up to date.");
    const again = JSON.parse((await cli(["telemetry", "migrate", "--db", dsn, "--table", "json", "--json"])).out);
    expect(again).toEqual({ file: database.url(), created: [{ table: "json", columns: 32 }], added: [] });
    const denied = await cli(["telemetry", "migrate", "--db", database.url("role"), "--table", "other"]);
    expect(denied.err).toContain("permission denied for schema public");
    expect((await cli(["telemetry", "migrate", "--db", "calls.db"])).err).toContain("is no PostgreSQL database");
  });

  it("gets more indexes by `telemetry index`, by which trace finds a call", async () => {
    const none = await cli(["telemetry", "index", "--db", dsn]);
    expect(none).toMatchObject({ code: 1 });
    expect(none.err).toContain("has no telemetry in a table llm_calls");
    const recorder = new PostgresRecorder(dsn);
    for (let n = 1; n <= 200; n += 1) recorder.record(sampleRecord(n, { requestId: `r${n}` }), false);
    await recorder.close();
    // What a build that was broken off leaves behind: its name is taken, and nothing uses it.
    await database.sql("CREATE INDEX llm_calls_request_id ON llm_calls (request_id)");
    await database.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'llm_calls_request_id'::regclass");
    const added = await cli(["telemetry", "index"], fromEnv());
    expect(added.out).toBe(`Added to ${database.url()}: index llm_calls_request_id, index llm_calls_parent_call_id.\n`);
    expect((await cli(["telemetry", "index", "--db", dsn])).out).toContain("has these indexes already.");
    expect((await cli(["telemetry", "index", "model", "outcome", "--db", dsn])).out).toContain(
      "index llm_calls_model, index llm_calls_outcome.",
    );
    const planner = "?options=-cenable_seqscan%3Doff%20-cenable_indexscan%3Doff";
    expect((await cli(["trace", "r7", "--db", `${dsn}${planner}`])).out).toContain("Call r7: 1 call, 1 attempt");
    const scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'llm_calls_request_id'";
    await eventually(async () => expect(Number((await database.sql(scans))[0]?.idx_scan)).toBeGreaterThan(0));
    await database.sql("ALTER TABLE llm_calls DROP COLUMN worker");
    expect((await cli(["telemetry", "index", "worker", "--db", dsn])).err).toContain(
      "lacks the column worker. `polygateway telemetry migrate` adds it",
    );
    await database.sql(`GRANT SELECT, INSERT ON llm_calls TO ${database.role}`);
    expect((await cli(["telemetry", "index", "scope", "--db", database.url("role")])).err).toContain("must be owner");
  });

  it("is indexed by one at a time", async () => {
    await cli(["telemetry", "migrate", "--db", dsn]);
    let waiting: ReturnType<typeof cli> | undefined;
    await onConnection(dsn, async (client) => {
      // Holds the builder up, as a long transaction does.
      await client.query("BEGIN; LOCK TABLE llm_calls IN ROW EXCLUSIVE MODE");
      waiting = cli(["telemetry", "index", "--db", dsn]);
      const blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
      while ((await database.sql(blocked)).length === 0) await sleep(20);
      const second = await cli(["telemetry", "index", "--db", dsn]);
      expect(second).toMatchObject({ code: 1 });
      expect(second.err).toContain("somebody else is building indexes there. Try again when they are done");
      await client.query("COMMIT");
    });
    expect((await waiting)?.out).toContain("index llm_calls_request_id");
  });

  it("that can't be reached or has no rights is said in one line", async () => {
    const nowhere = `postgres://me:${PASSWORD}@127.0.0.1:1/db`;
    const refused = await cli(["report", "--db", nowhere]);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toMatch(
      /postgres:\/\/me@127\.0\.0\.1:1\/db can't be reached \(.*ECONNREFUSED.*Check the address/,
    );
    await cli(["telemetry", "migrate", "--db", dsn]);
    const denied = await cli(["report", "--db", database.url("role")]);
    expect(denied.err).toContain("permission denied for table llm_calls");
    expect(denied.err).toContain("GRANT that right");
    // Telemetry never stops a call.
    const chat = await cli(["chat", "hello"], { ...fromEnv(), PGW_TELEMETRY_PG_DSN: nowhere });
    expect(chat).toMatchObject({ code: 0 });
    expect(chat.out).toContain("You said: hello");
    expect(chat.err).toContain("can't be reached");
  });

  it("of a role that may only write is enough for a batch, which says once what it could not look at", async () => {
    await cli(["telemetry", "migrate", "--db", dsn]);
    await database.sql(`GRANT INSERT ON llm_calls TO ${database.role};
      GRANT SELECT, INSERT, DELETE ON open_attempts TO ${database.role}`);
    const lines = ["a", "b"].map((id) => `${JSON.stringify({ id, prompt: id })}\n`);
    writeFileSync("in.jsonl", lines.join(""));
    const env = { ...fromEnv(), PGW_TELEMETRY_PG_DSN: database.url("role") };
    await cli(["batch", "in.jsonl", "-o", "out.jsonl"], env);
    // A second run looks for what the first one paid for.
    writeFileSync("in.jsonl", [...lines, `${JSON.stringify({ id: "c", prompt: "c" })}\n`].join(""));
    const again = await cli(["batch", "in.jsonl", "-o", "out.jsonl"], env);
    expect(again).toMatchObject({ code: 0 });
    expect(again.err.match(/permission denied/g)).toHaveLength(1);
    expect(again.err).toContain("The books of earlier runs could not be checked: ");
    expect(await outcomes()).toEqual(["success", "success", "success"]);
  });

  it("tells its warnings by the codes of the page", async () => {
    const chat = await cli(["chat", "hello"], { ...fromEnv(), PGW_TELEMETRY_PG_DSN: "postgres://me@127.0.0.1:1/db" });
    expect(chat.err).toContain("(PG_TELEMETRY_LOST)");
    const denied = await cli(["chat", "hello"], { ...fromEnv(), PGW_TELEMETRY_PG_DSN: database.url("role") });
    expect(denied.err).toContain("(PG_TELEMETRY_CREATE)");
  });

  it("works in the built command too", async () => {
    const { code, stderr } = await startCli(["chat", "hello"], { folder: folder.path, env: fromEnv() }).finished;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/warn|telemetry/i);
    expect(await outcomes()).toEqual(["success"]);
  });
});

describe.skipIf(server === null)("check", () => {
  const check = async (user?: "role") => {
    const env = { ...fromEnv(), PGW_TELEMETRY_PG_DSN: database.url(user) };
    const { code, out } = await cli(["check"], env);
    const json = JSON.parse((await cli(["check", "--json"], env)).out);
    return { code, out, levels: json.postgres.findings.map(({ level }: { level: string }) => level), ok: json.ok };
  };

  it("shows the database, its tables and the rights of the role", async () => {
    const empty = await check();
    expect(empty.out).toMatch(/✓ PostgreSQL \d+\.\d+ answers, role postgres\n/);
    expect(empty.out).toContain("table llm_calls is not there yet: the first row creates it");
    expect(empty).toMatchObject({ code: 0, ok: true, levels: ["ok", "ok", "ok"] });
    const nothing = await check("role");
    expect(nothing.out).toContain("table llm_calls is missing, and the role may not create it");
    expect(nothing).toMatchObject({ code: 1, ok: false, levels: ["ok", "problem", "warning"] });
    await cli(["telemetry", "migrate", "--db", dsn]);
    const denied = await check("role");
    expect(denied.out).toContain(`table llm_calls: no right to write. GRANT INSERT ON llm_calls TO ${database.role}`);
    expect(denied).toMatchObject({ code: 1, levels: ["ok", "problem", "warning"] });
    await database.sql(`GRANT SELECT ON llm_calls, open_attempts TO ${database.role}`);
    const reads = await check("role");
    expect(reads.out).toMatch(
      /table llm_calls may be read alone: right for report and trace, not enough .*GRANT INSERT/,
    );
    expect(reads.out).toContain("journal open_attempts may be read");
    expect(reads).toMatchObject({ code: 0, ok: true, levels: ["ok", "warning", "ok"] });
    await database.sql(`REVOKE ALL ON llm_calls, open_attempts FROM ${database.role}`);
    await database.sql(`GRANT INSERT ON llm_calls TO ${database.role}`);
    const writes = await check("role");
    expect(writes.out).toContain("table llm_calls may be written, not read");
    expect(writes.out).toContain("journal open_attempts: no right to SELECT, INSERT, DELETE");
    expect(writes).toMatchObject({ code: 0, ok: true, levels: ["ok", "ok", "warning"] });
    await database.sql("ALTER TABLE llm_calls DROP COLUMN route");
    expect((await check()).out).toContain("it lacks route: `polygateway telemetry migrate` as its owner adds them");
    expect(database.ddl().filter((text) => text.startsWith("CREATE TABLE"))).toHaveLength(2);
  });

  it("says so when nobody answers", async () => {
    const { code, out } = await cli(["check"], { ...fromEnv(), PGW_TELEMETRY_PG_DSN: "postgres://me@127.0.0.1:1/db" });
    expect(code).toBe(1);
    expect(out).toMatch(/✗ can't be reached: .*ECONNREFUSED/);
  });
});
