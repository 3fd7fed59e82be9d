import type { BreakerRecord } from "../../../domain/breaker.js";
import type { PacerRecord } from "../../../domain/scheduling/pacer.js";
import type { SourceRecord } from "../../../domain/scope-state.js";
import { LAYOUT_VERSION, type Packed, type Values } from "./layout.js";

/**
 * How what is remembered of a source is packed, in three parts by who asks for it: every call that may go there, every
 * attempt that begins or ends there, and trouble alone. The first part holds the other two as they are packed. Each pair of
 * functions names the same fields in the same order; a test fills every field there is and looks for it again, so that no
 * rule can remember something that is lost between two ticks. Spelled out, value by value, because this runs for every
 * source in every tick: a list, or a record made by a loop, would cost twice as much.
 */

/** What a source is judged by. */
export function judgedValues(source: SourceRecord, learned: string, trouble: string): Values {
  const { gates, breaker, cooldown, pacer, health } = source;
  const { window, rate, goodput } = pacer;
  const values: Values = [
    LAYOUT_VERSION,
    learned,
    trouble,
    gates.windowId,
    gates.windowRequests,
    gates.windowTokens,
    gates.requestTatMs,
    gates.tokenTatMs,
    gates.newestGrant,
    breaker.state,
    cooldown.coolUntilMs,
    cooldown.limitedInARow,
    cooldown.limitedAtMs,
    cooldown.nextGrantMs,
    window.wMax,
    window.cutAtMs,
    window.kMs,
    rate.wMax,
    rate.cutAtMs,
    rate.kMs,
    goodput.bestPerS,
    goodput.bestAtMs,
    pacer.attemptMs,
    pacer.startWindow,
    pacer.rateTatMs,
    pacer.rateToleranceMs,
    pacer.learnedRpm,
    pacer.learnedTpm,
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
  ];
  if (source.lastError !== null) values.push(source.lastError.code, source.lastError.message);
  return values;
}

/** Where the packed parts stand in the first one. */
export const LEARNED_AT = 1;
export const TROUBLE_AT = 2;

/** Of what stands behind the other parts, which it lacks. */
export function judgedSource(
  windowId: number,
  windowRequests: number,
  windowTokens: number,
  requestTatMs: number,
  tokenTatMs: number,
  newestGrant: string,
  state: BreakerRecord["state"],
  coolUntilMs: number,
  limitedInARow: number,
  limitedAtMs: number,
  nextGrantMs: number,
  windowMax: number,
  windowCutAtMs: number,
  windowKMs: number,
  rateMax: number,
  rateCutAtMs: number,
  rateKMs: number,
  bestPerS: number,
  bestAtMs: number,
  attemptMs: number,
  startWindow: number,
  rateTatMs: number,
  rateToleranceMs: number,
  learnedRpm: number,
  learnedTpm: number,
  successes: number,
  failures: number,
  atMs: number,
  ttftMs: number,
  tpotMs: number,
  failMs: number,
  durationMs: number,
  samples: number,
  lastSuccessMs: number,
  reclosedAtMs: number,
  turns: number,
  lastGrant: number,
  errorCode: string | undefined,
  errorMessage: string | undefined,
): SourceRecord {
  return {
    gates: { windowId, windowRequests, windowTokens, requestTatMs, tokenTatMs, newestGrant },
    breaker: { state } as BreakerRecord,
    cooldown: { coolUntilMs, limitedInARow, limitedAtMs, nextGrantMs },
    pacer: {
      window: { wMax: windowMax, cutAtMs: windowCutAtMs, kMs: windowKMs },
      rate: { wMax: rateMax, cutAtMs: rateCutAtMs, kMs: rateKMs },
      goodput: { bestPerS, bestAtMs },
      attemptMs,
      startWindow,
      rateTatMs,
      rateToleranceMs,
      learnedRpm,
      learnedTpm,
    } as unknown as PacerRecord,
    gradient: {} as SourceRecord["gradient"],
    evidence: {} as SourceRecord["evidence"],
    health: { successes, failures, atMs, ttftMs, tpotMs, failMs, durationMs, samples, lastSuccessMs },
    reclosedAtMs,
    turns,
    lastGrant,
    lastError: errorCode === undefined ? null : { code: errorCode, message: errorMessage! },
  };
}

