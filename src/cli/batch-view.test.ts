import { describe, expect, it } from "vitest";
import type { BatchProgress, BatchSummary, BatchWorker } from "../batch/types.js";
import type { SourceSnapshot } from "../domain/tick.js";
import { progressBlock, progressLine, summaryJson, summaryLines } from "./batch-view.js";
import { displayWidth, styleOf } from "./terminal.js";

const plain = styleOf({ write: () => true }, {});
const files = { inPath: "in.jsonl", outPath: "out.jsonl" };

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
  attempts: 95,
  cost: 0.5,
  unpriced: 0,
  projectedCost: 1,
  limitsAway: false,
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
  it("tells no time left while the limits are away, but that calls wait", () => {
    const line = progressLine({ ...progress, limitsAway: true, etaMs: null });
    expect(line).toContain("30.0 s, the limits can't be asked: calls wait");
    expect(line).not.toMatch(/about .* left/);
  });

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

describe("progressBlock on a narrow terminal", () => {
  const figures = ["51 %", "90 done", "3 failed", "97 left", "10 from earlier runs", "about 32.0 s left"];

  it.each([40, 50, 60, 79, 120])("keeps every figure within %d cells", (width) => {
    const [tableAt, lines] = [/^source/, progressBlock(progress, plain, width)];
    const head = lines.slice(
      0,
      lines.findIndex((line) => tableAt.test(line)),
    );
    for (const line of head) expect(displayWidth(line)).toBeLessThanOrEqual(width);
    for (const figure of figures) expect(head.join("\n")).toContain(figure);
  });

  it("shrinks the bar before it leaves it out", () => {
    const cells = (width: number) => progressBlock(progress, plain, width)[0]?.match(/[█░]/g)?.length ?? 0;
    expect(cells(200)).toBe(30);
    expect(cells(79)).toBeGreaterThan(5);
    expect(cells(79)).toBeLessThan(30);
    expect(cells(40)).toBe(0);
  });
});

/** Nothing has succeeded; one source rests, one refused for good, one is well. */
const inTrouble: BatchProgress = {
  ...progress,
  done: 0,
  snapshot: {
    ...progress.snapshot!,
    sources: [
      source("a_1", { state: "open", openForMs: 4_000, lastError: { code: "x", message: "a_1 refused:\n  port 9" } }),
      source("b_1", { dead: true, lastError: { code: "auth", message: `401 ${"x".repeat(500)}` } }),
      source("c_1"),
      source("d_1", { lastError: { code: "x", message: "d_1: 503" } }),
    ],
  },
};

describe("progressLine", () => {
  it("says in one line which sources fail, and why", () => {
    const line = progressLine(inTrouble);
    expect(line).toMatch(/a_1 is resting after failures: refused: port 9; b_1 is dead: 401 x+…; d_1 is failing: 503$/);
    expect(line).not.toContain("\n");
    expect(line).not.toContain("c_1");
    expect(line.length).toBeLessThan(500);
  });

  it("says nothing of a source whose single error others made up for", () => {
    expect(progressLine({ ...inTrouble, done: 1 })).not.toContain("d_1");
  });

  it("names a resting source that left no reason", () => {
    const sources = [source("a_1", { state: "open" })];
    const line = progressLine({ ...inTrouble, snapshot: { ...inTrouble.snapshot!, sources } });
    expect(line).toContain("a_1 is resting after failures");
  });
});

