import { describe, expect, it } from "vitest";
import type { BatchProgress, BatchSummary } from "../batch/types.js";
import type { SourceSnapshot } from "../domain/tick.js";
import { progressBlock, progressLine, summaryLines } from "./batch-view.js";
import { styleOf } from "./terminal.js";

const plain = styleOf({ write: () => true }, {});

function source(name: string, changes: Partial<SourceSnapshot> = {}): SourceSnapshot {
  return {
    name,
    state: "closed",
    epoch: 0,
    openForMs: 0,
    probeInFlight: false,
    inflight: 1,
    maxConcurrency: 4,
    requestsUsed: 0,
    tokensUsed: 0,
    coolingMs: 0,
    dead: false,
    lastError: null,
    ...changes,
  };
}

const progress: BatchProgress = {
  batchId: "b",
  done: 90,
  failed: 3,
  left: 97,
  total: 200,
  skipped: 10,
  skippedFailed: 1,
  badLines: 2,
  inFlight: 7,
  requeued: 1,
  requeues: 4,
  elapsedMs: 30_000,
  callsPerSecond: 3.21,
  tokensPerSecond: 1_234,
  tokens: 40_000,
  cost: 0.5,
  unpriced: 0,
  projectedCost: 1,
  etaMs: 32_000,
  bySource: { good_1: { answers: 80, tokens: 30_000, cost: 0.4 } },
  snapshot: {
    scope: "LLM",
    backend: { kind: "memory", ok: true },
    waiting: { count: 5, oldestMs: 1_500 },
    sources: [
      source("good_1"),
      source("limited_1", { coolingMs: 2_000 }),
      source("slow_1", {
        state: "open",
        openForMs: 4_000,
        lastError: { code: "ttft_timeout", message: "no token in 2 s" },
      }),
      source("back_1", { state: "half_open", probeInFlight: true }),
      source("dead_1", { dead: true, lastError: { code: "auth", message: "401 | bad key\u001b[2J" } }),
    ],
  },
  draining: false,
};

describe("progressBlock", () => {
  it("shows done, failed, left, rates, money so far and projected, ETA and each source's state", () => {
    const text = progressBlock(progress, plain).join("\n");
    expect(text).toContain("51 %");
    expect(text).toContain("90 done · 3 failed · 97 left · 10 from earlier runs");
    expect(text).toContain(
      "3.21 calls/s · 1,234 tokens/s · cost 0.5000, about 1.00 in all · 30.0 s, about 32.0 s left",
    );
    expect(text).toMatch(/good_1 +1\/4 +80 +30,000 +ok/);
    expect(text).toMatch(/limited_1 .*rate-limited, 2\.0 s/);
    expect(text).toMatch(/slow_1 .*resting 4\.0 s: no token in 2 s/);
    expect(text).toMatch(/back_1 .*probing/);
    expect(text).toMatch(/dead_1 .*dead: 401 \| bad key/);
    expect(text).not.toContain("\u001b");
    expect(text).toContain("5 calls waiting for a slot, the longest 1.5 s");
    expect(text).toContain("1 line put back");
  });

  it("has no bar and no share for an input without an end", () => {
    const text = progressBlock({ ...progress, total: undefined, left: undefined, etaMs: null }, plain).join("\n");
    expect(text).toContain("input still open");
    expect(text).not.toMatch(/[█░%]/);
  });

  it("stays small with many sources, and says how many are not shown", () => {
    const many = Array.from({ length: 40 }, (_, index) => source(`s_${index}`));
    const lines = progressBlock({ ...progress, snapshot: { ...progress.snapshot!, sources: many } }, plain);
    expect(lines.length).toBeLessThan(24);
    expect(lines.join("\n")).toContain("and 24 more sources");
  });

  it("says when money is unknown or only a lower bound", () => {
    expect(progressLine({ ...progress, cost: null })).toContain("cost unknown");
    expect(progressLine({ ...progress, unpriced: 3 })).toContain("at least 0.5000");
  });
});

describe("summaryLines", () => {
  const summary: BatchSummary = {
    ...progress,
    left: 0,
    failed: 0,
    skippedFailed: 0,
    exitCode: 0,
    stop: null,
    answersPaidTwice: 0,
    possiblyPaidTwice: 0,
    answersNotWritten: 0,
  };

  it("is short when all went well", () => {
    const lines = summaryLines({ ...summary, requeues: 0, badLines: 0 }, "out.jsonl", plain);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^All lines are answered: 90 done/);
    expect(lines[1]).toBe("Results: out.jsonl");
  });

  it("names failures, what was paid twice and why it stopped", () => {
    const text = summaryLines(
      {
        ...summary,
        exitCode: 3,
        failed: 2,
        answersPaidTwice: 1,
        possiblyPaidTwice: 2,
        answersNotWritten: 1,
        stop: { kind: "no_success", reason: "Nothing succeeded for 15m." },
      },
      "out.jsonl",
      plain,
    ).join("\n");
    expect(text).toContain("Stopped early");
    expect(text).toContain("2 lines hold errors instead of an answer; try them again with --retry-failed.");
    expect(text).toContain("1 answer of an earlier run");
    expect(text).toContain("2 attempts of an earlier run");
    expect(text).toContain("1 answer could not be written");
    expect(text).toContain("Nothing succeeded for 15m. Run the same command again");
  });
});
