import type { SourceReason } from "../errors.js";
import { startProbe } from "./breaker.js";
import { noteGrant } from "./cooldown.js";
import { type StoreClock, takeFromGates } from "./gates/gate.js";
import { addLease } from "./leases.js";
import type { ScopeState, Standing } from "./scope-state.js";
import { choose, noteTurn, withoutFailedHere } from "./selection.js";
import { standingOf } from "./standing.js";
import { GATE_NAMES, type GateName, type Grant, type Passed, type Refusal, type Want } from "./tick.js";

const NONE_PASSED: readonly Passed[] = [];
const GATES: ReadonlySet<string> = new Set(GATE_NAMES);

/**
 * Decides the wants of one tick in their order. One that has to wait holds back the later ones that the governor would
 * treat alike, or small calls would overtake a large one for ever; wants with other candidates go on.
 */
export function admitAll(state: ScopeState, wants: readonly Want[], clock: StoreClock): (Grant | Refusal)[] {
  if (wants.length === 1) return [admit(state, wants[0]!, clock)];
  const waiting = new Map<string, Refusal>();
  return wants.map((want) => {
    const key = `${want.candidates.join()}|${want.failedHere.join()}|${want.limitedHere.join()}`;
    const ahead = state.leases.byId.has(want.leaseId) ? undefined : waiting.get(key);
    const answer = ahead === undefined ? admit(state, want, clock) : { ...ahead, leaseId: want.leaseId };
    if ("kind" in answer && answer.kind !== "never") waiting.set(key, answer);
    return answer;
  });
}

/** Decides one want in one step: a grant is booked completely, a refusal changes nothing (spec 02 §3). */
function admit(state: ScopeState, want: Want, clock: StoreClock): Grant | Refusal {
  const live = state.leases.byId.get(want.leaseId);
  // The reply of the first asking was lost: the same answer, nothing counted twice.
  if (live !== undefined) return live.grant;
  const all = want.candidates.map((name) => standingOf(state, state.sources.get(name)!, want, clock));
  const standings = withoutFailedHere(all, want);
  const chosen = choose(state, standings, want);
  if (chosen === null) return refuse(want, all, standings);
  return grant(state, want, chosen, passedOver(all, standings), clock);
}

function grant(state: ScopeState, want: Want, chosen: Standing, passed: readonly Passed[], clock: StoreClock): Grant {
  const { source, tokens, probe } = chosen;
  const { leaseId } = want;
  const windowId = takeFromGates(source.rules, source.gates, clock, tokens, leaseId);
  const globalWindowId = takeFromGates(state.globalRules, state.globalGates, clock, tokens, leaseId);
  if (probe) startProbe(source.breaker, leaseId);
  noteGrant(source.cooldown, clock.nowMs);
  noteTurn(state, chosen);
  const made: Grant = {
    leaseId,
    source: source.config.name,
    startInMs: 0,
    epoch: source.breaker.epoch,
    probe,
    windowId,
    reservedTokens: tokens,
    leaseTtlMs: state.leaseTtlMs,
    passedOver: passed,
  };
  addLease(state.leases, { grant: made, globalWindowId, expiresAtMs: clock.nowMs + state.leaseTtlMs });
  return made;
}

function refuse(want: Want, all: readonly Standing[], standings: readonly Standing[]): Refusal {
  let nearest: Standing | null = null;
  for (const standing of standings) {
    if (nearest === null || standing.waitMs < nearest.waitMs) nearest = standing;
  }
  const passed = passedOver(all, standings);
  if (nearest === null || nearest.waitMs === Infinity) {
    return { leaseId: want.leaseId, kind: "never", waitHintMs: 0, passedOver: passed, ...gateOf(nearest) };
  }
  return {
    leaseId: want.leaseId,
    kind: refusalKind(nearest.reason),
    waitHintMs: nearest.waitMs,
    passedOver: passed,
    ...gateOf(nearest),
  };
}

function gateOf(standing: Standing | null): { gate?: GateName } {
  const reason = standing?.reason;
  return typeof reason === "string" && GATES.has(reason) ? { gate: reason as GateName } : {};
}

function refusalKind(reason: SourceReason | null): Refusal["kind"] {
  if (reason === "cooling") return "cooldown";
  return reason !== null && GATES.has(reason) ? "gate" : "breaker";
}

/** Whom the decision passed over and why: what could not start, and what failed in this call. */
function passedOver(all: readonly Standing[], considered: readonly Standing[]): readonly Passed[] {
  let passed: Passed[] | null = null;
  for (const standing of all) {
    const left = considered !== all && !considered.includes(standing);
    if (standing.waitMs === 0 && !left) continue;
    passed ??= [];
    passed.push(describePassed(standing, left));
  }
  return passed ?? NONE_PASSED;
}

function describePassed({ source, waitMs, reason }: Standing, failedHere: boolean): Passed {
  const { lastError } = source;
  return {
    source: source.config.name,
    reason: failedHere && waitMs === 0 ? "failed_in_call" : (reason ?? "failed_in_call"),
    waitMs: Number.isFinite(waitMs) ? waitMs : 0,
    ...(lastError === null ? {} : { lastError }),
  };
}
