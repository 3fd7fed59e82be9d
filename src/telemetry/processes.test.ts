import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "tsdown";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../test/services/database.js";
import { eventually } from "../../test/services/processes.js";
import { sharedPostgres } from "../../test/services/shared-postgres.js";
import { sampleOpen } from "../testing/contracts/recorder.js";
import type { StoredRow } from "./columns.js";
import { openTelemetryFile } from "./reader.js";
import { reconcileStore } from "./reconcile.js";
import { sqliteAvailable } from "./sqlite.js";
import { openDatabase } from "./sqlite-driver.js";

// Whole processes need plain JavaScript, laid out like the published package: recorder and worker side by side.
const root = fileURLToPath(new URL("../..", import.meta.url));
let built = "";
let folder = "";
let children: ChildProcess[] = [];

beforeAll(async () => {
  const cache = join(root, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  built = mkdtempSync(join(cache, "pgw-telemetry-"));
  await build({
    config: false,
    cwd: root,
    outDir: built,
    entry: {
      sqlite: "src/telemetry/sqlite.ts",
      "sqlite-worker": "src/telemetry/sqlite-worker.js",
      jsonl: "src/telemetry/jsonl.ts",
      postgres: "src/telemetry/postgres.ts",
      emitter: "src/telemetry/emitter.ts",
      system: "src/backends/system.ts",
    },
    format: "esm",
    platform: "node",
    target: "node20",
    dts: false,
    fixedExtension: false,
    logLevel: "silent",
  });
});

afterAll(() => rmSync(built, { recursive: true, force: true }));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-processes-"));
});

afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children = [];
  rmSync(folder, { recursive: true, force: true });
});

function script(name: string, text: string): string {
  const path = join(built, `${name}.mjs`);
  writeFileSync(path, text);
  return path;
}

/** A worker that makes calls of up to three attempts for ever and says each row that was acknowledged. */
const WORKER = `
  import { hostname } from "node:os";
  import { createTelemetry } from "./emitter.js";
  import { createSystemRuntime } from "./system.js";
  import { SqliteRecorder } from "./sqlite.js";
  import { JsonlRecorder } from "./jsonl.js";
  import { PostgresRecorder } from "./postgres.js";

  const [kind, path, journal, durability] = process.argv.slice(2);
  const runtime = createSystemRuntime();
  const worker = hostname() + ":" + process.pid + ":test";
  const Recorder = { sqlite: SqliteRecorder, jsonl: JsonlRecorder, postgres: PostgresRecorder }[kind];
  const recorder = new Recorder(path);
  const telemetry = createTelemetry({ recorders: [recorder], runtime, worker, capture: "full", journal, durability });
  const blank = { sessionId: "s", parentCallId: null, scope: "LLM", operation: "chat", provider: "p", messages: "x".repeat(300),
    response: null, thinking: null, promptTokens: 10, completionTokens: 5, usageSource: "measured", latencyMs: 1, ttftMs: null,
    costNanos: 1500n, error: null, cachedPromptTokens: null, modelReported: null, sampling: null, reasoningTokens: null,
    statusCode: 200, finishReason: null, worker, waitedMs: 0, route: null, sourceName: "p_1", model: "m" };

  async function call() {
    const requestId = runtime.uuid();
    const fails = Math.floor(runtime.random() * 4);
    for (let attempt = 1; attempt <= 3; attempt++) {
      const callId = runtime.uuid();
      await telemetry.open({ callId, requestId, scope: "LLM", sourceName: "p_1", worker, startedAtMs: runtime.wallNow(), estTokens: 15 });
      process.stdout.write("sent " + callId + "\\n");
      await runtime.sleep(runtime.random() * 5);
      const answered = attempt > fails;
      await telemetry.record({ ...blank, callId, requestId, attempt, outcome: answered ? "success" : "transient", final: answered });
      process.stdout.write("row " + callId + "\\n");
      if (answered) return;
    }
    await telemetry.record({ ...blank, callId: runtime.uuid(), requestId, attempt: null, sourceName: null, model: null, costNanos: null,
      promptTokens: null, completionTokens: null, outcome: "unavailable", final: true });
  }
  async function loop() { for (;;) await call(); }
  for (let caller = 0; caller < 16; caller++) loop();
`;

