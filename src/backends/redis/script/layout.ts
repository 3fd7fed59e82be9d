import type { ScopeState } from "../../../domain/scope-state.js";

/** How state is packed: plain values in their order, behind the version of this layout. */
export const LAYOUT_VERSION = 3;

export type Values = (string | number | boolean | readonly number[])[];
/** What a list holds where a field of any type is read. */
// biome-ignore lint/suspicious/noExplicitAny: the types of the fields are the test's to prove.
export type Packed = any[];

/**
 * Packed without a frame around it, so that it is unpacked into as many values: a list would grow as it is filled, which takes
 * longer than to read what is in it.
 */
export function packedList(values: readonly unknown[]): string {
  return textFrom(cmsgpack.pack(values), values.length < SHORT_LIST ? 2 : 4);
}

/** The frame of a shorter list is one byte, else three (https://github.com/msgpack/msgpack/blob/master/spec.md). */
const SHORT_LIST = 16;

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