describe("workers", () => {
  const worker = (changes: Partial<BatchWorker> = {}): BatchWorker => ({
    pid: 11,
    state: "working",
    inFlight: 3,
    finished: 5,
    deaths: 0,
    handedOn: 0,
    silentMs: 20,
    ...changes,
  });
  const shown = (...workers: BatchWorker[]) => progressLine({ ...progress, workers });

  it("are counted while all is well", () => {
    expect(shown(worker(), worker())).toContain(" · 2 workers · ");
    expect(progressBlock({ ...progress, workers: [worker()] }, plain).join("\n")).toContain(" · 1 worker");
    expect(progressLine(progress)).not.toContain("worker");
  });

  it("are told apart when one is down, died or stands still", () => {
    expect(shown(worker(), worker({ pid: null, state: "down", deaths: 2 }))).toContain("1 of 2 workers (2 died)");
    expect(shown(worker(), worker({ pid: 12, silentMs: 9_000 }))).toContain(
      "2 workers (12 is silent for 9.0 s with 3 lines)",
    );
  });

  it("that died are told at the end, with what that may have cost", () => {
    const ended = {
      ...progress,
      exitCode: 0,
      stop: null,
      answersPaidTwice: 0,
      possiblyPaidTwice: 0,
      answersNotWritten: 0,
    };
    const text = (...workers: BatchWorker[]) =>
      summaryLines({ ...ended, workers } as BatchSummary, files, plain).join("\n");
    expect(text(worker({ deaths: 2, handedOn: 7 }), worker({ deaths: 1 }))).toContain(
      "Workers died 3 times in this run. 7 lines in flight then: run again, possibly paid twice.",
    );
    expect(text(worker())).not.toContain("died");
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
    const lines = summaryLines({ ...summary, requeues: 0, badLines: 0 }, files, plain);
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^All lines are answered: 90 done/);
    expect(lines[1]).toBe("Results: out.jsonl");
    expect(lines[2]).toBe(`Session: ${summary.batchId}, for \`polygateway trace\` and \`report --session\``);
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
      files,
      plain,
    ).join("\n");
    expect(text).toContain("Stopped early");
    expect(text).toContain("2 lines hold errors instead of an answer; try them again with --retry-failed.");
    expect(text).toContain("1 answer of an earlier run");
    expect(text).toContain("2 attempts of an earlier run");
    expect(text).toContain("1 answer could not be written");
    expect(text).toContain("Nothing succeeded for 15m. Run the same command again");
  });

  const stopped = (kind: NonNullable<BatchSummary["stop"]>["kind"], reason: string): BatchSummary => ({
    ...summary,
    ...inTrouble,
    exitCode: 3,
    stop: { kind, reason },
  });

  it("gives the cause and the way to find it out when nothing succeeded or it was stopped in an outage", () => {
    for (const kind of ["no_success", "drained", "aborted"] as const) {
      const text = summaryLines(stopped(kind, "It ended."), files, plain).join("\n");
      expect(text).toContain("It ended. Run the same command again to do the 97 lines left; none is lost.");
      expect(text).toContain("a_1 is resting after failures: refused: port 9");
      expect(text).toContain("polygateway check --live");
    }
  });

  it("doesn't tell the cause twice", () => {
    const text = summaryLines(stopped("no_success", "No success. The last reason: a_1 refused"), files, plain).join(
      "\n",
    );
    expect(text.match(/refused/g)).toHaveLength(1);
    expect(text).toContain("polygateway check --live");
  });

  it("speaks of no trouble when a healthy run was stopped", () => {
    const healthy = { ...stopped("drained", "Stopped."), done: 5, snapshot: null };
    expect(summaryLines(healthy, files, plain).join("\n")).not.toMatch(/check --live|At the end/);
  });

  it("advises to correct dead sources before the next run", () => {
    const text = summaryLines(stopped("all_sources_dead", "All are dead (a_1 401)."), files, plain).join("\n");
    expect(text).toMatch(
      /\(a_1 401\)\. Correct the keys, models or BASE_URLs; .*check --live.*Run the same command again/,
    );
  });

  it("of a run that can't be resumed says only why it ended", () => {
    const text = summaryLines(stopped("drained", "Stopped."), undefined, plain).join("\n");
    expect(text).toMatch(/\nStopped\.$/);
    expect(text).not.toMatch(/same command|check --live/);
  });

  it("says when there was nothing to do", () => {
    const nothing = { ...summary, done: 0, badLines: 0, requeues: 0, skipped: 200, total: 200 };
    expect(summaryLines(nothing, files, plain)).toEqual(["Nothing left to do: all 200 lines are in out.jsonl."]);
    expect(summaryLines({ ...nothing, skipped: 0, total: 0 }, files, plain)).toEqual([
      "Nothing to do: no lines in in.jsonl.",
    ]);
  });
});

describe("summaryJson", () => {
  it("has whole milliseconds", () => {
    const text = summaryJson({ ...progress, elapsedMs: 12.345 } as BatchSummary);
    expect(JSON.parse(text)).toMatchObject({ elapsedMs: 12, callsPerSecond: 3.21 });
  });
});
