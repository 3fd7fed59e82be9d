import type { RetryConfig } from "../domain/scope.js";

const SPREAD_MIN_MS = 50;
const SPREAD_MAX_MS = 200;

/**
 * A short pause of 50–200 ms: before the next source is tried, and on top of a Retry-After that many clients were given
 * at once, so that they don't all return in the same moment.
 *
 * @param unit uniform in [0, 1)
 */
export function spreadMs(unit: number): number {
  return SPREAD_MIN_MS + (SPREAD_MAX_MS - SPREAD_MIN_MS) * unit;
}

/** base·2^(failures−1), at most max; doubling is exact, a power function is not on every platform. */
function exponentialMs(failures: number, baseMs: number, maxMs: number): number {
  let pauseMs = baseMs;
  for (let failure = 1; failure < failures && pauseMs > 0 && pauseMs < maxMs; failure++) pauseMs *= 2;
  return Math.min(pauseMs, maxMs);
}

/** Whether the other side's wish can be used: negative, NaN, infinite and zero say nothing (spec 02 §2). */
function isUsable(retryAfterMs: number | undefined): retryAfterMs is number {
  return retryAfterMs !== undefined && retryAfterMs > 0 && Number.isFinite(retryAfterMs);
}

/**
 * The pause before the same source is tried again: base·2^(failures−1)·U(0.5, 1), at least the spread, at most
 * `backoffMaxMs`. A usable Retry-After wins over the maximum: the pause is never below it (spec 02 §2).
 *
 * @param failures counted failures of this call so far, ≥ 1
 * @param unit uniform in [0, 1)
 * @param retryAfterMs what the last failure asked for, if anything
 */
export function backoffMs(
  failures: number,
  { backoffBaseMs, backoffMaxMs }: Pick<RetryConfig, "backoffBaseMs" | "backoffMaxMs">,
  unit: number,
  retryAfterMs?: number,
): number {
  const jitteredMs = exponentialMs(failures, backoffBaseMs, backoffMaxMs) * (0.5 + unit / 2);
  const pauseMs = Math.min(Math.max(jitteredMs, spreadMs(unit)), backoffMaxMs);
  return isUsable(retryAfterMs) ? Math.max(pauseMs, retryAfterMs + spreadMs(unit)) : pauseMs;
}
