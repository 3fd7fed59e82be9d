import { BETA, type CubicRecord, resume } from "./cubic.js";

/**
 * Refusals that no rate causes. A provider under others' load turns away one call in twenty, however slowly they come; cut
 * after cut would leave next to nothing. What a rate causes becomes rare as soon as the rate is cut: so where several cuts
 * in a row were each followed by another refusal, they were in vain. Where refusals are rare anyway, two of them soon after
 * cuts say the same: a limit passed by so little is not met again at a level that low. The level of before comes back and
 * refusals cut nothing, until they come much more often there than they did at the low level, or stay away for two minutes.
 */
export interface NoiseRecord {
  /** Cuts in a row after which a refusal came early, though the lower level had shown its effect. */
  vainCuts: number;
  /** Refusals soon after a cut, and yet after many attempts, less those that came when a limit's would. */
  rareCuts: number;
  /** The level before the first cut in a row. */
  fullLevel: number;
  /** In a row: attempts and refusals. While there is noise: those since it was found, older ones weighing less. */
  attempts: number;
  refusals: number;
  /** Attempts a refusal at the low level; 0 = refusals are no noise. */
  usualGap: number;
  /** The source's attempts when it refused last, and when that was. */
  heardAttempts: number;
  heardAtMs: number;
}

const MOST_VAIN_CUTS = 4;
/** So far down, cuts were in vain whatever their effects might still be. */
const LEAST_SHARE = 0.35;
/** A refusal later than this share of the curve says that the lower level was borne: nothing is in a row any more. */
const EARLY_SHARE = 0.5;
/** More than one refusal in so many attempts is a limit still to be found, not noise. */
const LEAST_GAP = 8;
/** Two rare refusals so early: of a limit's own, one in thirty is like that; of noise at 1 or 2 %, every fourth. */
const MOST_RARE_CUTS = 2;
const RARE_GAP = 30;
const RARE_SHARE = 0.25;
/** Where a limit refuses: the level is back where it was. */
const LATE_SHARE = 0.8;
/** Rare noise has at least this; a longer gap measured by two refusals would make the next ones look dense. */
const RARE_USUAL_GAP = 75;
/** Noise that stays away for so long is over. */
const CALM_MS = 120_000;
/** Of a level that was borne for a while, a part is forgotten. */
const KEPT_SHARE = 0.85;
/** So much shorter gaps at the full level are no chance, judged by so many refusals. */
const WORSE_SHARE = 0.4;
const LEAST_REFUSALS = 6;

export function noNoise(): NoiseRecord {
  return {
    vainCuts: 0,
    rareCuts: 0,
    fullLevel: 0,
    attempts: 0,
    refusals: 0,
    usualGap: 0,
    heardAttempts: 0,
    heardAtMs: 0,
  };
}

/** A cut that no refusal asked for says nothing of refusals, and the row is over. */
export function forgetNoise(n: NoiseRecord): void {
  endRow(n);
  n.rareCuts = 0;
}

function endRow(n: NoiseRecord): void {
  n.vainCuts = 0;
  n.attempts = 0;
  n.refusals = 0;
  n.usualGap = 0;
}

/** A refusal cut the level from here. */
export function noteCut(n: NoiseRecord, level: number): void {
  n.fullLevel = Math.max(n.fullLevel, level);
}

/**
 * A refusal of an attempt that began after the last cut. `attempts` = those of the source since ever; `attemptMs` = what
 * one takes: earlier than that the level shows no effect. Returns whether it is noise, and nothing is to be cut.
 */
export function hearRefusal(
  n: NoiseRecord,
  c: CubicRecord,
  attempts: number,
  attemptMs: number,
  nowMs: number,
): boolean {
  const gap = attempts - n.heardAttempts;
  const calmMs = nowMs - n.heardAtMs;
  n.heardAttempts = attempts;
  n.heardAtMs = nowMs;
  if (c.wMax === 0) return false;
  if (n.usualGap > 0) return isStillNoise(n, gap, calmMs);
  const sinceCutMs = nowMs - c.cutAtMs;
  weighRare(n, sinceCutMs / c.kMs, gap);
  if (n.rareCuts >= MOST_RARE_CUTS) return begin(n, c, RARE_USUAL_GAP, nowMs);
  if (sinceCutMs >= EARLY_SHARE * c.kMs) {
    endRow(n);
    n.fullLevel *= KEPT_SHARE;
    return false;
  }
  n.attempts += gap;
  n.refusals += 1;
  if (sinceCutMs >= attemptMs) n.vainCuts += 1;
  if (n.vainCuts < MOST_VAIN_CUTS && BETA * c.wMax > LEAST_SHARE * n.fullLevel) return false;
  const usualGap = n.attempts / n.refusals;
  return usualGap >= LEAST_GAP && begin(n, c, usualGap, nowMs);
}

function weighRare(n: NoiseRecord, shareOfCurve: number, gap: number): void {
  if (shareOfCurve < RARE_SHARE && gap >= RARE_GAP) n.rareCuts += 1;
  if (shareOfCurve > LATE_SHARE) n.rareCuts = Math.max(0, n.rareCuts - 1);
}

/**
 * The refusals are the same for the other controller, told while they are rare: where a limit refuses many, one controller
 * that takes them for noise must not make the other give in as well. What hangs or headers alone have cut stays cut.
 */
export function tellOfNoise(known: NoiseRecord, other: NoiseRecord, c: CubicRecord, nowMs: number): void {
  if (known.usualGap >= RARE_GAP && other.usualGap === 0 && other.fullLevel > 0) begin(other, c, known.usualGap, nowMs);
}

function begin(n: NoiseRecord, c: CubicRecord, usualGap: number, nowMs: number): true {
  forgetNoise(n);
  n.usualGap = usualGap;
  resume(c, n.fullLevel, nowMs);
  return true;
}

function isStillNoise(n: NoiseRecord, gap: number, calmMs: number): boolean {
  n.attempts += gap;
  n.refusals += 1;
  const isJudged = n.refusals >= LEAST_REFUSALS;
  if (calmMs > CALM_MS || (isJudged && n.attempts < WORSE_SHARE * n.usualGap * n.refusals)) {
    forgetNoise(n);
    return false;
  }
  if (n.refusals >= 2 * LEAST_REFUSALS) {
    n.attempts /= 2;
    n.refusals /= 2;
  }
  return true;
}
