/** One attempt's mark on the clock that made it. */
export type AttemptMark = number;

/**
 * Measures for one call how long it has made no paid progress (spec 02 §2):
 * `stalledMs = elapsed − union of the intervals of counted attempts`. It is the complement, so that any way of waiting
 * counts by itself. An attempt counts when its failure is billed to `maxAttempts` or it ends the call; all others
 * (rate-limited, dead source, failed probe, returned unsent) give their whole time back to the stall.
 */
export interface StallClock {
  /** An attempt starts; its bookkeeping belongs to it. */
  begin(nowMs: number): AttemptMark;
  /** The attempt ended. A mark that already ended is ignored. */
  end(mark: AttemptMark, nowMs: number, counted: boolean): void;
  /** Never negative. Attempts still running are taken as counted: their time is watched by their own timers. */
  stalledMs(nowMs: number): number;
}

interface Interval {
  readonly mark: AttemptMark;
  readonly startMs: number;
  /** undefined while it runs. */
  endMs: number | undefined;
  counted: boolean;
}

/** Length of the union of the counted and the running intervals; the list is in the order of the starts. */
function unionMs(intervals: readonly Interval[], nowMs: number): number {
  let totalMs = 0;
  let coveredToMs = Number.NEGATIVE_INFINITY;
  for (const { startMs, endMs = nowMs, counted } of intervals) {
    if (!counted || endMs <= coveredToMs) continue;
    totalMs += endMs - Math.max(startMs, coveredToMs);
    coveredToMs = endMs;
  }
  return totalMs;
}

/**
 * One per call, never shared: a clock kept in a client would bill one call for another's waiting.
 * A call nearly always has one attempt at a time; that case needs two numbers, a list exists only while attempts overlap.
 *
 * @param startMs the call's start, by the monotonic clock
 */
export function createStallClock(startMs: number): StallClock {
  let countedMs = 0;
  let lastMark: AttemptMark = 0;
  let running = 0;
  let soloMark: AttemptMark = 0;
  let soloStartMs = 0;
  let overlapping: Interval[] | undefined;

  function begin(nowMs: number): AttemptMark {
    const mark = ++lastMark;
    if (running++ === 0) {
      soloMark = mark;
      soloStartMs = nowMs;
      return mark;
    }
    overlapping ??= [{ mark: soloMark, startMs: soloStartMs, endMs: undefined, counted: true }];
    overlapping.push({ mark, startMs: nowMs, endMs: undefined, counted: true });
    return mark;
  }

  function endOverlapping(intervals: Interval[], mark: AttemptMark, nowMs: number, counted: boolean): void {
    const interval = intervals.find((candidate) => candidate.mark === mark);
    if (interval === undefined || interval.endMs !== undefined) return;
    interval.endMs = nowMs;
    interval.counted = counted;
    if (--running > 0) return;
    countedMs += unionMs(intervals, nowMs);
    overlapping = undefined;
  }

  function end(mark: AttemptMark, nowMs: number, counted: boolean): void {
    if (overlapping !== undefined) {
      endOverlapping(overlapping, mark, nowMs, counted);
    } else if (running > 0 && mark === soloMark) {
      running = 0;
      if (counted) countedMs += nowMs - soloStartMs;
    }
  }

  function runningMs(nowMs: number): number {
    if (overlapping !== undefined) return unionMs(overlapping, nowMs);
    return running === 0 ? 0 : nowMs - soloStartMs;
  }

  function stalledMs(nowMs: number): number {
    return Math.max(0, nowMs - startMs - countedMs - runningMs(nowMs));
  }

  return { begin, end, stalledMs };
}
