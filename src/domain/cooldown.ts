import { jittered, type SeededRandom } from "./random.js";

/** After a 429 a source cools down and then reopens paced (spec 02 §1 table, §2 Retry-After). */
export interface CooldownRecord {
  coolUntilMs: number;
  /** 429s in a row, those of one wave counted once; the first success resets it. */
  limitedInARow: number;
  /** When the first one of the last wave was heard. */
  limitedAtMs: number;
  /** While the source has not succeeded since its last 429, grants keep this distance. */
  nextGrantMs: number;
}

const BASE_MS = 400;
const MAX_MS = 15_000;
const JITTER = 0.25;
const RETRY_AFTER_MAX_MS = 10 * 60_000;
/** A crowd waiting for one Retry-After must not leave together. */
const REOPEN_GAP_MS = 100;

export function noCooldown(): CooldownRecord {
  return { coolUntilMs: 0, limitedInARow: 0, limitedAtMs: 0, nextGrantMs: 0 };
}

/**
 * It was sent before the last 429 was heard: many that left together and are refused together say no more than one, and
 * the cooldown doesn't double for each.
 */
export function isOfLastWave(c: CooldownRecord, sentAtMs: number): boolean {
  return c.limitedInARow > 0 && sentAtMs <= c.limitedAtMs;
}

export function coolDown(
  c: CooldownRecord,
  nowMs: number,
  sentAtMs: number,
  retryAfterMs: number | undefined,
  random: SeededRandom,
): void {
  if (isOfLastWave(c, sentAtMs)) {
    if (retryAfterMs === undefined) return;
  } else {
    c.limitedInARow += 1;
    c.limitedAtMs = nowMs;
  }
  const lengthMs = retryAfterMs === undefined ? ownCooldownMs(c.limitedInARow, random) : retryAfterMs;
  c.coolUntilMs = Math.max(c.coolUntilMs, nowMs + Math.min(RETRY_AFTER_MAX_MS, lengthMs));
}

/** 400 ms · 2^(n − 1) ≤ 15 s, ± 25 %. */
function ownCooldownMs(limitedInARow: number, random: SeededRandom): number {
  let lengthMs = BASE_MS;
  for (let n = 1; n < limitedInARow && lengthMs < MAX_MS; n += 1) lengthMs *= 2;
  return jittered(Math.min(MAX_MS, lengthMs), JITTER, random);
}

export function endCooldown(c: CooldownRecord): void {
  c.limitedInARow = 0;
  c.nextGrantMs = 0;
}

export function cooldownWaitMs(c: CooldownRecord, nowMs: number): number {
  return Math.max(0, Math.max(c.coolUntilMs, c.nextGrantMs) - nowMs);
}

export function noteGrant(c: CooldownRecord, nowMs: number): void {
  if (c.limitedInARow > 0) c.nextGrantMs = nowMs + REOPEN_GAP_MS;
}
