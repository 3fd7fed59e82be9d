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
  return new CallStallClock(startMs);
}

/** A class for its size: every waiting call has one. */
class CallStallClock implements StallClock {
  readonly #startMs: number;
  #countedMs = 0;
  #lastMark: AttemptMark = 0;
  #running = 0;
  #soloMark: AttemptMark = 0;
  #soloStartMs = 0;
  #overlapping: Interval[] | undefined;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  begin(nowMs: number): AttemptMark {
    this.#lastMark += 1;
    const mark = this.#lastMark;
    this.#running += 1;
    if (this.#running === 1) {
      this.#soloMark = mark;
      this.#soloStartMs = nowMs;
      return mark;
    }
    this.#overlapping ??= [{ mark: this.#soloMark, startMs: this.#soloStartMs, endMs: undefined, counted: true }];
    this.#overlapping.push({ mark, startMs: nowMs, endMs: undefined, counted: true });
    return mark;
  }

  end(mark: AttemptMark, nowMs: number, counted: boolean): void {
    if (this.#overlapping !== undefined) {
      this.#endOverlapping(this.#overlapping, mark, nowMs, counted);
      return;
    }
    if (this.#running === 0 || mark !== this.#soloMark) return;
    this.#running = 0;
    if (counted) this.#countedMs += nowMs - this.#soloStartMs;
  }

  stalledMs(nowMs: number): number {
    return Math.max(0, nowMs - this.#startMs - this.#countedMs - this.#runningMs(nowMs));
  }

  #endOverlapping(intervals: Interval[], mark: AttemptMark, nowMs: number, counted: boolean): void {
    const interval = intervals.find((candidate) => candidate.mark === mark);
    if (interval === undefined || interval.endMs !== undefined) return;
    interval.endMs = nowMs;
    interval.counted = counted;
    this.#running -= 1;
    if (this.#running > 0) return;
    this.#countedMs += unionMs(intervals, nowMs);
    this.#overlapping = undefined;
  }

  #runningMs(nowMs: number): number {
    if (this.#overlapping !== undefined) return unionMs(this.#overlapping, nowMs);
    return this.#running === 0 ? 0 : nowMs - this.#soloStartMs;
  }
}
