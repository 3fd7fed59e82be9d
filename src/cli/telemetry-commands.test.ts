import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JsonlRecorder } from "../telemetry/jsonl.js";
import { SqliteRecorder } from "../telemetry/sqlite.js";
import { findDriver, openDatabase } from "../telemetry/sqlite-driver.js";
import { sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import { CliError } from "./failure.js";
import { registerReconcile } from "./reconcile.js";
import { registerReport } from "./report.js";
import { registerTelemetry } from "./telemetry.js";
import type { Terminal } from "./terminal.js";
import { registerTrace } from "./trace.js";

let folder = "";
let store = "";

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pgw-cli-"));
  store = join(folder, "calls.jsonl");
  const recorder = new JsonlRecorder(store);
  const failed = { requestId: "b", outcome: "transient", statusCode: 503, final: false } as const;
  recorder.record(sampleRecord(1), false);
  recorder.record(sampleRecord(2, { ...failed, error: "acme_1 transient failure: 503 | \u001b[31mbusy" }), false);
  recorder.record(sampleRecord(3, { requestId: "b", attempt: 2, sourceName: "acme_2" }), false);
  await recorder.close();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface RunOptions {
  readonly tty?: boolean;
  readonly env?: Record<string, string>;
  readonly columns?: number;
}

async function run(args: readonly string[], options: RunOptions = {}) {
  let text = "";
  const write = (part: string): void => {
    text += part;
  };
  const stream = {
    write,
    isTTY: options.tty === true,
    ...(options.columns === undefined ? {} : { columns: options.columns }),
  };
  const terminal: Terminal = {
    stdout: stream,
    stderr: stream,
    stdin: process.stdin,
    env: options.env ?? {},
    onInterrupt: () => () => {},
  };
  const program = new Command().exitOverride().configureOutput({ writeOut: stream.write, writeErr: stream.write });
  registerReport(program, terminal);
  registerReconcile(program, terminal);
  registerTrace(program, terminal);
  registerTelemetry(program, terminal);
  try {
    await program.parseAsync([...args], { from: "user" });
    return { text, error: null };
  } catch (error) {
    return { text, error: error as Error };
  }
}

describe("report", () => {
  test("shows totals, groups and errors as text without control characters", async () => {
    const { text, error } = await run(["report", "--db", store, "--by", "source"]);
    expect(error).toBeNull();
    expect(text).toContain("Calls      2, 100.0 % answered");
    expect(text).toContain("Attempts   3, 1.50 per call");
    expect(text).toMatch(/acme_2\s+1\s+100\.0 %/);
    expect(text).toContain("acme_1 transient failure: 503 | [31mbusy");
    expect(text).not.toContain("\u001b");
  });

  test("colours only on a terminal and without NO_COLOR", async () => {
    const args = ["report", "--db", store];
    expect((await run(args, { tty: true })).text).toContain("\u001b[1m");
    expect((await run(args, { tty: true, env: { NO_COLOR: "1" } })).text).not.toContain("\u001b[1m");
  });

  test("--json is the report for programs, --since leaves old rows out", async () => {
    const all = JSON.parse((await run(["report", "--db", store, "--json", "--by", "day"])).text);
    expect(all).toMatchObject({ file: store, unreadableLines: 0, total: { calls: 2, attempts: 3 } });
    const later = JSON.parse((await run(["report", "--db", store, "--json", "--since", "2999-01-01"])).text);
    expect(later.total.calls).toBe(0);
    expect((await run(["report", "--db", store, "--since", "2999-01-01"])).text).toContain("No calls recorded.");
  });

  test("a missing or foreign file and a senseless --since are refused in one sentence", async () => {
    const missing = await run(["report", "--db", join(folder, "none.db")]);
    expect(missing.error).toBeInstanceOf(CliError);
    expect(missing.error?.message).toContain("does not exist");
    writeFileSync(join(folder, "foreign"), "hello");
    expect((await run(["report", "--db", join(folder, "foreign")])).error?.message).toContain("neither a SQLite");
    expect((await run(["report", "--db", store, "--since", "soon"])).error?.message).toContain("--since soon");
    expect((await run(["report", "--db", store, "--by", "colour"])).error?.message).toContain("--by");
  });
});

describe("a file that is no telemetry", () => {
  const foreign = ['{"custom_id":"q1","body":{}}\n'.repeat(3), '{\n  "name": "x",\n  "open": {}\n}\n'];
  test.each(["report", "reconcile"])("%s refuses it and leaves it as it is", async (command) => {
    for (const content of foreign) {
      const path = join(folder, "questions.jsonl");
      writeFileSync(path, content);
      const { text, error } = await run([command, "--db", path]);
      expect((error as CliError).exitCode).toBe(1);
      expect(error?.message).toContain(`${path} is not a telemetry file`);
      expect(text).toBe("");
      expect(readFileSync(path, "utf8")).toBe(content);
    }
  });

  test("one torn row is telemetry, and nothing of it is said to balance", async () => {
    const path = join(folder, "torn.jsonl");
    writeFileSync(path, '{"call_id":"torn","resp');
    const { text, error } = await run(["reconcile", "--db", path]);
    expect(error).toBeNull();
    expect(text).toContain("1 line could not be read and is left out");
    expect(text).not.toContain("balance");
  });

  test("unreadable lines are counted in whole sentences", async () => {
    appendFileSync(store, "foreign\nlines\n");
    expect((await run(["report", "--db", store])).text).toContain("2 lines could not be read and are left out");
  });
});

describe.skipIf(!findDriver().ok)("a database without the table", () => {
  const ASKS = [["report"], ["reconcile"], ["trace", "a"], ["telemetry", "prune", "--older-than", "1d"]];

  test.each(ASKS)("%s says that there is none, instead of empty books", async (...ask) => {
    const empty = join(folder, "empty.db");
    writeFileSync(empty, "");
    const foreign = join(folder, "foreign.db");
    const database = openDatabase(foreign, { readOnly: false });
    database.exec("CREATE TABLE people (name TEXT)");
    database.close();
    const ours = join(folder, "ours.db");
    const recorder = new SqliteRecorder(ours);
    recorder.record(sampleRecord(1), false);
    await recorder.close();
    for (const [path, table] of [
      [empty, undefined],
      [foreign, undefined],
      [ours, "nope"],
    ] as const) {
      const { text, error } = await run([...ask, "--db", path, ...(table === undefined ? [] : ["--table", table])]);
      expect((error as CliError).exitCode).toBe(1);
      expect(error?.message).toContain(
        `${path} has no telemetry in a table ${table ?? "llm_calls"}. Give another --db`,
      );
      expect(text).toBe("");
    }
    expect(readFileSync(empty, "utf8")).toBe("");
  });

  test.each(ASKS)("%s takes the names that a recorder takes, and no other", async (...ask) => {
    for (const table of ["", "a b", 'a"b', "1a", "a".repeat(49), "open_attempts", "a;DROP TABLE x"]) {
      const { error } = await run([...ask, "--db", join(folder, "none.db"), "--table", table]);
      expect(error?.message, table).toMatch(/A table's name has letters, digits and _/);
      expect(() => new SqliteRecorder({ path: "x", table })).toThrow("is no table name");
    }
  });

  test.each(ASKS)("%s refuses a table of JSONL, which has none", async (...ask) => {
    const { error } = await run([...ask, "--db", store, "--table", "llm_calls"]);
    expect(error?.message).toContain("is JSONL, which has no tables");
  });
});

describe("calls of a process that was killed", () => {
  const DEAD = "elsewhere:1:abc";

  test("are told once, as what may have been billed, under their operation", async () => {
    const path = join(folder, "calls.db");
    const recorder = new SqliteRecorder(path);
    const open = { worker: DEAD, scope: "OCR", operation: "ocr_layout", parentCallId: "scan.pdf#1" };
    await recorder.open(sampleOpen(1, open), true);
    await recorder.record(sampleRecord(2, { requestId: "answered" }), true);
    await recorder.close();
    await run(["reconcile", "--db", path]);
    const { text } = await run(["report", "--db", path, "--by", "source"]);
    expect(text.match(/ended before/g)).toHaveLength(1);
    expect(text).toMatch(/Retries .*cost unknown: 1 attempt of processes that ended may have been billed/);
    expect(text).toContain("ended with their process");
    const trace = (await run(["trace", "scan.pdf#1", "--db", path])).text;
    expect(trace).toMatch(/ocr_layout \S+ {2}abandoned/);
  });

  test("are repaired from a journal of an earlier version as well", async () => {
    const path = join(folder, "calls.db");
    const recorder = new SqliteRecorder(path);
    await recorder.open(sampleOpen(1, { worker: DEAD }), true);
    await recorder.close();
    const database = openDatabase(path, { readOnly: false });
    database.exec("ALTER TABLE open_attempts DROP COLUMN operation");
    database.close();
    expect((await run(["reconcile", "--db", path])).text).toContain("1 attempt sent with unknown outcome");
  });
});

test("an answer without tokens or a price has an unknown cost in every place", async () => {
  const path = await storeWith(
    sampleRecord(1, { operation: "ocr_text", promptTokens: null, completionTokens: null, costNanos: null }),
  );
  const { text } = await run(["report", "--db", path, "--by", "source"]);
  expect(text).toContain("Cost       unknown (no price for 1 attempt)");
  expect(text).toMatch(/acme_1 .* unknown /);
});

describe("money nobody knows", () => {
  test("is unknown, never 0, with the remedy once", async () => {
    const path = await storeWith(sampleRecord(1, { costNanos: null }));
    const report = (await run(["report", "--db", path, "--by", "source"])).text;
    expect(report).toContain("Cost       unknown (no price for 1 attempt)");
    expect(report).not.toContain("0.00");
    expect(report.match(/PGW_PRICING_PATH/g)).toHaveLength(1);
    const books = (await run(["reconcile", "--db", path])).text;
    expect(books).toContain("Money      unknown (no price for 1 attempt)");
    expect(books).toContain("PGW_PRICING_PATH");
  });

  test("stands beside what is known", async () => {
    const known = sampleRecord(1, { requestId: "a", costNanos: 1_230_000_000n });
    const path = await storeWith(known, sampleRecord(2, { requestId: "b", costNanos: null }));
    const sum = "1.23 + 1 attempt without a price (of 2)";
    expect((await run(["report", "--db", path])).text).toContain(`Cost       ${sum}`);
    expect((await run(["reconcile", "--db", path])).text).toContain(`Money      ${sum}`);
  });
});

test("cancelled calls have a line of their own, and rows without a source say what they are", async () => {
  const cancelled = { outcome: "cancelled", error: "cancelled: Interrupted." } as const;
  const path = await storeWith(
    sampleRecord(1, { requestId: "a" }),
    sampleRecord(2, { requestId: "b", ...cancelled, attempt: null, sourceName: null, costNanos: null }),
  );
  const { text } = await run(["report", "--db", path, "--by", "source"]);
  expect(text).toContain("Calls      1, 100.0 % answered");
  expect(text).toContain("Cancelled  1 call stopped by the caller");
  expect(text).toMatch(/\(no source\)\s+0\s+–\s+1\s/);
  expect(text).toContain("(no source): calls that ended without a source's answer");
  expect(text).not.toContain("Most frequent errors");
});

test("tables fit the terminal: columns leave, then long texts are cut", async () => {
  const error = `acme_1 transient failure: ${"no route to host ".repeat(8)}`;
  const failed = { requestId: "a", sourceName: "s".repeat(60), outcome: "transient", error, statusCode: 0 } as const;
  const path = await storeWith(sampleRecord(1, failed));
  for (const columns of [60, 80, 100, 240]) {
    const { text } = await run(["report", "--db", path, "--by", "source"], { columns });
    const tables = text.slice(text.indexOf("By source")).split("\n");
    const isNote = (line: string) => line.includes("no room for");
    for (const line of tables) if (!isNote(line)) expect(line.length).toBeLessThanOrEqual(columns);
    expect(tables.some(isNote)).toBe(columns < 240);
    expect(text).toMatch(/transient\s+–\s+acme_1.*…/);
  }
  expect((await run(["report", "--db", path, "--by", "source"])).text).toContain("s".repeat(60));
});

test("help: sentences, exit codes, each default once", async () => {
  for (const command of ["report", "reconcile"]) {
    const { text } = await run([command, "--help"]);
    expect(text).toMatch(/\n\n[A-Z][^.]+\.\n\nOptions/);
    expect(text).toContain("Exit code 1");
    expect(text).not.toContain("3600000");
  }
});

async function storeWith(...records: Parameters<JsonlRecorder["record"]>[0][]): Promise<string> {
  const path = join(folder, "own.jsonl");
  const recorder = new JsonlRecorder(path);
  for (const record of records) recorder.record(record, false);
  await recorder.close();
  return path;
}

describe("reconcile", () => {
  test("says what it repaired and that the books balance", async () => {
    const recorder = new JsonlRecorder(store);
    recorder.open(sampleOpen(9, { worker: "elsewhere:1:x" }), false);
    await recorder.close();
    const { text, error } = await run(["reconcile", "--db", store]);
    expect(error).toBeNull();
    expect(text).toContain("Calls      3 = 3 ended + 0 running");
    expect(text).toContain("1 attempt sent with unknown outcome, possibly billed");
    expect(text).toContain("The books balance.");
  });

  test("lists differences and exits with 2", async () => {
    const recorder = new JsonlRecorder(store);
    recorder.record(sampleRecord(4, { requestId: "b", attempt: 3 }), false);
    await recorder.close();
    const { text, error } = await run(["reconcile", "--db", store, "--json"]);
    expect((error as CliError).exitCode).toBe(2);
    expect(JSON.parse(text)).toMatchObject({ balanced: false, differences: [{ kind: "two_finals", requestId: "b" }] });
    expect((await run(["reconcile", "--db", store])).text).toContain("call b: ended by more than one row");
  });

  test("--stale-after must be a length of time", async () => {
    expect((await run(["reconcile", "--db", store, "--stale-after", "never"])).error?.message).toContain(
      "length of time",
    );
  });
});

describe("trace", () => {
  test("refuses an empty id: all rows without a session would be found by it", async () => {
    for (const id of ["", "  "]) {
      const { error } = await run(["trace", id, "--db", store]);
      expect(error?.message).toContain("It is empty. Ids stand in replies");
    }
  });

  test("shows attempts in order, with what failed, without control characters", async () => {
    const { text, error } = await run(["trace", "b", "--db", store]);
    expect(error).toBeNull();
    expect(text).toContain("Call b: 1 call, 2 attempts");
    expect(text).toMatch(/1\. acme_1 \(.*\) {2}transient {2}status 503/);
    expect(text).toContain("acme_1 transient failure: 503 | [31mbusy");
    expect(text).toMatch(/2\. acme_2 \(.*\) {2}success/);
    expect(text).not.toContain("\u001b");
  });

  test.each([
    ["nothing has a price", [null, null], "cost unknown"],
    ["one has a price", [10_000_000n, null, null], "cost 0.0100 and unknown of 2 attempts"],
    ["all have one", [10_000_000n, 10_000_000n], "cost 0.0200"],
  ])("an unknown cost is never 0, and a hit's 0 is no price: %s", async (_, costs, words) => {
    const hit = { sessionId: "m", requestId: "hit", attempt: null, outcome: "cache_hit", costNanos: 0n } as const;
    const attempts = costs.map((costNanos, index) =>
      sampleRecord(20 + index, { sessionId: "m", requestId: `r${index}`, costNanos }),
    );
    const path = await storeWith(sampleRecord(10, hit), ...attempts);
    const { text } = await run(["trace", "m", "--db", path]);
    expect(text.split("\n")[0]).toMatch(new RegExp(`, ${words}$`));
    const onlyHit = await run(["trace", "hit", "--db", path]);
    expect(onlyHit.text.split("\n")[0]).toMatch(/tokens$/);
  });

  test("what a call waited for, and beside which attempt another one was sent, stand in words", async () => {
    const routes = [
      [{ source: "*", reason: "fairness", waitMs: 3_200 }],
      [
        { source: "*", reason: "concurrency", waitMs: 3_000 },
        { source: "*", reason: "backend", waitMs: 5_000 },
      ],
      [{ source: "acme_2", reason: "hedged", waitMs: 1_500 }],
      [
        { source: "*", reason: "rpm", waitMs: 400 },
        { source: "*", reason: "backend", waitMs: 0 },
      ],
    ];
    const rows = routes.map((route, index) =>
      sampleRecord(30 + index, { sessionId: "w", attempt: index < 3 ? index + 1 : null, route: JSON.stringify(route) }),
    );
    const path = await storeWith(...rows);
    const { text } = await run(["trace", "w", "--db", path]);
    expect(text).toContain("   waited 3.2 s for its turn, or the scope's retries\n");
    expect(text).toContain("   sent beside acme_2, which showed no token for 1.5 s\n");
    expect(text).toContain(
      "   waited 3.0 s for no free place\n     waited 5.0 s for the store of the limits (Redis) to answer\n",
    );
    expect(text).toContain("   waited 400 ms for requests per minute\n");
    expect(text).toContain("   was waiting for the store of the limits (Redis) to answer\n");
  });

  test("a source that was tried in the call is not said to be passed over", async () => {
    const route = JSON.stringify([
      { source: "acme_1", reason: "transient", waitMs: 0 },
      { source: "acme_2", reason: "transient", waitMs: 0 },
      { source: "acme_3", reason: "rpm", waitMs: 1_200 },
    ]);
    const first = { requestId: "t", sourceName: "acme_1", outcome: "transient", final: false } as const;
    const last = { requestId: "t", sourceName: null, attempt: null, outcome: "unavailable", route } as const;
    const path = await storeWith(sampleRecord(10, first), sampleRecord(11, last));
    const { text } = await run(["trace", "t", "--db", path]);
    expect(text).toContain("tried acme_1: transient\n");
    expect(text).toContain("passed over acme_2: transient\n");
    expect(text).toContain("passed over acme_3: rpm, 1.2 s more\n");
  });

  test("is cut to the terminal, but for what went wrong", async () => {
    const { text } = await run(["trace", "b", "--db", store], { tty: true, columns: 40, env: { NO_COLOR: "1" } });
    const lines = text.trimEnd().split("\n");
    expect(lines.filter((line) => line.length > 40)).toEqual([expect.stringContaining("transient failure")]);
  });

  test("texts in rows can't pass for lines, and lines that could not be read are told", async () => {
    const forged = { requestId: "f\nFAKE", sessionId: "s", sourceName: "x\n\u001b[2JFAKE", model: "m\nFAKE" };
    const recorder = new JsonlRecorder(store);
    recorder.record(sampleRecord(9, forged), false);
    await recorder.close();
    appendFileSync(store, "broken\n");
    const { text } = await run(["trace", "s", "--db", store]);
    expect(text.split("\n").filter((line) => line.startsWith("FAKE"))).toEqual([]);
    expect(text).not.toContain("\u001b");
    expect(text).toContain("1 line could not be read");
  });

  test("--json is the tree for programs; an unknown id is exit code 1 and says where ids are", async () => {
    expect(JSON.parse((await run(["trace", "b", "--db", store, "--json"])).text)).toMatchObject({
      found: "call",
      calls: [{ requestId: "b", attempts: [{ outcome: "transient" }, { outcome: "success" }] }],
    });
    const { error } = await run(["trace", "no\u001bbody", "--db", store]);
    expect(error).toBeInstanceOf(CliError);
    expect(error?.message).toContain("knows no session, call, attempt or parent nobody");
    expect((await run(["trace", "b", "--db", join(folder, "none.db")])).error).toBeInstanceOf(CliError);
  });
});

describe("telemetry prune", () => {
  test("says what it deleted and what it would delete", async () => {
    const database = join(folder, "calls.db");
    const recorder = new SqliteRecorder(database);
    recorder.record(sampleRecord(1), false);
    await recorder.close();
    const prune = (...args: string[]) => run(["telemetry", "prune", "--db", database, ...args]);
    expect((await prune("--older-than", "1h", "--json")).text).toContain('"rows":0,"kept":1');
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await prune("--older-than", "1ms", "--dry-run")).text).toBe(
      `1 row would be deleted from ${database}, 0 rows kept.\n`,
    );
    expect((await prune("--older-than", "1ms")).text).toBe(`1 row deleted from ${database}, 0 rows kept.\n`);
    expect((await prune("--older-than", "1ms")).text).toBe(`0 rows deleted from ${database}, 0 rows kept.\n`);
  });

  test("asks for the age and refuses what is no SQLite telemetry", async () => {
    expect((await run(["telemetry", "prune", "--db", store])).error?.message).toContain("--older-than");
    expect((await run(["telemetry", "prune", "--older-than", "30", "--db", store])).error?.message).toContain("unit");
    expect((await run(["telemetry", "prune", "--older-than", "soon", "--db", store])).error?.message).toContain("soon");
    expect((await run(["telemetry", "prune", "--older-than", "1d", "--db", store])).error?.message).toContain(
      "is JSONL",
    );
    expect(
      (await run(["telemetry", "prune", "--older-than", "1d", "--db", join(folder, "no.db")])).error,
    ).toBeInstanceOf(CliError);
  });
});

