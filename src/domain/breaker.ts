import { jittered, type SeededRandom } from "./random.js";
import type { BreakerConfig } from "./scope.js";
import type { BreakerState, LeaseId, Outcome } from "./tick.js";

/** Circuit breaker rules of one source (spec 02 §4): closed → open → half-open, fenced by an epoch. */
export interface BreakerRecord {
  state: BreakerState;
  /** Grows only when entering open; compared for equality. */
  epoch: number;
  openUntilMs: number;
  trips: number;
  closedAtMs: number;
  consecutiveFailures: number;
  /** Forced open because credential, quota, model or endpoint is gone. */
  dead: boolean;
  deadInARow: number;
  /** The one live probe; "" = none. */
  probeLease: LeaseId;
  /** Good probes in a row that closing takes. */
  probesLeft: number;
  /** Counts of the last stretches of time, in lists side by side, which stores read and write faster than records. */
  readonly stretches: StretchCounts;
}

interface StretchCounts {
  /** Which stretch the counts at a place belong to; older ones count as zero. */
  readonly ids: number[];
  readonly successes: number[];
  readonly failures: number[];
}

/** A place for each stretch that counts. */
const NEVER: readonly number[] = [-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1];
const NO_COUNTS: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const STRETCHES = NEVER.length;
const OPEN_GROWTH = 1.7;
const OPEN_JITTER = 0.1;
const TRIP_PAYBACK_MS = 10_000;
const DEAD_BASE_MS = 60_000;
const DEAD_MAX_MS = 30 * 60_000;

export function closedBreaker(nowMs: number): BreakerRecord {
  return {
    state: "closed",
    epoch: 0,
    openUntilMs: 0,
    trips: 0,
    closedAtMs: nowMs,
    consecutiveFailures: 0,
    dead: false,
    deadInARow: 0,
    probeLease: "",
    probesLeft: 1,
    stretches: { ids: [...NEVER], successes: [...NO_COUNTS], failures: [...NO_COUNTS] },
  };
}

function forgetSamples({ stretches }: BreakerRecord): void {
  for (let n = 0; n < STRETCHES; n += 1) stretches.ids[n] = NEVER[n]!;
}

/** May a call be let through: as an ordinary one, as the one probe, or not before `waitMs`. */
export type BreakerAdmission = { kind: "closed" } | { kind: "probe" } | { kind: "wait"; waitMs: number };

const CLOSED: BreakerAdmission = { kind: "closed" };
const PROBE: BreakerAdmission = { kind: "probe" };

/** A running probe may end at any moment; its news wakes who waits, this only says when to look again. */
const PROBE_RECHECK_MS = 1_000;

/** `probeEndsMs` = when the live probe's lease would end by itself. */
export function breakerAdmission(
  b: BreakerRecord,
  config: BreakerConfig,
  nowMs: number,
  probeEndsMs: number | null,
): BreakerAdmission {
  if (b.state === "closed") return CLOSED;
  if (b.state === "open" && b.openUntilMs > nowMs) return { kind: "wait", waitMs: b.openUntilMs - nowMs };
  if (b.probeLease === "") return PROBE;
  const leaseLeftMs = Math.max(1, (probeEndsMs ?? nowMs) - nowMs);
  return { kind: "wait", waitMs: Math.min(leaseLeftMs, Math.max(PROBE_RECHECK_MS, config.cooldownMs)) };
}

export function startProbe(b: BreakerRecord, leaseId: LeaseId): void {
  b.state = "half_open";
  b.probeLease = leaseId;
}

/** The probe taught nothing, or its holder died: the next caller may probe at once. */
export function handBackProbe(b: BreakerRecord, leaseId: LeaseId): void {
  if (b.probeLease === leaseId) b.probeLease = "";
}

/**
 * Does evidence of this attempt still concern the present state? A late writer is fenced off by the epoch;
 * while not closed, only the probe's owner may speak.
 */
export function isCurrent(b: BreakerRecord, leaseId: LeaseId, epoch: number): boolean {
  if (b.epoch !== epoch) return false;
  return b.state === "closed" || (b.state === "half_open" && b.probeLease === leaseId);
}

/** Applies a current outcome (see `isCurrent`). Returns whether the state changed. */
export function applyOutcome(
  b: BreakerRecord,
  config: BreakerConfig,
  leaseId: LeaseId,
  outcome: Outcome,
  rateLimited: boolean,
  isPanic: boolean,
  nowMs: number,
  random: SeededRandom,
): boolean {
  if (b.state === "half_open") {
    return applyProbeOutcome(b, config, leaseId, outcome, rateLimited, isPanic, nowMs, random);
  }
  if (outcome === "cancelled" || outcome === "dead") return false;
  if (outcome === "alive") {
    b.consecutiveFailures = 0;
    return false;
  }
  countSample(b, config, outcome === "success", nowMs);
  if (outcome === "success") {
    b.consecutiveFailures = 0;
    return false;
  }
  b.consecutiveFailures += 1;
  if (!shouldTrip(b, config, nowMs)) return false;
  trip(b, config, isPanic, nowMs, random);
  return true;
}

