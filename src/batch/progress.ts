import type { LineResponse } from "./ask.js";
import type { BatchProgress, SourceTally } from "./types.js";

/** What the run began with. */
export interface ProgressBase {
  readonly batchId: string;
  readonly skipped: number;
  readonly skippedFailed: number;
  readonly startedMs: number;
}

/** What only the loop knows. */
export interface LiveCounts {
  readonly inFlight: number;
  readonly requeued: number;
  readonly draining: boolean;
  /** Lines of this run; undefined while a stream has not ended. */
  readonly linesToDo: number | undefined;
  readonly badLines: number;
}

export interface Tally {
  answered(response: LineResponse): void;
  failed(): void;
  requeued(): void;
  notWritten(): void;
  readonly answersNotWritten: number;
  readonly done: number;
  readonly failures: number;
  report(nowMs: number, live: LiveCounts, scope: Pick<BatchProgress, "snapshot" | "limitsAway">): BatchProgress;
}

export function createTally(base: ProgressBase): Tally {
  let done = 0;
  let failures = 0;
  let requeues = 0;
  let answersNotWritten = 0;
  let tokens = 0;
  let attempts = 0;
  let cost: number | null = null;
  let unpriced = 0;
  // A Map, since a source may be named like a property of every object.
  const bySource = new Map<string, SourceTally>();
  const rate = createRate(base.startedMs);
  let reportedMs = base.startedMs;
  /** In which nothing could go on: an estimate from it would be of the outage, not of the work. */
  let awayMs = 0;

  function addToSource(response: LineResponse): void {
    const before = bySource.get(response.sourceName) ?? { answers: 0, tokens: 0, cost: 0 };
    bySource.set(response.sourceName, {
      answers: before.answers + 1,
      tokens: before.tokens + response.usage.totalTokens,
      cost: before.cost + (response.cost ?? 0),
    });
  }

  return {
    answered(response) {
      done++;
      tokens += response.usage.totalTokens;
      attempts += response.attempts;
      if (response.cost === null) unpriced++;
      else cost = (cost ?? 0) + response.cost;
      addToSource(response);
    },
    failed() {
      failures++;
    },
    requeued() {
      requeues++;
    },
    notWritten() {
      answersNotWritten++;
    },
    get answersNotWritten() {
      return answersNotWritten;
    },
    get done() {
      return done;
    },
    get failures() {
      return failures;
    },
    report(nowMs, live, { snapshot, limitsAway }) {
      const finished = done + failures;
      const left = live.linesToDo === undefined ? undefined : Math.max(0, live.linesToDo - finished);
      if (limitsAway) awayMs += nowMs - reportedMs;
      reportedMs = nowMs;
      const { callsPerSecond, tokensPerSecond } = rate(nowMs - awayMs, finished, tokens);
      return {
        batchId: base.batchId,
        done,
        failed: failures,
        left,
        total: live.linesToDo === undefined ? undefined : live.linesToDo + base.skipped,
        skipped: base.skipped,
        skippedFailed: base.skippedFailed,
        badLines: live.badLines,
        inFlight: live.inFlight,
        requeued: live.requeued,
        requeues,
        elapsedMs: nowMs - base.startedMs,
        callsPerSecond: limitsAway ? 0 : callsPerSecond,
        tokensPerSecond: limitsAway ? 0 : tokensPerSecond,
        tokens,
        attempts,
        cost,
        unpriced,
        projectedCost: projectCost(cost, done, left),
        limitsAway,
        etaMs: limitsAway || left === undefined || callsPerSecond === 0 ? null : (left / callsPerSecond) * 1000,
        bySource: Object.fromEntries(bySource),
        snapshot,
        draining: live.draining,
      };
    },
  };
}

function projectCost(cost: number | null, done: number, left: number | undefined): number | null {
  return cost === null || left === undefined ? null : cost + (cost / done) * left;
}

const RATE_WINDOW_MS = 30_000;
/** Reports closer together than this share one sample, so that the list stays short. */
const SAMPLE_EVERY_MS = 500;

/** Rates over the last half minute, from the samples that the reports themselves leave. */
function createRate(startedMs: number) {
  const samples = [{ atMs: startedMs, finished: 0, tokens: 0 }];
  return (nowMs: number, finished: number, tokens: number) => {
    while (samples.length > 1 && samples[1]!.atMs <= nowMs - RATE_WINDOW_MS) samples.shift();
    const oldest = samples[0]!;
    if (nowMs - samples[samples.length - 1]!.atMs >= SAMPLE_EVERY_MS) samples.push({ atMs: nowMs, finished, tokens });
    const seconds = (nowMs - oldest.atMs) / 1000;
    if (seconds <= 0) return { callsPerSecond: 0, tokensPerSecond: 0 };
    return {
      callsPerSecond: (finished - oldest.finished) / seconds,
      tokensPerSecond: (tokens - oldest.tokens) / seconds,
    };
  };
}
