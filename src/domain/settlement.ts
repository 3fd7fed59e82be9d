import { applyOutcome, closeByFirstToken, forceOpen, handBackProbe, isCurrent } from "./breaker.js";
import { coolDown, endCooldown } from "./cooldown.js";
import { type StoreClock, settleGates } from "./gates/gate.js";
import { expireLeases, type Lease, removeLease } from "./leases.js";
import type { SeededRandom } from "./random.js";
import type { ScopeState, SourceState } from "./scope-state.js";
import type { Settle, Verdict } from "./tick.js";

export interface SettleEffect {
  /** The lease was live and its outcome was not fenced off. */
  readonly applied: boolean;
  /** A permit came back. */
  readonly released: boolean;
  /** The breaker changed its state. */
  readonly stateChanged: boolean;
}

const NO_EFFECT: SettleEffect = { applied: false, released: false, stateChanged: false };

/** Ends one attempt: permit, tokens, cooldown and breaker in one step. Once only: a second settle finds no lease. */
export function settle(state: ScopeState, s: Settle, clock: StoreClock, random: SeededRandom): SettleEffect {
  const lease = removeLease(state.leases, s.leaseId);
  if (lease === undefined) return NO_EFFECT;
  const source = state.sources.get(lease.grant.source)!;
  settleBooks(state, source, lease, s, clock);
  if (s.outcome === "success") state.lastProgressMs = clock.nowMs;
  const { epoch, leaseId } = lease.grant;
  if (!isCurrent(source.breaker, leaseId, epoch)) return { applied: false, released: true, stateChanged: false };
  // What is told as a source's last error explains its present state; a late writer knows nothing of it.
  if (s.outcome === "success") source.lastError = null;
  else if (s.lastError !== undefined) source.lastError = s.lastError;
  const stateChanged = teach(state, source, s, clock, random);
  return { applied: true, released: true, stateChanged };
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

function teach(state: ScopeState, source: SourceState, s: Settle, clock: StoreClock, random: SeededRandom): boolean {
  if (s.outcome === "success") endCooldown(source.cooldown);
  const rateLimited = s.rateLimited !== undefined;
  if (rateLimited) coolDown(source.cooldown, clock.nowMs, s.retryAfterMs, random);
  if (s.outcome === "dead") {
    forceOpen(source.breaker, clock.nowMs, s.retryAfterMs);
    return true;
  }
  return applyOutcome(source.breaker, state.breaker, s.leaseId, s.outcome, rateLimited, clock.nowMs, random);
}

/** Evidence during an attempt. Returns whether it took effect, and whether the breaker changed. */
export function hear(state: ScopeState, v: Verdict, clock: StoreClock): { applied: boolean; stateChanged: boolean } {
  const lease = state.leases.byId.get(v.leaseId);
  if (lease === undefined || v.kind !== "first_token") return { applied: false, stateChanged: false };
  state.lastProgressMs = clock.nowMs;
  const { breaker } = state.sources.get(lease.grant.source)!;
  if (!isCurrent(breaker, v.leaseId, lease.grant.epoch)) return { applied: false, stateChanged: false };
  if (breaker.state !== "half_open") return { applied: true, stateChanged: false };
  closeByFirstToken(breaker, clock.nowMs);
  return { applied: true, stateChanged: true };
}

/** Permits of dead workers come back; a probe among them ends with its lease. Returns how many. */
export function reclaimExpired(state: ScopeState, clock: StoreClock): number {
  let count = 0;
  expireLeases(state.leases, clock.nowMs, (lease) => {
    handBackProbe(state.sources.get(lease.grant.source)!.breaker, lease.grant.leaseId);
    count += 1;
  });
  return count;
}
