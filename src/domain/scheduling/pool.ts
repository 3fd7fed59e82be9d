import type { Pool, ScopeState } from "../scope-state.js";
import { failureShare } from "./health.js";

/** Fewer sources than this have no "most of them". */
const LEAST_POOL = 3;

/** Averages move slowly: measured anew when a breaker changed, else only so often. */
const FRESH_MS = 250;

/** Medians over the sources of a scope. */
export function poolOf(state: ScopeState, nowMs: number): Pool {
  const { pool } = state;
  if (pool !== null && nowMs - pool.measuredAtMs < FRESH_MS) return pool;
  const measured = measurePool(state, nowMs);
  state.pool = measured;
  return measured;
}

function measurePool(state: ScopeState, nowMs: number): Pool {
  const ttfts: number[] = [];
  const tpots: number[] = [];
  const failures: number[] = [];
  for (const { breaker, health } of state.sourceList) {
    failures.push(failureShare(health));
    if (breaker.state !== "closed") continue;
    if (health.ttftMs > 0) ttfts.push(health.ttftMs);
    if (health.tpotMs > 0) tpots.push(health.tpotMs);
  }
  return {
    measuredAtMs: nowMs,
    ttftMs: median(ttfts),
    tpotMs: median(tpots),
    failShare: failures.length < LEAST_POOL ? 0 : median(failures),
  };
}

function median(values: number[]): number {
  if (values.length === 0) return 0;
  values.sort((a, b) => a - b);
  const middle = Math.floor(values.length / 2);
  return values.length % 2 === 1 ? values[middle]! : (values[middle - 1]! + values[middle]!) / 2;
}
