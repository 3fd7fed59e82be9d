import { decayFactor } from "./decay.js";

/**
 * What a source was seen to bear: the best rate of answers lately. No cut goes far below this, however refusals come.
 * Where much of what is let through is refused, the source has changed and the memory is void.
 */
export interface GoodputRecord {
  /** Answers, older ones weighing less; 0 answers since `firstAtMs`. */
  weight: number;
  atMs: number;
  firstAtMs: number;
  bestPerS: number;
  bestAtMs: number;
  /** Attempts let through lately, and those refused. */
  granted: number;
  refused: number;
}

const AVERAGE_HALF_LIFE_MS = 20_000;
/** A provider's bucket lets a burst pass that it would not bear for long. */
const LEAST_SPAN_MS = 60_000;
const MEMORY_HALF_LIFE_MS = 600_000;
const FLOOR_SHARE = 0.5;
const LEAST_REFUSED = 3;
const CHANGED_SHARE = 0.25;
/** Counts are halved here, so that old ones weigh less. */
const MOST_COUNTED = 60;

export function newGoodput(): GoodputRecord {
  return { weight: 0, atMs: 0, firstAtMs: -1, bestPerS: 0, bestAtMs: 0, granted: 0, refused: 0 };
}

export function noteAnswer(g: GoodputRecord, nowMs: number): void {
  if (g.firstAtMs < 0) g.firstAtMs = nowMs;
  g.weight = g.weight * decayFactor(nowMs - g.atMs, AVERAGE_HALF_LIFE_MS) + 1;
  g.atMs = nowMs;
  const spanMs = nowMs - g.firstAtMs;
  if (spanMs < LEAST_SPAN_MS) return;
  // What answers at an even rate would weigh by now.
  const fullMs = (AVERAGE_HALF_LIFE_MS / Math.LN2) * (1 - decayFactor(spanMs, AVERAGE_HALF_LIFE_MS));
  const perS = (g.weight * 1_000) / fullMs;
  if (perS <= bestNow(g, nowMs)) return;
  g.bestPerS = perS;
  g.bestAtMs = nowMs;
}

function bestNow(g: GoodputRecord, nowMs: number): number {
  return g.bestPerS === 0 ? 0 : g.bestPerS * decayFactor(nowMs - g.bestAtMs, MEMORY_HALF_LIFE_MS);
}

export function noteLetThrough(g: GoodputRecord): void {
  g.granted += 1;
  if (g.granted <= MOST_COUNTED) return;
  g.granted /= 2;
  g.refused /= 2;
}

export function noteRefused(g: GoodputRecord): void {
  g.refused += 1;
  if (g.refused < LEAST_REFUSED || g.refused <= CHANGED_SHARE * g.granted) return;
  g.bestPerS = 0;
  g.weight = 0;
  g.firstAtMs = -1;
}

/** Requests per second that a cut leaves at least; 0 = nothing is known. */
export function rateFloor(g: GoodputRecord, nowMs: number): number {
  return FLOOR_SHARE * bestNow(g, nowMs);
}

/** The same in calls in flight, by Little's law; `durationMs` = what an attempt takes. */
export function windowFloor(g: GoodputRecord, durationMs: number, nowMs: number): number {
  return Math.ceil((rateFloor(g, nowMs) * durationMs) / 1_000);
}
