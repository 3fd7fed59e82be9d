import type { GateRecord } from "../../../domain/gates/gate.js";
import type { CubicRecord } from "../../../domain/scheduling/cubic.js";
import type { NoiseRecord } from "../../../domain/scheduling/noise.js";
import type { ScopeState, SourceState } from "../../../domain/scope-state.js";

/**
 * How state is packed: one list of plain values behind the version of this layout. Each pair of functions names the same
 * fields in the same order; a test fills every field there is and looks for it again, so that no rule can remember something
 * that is lost between two ticks. Spelled out, because this runs for every source in every tick.
 */
export const LAYOUT_VERSION = 1;

export type Values = (string | number | boolean)[];
/** What a list holds where a field of any type is read. */
// biome-ignore lint/suspicious/noExplicitAny: the types of the fields are the test's to prove.
type Packed = any[];

const GATE_FIELDS = 6;
const CUBIC_FIELDS = 3;
const NOISE_FIELDS = 7;

function addGates(values: Values, g: GateRecord): void {
  values.push(g.windowId, g.windowRequests, g.windowTokens, g.requestTatMs, g.tokenTatMs, g.newestGrant);
}

function readGates(g: GateRecord, v: Packed, at: number): number {
  g.windowId = v[at];
  g.windowRequests = v[at + 1];
  g.windowTokens = v[at + 2];
  g.requestTatMs = v[at + 3];
  g.tokenTatMs = v[at + 4];
  g.newestGrant = v[at + 5];
  return at + GATE_FIELDS;
}

function readCubic(c: CubicRecord, v: Packed, at: number): number {
  c.wMax = v[at];
  c.cutAtMs = v[at + 1];
  c.kMs = v[at + 2];
  return at + CUBIC_FIELDS;
}

function addNoise(values: Values, n: NoiseRecord): void {
  values.push(n.vainCuts, n.fullLevel, n.attempts, n.refusals, n.usualGap, n.heardAttempts, n.heardAtMs);
}

function readNoise(n: NoiseRecord, v: Packed, at: number): number {
  n.vainCuts = v[at];
  n.fullLevel = v[at + 1];
  n.attempts = v[at + 2];
  n.refusals = v[at + 3];
  n.usualGap = v[at + 4];
  n.heardAttempts = v[at + 5];
  n.heardAtMs = v[at + 6];
  return at + NOISE_FIELDS;
}

export function flattenSource(source: SourceState): Values {
  const { gates, breaker, cooldown, pacer, gradient, evidence, health } = source;
  const { window, rate, goodput } = pacer;
  const values: Values = [
    LAYOUT_VERSION,
    breaker.state,
    breaker.epoch,
    breaker.openUntilMs,
    breaker.trips,
    breaker.closedAtMs,
    breaker.consecutiveFailures,
    breaker.dead,
    breaker.deadInARow,
    breaker.probeLease,
    breaker.probesLeft,
    cooldown.coolUntilMs,
    cooldown.limitedInARow,
    cooldown.nextGrantMs,
    pacer.attemptMs,
    pacer.startWindow,
    pacer.rateTatMs,
    pacer.rateToleranceMs,
    pacer.learnedRpm,
    pacer.learnedTpm,
    pacer.firstAdmittedMs,
    pacer.bucket,
    pacer.bucketCount,
    pacer.earlierCount,
    goodput.weight,
    goodput.atMs,
    goodput.firstAtMs,
    goodput.bestPerS,
    goodput.bestAtMs,
    goodput.granted,
    goodput.refused,
    gradient.baseMs,
    gradient.baseAtMs,
    evidence.score,
    evidence.atMs,
    evidence.fails,
    evidence.hangs,
    health.successes,
    health.failures,
    health.atMs,
    health.ttftMs,
    health.tpotMs,
    health.failMs,
    health.durationMs,
    health.samples,
    health.lastSuccessMs,
    source.reclosedAtMs,
    source.turns,
    source.lastGrant,
    window.wMax,
    window.cutAtMs,
    window.kMs,
    rate.wMax,
    rate.cutAtMs,
    rate.kMs,
    cooldown.limitedAtMs,
    pacer.admitted,
  ];
  addNoise(values, pacer.windowNoise);
  addNoise(values, pacer.rateNoise);
  addGates(values, gates);
  for (const bucket of breaker.buckets) values.push(bucket.index, bucket.successes, bucket.failures);
  values.push(gradient.samples.length);
  for (const sample of gradient.samples) values.push(sample);
  if (source.lastError !== null) values.push(source.lastError.code, source.lastError.message);
  return values;
}

