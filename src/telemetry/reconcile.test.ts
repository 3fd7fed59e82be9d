import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { Recorder } from "../ports/recorder.js";
import { sampleId, sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import type { StoredRow } from "./columns.js";
import { JsonlRecorder } from "./jsonl.js";
import { openTelemetryFile } from "./reader.js";
import { type ReconcileOptions, reconcileStore } from "./reconcile.js";
import { terminalCallId } from "./repair-rows.js";
import { SqliteRecorder, sqliteAvailable } from "./sqlite.js";

const NOW = 1_764_100_000_000;
const DEAD = "here:1:dead";
const LIVING = "here:2:living";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-reconcile-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Entry = Partial<CallRecord> | { readonly open: Partial<OpenAttempt> };

const kinds = [
  { kind: "jsonl", make: (path: string): Recorder => new JsonlRecorder(path) },
  { kind: "db", make: (path: string): Recorder => new SqliteRecorder(path) },
].filter(({ kind }) => kind === "jsonl" || sqliteAvailable().ok);

describe.each(kinds)("reconcile of a $kind file", ({ kind, make }) => {
  async function fileWith(...entries: Entry[]): Promise<string> {
    const path = join(folder, `calls.${kind}`);
    const recorder = make(path);
    for (const [index, entry] of entries.entries()) {
      if ("open" in entry) recorder.open(sampleOpen(index, { worker: DEAD, ...entry.open }), false);
      else recorder.record(sampleRecord(index, { worker: DEAD, ...entry }), false);
    }
    await recorder.close();
    return path;
  }

  function reconcile(store: string, changes: Partial<ReconcileOptions> = {}) {
    const processState = (pid: number) =>
      pid === 1 ? ({ kind: "gone" } as const) : ({ kind: "running", startedAtMs: 0 } as const);
    return reconcileStore({ store, now: NOW, liveness: { host: "here", processState }, ...changes });
  }

  async function rowsOf(path: string): Promise<StoredRow[]> {
    const file = openTelemetryFile(path);
    const rows: StoredRow[] = [];
    for await (const row of file.rows()) rows.push(row);
    file.close();
    return rows;
  }

  function outWith(callId: string, changes: object = {}): string {
    const path = join(folder, "out.jsonl");
    const body = {
      model: "reported",
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "42" } }],
      usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } },
    };
    const line = {
      id: `batch_req_${callId}`,
      custom_id: "q1",
      response: { status_code: 200, request_id: "r", body },
      error: null,
      pgw: { source: "acme_1", attempts: 1, cost: 0.5, latencyMs: 12 },
      ...changes,
    };
    writeFileSync(
      path,
      `${JSON.stringify(line)}\n{"id":"batch_req_x","custom_id":"q2","response":null,"error":{}}\n{"id":"bat`,
    );
    return path;
  }

  test("complete books balance and are left as they are", async () => {
    const path = await fileWith(
      {},
      { outcome: "transient", final: false, requestId: "b" },
      { requestId: "b", attempt: 2 },
    );
    const before = readFileSync(path);
    const report = await reconcile(path);
    expect(report).toMatchObject({ calls: 2, ended: 2, open: 0, attempts: 3, balanced: true });
    expect(report.cost).toBe(0.000_370_368);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("an open attempt of a dead worker is abandoned, and its call ended", async () => {
    const path = await fileWith(
      { outcome: "transient", final: false, requestId: "b", sessionId: "batch", parentCallId: "q1" },
      { open: { requestId: "b" } },
    );
    const report = await reconcile(path);
    expect(report.repaired).toEqual({ abandoned: 1, answered: 0, ended: 1 });
    expect(report).toMatchObject({ balanced: true, calls: 1, ended: 1, attempts: 2, openAttempts: 0 });
    const [, abandoned, terminal] = await rowsOf(path);
    expect(abandoned).toMatchObject({
      call_id: sampleId(1),
      outcome: "abandoned",
      attempt: 2,
      final: 0,
      model: "model-a",
    });
    expect(abandoned).toMatchObject({ session_id: "batch", parent_call_id: "q1", operation: "chat", provider: "acme" });
    expect(terminal).toMatchObject({
      outcome: "abandoned",
      attempt: null,
      final: 1,
      source_name: null,
      request_id: "b",
    });
    expect(terminal?.call_id).toBe(terminalCallId("b"));
  });

  test("a call of a dead worker that stands in the journal alone gets both rows", async () => {
    const path = await fileWith({ open: { requestId: "b" } });
    expect((await reconcile(path)).repaired).toEqual({ abandoned: 1, answered: 0, ended: 1 });
    expect((await rowsOf(path)).map((row) => row.final)).toEqual([0, 1]);
  });

  test("an answer in OUT makes it a success with the answer's figures", async () => {
    const path = await fileWith({ open: { requestId: "b" } });
    const report = await reconcile(path, { outPath: outWith(sampleId(0)) });
    expect(report.repaired).toEqual({ abandoned: 0, answered: 1, ended: 0 });
    expect(report).toMatchObject({ balanced: true, ended: 1, cost: 0.5 });
    const figures = { response: "42", prompt_tokens: 7, completion_tokens: 3, cached_prompt_tokens: 2, cost: 0.5 };
    const [row] = await rowsOf(path);
    expect(row).toMatchObject({ outcome: "success", final: 1, status_code: 200, parent_call_id: "q1", ...figures });
  });

  test("attempts and calls of living workers stay open", async () => {
    const path = await fileWith(
      { outcome: "transient", final: false, requestId: "b", worker: LIVING },
      { open: { requestId: "b", worker: LIVING } },
      { open: { requestId: "c", worker: "there:9:x", startedAtMs: NOW - 3_599_000 } },
    );
    const report = await reconcile(path);
    expect(report).toMatchObject({ calls: 2, ended: 0, open: 2, openAttempts: 2, openTokens: 200, balanced: true });
    const stale = await reconcile(path, { staleAfterMs: 1_000 });
    expect(stale.repaired).toEqual({ abandoned: 1, answered: 0, ended: 1 });
  });

  test("a second run, and one at the same time, add nothing", async () => {
    const path = await fileWith({ open: { requestId: "b" } }, { outcome: "transient", final: false, requestId: "c" });
    await Promise.all([reconcile(path), reconcile(path)]);
    const report = await reconcile(path);
    expect(report.repaired).toEqual({ abandoned: 0, answered: 0, ended: 0 });
    expect(report).toMatchObject({ calls: 2, ended: 2, balanced: true });
  });

  test("every difference is named", async () => {
    const path = await fileWith(
      { requestId: "a" },
      { requestId: "a", attempt: 2 },
      { requestId: "b", outcome: "transient", final: false },
      { requestId: "b", outcome: "transient", final: false },
      { requestId: "b", outcome: "unavailable", attempt: null, costNanos: 5n },
      { requestId: "c", costNanos: -5n },
    );
    const outPath = outWith(sampleId(0));
    appendFileSync(outPath, `\n${readFileSync(outPath, "utf8").split("\n")[0]?.replace(sampleId(0), "nowhere")}\n`);
    const report = await reconcile(path, { outPath });
    expect(report.balanced).toBe(false);
    expect(report.differences.map(({ kind: difference, requestId }) => [difference, requestId])).toEqual([
      ["out_cost", "a"],
      ["two_finals", "a"],
      ["duplicate_attempt", "b"],
      ["cost", "b"],
      ["cost", "c"],
      ["out_without_row", null],
    ]);
  });

  test("a dead socket's row shares the number of the attempt that followed it", async () => {
    const path = await fileWith({ requestId: "a", outcome: "stale_socket", final: false }, { requestId: "a" });
    expect((await reconcile(path)).balanced).toBe(true);
  });
});

