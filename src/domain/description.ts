import { cooldownWaitMs } from "./cooldown.js";
import { requestsBooked, type StoreClock, tokensBooked } from "./gates/gate.js";
import { evidenceNow, TRIPS_AT } from "./scheduling/evidence.js";
import { firstTokenDueMs } from "./scheduling/first-token.js";
import { successShare } from "./scheduling/health.js";
import { isRamping, rateInForce, windowInForce } from "./scheduling/in-force.js";
import { poolOf } from "./scheduling/pool.js";
import type { ScopeState, SourceState } from "./scope-state.js";
import { usualRefusal } from "./standing.js";
import type { AdaptiveSnapshot, ScopeSnapshot, SourceSnapshot } from "./tick.js";

/** The state of a scope in words and figures that a person can follow; changes nothing. */
export function describeScope(state: ScopeState): Pick<ScopeSnapshot, "budgets" | "workers"> {
  const { retryTokens, hedgeTokens } = state.budgets;
  return {
    budgets: { retryTokens, hedgeTokens, retriesInFlight: state.retriesInFlight },
    workers: [...state.workers].map(([worker, { waiting, virtualTime }]) => ({ worker, waiting, virtualTime })),
  };
}

export function describeSource(state: ScopeState, source: SourceState, clock: StoreClock): SourceSnapshot {
  const { breaker, config } = source;
  return {
    name: config.name,
    state: breaker.state,
    epoch: breaker.epoch,
    openForMs: breaker.state === "open" ? Math.max(0, breaker.openUntilMs - clock.nowMs) : 0,
    probeInFlight: breaker.probeLease !== "",
    inflight: state.leases.inflightOf(config.name),
    maxConcurrency: config.maxConcurrency,
    requestsUsed: requestsBooked(source.rules, source.gates, clock),
    tokensUsed: tokensBooked(source.rules, source.gates, clock),
    coolingMs: cooldownWaitMs(source.cooldown, clock.nowMs),
    dead: breaker.dead,
    lastError: source.lastError,
    passedOver: usualRefusal(state, source, clock),
    adaptive: describeAdaptive(state, source, clock.nowMs),
  };
}

function describeAdaptive(state: ScopeState, source: SourceState, nowMs: number): AdaptiveSnapshot {
  const { pacer, evidence, health, config } = source;
  const cutAtMs = Math.max(
    pacer.window.wMax > 0 ? pacer.window.cutAtMs : -Infinity,
    pacer.rate.wMax > 0 ? pacer.rate.cutAtMs : -Infinity,
  );
  const facts = {
    ownTtftMs: health.ttftMs,
    poolTtftMs: poolOf(state, nowMs).ttftMs,
    ttftTimeoutMs: config.ttftTimeoutMs,
    promptTokens: undefined,
    meanPromptTokens: 0,
  };
  return {
    window: finiteOrNull(windowInForce(state, source, nowMs)),
    ratePerS: finiteOrNull(rateInForce(state, source, nowMs)),
    learnedRpm: knownOrNull(pacer.learnedRpm),
    learnedTpm: knownOrNull(pacer.learnedTpm),
    lastCutAgoMs: cutAtMs === -Infinity ? null : nowMs - cutAtMs,
    evidence: evidenceNow(evidence, nowMs),
    tripsAt: TRIPS_AT,
    successShare: successShare(health, nowMs),
    ttftMs: knownOrNull(health.ttftMs),
    tpotMs: knownOrNull(health.tpotMs),
    firstTokenDueMs: state.scheduling.overdue ? firstTokenDueMs(facts) : null,
    ramping: isRamping(source, nowMs),
  };
}

/** 0 stands for what was never learned. */
const knownOrNull = (value: number): number | null => (value === 0 ? null : value);
const finiteOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null);
