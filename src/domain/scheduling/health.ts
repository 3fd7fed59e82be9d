import { decayFactor } from "./decay.js";

/** How well and how fast a source answered lately (spec 10 §5). */
export interface HealthRecord {
  /** Decayed counts of attempts. */
  successes: number;
  failures: number;
  atMs: number;
  /** Moving averages; 0 = no sample yet. */
  ttftMs: number;
  tpotMs: number;
  failMs: number;
  /** Of whole good attempts. */
  durationMs: number;
  samples: number;
  lastSuccessMs: number;
}

const HALF_LIFE_MS = 60_000;
const ALPHA = 0.1;
/** Worse news weighs more. */
const ALPHA_RISE = 0.2;
/** What is believed of a source before it was tried: 9.5 of 10 good. */
const PRIOR_SUCCESSES = 9.5;
const PRIOR = 10;

export function newHealth(): HealthRecord {
  return {
    successes: 0,
    failures: 0,
    atMs: 0,
    ttftMs: 0,
    tpotMs: 0,
    failMs: 0,
    durationMs: 0,
    samples: 0,
    lastSuccessMs: 0,
  };
}

export function noteSuccess(h: HealthRecord, durationMs: number, tpotMs: number | undefined, nowMs: number): void {
  decay(h, nowMs);
  h.successes += 1;
  h.samples += 1;
  h.lastSuccessMs = nowMs;
  h.durationMs = moved(h.durationMs, durationMs, ALPHA);
  if (tpotMs !== undefined && tpotMs > 0) h.tpotMs = moved(h.tpotMs, tpotMs, ALPHA);
}

export function noteFailure(h: HealthRecord, durationMs: number, nowMs: number): void {
  decay(h, nowMs);
  h.failures += 1;
  h.failMs = moved(h.failMs, durationMs, ALPHA_RISE);
}

export function noteFirstToken(h: HealthRecord, ttftMs: number): void {
  h.ttftMs = moved(h.ttftMs, ttftMs, ttftMs > h.ttftMs ? ALPHA_RISE : ALPHA);
}

/** Share of good attempts, in (0, 1). */
export function successShare(h: HealthRecord, nowMs: number): number {
  const left = decayFactor(nowMs - h.atMs, HALF_LIFE_MS);
  return (h.successes * left + PRIOR_SUCCESSES) / ((h.successes + h.failures) * left + PRIOR);
}

/** Share of failures among what was seen; 0 without samples. */
export function failureShare(h: HealthRecord): number {
  const all = h.successes + h.failures;
  return all < 1 ? 0 : h.failures / all;
}

function decay(h: HealthRecord, nowMs: number): void {
  const left = decayFactor(nowMs - h.atMs, HALF_LIFE_MS);
  h.successes *= left;
  h.failures *= left;
  h.atMs = nowMs;
}

function moved(average: number, sample: number, alpha: number): number {
  return average === 0 ? sample : average + alpha * (sample - average);
}
