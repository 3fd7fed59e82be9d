import type { SourceReason } from "../errors.js";
import { breakerAdmission } from "./breaker.js";
import { cooldownWaitMs } from "./cooldown.js";
import { requestWaitMs, type StoreClock, tokenWaitMs } from "./gates/gate.js";
import { newLineup, replaceStanding } from "./lineup.js";
import { endsAnyTime } from "./refusal.js";
import { windowInForce } from "./scheduling/in-force.js";
import { pacedWaitMs } from "./scheduling/pacer.js";
import { learnedTokens } from "./scheduling/token-learning.js";
import type { GateFacts, Lineup, ScopeState, SourceState, Standing } from "./scope-state.js";
import type { Want } from "./tick.js";

/** What the call is believed to use there: EST_TOKENS, what calls of its kind used, or the caller's estimate. */
export function estimatedTokens(state: ScopeState, source: SourceState, want: Want): number {
  const { estTokens, tpmCharge } = source.config;
  if (estTokens !== undefined) return estTokens;
  if (!state.scheduling.learnTokens || tpmCharge === "max" || want.promptTokens === undefined) return want.estTokens;
  const { sizes } = source;
  if (state.keepsFacts && sizes.want === want) return sizes.tokens;
  const learned = learnedTokens(sizes.book, want.tag ?? "", want.promptTokens, want.maxTokens);
  const tokens = learned ?? want.estTokens;
  if (state.keepsFacts) {
    sizes.want = want;
    sizes.tokens = tokens;
  }
  return tokens;
}

/** Nothing is reserved where no token gate is on. */
export function isTokenLimited(state: ScopeState, source: SourceState): boolean {
  return source.rules.tokens !== null || state.globalRules.tokens !== null;
}

/** How each candidate of a call stands; changes nothing. Good until the next grant: a tick's calls share the list. */
export function standingsOf(state: ScopeState, want: Want, clock: StoreClock): readonly Standing[] {
  const { lineup } = state;
  if (lineup !== null && lineup.candidates === want.candidates && fitsAll(state, lineup, want)) {
    renewStale(state, lineup, want, clock);
    return lineup.standings;
  }
  const standings: Standing[] = [];
  let areKept = state.keepsFacts;
  for (const name of want.candidates) {
    const source = state.sources.get(name)!;
    const standing = standingOf(state, source, want, clock);
    standings.push(standing);
    if (source.standing !== standing) areKept = false;
  }
  state.lineup = areKept ? newLineup(want, standings) : null;
  return standings;
}

function fitsAll(state: ScopeState, { tightest }: Lineup, want: Want): boolean {
  for (const source of tightest) if (estimatedTokens(state, source, want) > source.mostTokens) return false;
  return true;
}

function renewStale(state: ScopeState, lineup: Lineup, want: Want, clock: StoreClock): void {
  const { stale } = lineup;
  if (stale === null) return;
  lineup.stale = null;
  const at = lineup.candidates.indexOf(stale.config.name);
  if (at >= 0) replaceStanding(lineup, at, standingOf(state, stale, want, clock));
}

/** Judges all gates of one candidate at once; changes nothing. */
export function standingOf(state: ScopeState, source: SourceState, want: Want, clock: StoreClock): Standing {
  const kept = state.keepsFacts ? source.standing : null;
  if (kept !== null && (source.mostTokens === 0 || estimatedTokens(state, source, want) <= source.mostTokens))
    return kept;
  const tokens = isTokenLimited(state, source) ? estimatedTokens(state, source, want) : 0;
  return judgedStanding(state, source, clock, tokens);
}

function judgedStanding(state: ScopeState, source: SourceState, clock: StoreClock, tokens: number): Standing {
  if (neverFits(source.config.tpm, tokens)) return waiting(source, Infinity, "tpm");
  if (neverFits(state.globalRules.limits.tpm, tokens)) return waiting(source, Infinity, "global_tpm");
  if (!state.keepsFacts) return fittingStanding(state, source, gateFacts(state, source, clock), clock, tokens);
  source.facts ??= gateFacts(state, source, clock);
  const standing = fittingStanding(state, source, source.facts, clock, tokens);
  // A gate that counts minutes lets small calls through and large ones not.
  if (!countsMinutes(state, source)) source.standing = standing;
  return standing;
}

function fittingStanding(
  state: ScopeState,
  source: SourceState,
  facts: GateFacts,
  clock: StoreClock,
  tokens: number,
): Standing {
  return facts.isBlocked
    ? waiting(source, facts.waitMs, facts.reason!)
    : gateStanding(state, source, facts, clock, tokens);
}

function gateFacts(state: ScopeState, source: SourceState, clock: StoreClock): GateFacts {
  const { breaker } = source;
  if (breaker.state === "closed") return openFacts(state, source, clock, false);
  const probeEndsMs = breaker.probeLease === "" ? null : (state.leases.get(breaker.probeLease)?.expiresAtMs ?? null);
  const admission = breakerAdmission(breaker, state.breaker, clock.nowMs, probeEndsMs);
  if (admission.kind !== "wait") return openFacts(state, source, clock, admission.kind === "probe");
  const reason = breakerReason(source);
  return { isBlocked: true, waitMs: admission.waitMs, reason, needsRelease: false, probe: false };
}

