import type { ScopeState, SourceRecord } from "../../../domain/scope-state.js";

/**
 * How state is packed: one list of plain values behind the version of this layout. Each pair of functions names the same
 * fields in the same order; a test fills every field there is and looks for it again, so that no rule can remember something
 * that is lost between two ticks. Spelled out, because this runs for every source in every tick.
 */
export const LAYOUT_VERSION = 2;

export type Values = (string | number | boolean | readonly number[])[];
/** What a list holds where a field of any type is read. */
// biome-ignore lint/suspicious/noExplicitAny: the types of the fields are the test's to prove.
export type Packed = any[];

export function flattenSource(source: SourceRecord): Values {
  const { gates, breaker, cooldown, pacer, gradient, evidence, health } = source;
  const { stretches } = breaker;
  const { window, rate, windowNoise, rateNoise, goodput } = pacer;
  const values: Values = [
    LAYOUT_VERSION,
    gates.windowId,
    gates.windowRequests,
    gates.windowTokens,
    gates.requestTatMs,
    gates.tokenTatMs,
    gates.newestGrant,
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
    stretches.ids,
    stretches.successes,
    stretches.failures,
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
    goodput.weight,
    goodput.atMs,
    goodput.firstAtMs,
    goodput.bestPerS,
    goodput.bestAtMs,
    goodput.granted,
    goodput.refused,
    pacer.attemptMs,
    pacer.startWindow,
    pacer.rateTatMs,
    pacer.rateToleranceMs,
    pacer.learnedRpm,
    pacer.learnedTpm,
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

export function restoredSource(v: Packed): SourceRecord {
  return {
    gates: {
      windowId: v[1],
      windowRequests: v[2],
      windowTokens: v[3],
      requestTatMs: v[4],
      tokenTatMs: v[5],
      newestGrant: v[6],
    },
    breaker: {
      state: v[7],
      epoch: v[8],
      openUntilMs: v[9],
      trips: v[10],
      closedAtMs: v[11],
      consecutiveFailures: v[12],
      dead: v[13],
      deadInARow: v[14],
      probeLease: v[15],
      probesLeft: v[16],
      stretches: { ids: v[17], successes: v[18], failures: v[19] },
    },
    cooldown: { coolUntilMs: v[20], limitedInARow: v[21], limitedAtMs: v[22], nextGrantMs: v[23] },
    pacer: {
      window: { wMax: v[24], cutAtMs: v[25], kMs: v[26] },
      rate: { wMax: v[27], cutAtMs: v[28], kMs: v[29] },
      windowNoise: {
        vainCuts: v[30],
        rareCuts: v[31],
        fullLevel: v[32],
        attempts: v[33],
        refusals: v[34],
        usualGap: v[35],
        heardAttempts: v[36],
        heardAtMs: v[37],
      },
      rateNoise: {
        vainCuts: v[38],
        rareCuts: v[39],
        fullLevel: v[40],
        attempts: v[41],
        refusals: v[42],
        usualGap: v[43],
        heardAttempts: v[44],
        heardAtMs: v[45],
      },
      goodput: {
        weight: v[46],
        atMs: v[47],
        firstAtMs: v[48],
        bestPerS: v[49],
        bestAtMs: v[50],
        granted: v[51],
        refused: v[52],
      },
      attemptMs: v[53],
      startWindow: v[54],
      rateTatMs: v[55],
      rateToleranceMs: v[56],
      learnedRpm: v[57],
      learnedTpm: v[58],
      firstAdmittedMs: v[59],
      admitted: v[60],
      bucket: v[61],
      bucketCount: v[62],
      earlierCount: v[63],
    },
    gradient: { samples: v[64], baseMs: v[65], baseAtMs: v[66] },
    evidence: { score: v[67], atMs: v[68], fails: v[69], hangs: v[70] },
    health: {
      successes: v[71],
      failures: v[72],
      atMs: v[73],
      ttftMs: v[74],
      tpotMs: v[75],
      failMs: v[76],
      durationMs: v[77],
      samples: v[78],
      lastSuccessMs: v[79],
    },
    reclosedAtMs: v[80],
    turns: v[81],
    lastGrant: v[82],
    lastError: v.length > 83 ? { code: v[83], message: v[84] } : null,
  };
}

/** Of the scope as a whole. Medians stand at the end while they are known: two ticks must not see others so soon. */
export function flattenScope(state: ScopeState): Values {
  const { globalGates, pool } = state;
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
    globalGates.windowId,
    globalGates.windowRequests,
    globalGates.windowTokens,
    globalGates.requestTatMs,
    globalGates.tokenTatMs,
    globalGates.newestGrant,
  ];
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
  const { globalGates } = state;
  globalGates.windowId = v[10];
  globalGates.windowRequests = v[11];
  globalGates.windowTokens = v[12];
  globalGates.requestTatMs = v[13];
  globalGates.tokenTatMs = v[14];
  globalGates.newestGrant = v[15];
  if (v.length > 16) state.pool = { measuredAtMs: v[16], ttftMs: v[17], tpotMs: v[18], failShare: v[19] };
}
