/**
 * Guard for self-hosted servers that never say 429 (spec 10 §3, after Gradient2): when the time per token has doubled, too
 * much is in flight. Only where no concurrency is configured.
 */
export interface GradientRecord {
  /** The last samples, ms per output token. */
  readonly samples: number[];
  /** Best time per token, rising slowly; 0 = none yet. */
  baseMs: number;
  baseAtMs: number;
}

const SAMPLES = 12;
/** Per minute. */
const BASE_RISE = 0.01;
const TOO_SLOW = 2;
const LEAST_SHARE = 0.5;
/** 200 tokens a second: what is faster shows the timers of both sides, not load. */
const LEAST_BASE_MS = 5;

export function newGradient(): GradientRecord {
  return { samples: [], baseMs: 0, baseAtMs: 0 };
}

/**
 * One success. Returns the share of the present level that the source bears, in [0.5, 1), or null when nothing is to be
 * cut. Judges every 12 samples.
 */
export function gradientShare(g: GradientRecord, tpotMs: number, nowMs: number): number | null {
  g.samples.push(tpotMs);
  if (g.samples.length < SAMPLES) return null;
  const currentMs = medianOf(g.samples);
  g.samples.length = 0;
  if (g.baseMs === 0) g.baseMs = currentMs;
  const minutes = Math.max(0, nowMs - g.baseAtMs) / 60_000;
  g.baseMs = Math.min(g.baseMs * (1 + BASE_RISE * (g.baseAtMs === 0 ? 0 : minutes)), currentMs);
  g.baseAtMs = nowMs;
  const boundMs = TOO_SLOW * Math.max(g.baseMs, LEAST_BASE_MS);
  return currentMs <= boundMs ? null : Math.max(LEAST_SHARE, boundMs / currentMs);
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