test("a JSONL file with torn and foreign lines is read, and its next row is not glued to the torn one", async () => {
  const path = join(folder, "calls.jsonl");
  writeFileSync(path, 'not json\n{"foreign": 1}\n{"call_id":"torn","resp');
  const recorder = new JsonlRecorder(path);
  await recorder.record(sampleRecord(1), true);
  await recorder.close();
  const file = openTelemetryFile(path);
  const ids: unknown[] = [];
  for await (const row of file.rows()) ids.push(row.call_id);
  expect(ids).toEqual([sampleId(1)]);
  expect(file.unreadableLines).toBe(3);
});

test("files that can't be used are refused with what to do", () => {
  const missing = join(folder, "missing.db");
  expect(() => openTelemetryFile(missing)).toThrow(/does not exist.*--db PATH/);
  writeFileSync(join(folder, "text.db"), "hello");
  expect(() => openTelemetryFile(join(folder, "text.db"))).toThrow(/neither a SQLite database nor JSONL/);
  expect(() => openTelemetryFile(folder)).toThrow(/can't be read \(EISDIR\)/);
  writeFileSync(join(folder, "missing.jsonl"), "");
  expect(openTelemetryFile(missing).kind).toBe("jsonl");
  if (!sqliteAvailable().ok) return;
  writeFileSync(join(folder, "bad.db"), "SQLite format 3\0".padEnd(8_192, "garbage "));
  expect(() => openTelemetryFile(join(folder, "bad.db"))).toThrow(/is damaged.*recovered-1/s);
});
