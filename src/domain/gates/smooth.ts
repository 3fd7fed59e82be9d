import type { LimitConfig } from "../source.js";

/**
 * GCRA pacing of one dimension (spec 02 §3, rule `smooth`). A theoretical arrival time (TAT) is the only state:
 * `slot = max(now, tat − toleranceMs)`; granted when `slot ≤ now`, then `tat = max(now, tat) + cost · intervalMs`.
 */
export interface SmoothRate {
  /** T: time one unit (a request, a token) takes off the clock. */
  readonly intervalMs: number;
  /** τ: how far the clock may run ahead. */
  readonly toleranceMs: number;
}

/** Half a second more than the minute absorbs timers and network: with 60 s exactly, 20 ms of jitter puts limit + 1 into a window. */
const STRICT_WINDOW_MS = 60_500;
const MINUTE_MS = 60_000;

/** Requests that may start at once from rest. */
export function requestBurst(limits: LimitConfig): number {
  const { rpm } = limits;
  if (!limits.strict) return Math.max(4, (limits.burstS * rpm) / 60);
  return Math.max(1, Math.min(Math.max(4, rpm / 60), rpm / 10));
}

/** Tokens that may be booked at once from rest. */
export function tokenBurst(limits: LimitConfig): number {
  return limits.strict ? limits.tpm / 60 : (limits.burstTokensS * limits.tpm) / 60;
}

/** null when the gate is off. */
export function requestRate(limits: LimitConfig): SmoothRate | null {
  if (limits.rpm === 0) return null;
  const burst = requestBurst(limits);
  const windowMs = limits.strict ? STRICT_WINDOW_MS : MINUTE_MS;
  const units = limits.strict ? limits.rpm - burst + 1 : limits.rpm;
  const intervalMs = ceilTo(windowMs / units, 1_000);
  return { intervalMs, toleranceMs: (burst - 1) * intervalMs };
}

/** null when the gate is off. */
export function tokenRate(limits: LimitConfig): SmoothRate | null {
  if (limits.tpm === 0) return null;
  const burst = tokenBurst(limits);
  const windowMs = limits.strict ? STRICT_WINDOW_MS : MINUTE_MS;
  const units = limits.strict ? limits.tpm - burst : limits.tpm;
  // Whole nanoseconds: whole microseconds a token would cost a tenth of a limit of ten million a minute.
  const intervalMs = ceilTo(windowMs / units, 1_000_000);
  return { intervalMs, toleranceMs: burst * intervalMs };
}

/** Rounded up, because a shorter interval would let one unit too many into a window. */
function ceilTo(value: number, perMs: number): number {
  return Math.ceil(value * perMs) / perMs;
}

/** Sums of fractions miss their exact value by some 1e-11 ms; less than a microsecond is no wait. */
const NO_WAIT_MS = 0.001;

/** Milliseconds until the next unit may start; 0 = now. */
export function smoothWaitMs(rate: SmoothRate, tatMs: number, nowMs: number): number {
  const waitMs = tatMs - rate.toleranceMs - nowMs;
  return waitMs < NO_WAIT_MS ? 0 : waitMs;
}

/** The clock after `cost` units started at `nowMs`. */
export function smoothTake(rate: SmoothRate, tatMs: number, nowMs: number, cost: number): number {
  return Math.max(nowMs, tatMs) + cost * rate.intervalMs;
}

/** The clock after a correction by `units` (negative = refund), never below now − burst. */
export function smoothCorrect(rate: SmoothRate, tatMs: number, nowMs: number, units: number): number {
  if (units > 0) return Math.max(nowMs, tatMs) + units * rate.intervalMs;
  return Math.max(tatMs + units * rate.intervalMs, nowMs - rate.toleranceMs);
}

/** Units booked and not yet worked off by the passing of time. */
export function smoothBooked(rate: SmoothRate, tatMs: number, nowMs: number): number {
  return Math.max(0, Math.round((tatMs - nowMs) / rate.intervalMs));
}