function applyProbeOutcome(
  b: BreakerRecord,
  config: BreakerConfig,
  leaseId: LeaseId,
  outcome: Outcome,
  rateLimited: boolean,
  isPanic: boolean,
  nowMs: number,
  random: SeededRandom,
): boolean {
  // A 429 proves life but not health: the probe goes back, the cooldown decides when the next one starts.
  if (outcome === "cancelled" || (outcome === "alive" && rateLimited)) {
    handBackProbe(b, leaseId);
    return false;
  }
  if (outcome === "failure") {
    trip(b, config, isPanic, nowMs, random);
    return true;
  }
  if (outcome === "dead") return false;
  return passProbe(b, leaseId, nowMs);
}

/**
 * The probe was good: its first token came, or it was answered. Returns whether the breaker closed; where several probes
 * have to be good, the next one may start.
 */
export function passProbe(b: BreakerRecord, leaseId: LeaseId, nowMs: number): boolean {
  b.probesLeft -= 1;
  if (b.probesLeft > 0) {
    handBackProbe(b, leaseId);
    return false;
  }
  close(b, nowMs);
  return true;
}

function close(b: BreakerRecord, nowMs: number): void {
  b.state = "closed";
  b.probeLease = "";
  b.dead = false;
  b.deadInARow = 0;
  b.consecutiveFailures = 0;
  b.closedAtMs = nowMs;
  forgetSamples(b);
}

/** Opens. `isPanic`: no other source is closed either, so a longer open time would only delay the recovery. */
export function trip(
  b: BreakerRecord,
  config: BreakerConfig,
  isPanic: boolean,
  nowMs: number,
  random: SeededRandom,
): void {
  payBackTrips(b, nowMs);
  if (!isPanic || b.trips === 0) b.trips += 1;
  b.dead = false;
  enterOpen(b, nowMs + openTimeMs(config, b.trips, random));
}

/** Forces the breaker open for a source that won't recover by retrying; `recheckMs` is the moment the other side named. */
export function forceOpen(b: BreakerRecord, nowMs: number, recheckMs: number | undefined): void {
  payBackTrips(b, nowMs);
  b.deadInARow += 1;
  b.dead = true;
  let waitMs = DEAD_BASE_MS;
  for (let n = 1; n < b.deadInARow && waitMs < DEAD_MAX_MS; n += 1) waitMs *= 2;
  enterOpen(b, nowMs + Math.min(DEAD_MAX_MS, recheckMs ?? waitMs));
}

function enterOpen(b: BreakerRecord, untilMs: number): void {
  b.state = "open";
  b.epoch += 1;
  b.openUntilMs = untilMs;
  b.probeLease = "";
  b.probesLeft = 1;
  b.consecutiveFailures = 0;
  forgetSamples(b);
}

/** cooldown · 1.7^(trips − 1) ± 10 %, capped. Multiplied, not raised: a Lua twin must agree to the last bit. */
export function openTimeMs(config: BreakerConfig, trips: number, random: SeededRandom): number {
  let timeMs = config.cooldownMs;
  for (let n = 1; n < trips && timeMs < config.cooldownMaxMs; n += 1) timeMs *= OPEN_GROWTH;
  return Math.min(config.cooldownMaxMs, jittered(timeMs, OPEN_JITTER, random));
}

function payBackTrips(b: BreakerRecord, nowMs: number): void {
  if (b.state !== "closed") return;
  const paid = Math.floor((nowMs - b.closedAtMs) / TRIP_PAYBACK_MS);
  b.trips = Math.max(0, b.trips - paid);
  b.closedAtMs += paid * TRIP_PAYBACK_MS;
}

function stretchOf(config: BreakerConfig, nowMs: number): number {
  return Math.floor((nowMs * STRETCHES) / config.windowMs);
}

function countSample(b: BreakerRecord, config: BreakerConfig, success: boolean, nowMs: number): void {
  const { ids, successes, failures } = b.stretches;
  const id = stretchOf(config, nowMs);
  const at = id % STRETCHES;
  if (ids[at] !== id) {
    ids[at] = id;
    successes[at] = 0;
    failures[at] = 0;
  }
  const counts = success ? successes : failures;
  counts[at] = counts[at]! + 1;
}

function shouldTrip(b: BreakerRecord, config: BreakerConfig, nowMs: number): boolean {
  if (b.consecutiveFailures >= config.failThreshold) return true;
  const { stretches } = b;
  const newest = stretchOf(config, nowMs);
  let successes = 0;
  let failures = 0;
  let recentSuccesses = 0;
  let recentFailures = 0;
  for (let at = 0; at < STRETCHES; at += 1) {
    const id = stretches.ids[at]!;
    if (id <= newest - STRETCHES || id > newest) continue;
    successes += stretches.successes[at]!;
    failures += stretches.failures[at]!;
    if (id < newest - 1) continue;
    recentSuccesses += stretches.successes[at]!;
    recentFailures += stretches.failures[at]!;
  }
  const samples = successes + failures;
  if (samples < config.minSamples || failures < config.failRate * samples) return false;
  // Fresh health outweighs an old bad stretch.
  return recentSuccesses < Math.max(3, recentFailures);
}
