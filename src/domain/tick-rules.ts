import { admitAll } from "./admission.js";
import type { StoreClock } from "./gates/gate.js";
import { leaseEndMs } from "./leases.js";
import { type SeededRandom, seededRandom } from "./random.js";
import { evacuationAgeMs } from "./scheduling/evacuation.js";
import { wokenBy } from "./scheduling/wake.js";
import type { ScopeState } from "./scope-state.js";
import { hear, reclaimExpired, type SettleEffect, settle } from "./settlement.js";
import type { GovernorEvent, Grant, Refusal, SourceName, TickBatch, TickReply } from "./tick.js";

/** What a tick answers, and what others are to be told. */
export interface TickOutcome {
  readonly reply: TickReply;
  readonly events: readonly GovernorEvent[];
}

const NO_GRANTS: readonly Grant[] = [];
const NO_REFUSALS: readonly Refusal[] = [];
/** Never added to: nothing is released where nothing is settled. */
const NONE_RELEASED: SourceName[] = [];
const NONE_APPLIED: readonly boolean[] = [];
const CAPACITY_RECLAIMED: GovernorEvent = { type: "capacity", source: "*" };

/** One tick on a state that belongs to nobody else meanwhile: the whole governor, whatever keeps the state. */
export function runTick(state: ScopeState, batch: TickBatch, clock: StoreClock): TickOutcome {
  const events = reclaimExpired(state, clock) > 0 ? [CAPACITY_RECLAIMED] : [];
  const random = seededRandom(batch.seed);
  const released = batch.settles.length === 0 ? NONE_RELEASED : [];
  const applied = applyAccounts(state, batch, clock, random, events, released);
  const reply = answerWants(state, batch, clock, random, applied);
  const woken = wokenBy(state, released, batch.worker, clock);
  if (woken !== null) events.push({ type: "capacity", ...woken });
  return { reply, events };
}

/** Settles, then verdicts, then renewals. */
function applyAccounts(
  state: ScopeState,
  { settles, verdicts, renew }: TickBatch,
  clock: StoreClock,
  random: SeededRandom,
  events: GovernorEvent[],
  released: SourceName[],
): readonly boolean[] {
  if (settles.length + verdicts.length + renew.length === 0) return NONE_APPLIED;
  const applied: boolean[] = [];
  for (const s of settles) {
    // Whoever gives back by id alone, because the reply was lost, does not know the source.
    const source = state.leases.get(s.leaseId)?.grant.source ?? s.source;
    applied.push(noteEffect(state, source, settle(state, s, clock, random), clock, events, released));
  }
  for (const v of verdicts) {
    applied.push(noteEffect(state, v.source, hear(state, v, clock, random), clock, events, released));
  }
  for (const leaseId of renew) {
    applied.push(state.leases.renew(leaseId, leaseEndMs(clock.nowMs, state.leaseTtlMs)));
  }
  return applied;
}

/** Notes what the others must know of an effect. */
function noteEffect(
  state: ScopeState,
  source: SourceName,
  effect: SettleEffect,
  clock: StoreClock,
  events: GovernorEvent[],
  released: SourceName[],
): boolean {
  if (effect.stateChanged) {
    const evacuateAfterMs = effect.tripped ? evacuationAgeMs(state, source, clock.nowMs) : undefined;
    events.push({ type: "state", source, ...(evacuateAfterMs === undefined ? {} : { evacuateAfterMs }) });
  } else if (effect.released) {
    released.push(source);
  }
  if (effect.cooling && state.scheduling.prefetchMs > 0) events.push({ type: "cooling", source });
  return effect.applied;
}

function answerWants(
  state: ScopeState,
  batch: TickBatch,
  clock: StoreClock,
  random: SeededRandom,
  applied: readonly boolean[],
): TickReply {
  if (batch.wants.length === 0) return { grants: NO_GRANTS, refusals: NO_REFUSALS, hintMs: null, applied };
  let grants: Grant[] | null = null;
  let refusals: Refusal[] | null = null;
  let hintMs: number | null = null;
  for (const answer of admitAll(state, batch.wants, batch.worker, clock, random)) {
    if ("kind" in answer) {
      refusals ??= [];
      refusals.push(answer);
      if (answer.kind !== "never") hintMs = Math.min(hintMs ?? answer.waitHintMs, answer.waitHintMs);
    } else {
      grants ??= [];
      grants.push(answer);
    }
  }
  return { grants: grants ?? NO_GRANTS, refusals: refusals ?? NO_REFUSALS, hintMs, applied };
}