/** Kills the process in the middle of its work; answers what it had said by then. */
async function killedUnderLoad(args: readonly string[], afterLines: number) {
  const child = spawn(process.execPath, [script("worker", WORKER), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const said = { sent: new Set<string>(), rows: new Set<string>() };
  let lines = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [kind, callId = ""] = line.split(" ");
    (kind === "sent" ? said.sent : said.rows).add(callId);
    if (++lines === afterLines) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return said;
}

async function rowsOf(path: string): Promise<StoredRow[]> {
  const file = openTelemetryFile(path);
  try {
    const rows: StoredRow[] = [];
    for await (const row of file.rows()) rows.push(row);
    return rows;
  } finally {
    file.close();
  }
}

function integrity(path: string): unknown {
  const database = openDatabase(path, { readOnly: true });
  try {
    return database.prepare("PRAGMA integrity_check").all();
  } finally {
    database.close();
  }
}

const server = await sharedPostgres();
const isThere: Readonly<Record<string, boolean>> = {
  sqlite: sqliteAvailable().ok,
  jsonl: true,
  postgres: server !== null,
};
const kinds = Object.keys(isThere).filter((kind) => isThere[kind]);
let database: TestDatabase | undefined;

/** Where a store of its own is. */
async function placeOf(kind: string): Promise<string> {
  if (kind !== "postgres") return join(folder, `calls.${kind === "sqlite" ? "db" : "jsonl"}`);
  database = await createDatabase(server!);
  return database.url();
}

const OTHERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

/** What a killed process had sent its server still runs there for a moment. */
async function lastWordsWritten(): Promise<void> {
  if (database === undefined) return;
  const { sql } = database;
  await eventually(async () => expect(await sql(OTHERS)).toEqual([]));
}

afterEach(async () => {
  await database?.dispose();
  database = undefined;
});

/** Lines that a process had said when it was killed; more kills than in every run: `PGW_TEST_KILLS=100` (F76). */
const KILLED_AFTER = Array.from({ length: Number(process.env.PGW_TEST_KILLS ?? 3) }, (_, n) => 40 + ((n * 133) % 461));

describe.each(kinds)("a process killed under load, %s", (kind) => {
  test.each(KILLED_AFTER)(
    "keeps every acknowledged row, and reconcile balances the books (%i lines)",
    async (lines) => {
      const path = await placeOf(kind);
      const said = await killedUnderLoad([kind, path, "before_send", "sync"], lines);
      if (kind === "sqlite") expect(integrity(path)).toEqual([{ integrity_check: "ok" }]);
      await lastWordsWritten();
      const report = await reconcileStore({ store: path, now: Date.now() });
      const rows = await rowsOf(path);
      const ids = new Set(rows.map((row) => row.call_id));
      expect([...said.rows].filter((id) => !ids.has(id))).toEqual([]);
      // Journalled before it was sent: each send has a row now, its own or "abandoned".
      expect([...said.sent].filter((id) => !ids.has(id))).toEqual([]);
      expect(report).toMatchObject({ balanced: true, differences: [], open: 0, openAttempts: 0 });
      expect(report.repaired.abandoned).toBe(
        rows.filter(({ outcome, attempt }) => outcome === "abandoned" && attempt !== null).length,
      );
      const calls = new Set(rows.map((row) => row.request_id));
      expect(rows.filter((row) => row.final === 1)).toHaveLength(calls.size);
      expect(report.calls).toBe(calls.size);
      const again = await reconcileStore({ store: path, now: Date.now() });
      expect(again.repaired).toEqual({ abandoned: 0, answered: 0, ended: 0 });
      expect(again).toMatchObject({ balanced: true, calls: report.calls, cost: report.cost });
    },
  );

  test("balances with the asynchronous journal too", async () => {
    const path = await placeOf(kind);
    await killedUnderLoad([kind, path, "async", "async"], 4_000);
    const report = await reconcileStore({ store: path, now: Date.now() });
    expect(report).toMatchObject({ balanced: true, open: 0 });
  });

  test("leaves a living process alone", async () => {
    const path = await placeOf(kind);
    const args = [script("worker", WORKER), kind, path, "before_send", "sync"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    await once(child.stdout, "data");
    child.stdout.resume();
    child.kill("SIGSTOP");
    const report = await reconcileStore({ store: path, now: Date.now() });
    expect(report.repaired).toEqual({ abandoned: 0, answered: 0, ended: 0 });
    expect(report.openAttempts).toBeGreaterThan(0);
    expect(report).toMatchObject({ balanced: true, calls: report.ended + report.open });
  });
});

describe.skipIf(!sqliteAvailable().ok)("the end of a process", () => {
  test("waits for queued rows, and an idle recorder doesn't delay it", () => {
    const path = join(folder, "calls.db");
    const main = script(
      "main",
      `import { SqliteRecorder } from "./sqlite.js";
       const recorder = new SqliteRecorder(${JSON.stringify(path)});
       recorder.open(${JSON.stringify(sampleOpen(1))}, false);`,
    );
    execFileSync(process.execPath, [main], { timeout: 30_000 });
    const file = openDatabase(path, { readOnly: true });
    expect(file.prepare("SELECT count(*) AS count FROM open_attempts").all()).toEqual([{ count: 1 }]);
    file.close();
  });

  test("comes only after a flush and a close that the file refuses", () => {
    const main = script(
      "refused",
      `import { SqliteRecorder } from "./sqlite.js";
       const recorder = new SqliteRecorder(${JSON.stringify(join(folder, "missing", "calls.db"))});
       recorder.open(${JSON.stringify(sampleOpen(1))}, false);
       await recorder.flush();
       await recorder.flush();
       console.log(JSON.stringify(recorder.stats().queued));
       await recorder.close();
       console.log(JSON.stringify(recorder.stats().dropped));`,
    );
    expect(execFileSync(process.execPath, [main], { timeout: 30_000, encoding: "utf8" })).toBe("1\n1\n");
  });
});

describe("the end of a process with PostgreSQL", () => {
  const main = (name: string, dsn: string) =>
    script(
      name,
      `import { PostgresRecorder } from "./postgres.js";
       const recorder = new PostgresRecorder(${JSON.stringify(dsn)});
       recorder.open(${JSON.stringify(sampleOpen(1))}, false);`,
    );

  test.skipIf(server === null)("waits for queued rows, and an idle recorder doesn't delay it", async () => {
    const dsn = await placeOf("postgres");
    execFileSync(process.execPath, [main("queued", dsn)], { timeout: 8_000 });
    expect(await database?.sql("SELECT count(*) FROM open_attempts")).toEqual([{ count: "1" }]);
  });

  test("doesn't wait for a database that is away", () => {
    execFileSync(process.execPath, [main("away", "postgres://me@127.0.0.1:1/db")], { timeout: 8_000 });
  });
});

describe("without the package pg", () => {
  test("importing and constructing go well, and one warning names the command that installs it", () => {
    const alone = mkdtempSync(join(folder, "alone-"));
    for (const name of readdirSync(built)) cpSync(join(built, name), join(alone, name));
    writeFileSync(join(alone, "package.json"), `{ "type": "module" }`);
    const main = join(alone, "main.mjs");
    writeFileSync(
      main,
      `import { PostgresRecorder } from "./postgres.js";
       const recorder = new PostgresRecorder("postgres://me:sesame-5512@127.0.0.1:1/db");
       recorder.onProblem(({ code, message }) => console.log(code, message));
       recorder.open(${JSON.stringify(sampleOpen(1))}, false);
       await recorder.flush();
       recorder.open(${JSON.stringify(sampleOpen(2))}, false);
       await recorder.flush();
       console.log(JSON.stringify(recorder.stats().queued));`,
    );
    expect(execFileSync(process.execPath, [main], { timeout: 30_000, encoding: "utf8" })).toBe(
      "PG_TELEMETRY_POOL postgres://me@127.0.0.1:1/db: the package pg is not installed. Install it: npm install pg@8; rows are kept and tried again\n2\n",
    );
  });
});
