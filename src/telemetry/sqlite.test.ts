import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError } from "../errors.js";
import { sampleId, sampleRecord } from "../testing/contracts/recorder.js";
import { CALL_COLUMNS } from "./columns.js";
import { SqliteRecorder, sqliteAvailable } from "./sqlite.js";
import { findDriver, openDatabase } from "./sqlite-driver.js";

let folder = "";
let path = "";
let opened: SqliteRecorder[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-sqlite-"));
  path = join(folder, "calls.db");
});

afterEach(async () => {
  for (const recorder of opened) await recorder.close();
  opened = [];
  rmSync(folder, { recursive: true, force: true });
});

function recorderAt(file: string, options: { table?: string; queueSize?: number } = {}) {
  const recorder = new SqliteRecorder({ path: file, flushIntervalMs: 5, ...options });
  opened.push(recorder);
  return recorder;
}

function query(file: string, sql: string): Record<string, unknown>[] {
  const database = openDatabase(file, { readOnly: true });
  try {
    return database.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    database.close();
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("options out of range are refused all at once, and nothing is opened", () => {
  const make = () => new SqliteRecorder({ path: "", table: "a; DROP", queueSize: 0, flushIntervalMs: 0.5 });
  expect(make).toThrow(ConfigError);
  try {
    make();
  } catch (error) {
    const keys = (error as ConfigError).problems.map(({ key }) => key.split(".")[1]);
    expect(keys).toEqual(["path", "table", "queueSize", "flushIntervalMs"]);
  }
  new SqliteRecorder(path);
  expect(existsSync(path)).toBe(false);
});

test("where no driver is, the reason and the command are given", () => {
  const available = sqliteAvailable();
  const driver = findDriver();
  expect(available.ok).toBe(driver.ok);
  if (!available.ok) expect(available.remedy).toBe("npm install better-sqlite3@12");
});

describe.skipIf(!sqliteAvailable().ok)("SqliteRecorder", () => {
  test("the table has the 31 columns and created_at in the contract's order, in WAL, with two indexes", async () => {
    await recorderAt(path).record(sampleRecord(1), true);
    const names = query(path, "PRAGMA table_info(llm_calls)").map((row) => row.name);
    const expected = CALL_COLUMNS.map((column): string => column.name);
    expected.splice(18, 0, "created_at");
    expect(names).toEqual(expected);
    expect(names).toHaveLength(32);
    expect(query(path, "PRAGMA journal_mode")).toEqual([{ journal_mode: "wal" }]);
    const indexes = query(path, "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'llm_calls%'");
    expect(indexes.map((row) => row.name).sort()).toEqual(["llm_calls_created_at", "llm_calls_session_id"]);
  });

  test("a refused body is found head and tail in the error column", async () => {
    const body = `{"error":{"message":"Range of input length should be [1, 1000]",${"x".repeat(900)},"code":"invalid_parameter_error"}`;
    const error = `acme_1 request rejected: 400 | ${body}`;
    await recorderAt(path).record(sampleRecord(1, { outcome: "rejected", statusCode: 400, error }), true);
    const [row] = query(path, "SELECT error FROM llm_calls");
    expect(String(row?.error)).toContain("Range of input length");
    expect(String(row?.error).endsWith('"code":"invalid_parameter_error"}')).toBe(true);
  });

  test("a table of the original with 22 columns gets the missing ones and keeps its rows", async () => {
    const original = CALL_COLUMNS.slice(0, 21).map(
      ({ name, type }, index) => `${name} ${type}${index ? "" : " PRIMARY KEY"}`,
    );
    original.splice(18, 0, "created_at TEXT DEFAULT (datetime('now'))");
    expect(original).toHaveLength(22);
    const database = openDatabase(path, { readOnly: false });
    database.exec(`CREATE TABLE llm_calls (${original.join(", ")})`);
    database.exec("INSERT INTO llm_calls (call_id, scope) VALUES ('old', 'LLM')");
    database.close();
    await recorderAt(path).record(sampleRecord(1), true);
    const rows = query(path, "SELECT call_id, outcome, final FROM llm_calls ORDER BY rowid");
    expect(rows).toEqual([
      { call_id: "old", outcome: null, final: null },
      { call_id: sampleId(1), outcome: "success", final: 1 },
    ]);
  });

  test("an up-to-date table sees no DDL", async () => {
    const first = recorderAt(path);
    await first.record(sampleRecord(1), true);
    await first.close();
    const version = () => query(path, "PRAGMA schema_version")[0]?.schema_version;
    const before = version();
    await recorderAt(path).record(sampleRecord(2), true);
    expect(version()).toBe(before);
  });

  test("the same row twice is kept once", async () => {
    const recorder = recorderAt(path);
    await recorder.record(sampleRecord(1), true);
    await recorder.record(sampleRecord(1, { response: "again" }), true);
    expect(query(path, "SELECT response FROM llm_calls")).toEqual([{ response: "hello" }]);
  });

  test("a row the table refuses is lost alone and counted", async () => {
    const recorder = recorderAt(path);
    await recorder.record(sampleRecord(1), true);
    await recorder.close();
    const database = openDatabase(path, { readOnly: false });
    database.exec(
      "CREATE TRIGGER no_two BEFORE INSERT ON llm_calls WHEN NEW.prompt_tokens = 2 BEGIN SELECT RAISE(ABORT, 'not two'); END",
    );
    database.close();
    const problems: string[] = [];
    recorder.onProblem(({ code }) => problems.push(code));
    const good = recorder.record(sampleRecord(2), true);
    const bad = expect(recorder.record(sampleRecord(3, { promptTokens: 2 }), true)).rejects.toThrow("lost");
    const alsoGood = recorder.record(sampleRecord(4), true);
    await Promise.all([good, bad, alsoGood]);
    expect(recorder.stats()).toMatchObject({ written: 3, dropped: 1 });
    expect(problems).toContain("SQLITE_TELEMETRY_ROW");
    expect(query(path, "SELECT call_id FROM llm_calls")).toHaveLength(3);
  });

  test("a locked file delays rows and loses none, and the event loop is not held up", async () => {
    const locker = openDatabase(path, { readOnly: false });
    locker.exec("CREATE TABLE other (a)");
    locker.exec("BEGIN IMMEDIATE");
    const delay = monitorEventLoopDelay({ resolution: 5 });
    const recorder = recorderAt(path);
    const problems: string[] = [];
    recorder.onProblem(({ code }) => problems.push(code));
    const committed = recorder.record(sampleRecord(1), true);
    delay.enable();
    await until(() => problems.length > 0);
    delay.disable();
    expect(problems[0]).toBe("SQLITE_TELEMETRY_BUSY");
    expect(recorder.stats()).toMatchObject({ written: 0, queued: 1, dropped: 0 });
    locker.exec("COMMIT");
    locker.close();
    await committed;
    expect(recorder.stats()).toMatchObject({ written: 1, queued: 0, dropped: 0, problem: null });
    // The lock is waited for in the thread for seconds; the main thread must not have stood still for as long.
    expect(delay.max / 1e6).toBeLessThan(1_000);
  });

  test("a damaged file is left as it is, and rows go to a new file beside it", async () => {
    const damaged = Buffer.from("SQLite format 3\0".padEnd(8_192, "garbage "));
    writeFileSync(path, damaged);
    const recorder = recorderAt(path);
    const problems: string[] = [];
    recorder.onProblem(({ message }) => problems.push(message));
    await recorder.record(sampleRecord(1), true);
    await recorder.close();
    expect(readFileSync(path).equals(damaged)).toBe(true);
    expect(query(`${path}.recovered-1`, "SELECT call_id FROM llm_calls")).toHaveLength(1);
    expect(problems.join()).toContain(`${path}.recovered-1`);
    await recorderAt(path).record(sampleRecord(2), true);
    expect(query(`${path}.recovered-1`, "SELECT call_id FROM llm_calls")).toHaveLength(2);
  });

  test("damage inside a file that was healthy at its start is survived as well", async () => {
    const recorder = recorderAt(path);
    for (let number = 0; number < 300; number++) recorder.record(sampleRecord(number), false);
    await recorder.close();
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 4_096);
    writeFileSync(path, bytes);
    await recorder.record(sampleRecord(1_000), true);
    await recorder.close();
    expect(query(`${path}.recovered-1`, "SELECT call_id FROM llm_calls")).toEqual([{ call_id: sampleId(1_000) }]);
  });

  test("a deleted file is made anew", async () => {
    const recorder = recorderAt(path);
    await recorder.record(sampleRecord(1), true);
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    await recorder.record(sampleRecord(2), true);
    expect(query(path, "SELECT call_id FROM llm_calls")).toEqual([{ call_id: sampleId(2) }]);
  });

  test("a dropped table is made anew", async () => {
    const recorder = recorderAt(path);
    await recorder.record(sampleRecord(1), true);
    const database = openDatabase(path, { readOnly: false });
    database.exec("DROP TABLE llm_calls");
    database.close();
    await recorder.record(sampleRecord(2), true);
    expect(query(path, "SELECT call_id FROM llm_calls")).toEqual([{ call_id: sampleId(2) }]);
  });

  test("a place that can't be written keeps the newest rows, counts the rest and recovers", async () => {
    const missing = join(folder, "later", "calls.db");
    const recorder = recorderAt(missing, { queueSize: 100 });
    const problems: string[] = [];
    recorder.onProblem(({ code }) => problems.push(code));
    for (let number = 0; number < 250; number++) recorder.record(sampleRecord(number), false);
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ written: 0, queued: 100, dropped: 150 });
    expect(problems).toContain("SQLITE_TELEMETRY_IO");
    mkdirSync(join(folder, "later"));
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ written: 100, queued: 0, dropped: 150 });
  });

  test("rows that can't be written until close are counted as lost", async () => {
    writeFileSync(path, "");
    const blocked = recorderAt(join(path, "below-a-file.db"));
    blocked.record(sampleRecord(2), false);
    await blocked.close();
    expect(blocked.stats()).toMatchObject({ written: 0, queued: 0, dropped: 1 });
  });

  test("twelve recorders that start at once make one schema and lose nothing", async () => {
    const recorders = Array.from({ length: 12 }, () => recorderAt(path));
    await Promise.all(recorders.map((recorder, number) => recorder.record(sampleRecord(number), true)));
    expect(query(path, "SELECT call_id FROM llm_calls")).toHaveLength(12);
  });
});
