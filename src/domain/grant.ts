import { startProbe } from "./breaker.js";
import { noteGrant } from "./cooldown.js";
import { type StoreClock, takeFromGates } from "./gates/gate.js";
import { leaseEndMs } from "./leases.js";
import { payHedge, payRetry } from "./scheduling/budgets.js";
import { firstTokenDueMs, hedgeAfterMs } from "./scheduling/first-token.js";
import { notePacedGrant } from "./scheduling/pacer.js";
import { poolOf } from "./scheduling/pool.js";
import { forgetFacts, type ScopeState, type SourceState, type Standing } from "./scope-state.js";
import { noteTurn } from "./selection.js";
import { estimatedTokens, isTokenLimited } from "./standing.js";
import type { Grant, Passed, Want } from "./tick.js";

/** α of the means that calls are compared with. */
const MEAN_ALPHA = 0.05;

/** Books a permit completely, to start when the standing says. */
export function grantTo(
  state: ScopeState,
  want: Want,
  chosen: Standing,
  passed: readonly Passed[],
  clock: StoreClock,
): Grant {
  const { source, probe, waitMs } = chosen;
  const { leaseId } = want;
  const { nowMs } = clock;
  const estimate = estimatedTokens(state, source, want);
  const tokens = isTokenLimited(state, source) ? estimate : 0;
  const startMs = nowMs + waitMs;
  const start = waitMs === 0 ? clock : { nowMs: startMs, wallMs: clock.wallMs };
  const windowId = takeFromGates(source.rules, source.gates, start, tokens, leaseId);
  const globalWindowId = takeFromGates(state.globalRules, state.globalGates, start, tokens, leaseId);
  if (state.scheduling.pacer) notePacedGrant(source.pacer, source.config, startMs, nowMs);
  if (probe) startProbe(source.breaker, leaseId);
  noteGrant(source.cooldown, startMs);
  noteTurn(state, chosen);
  payFor(state, want);
  noteMeans(state, estimate, want);
  const grant: Grant = {
    leaseId,
    source: source.config.name,
    startInMs: waitMs,
    epoch: source.breaker.epoch,
    probe,
    windowId,
    reservedTokens: tokens,
    leaseTtlMs: state.leaseTtlMs,
    firstTokenDueMs: state.scheduling.overdue ? dueMs(state, source, want, nowMs) : null,
    hedgeAfterMs: hedgeAfterMs(poolOf(state, nowMs).ttftMs),
    passedOver: passed,
  };
  state.leases.add({
    grant,
    globalWindowId,
    expiresAtMs: leaseEndMs(nowMs, state.leaseTtlMs),
    startedAtMs: startMs,
    inflight: state.leases.inflightOf(source.config.name) + 1,
    promptTokens: want.promptTokens,
    tag: want.tag ?? "",
    retry: want.retry === true,
    overdue: "no",
    ttftMs: 0,
  });
  if (state.keepsFacts) forgetFacts(state, source);
  return grant;
}

function payFor(state: ScopeState, want: Want): void {
  if (want.retry === true) {
    state.retriesInFlight += 1;
    if (state.scheduling.retryBudget) payRetry(state.budgets);
  }
  if (want.hedge === true) payHedge(state.budgets);
}

function noteMeans(state: ScopeState, estimate: number, want: Want): void {
  state.meanTokens = moved(state.meanTokens, estimate);
  if (want.promptTokens !== undefined) state.meanPromptTokens = moved(state.meanPromptTokens, want.promptTokens);
}

function moved(mean: number, sample: number): number {
  return mean === 0 ? sample : mean + MEAN_ALPHA * (sample - mean);
}

function dueMs(state: ScopeState, { config, health }: SourceState, want: Want, nowMs: number): number | null {
  if (health.ttftMs === 0) return null;
  return firstTokenDueMs({
    ownTtftMs: health.ttftMs,
    poolTtftMs: poolOf(state, nowMs).ttftMs,
    ttftTimeoutMs: config.ttftTimeoutMs,
    promptTokens: want.promptTokens,
    meanPromptTokens: state.meanPromptTokens,
  });
}
