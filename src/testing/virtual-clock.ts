/** The clock moves in steps of 2^-10 ms: sums and differences of such numbers are exact, so no rest of 1e-17 ms remains. */
const STEPS_PER_MS = 1_024;

/** The grid point at or after `ms`. */
export function onGrid(ms: number): number {
  return Math.ceil(ms * STEPS_PER_MS) / STEPS_PER_MS;
}

/** When a timer set at `nowMs` fires: never early, and later than now unless the delay is 0, negative or NaN. */
export function dueTime(nowMs: number, delayMs: number): number {
  if (!(delayMs > 0)) return nowMs;
  return Math.max(onGrid(nowMs + delayMs), nowMs + 1 / STEPS_PER_MS);
}