describe("telemetry index", () => {
  const indexesOf = (database: string) =>
    askDatabase(database, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1");

  test("adds the indexes that trace looks by, or those of the columns that are named, once", async () => {
    const database = join(folder, "calls.db");
    const recorder = new SqliteRecorder(database);
    recorder.record(sampleRecord(1), false);
    await recorder.close();
    const index = (...args: string[]) => run(["telemetry", "index", "--db", database, ...args]);
    expect((await index()).text).toBe(
      `Added to ${database}: index llm_calls_request_id, index llm_calls_parent_call_id.\n`,
    );
    expect((await index()).text).toBe(`${database} has these indexes already.\n`);
    expect(JSON.parse((await index("model", "request_id", "--json")).text)).toEqual({
      file: database,
      added: ["index llm_calls_model"],
    });
    expect(indexesOf(database)).toEqual([
      "llm_calls_created_at",
      "llm_calls_model",
      "llm_calls_parent_call_id",
      "llm_calls_request_id",
      "llm_calls_session_id",
    ]);
    // Whoever writes next is not disturbed by them.
    const next = new SqliteRecorder(database);
    next.record(sampleRecord(2), false);
    await next.close();
    expect(next.stats()).toMatchObject({ written: 1, problem: null });
  });

  test("refuses columns that nobody looks by, JSONL, and files of something else", async () => {
    const refused = async (...args: string[]) => (await run(["telemetry", "index", ...args])).error?.message;
    expect(await refused("messages")).toContain("request_id");
    expect(await refused("--db", store)).toContain("is JSONL, which has no indexes");
    const foreign = join(folder, "foreign.db");
    askDatabase(foreign, "CREATE TABLE t (a)");
    expect(await refused("--db", foreign)).toContain("has no telemetry in a table llm_calls");
    expect(await refused("--db", join(folder, "none.db"))).toContain("does not exist");
  });
});

/** One statement; the first column of what it answers. */
function askDatabase(path: string, sql: string): unknown[] {
  const database = openDatabase(path, { readOnly: false });
  try {
    if (!sql.startsWith("SELECT")) return [void database.exec(sql)];
    return database
      .prepare(sql)
      .all()
      .map((row) => Object.values(row as object)[0]);
  } finally {
    database.close();
  }
}
