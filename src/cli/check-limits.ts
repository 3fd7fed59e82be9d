import { requestBurst, requestRate } from "../domain/gates/smooth.js";
import type { LimitConfig } from "../domain/source.js";

/** What the configured requests per minute mean in practice (spec 02 §3). */
export interface RequestPace {
  /** Requests that may start at once from rest. */
  readonly burst: number;
  /** Time between two requests after the burst; null under `window`, which doesn't pace. */
  readonly intervalMs: number | null;
  /** Requests that start in the first minute when there is always one waiting. */
  readonly firstMinute: number;
  /** The most that any 60 s can hold. */
  readonly mostInAnyMinute: number;
}

const MINUTE_MS = 60_000;

/** null = no limit of requests. */
export function requestPace(limits: LimitConfig): RequestPace | null {
  const { rpm, limitRule, strict } = limits;
  if (rpm === 0) return null;
  // Two aligned minutes touch: a full one at the end of the first, a full one at the start of the second.
  if (limitRule === "window") return { burst: rpm, intervalMs: null, firstMinute: rpm, mostInAnyMinute: 2 * rpm };
  const rate = requestRate(limits);
  if (rate === null) return null;
  const burst = Math.floor(rate.toleranceMs / rate.intervalMs + 1e-9) + 1;
  const firstMinute = Math.ceil((MINUTE_MS + rate.toleranceMs) / rate.intervalMs - 1e-9);
  return {
    burst,
    intervalMs: rate.intervalMs,
    firstMinute,
    mostInAnyMinute: strict ? rpm : rpm + Math.ceil(requestBurst(limits)),
  };
}

/** One line for people: `burst 4, then one each 1.1 s; 60 in the first minute`. */
export function describePace(pace: RequestPace, strict: boolean): string {
  const most = `at most ${pace.mostInAnyMinute} in any 60 s`;
  if (pace.intervalMs === null) return `${pace.burst} per aligned minute, all at once if need be; ${most}`;
  const interval = `burst ${pace.burst}, then one each ${seconds(pace.intervalMs)}`;
  const first = `${pace.firstMinute} in the first minute`;
  return strict ? `${interval}; ${first}` : `${interval}; ${first}, ${most} (limit + burst)`;
}

function seconds(lengthMs: number): string {
  return lengthMs < 1_000 ? `${Number(lengthMs.toPrecision(3))} ms` : `${Number((lengthMs / 1_000).toPrecision(3))} s`;
}
