import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { Recorder } from "../ports/recorder.js";
import { sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import { JsonlRecorder } from "./jsonl.js";
import { openTelemetryFile } from "./reader.js";
import { SqliteRecorder } from "./sqlite.js";
import { openDatabase } from "./sqlite-driver.js";
import { selectRows } from "./sqlite-file.js";
import { indexTelemetry } from "./sqlite-indexes.js";
import { type Trace, type TracedCall, traceOf, walkCalls } from "./trace.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-trace-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const STORES: [string, (path: string) => Recorder, string][] = [
  ["sqlite", (path) => new SqliteRecorder(path), "calls.db"],
  ["jsonl", (path) => new JsonlRecorder(path), "calls.jsonl"],
];

describe.each(STORES)("trace of a %s file", (_, open, name) => {
  let number = 0;

  const row = (changes: Partial<CallRecord>) => {
    number += 1;
    return sampleRecord(number, { sessionId: null, parentCallId: null, ...changes });
  };

  async function traced(id: string, rows: readonly CallRecord[], opens: readonly OpenAttempt[] = []) {
    const recorder = open(join(folder, name));
    for (const entry of opens) recorder.open(entry, false);
    await recorder.flush();
    for (const record of rows) recorder.record(record, false);
    await recorder.close();
    const file = openTelemetryFile(join(folder, name));
    try {
      return await traceOf(file, id);
    } finally {
      file.close();
    }
  }

  const shape = (calls: readonly TracedCall[]): unknown[] =>
    calls.map(({ requestId, children }) => (children.length === 0 ? requestId : [requestId, ...shape(children)]));
  const shapeOf = (trace: Trace | null) => trace && [trace.found, ...shape(trace.calls)];

  test("an answer that was shared says whose attempts brought it", async () => {
    const shared = row({ sessionId: "s", attempt: null, outcome: "cache_hit", route: '{"sharedWith":"other"}' });
    const trace = await traced("s", [shared, row({ sessionId: "s", route: "[1" })]);
    const attempts = trace?.calls.flatMap((call) => call.attempts.map(({ sharedWith, route }) => [sharedWith, route]));
    expect(attempts).toEqual([
      ["other", []],
      [null, []],
    ]);
  });

  test("a session is the tree of its calls, each with its attempts and why a source was passed over", async () => {
    const route = JSON.stringify([{ source: "acme_1", reason: "rpm", waitMs: 1_200 }, { source: 7 }]);
    const failed = row({
      sessionId: "s",
      requestId: "a",
      outcome: "transient",
      error: "busy",
      final: false,
      statusCode: 503,
    });
    const answered = row({ sessionId: "s", requestId: "a", attempt: 2, sourceName: "acme_2", route });
    const step = row({ sessionId: "s", requestId: "b", parentCallId: answered.callId });
    const other = row({ sessionId: "t", requestId: "c" });
    const trace = await traced("s", [failed, answered, step, other]);
    expect(shapeOf(trace)).toEqual(["session", ["a", "b"]]);
    const [call] = trace!.calls;
    expect(call).toMatchObject({ outcome: "success", sessionId: "s", parentCallId: null });
    expect(call!.attempts).toMatchObject([
      { callId: failed.callId, attempt: 1, outcome: "transient", error: "busy", statusCode: 503, route: [] },
      { attempt: 2, sourceName: "acme_2", route: [{ source: "acme_1", reason: "rpm", waitMs: 1_200 }], final: true },
    ]);
  });

  test("a call and an attempt are shown with everything below them, a parent id with the calls that name it", async () => {
    const top = row({ requestId: "top", parentCallId: "line-17" });
    const middle = row({ requestId: "middle", parentCallId: "top" });
    const low = row({ requestId: "low", parentCallId: middle.callId });
    const rows = [top, middle, low, row({ requestId: "alone" })];
    expect(shapeOf(await traced("top", rows))).toEqual(["call", ["top", ["middle", "low"]]]);
    expect(shapeOf(await traced("middle", []))).toEqual(["call", ["middle", "low"]]);
    expect(shapeOf(await traced(low.callId, []))).toEqual(["attempt", "low"]);
    expect(shapeOf(await traced("line-17", []))).toEqual(["parent", ["top", ["middle", "low"]]]);
    expect(shapeOf(await traced("alone", []))).toEqual(["call", "alone"]);
    expect(await traced("nobody", [])).toBeNull();
  });

  test("calls that name each other as parents are shown once", async () => {
    const rows = [
      row({ requestId: "a", parentCallId: "b" }),
      row({ requestId: "b", parentCallId: "a" }),
      row({ requestId: "c", parentCallId: "c" }),
    ];
    expect(shapeOf(await traced("a", rows))).toEqual(["call", "a", "b"]);
    expect(shapeOf(await traced("c", []))).toEqual(["call", "c"]);
  });

  test("an attempt that only the journal knows is in flight; its call has no end yet", async () => {
    const open = sampleOpen(900, { requestId: "r", sessionId: "s" });
    const trace = await traced(
      "s",
      [row({ sessionId: "s", requestId: "r", outcome: "transient", final: false })],
      [open],
    );
    expect(trace!.calls).toMatchObject([{ requestId: "r", outcome: null }]);
    expect(trace!.calls[0]!.attempts.map(({ outcome }) => outcome)).toEqual(["transient", "in_flight"]);
  });

  test("a chain deeper than anybody reads ends, and says so", async () => {
    const rows = Array.from({ length: 60 }, (_, index) =>
      row({ requestId: `r${index}`, parentCallId: index === 0 ? null : `r${index - 1}` }),
    );
    const trace = await traced("r0", rows);
    expect(trace?.truncated).toBe(true);
    expect((await traced("r40", []))?.truncated).toBe(false);
  });

  test("a session of thousands of calls, each below the one before, is a tree all the same", async () => {
    const rows = Array.from({ length: 6_000 }, (_, index) =>
      row({ requestId: `r${index}`, sessionId: "deep", parentCallId: index === 0 ? null : `r${index - 1}` }),
    );
    const trace = await traced("deep", rows);
    const walked = [...walkCalls(trace!.calls)];
    expect(walked).toHaveLength(6_000);
    expect(walked.at(-1)).toMatchObject({ depth: 5_999, call: { requestId: "r5999" } });
    expect(trace!.unreadableLines).toBe(0);
  });
});

test("with its indexes a SQLite file is not read as a whole for one call", async () => {
  const path = join(folder, "calls.db");
  const recorder = new SqliteRecorder(path);
  for (let n = 1; n <= 50; n += 1) recorder.record(sampleRecord(n, { requestId: `r${n}` }), false);
  await recorder.close();
  const plan = () => {
    const database = openDatabase(path, { readOnly: true });
    try {
      const { sql, values } = selectRows(database, "llm_calls", { ids: ["r7", "r8"], withoutTexts: true });
      const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(0, ...values) as { detail: string }[];
      return steps.map(({ detail }) => detail).join("; ");
    } finally {
      database.close();
    }
  };
  expect(plan()).not.toContain("llm_calls_request_id");
  indexTelemetry({ kind: "sqlite", path }, {});
  expect(plan()).toMatch(/llm_calls_request_id.*llm_calls_parent_call_id/);
  const file = openTelemetryFile(path);
  const found: unknown[] = [];
  for await (const row of file.rows({ ids: ["r7", "r8", "nobody"] })) found.push(row.request_id);
  file.close();
  expect(found).toEqual(["r7", "r8"]);
});
