import { forceOpen, handBackProbe, isCurrent } from "./breaker.js";
import { type StoreClock, settleGates } from "./gates/gate.js";
import type { Lease } from "./leases.js";
import type { SeededRandom } from "./random.js";
import { applyAttempt, coolAfter, hearFirstToken, hearOverdue } from "./scheduling/evidence-flow.js";
import { learnFrom } from "./scheduling/learning.js";
import type { ScopeState, SourceState } from "./scope-state.js";
import type { Settle, Verdict } from "./tick.js";

export interface SettleEffect {
  /** The lease was live and its outcome was not fenced off. */
  readonly applied: boolean;
  /** A permit came back. */
  readonly released: boolean;
  /** The breaker changed its state. */
  readonly stateChanged: boolean;
  /** The breaker opened because the source is broken: attempts without a token may leave it. */
  readonly tripped: boolean;
  /** A cooldown began, which permits not started yet must know. */
  readonly cooling: boolean;
}

const NO_EFFECT: SettleEffect = {
  applied: false,
  released: false,
  stateChanged: false,
  tripped: false,
  cooling: false,
};
const RELEASED: SettleEffect = { ...NO_EFFECT, released: true };
const APPLIED: SettleEffect = { ...RELEASED, applied: true };

/** Ends one attempt: permit, tokens, learning and breaker in one step. Once only: a second settle finds no lease. */
export function settle(state: ScopeState, s: Settle, clock: StoreClock, random: SeededRandom): SettleEffect {
  const lease = state.leases.remove(s.leaseId);
  if (lease === undefined) return NO_EFFECT;
  const { nowMs } = clock;
  if (lease.retry) state.retriesInFlight -= 1;
  const source = state.sources.get(lease.grant.source)!;
  settleBooks(state, source, lease, s, clock);
  if (s.outcome === "success") state.lastProgressMs = nowMs;
  // Limits and speed are learned from late writers too; the breaker is fenced.
  learnFrom(state, source, lease, s, nowMs);
  const { epoch, leaseId } = lease.grant;
  if (!isCurrent(source.breaker, leaseId, epoch)) return RELEASED;
  // What is told as a source's last error explains its present state; a late writer knows nothing of it.
  if (s.outcome === "success") source.lastError = null;
  else if (s.lastError !== undefined) source.lastError = s.lastError;
  return teach(state, source, lease, s, nowMs, random);
}

function settleBooks(state: ScopeState, source: SourceState, lease: Lease, s: Settle, clock: StoreClock): void {
  const { leaseId, reservedTokens, windowId } = lease.grant;
  const actualTokens = s.sent ? Math.max(0, s.actualTokens ?? reservedTokens) : 0;
  const returnRequest = !s.sent;
  settleGates(source.rules, source.gates, clock, { leaseId, windowId, reservedTokens, actualTokens, returnRequest });
  settleGates(state.globalRules, state.globalGates, clock, {
    leaseId,
    windowId: lease.globalWindowId,
    reservedTokens,
    actualTokens,
    returnRequest,
  });
}

function teach(
  state: ScopeState,
  source: SourceState,
  lease: Lease,
  s: Settle,
  nowMs: number,
  random: SeededRandom,
): SettleEffect {
  const cooling = coolAfter(state, source, lease, s, nowMs, random);
  if (s.outcome === "dead") {
    forceOpen(source.breaker, nowMs, s.retryAfterMs);
    state.pool = null;
    return { ...APPLIED, stateChanged: true, cooling };
  }
  const stateChanged = applyAttempt(state, source, lease, s, nowMs, random);
  if (!stateChanged && !cooling) return APPLIED;
  return { ...APPLIED, stateChanged, tripped: stateChanged && source.breaker.state === "open", cooling };
}

/** Evidence during an attempt. */
export function hear(state: ScopeState, v: Verdict, clock: StoreClock, random: SeededRandom): SettleEffect {
  const lease = state.leases.get(v.leaseId);
  if (lease === undefined) return NO_EFFECT;
  const { nowMs } = clock;
  const source = state.sources.get(lease.grant.source)!;
  const isCurrentVerdict = isCurrent(source.breaker, v.leaseId, lease.grant.epoch);
  if (v.kind === "overdue") {
    if (!isCurrentVerdict || lease.overdue !== "no" || !state.scheduling.overdue) return NO_EFFECT;
    const tripped = hearOverdue(state, source, lease, nowMs, random);
    return { ...NO_EFFECT, applied: true, stateChanged: tripped, tripped };
  }
  state.lastProgressMs = nowMs;
  const stateChanged = hearFirstToken(state, source, lease, v, isCurrentVerdict, nowMs);
  return { ...NO_EFFECT, applied: isCurrentVerdict, stateChanged };
}

/** Permits of dead workers come back; a probe among them ends with its lease. Returns how many. */
export function reclaimExpired(state: ScopeState, clock: StoreClock): number {
  let count = 0;
  state.leases.expire(clock.nowMs, (lease) => {
    // A store may hold leases of processes that know other sources.
    const source = state.sources.get(lease.grant.source);
    if (source !== undefined) handBackProbe(source.breaker, lease.grant.leaseId);
    if (lease.retry) state.retriesInFlight -= 1;
    count += 1;
  });
  return count;
}
