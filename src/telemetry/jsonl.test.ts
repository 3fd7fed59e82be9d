import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError } from "../errors.js";
import { sampleId, sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import { JsonlRecorder } from "./jsonl.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-jsonl-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("options out of range are refused", () => {
  expect(() => new JsonlRecorder("")).toThrow(ConfigError);
  expect(() => new JsonlRecorder({ path: "calls.jsonl", queueSize: 1.5 })).toThrow(ConfigError);
});

test("the journal is open lines in the same file", async () => {
  const path = join(folder, "calls.jsonl");
  const recorder = new JsonlRecorder(path);
  await recorder.open(sampleOpen(1), true);
  await recorder.record(sampleRecord(1), true);
  await recorder.close();
  const [open, record] = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(open).toMatchObject({
    open: { call_id: sampleId(1), started_at: "2025-11-24T16:00:00.000Z", est_tokens: 100 },
  });
  expect(record).toMatchObject({ call_id: sampleId(1), outcome: "success" });
});

test("a place that can't be written keeps rows, tells why once per try, and recovers without loss or doubles", async () => {
  const path = join(folder, "later", "calls.jsonl");
  const recorder = new JsonlRecorder(path);
  const problems: string[] = [];
  recorder.onProblem(({ code }) => problems.push(code));
  for (let number = 0; number < 10; number++) recorder.record(sampleRecord(number), false);
  await recorder.flush();
  expect(recorder.stats()).toEqual({ written: 0, queued: 10, dropped: 0 });
  expect(problems).toEqual(["JSONL_TELEMETRY_WRITE"]);
  mkdirSync(join(folder, "later"));
  const committed = recorder.record(sampleRecord(10), true);
  await committed;
  expect(recorder.stats()).toEqual({ written: 11, queued: 0, dropped: 0 });
  const ids = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).call_id);
  expect(ids).toEqual(Array.from({ length: 11 }, (_, number) => sampleId(number)));
  await recorder.close();
});

test("rows that can't be written until close are counted as lost", async () => {
  const recorder = new JsonlRecorder(join(folder, "missing", "calls.jsonl"));
  recorder.record(sampleRecord(1), false);
  await recorder.close();
  expect(recorder.stats()).toEqual({ written: 0, queued: 0, dropped: 1 });
});

test("a row whose redaction throws is lost alone", async () => {
  const path = join(folder, "calls.jsonl");
  const recorder = new JsonlRecorder(path);
  const broken = () => {
    throw new Error("redactor");
  };
  recorder.recordLate(sampleRecord(1), false, broken);
  await recorder.record(sampleRecord(2), true);
  await recorder.close();
  expect(recorder.stats()).toEqual({ written: 1, queued: 0, dropped: 1 });
});
