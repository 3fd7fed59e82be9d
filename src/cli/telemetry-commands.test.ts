import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JsonlRecorder } from "../telemetry/jsonl.js";
import { sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import { CliError } from "./failure.js";
import { registerReconcile } from "./reconcile.js";
import { registerReport } from "./report.js";
import type { Terminal } from "./terminal.js";

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

async function run(args: readonly string[], options: { tty?: boolean; env?: Record<string, string> } = {}) {
  let text = "";
  const write = (part: string): void => {
    text += part;
  };
  const stream = { write, isTTY: options.tty === true };
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
