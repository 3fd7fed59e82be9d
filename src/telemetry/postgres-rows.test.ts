import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../test/services/database.js";
import { sharedPostgres } from "../../test/services/shared-postgres.js";
import { sampleId, sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import type { RecorderProblem } from "./late-recorder.js";
import { PostgresRecorder } from "./postgres.js";

const server = await sharedPostgres();
let database: TestDatabase;
let recorder: PostgresRecorder;
let told: RecorderProblem[];

describe.skipIf(server === null)("rows of PostgreSQL", () => {
  beforeEach(async () => {
    database = await createDatabase(server!);
    recorder = new PostgresRecorder(database.url());
    told = [];
    recorder.onProblem((problem) => told.push(problem));
  });

  afterEach(async () => {
    await recorder.close();
    await database.dispose();
  });

  const numbers = async () =>
    (await database.sql("SELECT call_id FROM llm_calls ORDER BY call_id")).map(({ call_id }) => call_id);

  test("that the table refuses are dropped alone, each with a warning, and their neighbours land", async () => {
    await recorder.record(sampleRecord(0), true);
    await database.sql("ALTER TABLE llm_calls ADD CHECK (prompt_tokens < 1000)");
    const bad = new Set([3, 64, 65, 199]);
    const commits = Array.from({ length: 200 }, (_, index) => {
      const number = index + 1;
      return recorder.record(sampleRecord(number, bad.has(number) ? { promptTokens: 5_000 } : {}), true);
    });
    const settled = await Promise.allSettled(commits);
    expect(settled.flatMap(({ status }, index) => (status === "rejected" ? [index + 1] : []))).toEqual([...bad]);
    const all = Array.from({ length: 201 }, (_, number) => number);
    expect(await numbers()).toEqual(all.filter((number) => !bad.has(number)).map(sampleId));
    expect(recorder.stats()).toMatchObject({ written: 197, queued: 0, dropped: 4 });
    expect(told.filter(({ code }) => code === "PG_TELEMETRY_ROW")).toHaveLength(4);
  });

  test("with NUL, lone surrogates, huge numbers and huge texts are cleaned and land", async () => {
    await recorder.record(
      sampleRecord(1, {
        response: 'a\0b\ud800c\\{"},NULL',
        messages: "x".repeat(50_000_000),
        promptTokens: 2 ** 62,
        error: '{"a":'.repeat(10_000),
        sessionId: "",
      }),
      true,
    );
    const [row] = await database.sql(
      "SELECT response, prompt_tokens, session_id, length(messages) AS length FROM llm_calls",
    );
    expect(row).toMatchObject({ response: 'a\uFFFDb\uFFFDc\\{"},NULL', prompt_tokens: null, session_id: "" });
    expect(Number(row?.length)).toBeLessThanOrEqual(65_536);
    expect(told).toEqual([]);
  });

  test("that are written twice stay one", async () => {
    await recorder.record(sampleRecord(1), true);
    await recorder.record(sampleRecord(1), true);
    expect(await numbers()).toEqual([sampleId(1)]);
  });

  test("go in batches: many records are few statements", async () => {
    await database.sql("CREATE TABLE statements (at timestamptz)");
    await recorder.record(sampleRecord(0), true);
    await database.sql(
      `CREATE FUNCTION counted() RETURNS trigger AS 'BEGIN INSERT INTO statements VALUES (now()); RETURN NULL; END' LANGUAGE plpgsql;
       CREATE TRIGGER counted AFTER INSERT ON llm_calls FOR EACH STATEMENT EXECUTE FUNCTION counted()`,
    );
    for (let number = 1; number <= 1_000; number++) recorder.record(sampleRecord(number), false);
    await recorder.flush();
    expect(await numbers()).toHaveLength(1_001);
    expect(Number((await database.sql("SELECT count(*) FROM statements"))[0]?.count)).toBeLessThanOrEqual(5);
  });

  test("and their open attempts change in one transaction", async () => {
    await recorder.open(sampleOpen(1), true);
    await database.sql("ALTER TABLE llm_calls ADD CHECK (prompt_tokens < 1000)");
    await expect(recorder.record(sampleRecord(1, { promptTokens: 5_000 }), true)).rejects.toThrow("refuses this row");
    // Its record was refused, so it is still open: reconcile will find it.
    expect(await database.sql("SELECT call_id FROM open_attempts")).toEqual([{ call_id: sampleId(1) }]);
  });
});
