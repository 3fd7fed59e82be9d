import { gateRules } from "../gates/gate.js";
import type { Lease } from "../leases.js";
import type { ScopeState, SourceState } from "../scope-state.js";
import type { Settle } from "../tick.js";
import { earn } from "./budgets.js";
import { BETA } from "./cubic.js";
import { noteAnswer } from "./goodput.js";
import { gradientShare } from "./gradient.js";
import { noteFailure, noteFirstToken, noteSuccess } from "./health.js";
import { windowInForce } from "./in-force.js";
import { cutEarly, cutWindowTo, growStartWindow, isStale, learnLimits, limitsInForce } from "./pacer.js";
import { learnTokens } from "./token-learning.js";

/** What one finished attempt teaches about speed, limits and sizes, whatever the breaker makes of it. */
export function learnFrom(state: ScopeState, source: SourceState, lease: Lease, s: Settle, nowMs: number): void {
  if (s.limits !== undefined) hearLimits(state, source, lease, s, nowMs);
  if (s.outcome === "failure") {
    noteFailure(source.health, s.durationMs, nowMs);
    return;
  }
  if (s.outcome !== "success") return;
  if (lease.ttftMs === 0 && s.ttftMs !== undefined) learnFirstToken(state, source, s.ttftMs);
  noteSuccess(source.health, s.durationMs, s.tpotMs, nowMs);
  earn(state.budgets);
  noteAnswer(source.pacer.goodput, nowMs);
  source.pacer.attemptMs = source.health.durationMs;
  if (state.scheduling.pacer) growWindow(state, source, lease, s, nowMs);
  learnSize(state, source, lease, s);
}

export function learnFirstToken(state: ScopeState, { health }: SourceState, ttftMs: number): void {
  // The first one is to be seen at once.
  if (health.ttftMs === 0) state.pool = null;
  noteFirstToken(health, ttftMs);
}

/** Unknown concurrency is found by growing, and by watching the time per token. */
function growWindow(state: ScopeState, source: SourceState, lease: Lease, s: Settle, nowMs: number): void {
  const { pacer, gradient, config } = source;
  if (config.maxConcurrency > 0) return;
  const inflight = state.leases.inflightOf(config.name) + 1;
  growStartWindow(pacer, config, inflight);
  if (s.tpotMs === undefined || s.tpotMs <= 0) return;
  const share = gradientShare(gradient, s.tpotMs, nowMs);
  if (share === null || isStale(pacer.window, lease)) return;
  cutWindowTo(pacer, (Math.min(windowInForce(state, source, nowMs), inflight) * share) / BETA, nowMs, s.durationMs);
}

function learnSize(state: ScopeState, source: SourceState, lease: Lease, { inTokens, outTokens }: Settle): void {
  if (!state.scheduling.learnTokens || lease.promptTokens === undefined) return;
  if (inTokens === undefined || outTokens === undefined) return;
  learnTokens(source.sizes.book, lease.tag, lease.promptTokens, inTokens, outTokens);
}

/** Limits told by headers are caps, never more than what is configured; little left is a warning. */
function hearLimits(state: ScopeState, source: SourceState, lease: Lease, s: Settle, nowMs: number): void {
  if (!state.scheduling.headers || s.limits === undefined) return;
  const { pacer, config } = source;
  if (learnLimits(pacer, s.limits)) source.rules = gateRules(limitsInForce(pacer, config));
  if (state.scheduling.pacer) cutEarly(pacer, config, s.limits, lease, nowMs);
}
