/**
 * Lazy CUBIC (spec 10 §3): a limit that follows what the other side bears. A pure function of three numbers; only a cut
 * writes, so successes cost nothing and any number of processes share one controller.
 */
export interface CubicRecord {
  /** The level before the last cut; 0 = never cut. */
  wMax: number;
  cutAtMs: number;
  /** Time from the cut back to `wMax`. */
  kMs: number;
}

/** What a cut leaves. */
export const BETA = 0.85;
const K_MIN_MS = 20_000;
const K_MAX_MS = 120_000;
const NEWS_PER_K = 2;
const K_GROWTH = 1.5;
/** A limit found again within this share has not changed: it is probed more rarely. */
const STABLE_SHARE = 0.25;
/** The plateau lies just below what failed. */
const PLATEAU = 0.98;

export function neverCut(): CubicRecord {
  return { wMax: 0, cutAtMs: 0, kMs: K_MIN_MS };
}

/**
 * The level at this moment, without floor and cap. Infinity when never cut. `linearPerS`: least growth; up to the plateau
 * it waits there for the curve, or a small level would be above what failed long before `kMs` is over.
 */
export function cubicValue(c: CubicRecord, nowMs: number, linearPerS: number): number {
  if (c.wMax === 0) return Infinity;
  const sinceMs = Math.max(0, nowMs - c.cutAtMs);
  const x = (sinceMs - c.kMs) / c.kMs;
  const g = x < 0 ? x * x * x : x + x * x * x;
  const cubic = PLATEAU * c.wMax * (1 + (1 - BETA) * g);
  const back = Math.min(BETA * c.wMax + (linearPerS * sinceMs) / 1_000, PLATEAU * c.wMax);
  const beyond = (linearPerS * Math.max(0, sinceMs - c.kMs)) / 1_000;
  return Math.max(cubic, back + beyond);
}

/**
 * One cut: `level` = what was let through when it became too much. `newsMs`: how long it takes until an attempt tells of the
 * new level; growing faster than that would be blind.
 */
export function cut(c: CubicRecord, level: number, nowMs: number, newsMs = 0): void {
  if (c.wMax === 0) {
    c.wMax = level;
    c.kMs = K_MIN_MS;
  } else {
    const isStable = Math.abs(level - c.wMax) < STABLE_SHARE * c.wMax;
    c.kMs = isStable ? Math.max(c.kMs, Math.min(K_GROWTH * c.kMs, K_MAX_MS)) : K_MIN_MS;
    c.wMax = level;
  }
  c.kMs = Math.max(c.kMs, NEWS_PER_K * newsMs);
  c.cutAtMs = nowMs;
}

/** As if the only cut had been one from this level, and its time were over. */
export function resume(c: CubicRecord, level: number, nowMs: number): void {
  c.wMax = level;
  c.kMs = K_MIN_MS;
  c.cutAtMs = nowMs - c.kMs;
}
