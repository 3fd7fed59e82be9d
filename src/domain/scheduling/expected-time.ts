import type { HealthRecord } from "./health.js";

/** How long an attempt, and a success, are expected to take (spec 10 §5). */

/** Before anything was measured anywhere. */
const UNKNOWN_TTFT_MS = 1_000;
const UNKNOWN_OUT_TOKENS = 256;

/** Medians of the closed sources; 0 = unknown. */
export interface PoolTimes {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

/** T: first token and the rest of the answer. What a source has not shown yet is taken from its pool. */
export function attemptTimeMs(h: HealthRecord, pool: PoolTimes, outTokens: number | null): number {
  const poolTtftMs = pool.ttftMs > 0 ? pool.ttftMs : UNKNOWN_TTFT_MS;
  const ttftMs = h.ttftMs > 0 ? h.ttftMs : poolTtftMs;
  const tpotMs = h.tpotMs > 0 ? h.tpotMs : pool.tpotMs;
  return ttftMs + (outTokens ?? UNKNOWN_OUT_TOKENS) * tpotMs;
}

/** So many answers before a call is refused for what they took. */
const LEAST_SAMPLES = 10;
/** An older measure is tried again: refused calls bring no news. */
const FRESH_MS = 30_000;

/** Does this source show what an answer takes now? */
export function isMeasured(h: HealthRecord, nowMs: number): boolean {
  return h.samples >= LEAST_SAMPLES && nowMs - h.lastSuccessMs <= FRESH_MS;
}

/** E: with the failures that are to be expected before the success, and the wait before the start. */
export function successTimeMs(h: HealthRecord, good: number, timeMs: number, waitMs: number): number {
  return timeMs + ((1 - good) / good) * Math.max(h.failMs, timeMs) + waitMs;
}
