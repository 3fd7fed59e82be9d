import type { SourceReason } from "../errors.js";
import { breakerAdmission } from "./breaker.js";
import { cooldownWaitMs } from "./cooldown.js";
import { requestWaitMs, type StoreClock, tokenWaitMs } from "./gates/gate.js";
import { inflightOf, nextExpiryMs, nextExpiryOfMs } from "./leases.js";
import type { ScopeState, SourceState, Standing } from "./scope-state.js";
import { GATE_NAMES, type Want } from "./tick.js";

/** The reservation of this want on this source: EST_TOKENS wins, nothing is reserved where no token gate is on. */
export function reservation(state: ScopeState, source: SourceState, want: Want): number {
  if (source.rules.tokens === null && state.globalRules.tokens === null) return 0;
  return source.config.estTokens ?? want.estTokens;
}

/** Judges all gates of one candidate at once; changes nothing. */
export function standingOf(state: ScopeState, source: SourceState, want: Want, clock: StoreClock): Standing {
  const tokens = reservation(state, source, want);
  const { breaker } = source;
  if (neverFits(source.rules.limits.tpm, tokens))
    return { source, waitMs: Infinity, reason: "tpm", probe: false, tokens };
  if (neverFits(state.globalRules.limits.tpm, tokens)) {
    return { source, waitMs: Infinity, reason: "global_tpm", probe: false, tokens };
  }
  const probeEndsMs =
    breaker.probeLease === "" ? null : (state.leases.byId.get(breaker.probeLease)?.expiresAtMs ?? null);
  const admission = breakerAdmission(breaker, state.breaker, clock.nowMs, probeEndsMs);
  if (admission.kind === "wait") {
    return { source, waitMs: admission.waitMs, reason: breakerReason(source), probe: false, tokens };
  }
  const probe = admission.kind === "probe";
  const coolingMs = cooldownWaitMs(source.cooldown, clock.nowMs);
  if (coolingMs > 0) return { source, waitMs: coolingMs, reason: "cooling", probe, tokens };
  return gateStanding(state, source, clock, tokens, probe);
}

function neverFits(tpm: number, tokens: number): boolean {
  return tpm > 0 && tokens > tpm;
}

function breakerReason(source: SourceState): SourceReason {
  if (source.breaker.state === "half_open") return "half_open";
  return source.breaker.dead ? "dead" : "breaker_open";
}

/** The six gates in their order; the wait is the longest of them, the reason the first that refuses. */
function gateStanding(
  state: ScopeState,
  source: SourceState,
  clock: StoreClock,
  tokens: number,
  probe: boolean,
): Standing {
  let reason: SourceReason | null = null;
  let longestMs = 0;
  for (let gate = 0; gate < GATE_NAMES.length; gate += 1) {
    const waitMs = gateWaitMs(gate, state, source, clock, tokens);
    if (waitMs <= 0) continue;
    reason ??= GATE_NAMES[gate]!;
    if (waitMs > longestMs) longestMs = waitMs;
  }
  return { source, waitMs: longestMs, reason, probe, tokens };
}

function gateWaitMs(gate: number, state: ScopeState, source: SourceState, clock: StoreClock, tokens: number): number {
  const { leases } = state;
  switch (gate) {
    case 0: {
      const limit = state.globalRules.limits.maxConcurrency;
      return limit > 0 && leases.byId.size >= limit ? untilMs(nextExpiryMs(leases), clock) : 0;
    }
    case 1: {
      const { maxConcurrency, name } = source.config;
      const isFull = maxConcurrency > 0 && inflightOf(leases, name) >= maxConcurrency;
      return isFull ? untilMs(nextExpiryOfMs(leases, name), clock) : 0;
    }
    case 2:
      return requestWaitMs(state.globalRules, state.globalGates, clock);
    case 3:
      return requestWaitMs(source.rules, source.gates, clock);
    case 4:
      return tokenWaitMs(state.globalRules, state.globalGates, clock, tokens);
    default:
      return tokenWaitMs(source.rules, source.gates, clock, tokens);
  }
}

/** A release wakes earlier; this is the latest moment a permit comes back by itself. */
function untilMs(momentMs: number | null, clock: StoreClock): number {
  return Math.max(1, (momentMs ?? clock.nowMs) - clock.nowMs);
}