/** Would some call, however small, be let through at once? */
export function hasRoomNow(state: ScopeState, source: SourceState, clock: StoreClock): boolean {
  if (source.breaker.state !== "closed") return false;
  return judgedStanding(state, source, clock, 0).startable;
}

/** Why a call of the usual size could not start now; null = it could. */
export function usualRefusal(
  state: ScopeState,
  source: SourceState,
  clock: StoreClock,
): { readonly reason: SourceReason; readonly waitMs: number } | null {
  const usual = Math.round(state.meanTokens);
  const { waitMs, reason } = judgedStanding(state, source, clock, usual);
  if (reason === null || waitMs <= 0) return null;
  const isKnown = Number.isFinite(waitMs) && !endsAnyTime(reason);
  return { reason, waitMs: isKnown ? waitMs : 0 };
}

function waiting(source: SourceState, waitMs: number, reason: SourceReason): Standing {
  return { source, rank: rankOf(source, false), waitMs, reason, probe: false, startable: false };
}

/** Tier first, then a probe that is due; the lower one goes first. */
function rankOf({ config }: SourceState, probe: boolean): number {
  return probe ? 2 * config.priority : 2 * config.priority + 1;
}

function neverFits(tpm: number, tokens: number): boolean {
  return tpm > 0 && tokens > tpm;
}

function breakerReason(source: SourceState): SourceReason {
  if (source.breaker.state === "half_open") return "half_open";
  return source.breaker.dead ? "dead" : "breaker_open";
}

/**
 * Cooldown and the gates that count no tokens, in their order; the wait is the longest of them, the reason the first that
 * refuses. Only a release opens a concurrency gate: its wait is a bound, and nobody can be given a permit ahead of it.
 */
function openFacts(state: ScopeState, source: SourceState, clock: StoreClock, probe: boolean): GateFacts {
  const { leases, globalRules } = state;
  const { name } = source.config;
  let waitMs = cooldownWaitMs(source.cooldown, clock.nowMs);
  let reason: SourceReason | null = waitMs > 0 ? "cooling" : null;
  let needsRelease = false;
  const mostInFlight = globalRules.limits.maxConcurrency;
  if (mostInFlight > 0 && leases.count() >= mostInFlight) {
    reason ??= "global_concurrency";
    needsRelease = true;
    waitMs = Math.max(waitMs, untilMs(leases.nextExpiryMs(), state, clock));
  }
  if (leases.inflightOf(name) >= windowInForce(state, source, clock.nowMs)) {
    reason ??= "concurrency";
    needsRelease = true;
    waitMs = Math.max(waitMs, untilMs(leases.nextExpiryOfMs(name), state, clock));
  }
  const globalMs = requestWaitMs(globalRules, state.globalGates, clock);
  if (globalMs > 0) {
    reason ??= "global_rpm";
    waitMs = Math.max(waitMs, globalMs);
  }
  const ownMs = Math.max(requestWaitMs(source.rules, source.gates, clock), pacerWaitMs(state, source, clock));
  if (ownMs > 0) {
    reason ??= "rpm";
    waitMs = Math.max(waitMs, ownMs);
  }
  return { isBlocked: false, waitMs, reason, needsRelease, probe };
}

/**
 * The token gates on top, the last two of the six. A wait that time alone ends may be granted up to `prefetchMs` ahead; a
 * probe starts at once or not at all.
 */
function gateStanding(
  state: ScopeState,
  source: SourceState,
  facts: GateFacts,
  clock: StoreClock,
  tokens: number,
): Standing {
  const { probe } = facts;
  let { waitMs, reason } = facts;
  const globalMs = tokenWaitMs(state.globalRules, state.globalGates, clock, tokens);
  if (globalMs > 0) {
    reason ??= "global_tpm";
    waitMs = Math.max(waitMs, globalMs);
  }
  const ownMs = tokenWaitMs(source.rules, source.gates, clock, tokens);
  if (ownMs > 0) {
    reason ??= "tpm";
    waitMs = Math.max(waitMs, ownMs);
  }
  const mayBeAhead = !facts.needsRelease && !probe;
  const startable = waitMs === 0 || (mayBeAhead && waitMs <= prefetchMs(state, source));
  return { source, rank: rankOf(source, probe), waitMs, reason, probe, startable };
}

/** Aligned minutes are counted when they have come: nothing can be booked in the next one. */
function prefetchMs(state: ScopeState, source: SourceState): number {
  return countsMinutes(state, source) ? 0 : state.scheduling.prefetchMs;
}

function countsMinutes(state: ScopeState, source: SourceState): boolean {
  return source.config.limitRule === "window" || state.globalRules.limits.limitRule === "window";
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
