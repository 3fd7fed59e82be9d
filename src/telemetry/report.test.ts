import { describe, expect, test } from "vitest";
import type { CallRecord } from "../domain/record.js";
import { sampleRecord } from "../testing/contracts/recorder.js";
import type { StoredRow } from "./columns.js";
import { completeRow, parseTelemetryLine, recordLine } from "./json-lines.js";
import { createReport, percentiles, type ReportGrouping } from "./report.js";

function row(number: number, changes: Partial<CallRecord> = {}): StoredRow {
  const line = parseTelemetryLine(recordLine(sampleRecord(number, changes)));
  if (line.kind !== "record") throw new Error("no record line");
  return line.row;
}

function reportOf(rows: readonly StoredRow[], by?: ReportGrouping) {
  const builder = createReport(by);
  for (const each of rows) builder.add(each);
  return builder.finish();
}

const failed = { outcome: "transient", final: false, promptTokens: 10, completionTokens: 0, latencyMs: 2_000 } as const;
const rows = [
  row(1, { requestId: "a", costNanos: 1_000_000n, latencyMs: 100, ttftMs: 10 }),
  row(2, {
    requestId: "b",
    ...failed,
    costNanos: 500_000n,
    error: "acme_1 transient failure: 503 | req_8f7a6b5c4d3e busy",
  }),
  row(3, { requestId: "b", attempt: 2, costNanos: null, sourceName: "acme_2", latencyMs: 300 }),
  row(4, {
    requestId: "c",
    ...failed,
    costNanos: null,
    error: "acme_1 transient failure: 503 | req_1a2b3c4d5e6f busy",
  }),
  row(5, {
    requestId: "c",
    outcome: "unavailable",
    attempt: null,
    sourceName: null,
    model: null,
    costNanos: null,
    error: "exhausted",
  }),
  row(6, { requestId: "d", outcome: "cache_hit", attempt: null, sourceName: null, costNanos: 0n, promptTokens: 99 }),
];

describe("report", () => {
  test("counts calls, attempts, tokens, money, latency and what retries took", () => {
    const { total } = reportOf(rows);
    expect(total).toMatchObject({
      calls: 4,
      answered: 3,
      successRate: 0.75,
      attempts: 4,
      attemptsPerCall: 1,
      cacheHits: 1,
    });
    expect(total.tokens).toEqual({ prompt: 44, cached: 16, reasoning: 32, completion: 68 });
    expect(total.cost).toBe(0.0015);
    expect(total.attemptsWithoutPrice).toBe(2);
    expect(total.latencyMs).toEqual({ p50: 100, p95: 300, p99: 300 });
    expect(total.attemptsWithPrice).toBe(2);
    const price = { attemptsWithPrice: 1, attemptsWithoutPrice: 1 };
    expect(total.retries).toEqual({ attempts: 2, abandoned: 0, tokens: 20, cost: 0.0005, timeMs: 4_000, ...price });
  });

  test("errors that differ only in ids count together, most frequent first", () => {
    const { errors } = reportOf(rows);
    expect(errors.map(({ count, outcome, statusCodes }) => [count, outcome, statusCodes])).toEqual([
      [2, "transient", [200]],
      [1, "unavailable", [200]],
    ]);
    expect(errors[0]?.sample).toContain("req_8f7a6b5c4d3e");
  });

  test("one failure with several statuses is one line; 0 is no status", () => {
    const busy = { ...failed, error: "acme_1: busy" };
    const { errors } = reportOf([503, 0, 500, 503].map((statusCode, index) => row(index, { ...busy, statusCode })));
    expect(errors).toMatchObject([{ count: 4, statusCodes: [500, 503] }]);
  });

  test("cancelled calls are neither failures nor errors nor retries", () => {
    const cancelled = { outcome: "cancelled", error: "cancelled: Interrupted.", costNanos: null } as const;
    const { total, errors } = reportOf([
      row(1, { requestId: "a" }),
      row(2, { requestId: "b", ...cancelled }),
      row(3, { requestId: "c", ...cancelled, attempt: null, sourceName: null }),
    ]);
    expect(total).toMatchObject({ calls: 3, answered: 1, cancelled: 2, successRate: 1, attempts: 2 });
    expect(total.retries.attempts).toBe(0);
    expect(errors).toEqual([]);
  });

  test("groups by source, model, scope, session and day", () => {
    expect(reportOf(rows, "source").groups.map(({ key, attempts }) => [key, attempts])).toEqual([
      [null, 0],
      ["acme_1", 3],
      ["acme_2", 1],
    ]);
    expect(reportOf(rows, "day").groups.map(({ key }) => key)).toEqual(["2025-11-23"]);
    expect(reportOf(rows, "session").groups.map(({ key }) => key)).toEqual(["session"]);
    expect(reportOf(rows, "scope").groups.map(({ key }) => key)).toEqual(["LLM"]);
  });

  test("a row of the original's 22 columns is one call with one attempt", () => {
    const old = completeRow({ call_id: "x", latency_ms: 5, error: null, created_at: "2025-01-02 03:04:05" });
    const report = reportOf([old, completeRow({ call_id: "y", error: "boom" })]);
    expect(report.total).toMatchObject({ calls: 2, answered: 1, attempts: 2 });
    expect(report.firstAtMs).toBe(Date.UTC(2025, 0, 2, 3, 4, 5));
  });

  test("percentiles are by nearest rank", () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentiles(values)).toEqual({ p50: 50, p95: 95, p99: 99 });
    expect(percentiles([7])).toEqual({ p50: 7, p95: 7, p99: 7 });
    expect(percentiles([])).toBeNull();
  });

  test("no rows make an empty report", () => {
    expect(reportOf([]).total).toMatchObject({ calls: 0, successRate: null, attemptsPerCall: null, latencyMs: null });
  });
});