/** What attempts teach. */
export function learnedValues({ breaker, pacer, gradient, evidence }: SourceRecord): Values {
  const { stretches } = breaker;
  const { goodput } = pacer;
  return [
    breaker.epoch,
    breaker.consecutiveFailures,
    stretches.ids,
    stretches.successes,
    stretches.failures,
    goodput.weight,
    goodput.atMs,
    goodput.firstAtMs,
    goodput.granted,
    goodput.refused,
    pacer.firstAdmittedMs,
    pacer.admitted,
    pacer.bucket,
    pacer.bucketCount,
    pacer.earlierCount,
    gradient.samples,
    gradient.baseMs,
    gradient.baseAtMs,
    evidence.score,
    evidence.atMs,
    evidence.fails,
    evidence.hangs,
  ];
}

/** Fields that are filled in here alone. */
type Filled<T> = { -readonly [Field in keyof T]: T[Field] };

export function addLearned({ breaker, pacer, gradient, evidence }: SourceRecord, v: Packed): void {
  const { goodput } = pacer;
  breaker.epoch = v[0];
  breaker.consecutiveFailures = v[1];
  (breaker as Filled<BreakerRecord>).stretches = { ids: v[2], successes: v[3], failures: v[4] };
  goodput.weight = v[5];
  goodput.atMs = v[6];
  goodput.firstAtMs = v[7];
  goodput.granted = v[8];
  goodput.refused = v[9];
  pacer.firstAdmittedMs = v[10];
  pacer.admitted = v[11];
  pacer.bucket = v[12];
  pacer.bucketCount = v[13];
  pacer.earlierCount = v[14];
  (gradient as Filled<typeof gradient>).samples = v[15];
  gradient.baseMs = v[16];
  gradient.baseAtMs = v[17];
  evidence.score = v[18];
  evidence.atMs = v[19];
  evidence.fails = v[20];
  evidence.hangs = v[21];
}

/** What is known of failures, and of refusals that no rate causes. */
export function troubleValues({ breaker, pacer }: SourceRecord): Values {
  const { windowNoise, rateNoise } = pacer;
  return [
    breaker.openUntilMs,
    breaker.trips,
    breaker.closedAtMs,
    breaker.dead,
    breaker.deadInARow,
    breaker.probeLease,
    breaker.probesLeft,
    windowNoise.vainCuts,
    windowNoise.rareCuts,
    windowNoise.fullLevel,
    windowNoise.attempts,
    windowNoise.refusals,
    windowNoise.usualGap,
    windowNoise.heardAttempts,
    windowNoise.heardAtMs,
    rateNoise.vainCuts,
    rateNoise.rareCuts,
    rateNoise.fullLevel,
    rateNoise.attempts,
    rateNoise.refusals,
    rateNoise.usualGap,
    rateNoise.heardAttempts,
    rateNoise.heardAtMs,
  ];
}

export function addTrouble({ breaker, pacer }: SourceRecord, v: Packed): void {
  breaker.openUntilMs = v[0];
  breaker.trips = v[1];
  breaker.closedAtMs = v[2];
  breaker.dead = v[3];
  breaker.deadInARow = v[4];
  breaker.probeLease = v[5];
  breaker.probesLeft = v[6];
  (pacer as Filled<PacerRecord>).windowNoise = noise(v, 7);
  (pacer as Filled<PacerRecord>).rateNoise = noise(v, 15);
}

function noise(v: Packed, at: number): PacerRecord["windowNoise"] {
  return {
    vainCuts: v[at],
    rareCuts: v[at + 1],
    fullLevel: v[at + 2],
    attempts: v[at + 3],
    refusals: v[at + 4],
    usualGap: v[at + 5],
    heardAttempts: v[at + 6],
    heardAtMs: v[at + 7],
  };
}
