import { decayFactor } from "./decay.js";

/**
 * Is this source broken? A one-sided sequential test (CUSUM, spec 10 §4): every attempt adds the logarithm of how much
 * likelier it is from a source that fails half the time than from one that fails one time in twenty; successes subtract.
 */
export interface EvidenceRecord {
  score: number;
  atMs: number;
  /** Failures, and those of them that hung, since the score was last 0. */
  fails: number;
  hangs: number;
}

export type EvidenceKind = "failure" | "hang" | "slow_success" | "success" | "double_success";

/** Failure share of a good and of a broken source. */
const GOOD_SHARE = 0.05;
const BROKEN_SHARE = 0.5;
/** Where most sources fail alike, "good" is what the pool does, up to this. */
const MOST_GOOD_SHARE = 0.4;
const POOL_MARGIN = 1.5;
export const TRIPS_AT = 9.2;
/** A source that just closed is on probation. */
const PROBATION = TRIPS_AT / 2;
const HALF_LIFE_MS = 60_000;
/** A success that took four times as long as expected counts half a failure. */
const SLOW_SHARE = 0.5;

export function noEvidence(): EvidenceRecord {
  return { score: 0, atMs: 0, fails: 0, hangs: 0 };
}

/** Adds one attempt. Returns whether the source is to be isolated. `poolFailShare` = the pool's median failure share. */
export function addEvidence(e: EvidenceRecord, kind: EvidenceKind, poolFailShare: number, nowMs: number): boolean {
  const score = evidenceNow(e, nowMs) + weightOf(kind, poolFailShare);
  e.atMs = nowMs;
  e.score = Math.max(0, score);
  if (e.score === 0) {
    e.fails = 0;
    e.hangs = 0;
  }
  if (kind !== "failure" && kind !== "hang") return false;
  e.fails += 1;
  if (kind === "hang") e.hangs += 1;
  return e.score >= TRIPS_AT;
}

export function evidenceNow(e: EvidenceRecord, nowMs: number): number {
  return e.score === 0 ? 0 : e.score * decayFactor(nowMs - e.atMs, HALF_LIFE_MS);
}

/** Did the source mostly hang rather than fail? Then one good probe proves little. */
export function isMostlyHanging(e: EvidenceRecord): boolean {
  return e.hangs * 2 > e.fails;
}

/** After the breaker closed: `onProbation` half way to the next trip. */
export function restartEvidence(e: EvidenceRecord, onProbation: boolean, nowMs: number): void {
  e.score = onProbation ? PROBATION : 0;
  e.atMs = nowMs;
  e.fails = 0;
  e.hangs = 0;
}

const FAILURE_WEIGHT = Math.log(BROKEN_SHARE / GOOD_SHARE);
const SUCCESS_WEIGHT = Math.log((1 - BROKEN_SHARE) / (1 - GOOD_SHARE));

function weightOf(kind: EvidenceKind, poolFailShare: number): number {
  const goodShare = Math.min(MOST_GOOD_SHARE, POOL_MARGIN * poolFailShare);
  const isUsual = goodShare <= GOOD_SHARE;
  const failure = isUsual ? FAILURE_WEIGHT : Math.log(BROKEN_SHARE / goodShare);
  const success = isUsual ? SUCCESS_WEIGHT : Math.log((1 - BROKEN_SHARE) / (1 - goodShare));
  switch (kind) {
    case "failure":
    case "hang":
      return failure;
    case "slow_success":
      return SLOW_SHARE * failure;
    case "double_success":
      return 2 * success;
    default:
      return success;
  }
}
