import type { SourceReason } from "../errors.js";
import { breakerAdmission } from "./breaker.js";
import { cooldownWaitMs } from "./cooldown.js";
import { requestWaitMs, type StoreClock, tokenWaitMs } from "./gates/gate.js";
import { inflightOf, nextExpiryMs, nextExpiryOfMs } from "./leases.js";
import type { ScopeState, SourceState, Standing } from "./scope-state.js";
import type { Want } from "./tick.js";

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
  const admission = breakerAdmission(breaker, clock.nowMs, probeEndsMs);
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
  const { globalRules, globalGates, leases } = state;
  const { rules, gates } = source;
  let reason: SourceReason | null = null;
  let waitMs = 0;
  const judge = (gateReason: SourceReason, gateWaitMs: number) => {
    if (gateWaitMs <= 0) return;
    reason ??= gateReason;
    waitMs = Math.max(waitMs, gateWaitMs);
  };
  const globalCap = globalRules.limits.maxConcurrency;
  if (globalCap > 0 && leases.byId.size >= globalCap) judge("global_concurrency", untilMs(nextExpiryMs(leases), clock));
  const cap = rules.limits.maxConcurrency;
  if (cap > 0 && inflightOf(leases, source.config.name) >= cap) {
    judge("concurrency", untilMs(nextExpiryOfMs(leases, source.config.name), clock));
  }
  judge("global_rpm", requestWaitMs(globalRules, globalGates, clock));
  judge("rpm", requestWaitMs(rules, gates, clock));
  judge("global_tpm", tokenWaitMs(globalRules, globalGates, clock, tokens));
  judge("tpm", tokenWaitMs(rules, gates, clock, tokens));
  return { source, waitMs, reason, probe, tokens };
}

/** A release wakes earlier; this is the latest moment a permit comes back by itself. */
function untilMs(momentMs: number | null, clock: StoreClock): number {
  return Math.max(1, (momentMs ?? clock.nowMs) - clock.nowMs);
}