export function restoreSource(source: SourceState, v: Packed): void {
  const { breaker, cooldown, pacer, gradient, evidence, health } = source;
  const { goodput } = pacer;
  breaker.state = v[1];
  breaker.epoch = v[2];
  breaker.openUntilMs = v[3];
  breaker.trips = v[4];
  breaker.closedAtMs = v[5];
  breaker.consecutiveFailures = v[6];
  breaker.dead = v[7];
  breaker.deadInARow = v[8];
  breaker.probeLease = v[9];
  breaker.probesLeft = v[10];
  cooldown.coolUntilMs = v[11];
  cooldown.limitedInARow = v[12];
  cooldown.nextGrantMs = v[13];
  pacer.attemptMs = v[14];
  pacer.startWindow = v[15];
  pacer.rateTatMs = v[16];
  pacer.rateToleranceMs = v[17];
  pacer.learnedRpm = v[18];
  pacer.learnedTpm = v[19];
  pacer.firstAdmittedMs = v[20];
  pacer.bucket = v[21];
  pacer.bucketCount = v[22];
  pacer.earlierCount = v[23];
  goodput.weight = v[24];
  goodput.atMs = v[25];
  goodput.firstAtMs = v[26];
  goodput.bestPerS = v[27];
  goodput.bestAtMs = v[28];
  goodput.granted = v[29];
  goodput.refused = v[30];
  gradient.baseMs = v[31];
  gradient.baseAtMs = v[32];
  evidence.score = v[33];
  evidence.atMs = v[34];
  evidence.fails = v[35];
  evidence.hangs = v[36];
  health.successes = v[37];
  health.failures = v[38];
  health.atMs = v[39];
  health.ttftMs = v[40];
  health.tpotMs = v[41];
  health.failMs = v[42];
  health.durationMs = v[43];
  health.samples = v[44];
  health.lastSuccessMs = v[45];
  source.reclosedAtMs = v[46];
  source.turns = v[47];
  source.lastGrant = v[48];
  let at = readCubic(pacer.window, v, 49);
  at = readCubic(pacer.rate, v, at);
  cooldown.limitedAtMs = v[at];
  pacer.admitted = v[at + 1];
  at = readNoise(pacer.windowNoise, v, at + 2);
  at = readNoise(pacer.rateNoise, v, at);
  at = readGates(source.gates, v, at);
  for (const bucket of breaker.buckets) {
    bucket.index = v[at];
    bucket.successes = v[at + 1];
    bucket.failures = v[at + 2];
    at += 3;
  }
  const samples: number = v[at];
  for (let n = 1; n <= samples; n += 1) gradient.samples.push(v[at + n]);
  at += samples + 1;
  if (v.length > at) source.lastError = { code: v[at], message: v[at + 1] };
}

/** Of the scope as a whole. Medians stand at the end while they are known: two ticks must not see others so soon. */
export function flattenScope(state: ScopeState): Values {
  const values: Values = [
    LAYOUT_VERSION,
    state.budgets.retryTokens,
    state.budgets.hedgeTokens,
    state.retriesInFlight,
    state.meanTokens,
    state.meanPromptTokens,
    state.grantsOfUpperClass,
    state.turnFloor,
    state.grantCount,
    state.lastProgressMs,
  ];
  addGates(values, state.globalGates);
  const { pool } = state;
  // A tick must not see other medians than the last one did.
  if (pool !== null) values.push(pool.measuredAtMs, pool.ttftMs, pool.tpotMs, pool.failShare);
  return values;
}

/** Alone of the scope's values it is asked for by itself. */
export function progressOf(v: Packed): number {
  return v[9];
}

export function restoreScope(state: ScopeState, v: Packed): void {
  state.budgets.retryTokens = v[1];
  state.budgets.hedgeTokens = v[2];
  state.retriesInFlight = v[3];
  state.meanTokens = v[4];
  state.meanPromptTokens = v[5];
  state.grantsOfUpperClass = v[6];
  state.turnFloor = v[7];
  state.grantCount = v[8];
  state.lastProgressMs = progressOf(v);
  const at = readGates(state.globalGates, v, 10);
  if (v.length <= at) return;
  state.pool = { measuredAtMs: v[at], ttftMs: v[at + 1], tpotMs: v[at + 2], failShare: v[at + 3] };
}
