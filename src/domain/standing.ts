import type { SourceReason } from "../errors.js";
import { breakerAdmission } from "./breaker.js";
import { cooldownWaitMs } from "./cooldown.js";
import { requestWaitMs, type StoreClock, tokenWaitMs } from "./gates/gate.js";
import { ENDS_ANY_TIME } from "./refusal.js";
import { windowInForce } from "./scheduling/in-force.js";
import { pacedWaitMs } from "./scheduling/pacer.js";
import { learnedTokens } from "./scheduling/token-learning.js";
import type { ScopeState, SourceState, Standing } from "./scope-state.js";
import { GATE_NAMES, type Want } from "./tick.js";

/** What the call is believed to use there: EST_TOKENS, what calls of its kind used, or the caller's estimate. */
export function estimatedTokens(state: ScopeState, source: SourceState, want: Want): number {
  const { estTokens, tpmCharge } = source.config;
  if (estTokens !== undefined) return estTokens;
  if (!state.scheduling.learnTokens || tpmCharge === "max" || want.promptTokens === undefined) return want.estTokens;
  return learnedTokens(source.tokens, want.tag ?? "", want.promptTokens, want.maxTokens) ?? want.estTokens;
}

/** Judges all gates of one candidate at once; changes nothing. */
export function standingOf(state: ScopeState, source: SourceState, want: Want, clock: StoreClock): Standing {
  const estimate = estimatedTokens(state, source, want);
  // Nothing is reserved where no token gate is on.
  const tokens = source.rules.tokens === null && state.globalRules.tokens === null ? 0 : estimate;
  return judgedStanding(state, source, clock, tokens, estimate);
}

function judgedStanding(
  state: ScopeState,
  source: SourceState,
  clock: StoreClock,
  tokens: number,
  estimate: number,
): Standing {
  const { breaker } = source;
  if (neverFits(source.config.tpm, tokens)) return waiting(source, Infinity, "tpm", false, tokens, estimate);
  if (neverFits(state.globalRules.limits.tpm, tokens))
    return waiting(source, Infinity, "global_tpm", false, tokens, estimate);
  const probeEndsMs = breaker.probeLease === "" ? null : (state.leases.get(breaker.probeLease)?.expiresAtMs ?? null);
  const admission = breakerAdmission(breaker, state.breaker, clock.nowMs, probeEndsMs);
  if (admission.kind === "wait")
    return waiting(source, admission.waitMs, breakerReason(source), false, tokens, estimate);
  return gateStanding(state, source, clock, tokens, estimate, admission.kind === "probe");
}

/** Would some call, however small, be let through at once? */
export function hasRoomNow(state: ScopeState, source: SourceState, clock: StoreClock): boolean {
  return source.breaker.state === "closed" && gateStanding(state, source, clock, 0, 0, false).startable;
}

/** Why a call of the usual size could not start now; null = it could. */
export function usualRefusal(
  state: ScopeState,
  source: SourceState,
  clock: StoreClock,
): { readonly reason: SourceReason; readonly waitMs: number } | null {
  const usual = Math.round(state.meanTokens);
  const { waitMs, reason } = judgedStanding(state, source, clock, usual, usual);
  if (reason === null || waitMs <= 0) return null;
  const isKnown = Number.isFinite(waitMs) && !ENDS_ANY_TIME.has(reason);
  return { reason, waitMs: isKnown ? waitMs : 0 };
}

function waiting(
  source: SourceState,
  waitMs: number,
  reason: SourceReason,
  probe: boolean,
  tokens: number,
  estimate: number,
): Standing {
  return { source, waitMs, reason, probe, tokens, estimate, startable: false };
}

function neverFits(tpm: number, tokens: number): boolean {
  return tpm > 0 && tokens > tpm;
}

function breakerReason(source: SourceState): SourceReason {
  if (source.breaker.state === "half_open") return "half_open";
  return source.breaker.dead ? "dead" : "breaker_open";
}

/** Gates that only a release opens: their wait is a bound, and nobody can be given a permit ahead of it. */
const CONCURRENCY_GATES = 2;

/**
 * Cooldown and the six gates in their order; the wait is the longest of them, the reason the first that refuses. A wait
 * that time alone ends may be granted up to `prefetchMs` ahead; a probe starts at once or not at all.
 */
function gateStanding(
  state: ScopeState,
  source: SourceState,
  clock: StoreClock,
  tokens: number,
  estimate: number,
  probe: boolean,
): Standing {
  const coolingMs = cooldownWaitMs(source.cooldown, clock.nowMs);
  let reason: SourceReason | null = coolingMs > 0 ? "cooling" : null;
  let longestMs = coolingMs;
  let needsRelease = false;
  for (let gate = 0; gate < GATE_NAMES.length; gate += 1) {
    const waitMs = gateWaitMs(gate, state, source, clock, tokens);
    if (waitMs <= 0) continue;
    reason ??= GATE_NAMES[gate]!;
    if (gate < CONCURRENCY_GATES) needsRelease = true;
    if (waitMs > longestMs) longestMs = waitMs;
  }
  const startable = longestMs === 0 || (!needsRelease && !probe && longestMs <= prefetchMs(state, source));
  return { source, waitMs: longestMs, reason, probe, tokens, estimate, startable };
}

/** Aligned minutes are counted when they have come: nothing can be booked in the next one. */
function prefetchMs(state: ScopeState, source: SourceState): number {
  const countsMinutes = source.config.limitRule === "window" || state.globalRules.limits.limitRule === "window";
  return countsMinutes ? 0 : state.scheduling.prefetchMs;
}

function gateWaitMs(gate: number, state: ScopeState, source: SourceState, clock: StoreClock, tokens: number): number {
  const { leases } = state;
  switch (gate) {
    case 0: {
      const limit = state.globalRules.limits.maxConcurrency;
      return limit > 0 && leases.count() >= limit ? untilMs(leases.nextExpiryMs(), state, clock) : 0;
    }
    case 1: {
      const { name } = source.config;
      const isFull = leases.inflightOf(name) >= windowInForce(state, source, clock.nowMs);
      return isFull ? untilMs(leases.nextExpiryOfMs(name), state, clock) : 0;
    }
    case 2:
      return requestWaitMs(state.globalRules, state.globalGates, clock);
    case 3:
      return Math.max(requestWaitMs(source.rules, source.gates, clock), pacerWaitMs(state, source, clock));
    case 4:
      return tokenWaitMs(state.globalRules, state.globalGates, clock, tokens);
    default:
      return tokenWaitMs(source.rules, source.gates, clock, tokens);
  }
}

function pacerWaitMs(state: ScopeState, source: SourceState, clock: StoreClock): number {
  return state.scheduling.pacer ? pacedWaitMs(source.pacer, source.config, clock.nowMs) : 0;
}

/** Where asking costs a round trip and news may be lost, a full gate is looked at again this soon. */
const RECHECK_MS = 1_000;

/** A release wakes earlier; this is the latest moment a permit comes back by itself. */
function untilMs(momentMs: number | null, state: ScopeState, clock: StoreClock): number {
  const leftMs = Math.max(1, (momentMs ?? clock.nowMs) - clock.nowMs);
  return state.scheduling.prefetchMs > 0 ? Math.min(leftMs, RECHECK_MS) : leftMs;
}
