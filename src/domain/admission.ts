import type { StoreClock } from "./gates/gate.js";
import { grantTo } from "./grant.js";
import { leaseEndMs } from "./leases.js";
import type { SeededRandom } from "./random.js";
import { endsAnyTime, NONE_PASSED, passedOver, refuse, refuseFor } from "./refusal.js";
import { mayHedge, mayRetry } from "./scheduling/budgets.js";
import { isMeasured } from "./scheduling/expected-time.js";
import { mustYield, noteWaiting, rankOf, visit, type WorkerRecord, waitsForClass } from "./scheduling/fairness.js";
import { rateInForce, windowInForce } from "./scheduling/in-force.js";
import { firstOfLowerClass, lowerClassIsDue, noteClass } from "./scheduling/line.js";
import { betterFitting, canMatchSizes } from "./scheduling/matching.js";
import { keepFacts, type ScopeState, type Standing } from "./scope-state.js";
import { choose, usualMs, withoutFailedHere } from "./selection.js";
import { standingOf, standingsOf } from "./standing.js";
import type { Grant, Passed, Refusal, Want } from "./tick.js";

/** What one tick decides with. */
export interface Desk {
  readonly state: ScopeState;
  readonly clock: StoreClock;
  readonly random: SeededRandom;
  /** The process that asks; null while fairness is off. */
  readonly self: WorkerRecord | null;
}

/** A want that may be granted: where, and how all its candidates stood. */
interface Choice {
  readonly chosen: Standing;
  readonly all: readonly Standing[];
  readonly considered: readonly Standing[];
}

/** A hedge starts about at once or not at all, and only where there is room to spare. */
const HEDGE_WAIT_MS = 50;
const HEDGE_USED_SHARE = 0.8;
/** When the budget may have been earned back; every success wakes who waits earlier. */
const BUDGET_RECHECK_MS = 1_000;
/** Another process's turn lasts at most so long; its grants wake who yields. */
const YIELD_RECHECK_MS = 1_000;
const LEAST_YIELD_MS = 100;

/**
 * Decides the wants of one tick. One that has to wait holds back the later ones that the governor would treat alike, or
 * small calls would overtake a large one for ever; wants with other candidates go on. Order: class, then position, with the
 * exceptions of spec 10 (every tenth grant to the lower class, size matching).
 */
export function admitAll(
  state: ScopeState,
  wants: readonly Want[],
  worker: string,
  clock: StoreClock,
  random: SeededRandom,
): (Grant | Refusal)[] {
  const self = state.scheduling.fairness ? visit(state.workers, worker, clock.nowMs) : null;
  const desk: Desk = { state, clock, random, self };
  state.keepsFacts = false;
  const answers = wants.length === 1 ? [admitOne(desk, wants[0]!)] : admitLine(desk, wants);
  state.keepsFacts = false;
  state.lineup = null;
  if (self !== null) noteWaiting(self, wants, answers);
  return answers;
}

function admitOne(desk: Desk, want: Want): Grant | Refusal {
  const earlier = grantOf(desk, want);
  if (earlier !== null) return earlier;
  const decision = decide(desk, want);
  if ("kind" in decision) return decision;
  if (passesClass(desk, want)) desk.state.grantsOfUpperClass = 0;
  return book(desk, want, decision);
}

function admitLine(desk: Desk, wants: readonly Want[]): (Grant | Refusal)[] {
  const { state, clock } = desk;
  const answers: (Grant | Refusal)[] = [];
  const heldBack = new Map<string, Refusal>();
  keepFacts(state);
  const line = wants.map((_, position) => position);
  const matches = canMatchSizes(state, clock.nowMs);
  let lowerWasRefused = false;
  while (line.length > 0) {
    const lower = lowerClassIsDue(state) && !lowerWasRefused ? firstOfLowerClass(line, wants) : -1;
    let at = Math.max(0, lower);
    let position = line[at]!;
    let want = wants[position]!;
    const answer = grantOf(desk, want) ?? answerOf(want, heldBack) ?? decide(desk, want);
    if ("kind" in answer && lower > 0) {
      // Its turn can't be used: it waits behind the others as before, and holds none of them back.
      lowerWasRefused = true;
      continue;
    }
    if ("leaseId" in answer) {
      if ("kind" in answer && holdsBack(answer, want)) heldBack.set(keyOf(want), answer);
      answers[position] = answer;
      leaveLine(line, at);
      continue;
    }
    let choice = answer;
    const match = matches ? betterFitting(state, choice.chosen.source, line, at, wants, clock) : null;
    if (match !== null) {
      at = match.at;
      position = line[at]!;
      want = wants[position]!;
      choice = matchedChoice(desk, want, match.standing);
    }
    noteClass(state, line, wants, want, lower > 0 || passesClass(desk, want));
    answers[position] = book(desk, want, choice);
    leaveLine(line, at);
  }
  return answers;
}

/** Nearly always the first one. */
function leaveLine(line: number[], at: number): void {
  if (at === 0) line.shift();
  else line.splice(at, 1);
}

/** Size matching chose; how the other candidates stood is only told. */
function matchedChoice({ state, clock }: Desk, want: Want, chosen: Standing): Choice {
  const all = want.candidates.map((name) =>
    name === chosen.source.config.name ? chosen : standingOf(state, state.sources.get(name)!, want, clock),
  );
  return { chosen, all, considered: withoutFailedHere(all, want) };
}

/** The reply of the first asking was lost: the same answer, nothing counted twice. It promises the whole time again. */
function grantOf({ state, clock }: Desk, want: Want): Grant | null {
  const live = state.leases.get(want.leaseId);
  if (live === undefined) return null;
  state.leases.renew(want.leaseId, leaseEndMs(clock.nowMs, state.leaseTtlMs));
  return live.grant;
}

/** The same as for the one ahead that had to wait. */
function answerOf(want: Want, heldBack: ReadonlyMap<string, Refusal>): Refusal | null {
  // Mostly everybody is served, and the key of many candidates takes longer than to look.
  const ahead = heldBack.size === 0 ? undefined : heldBack.get(keyOf(want));
  return ahead === undefined ? null : { ...ahead, leaseId: want.leaseId };
}

/** The same for calls that the governor treats alike. A retry may wait for its budget alone. */
function keyOf({ candidates, failedHere, retry }: Want): string {
  return `${candidates.join()}|${failedHere.join()}|${retry === true}`;
}

/** What concerns this call alone holds nobody back. */
function holdsBack({ kind }: Refusal, want: Want): boolean {
  return kind !== "never" && kind !== "deadline" && want.hedge !== true;
}

/** The turn of the lower class lets this want go before more urgent ones of other processes. */
function passesClass({ state, self, clock }: Desk, want: Want): boolean {
  return self !== null && lowerClassIsDue(state) && waitsForClass(state.workers, self, want.priority, clock.nowMs);
}

/** Judges one want; changes nothing. */
function decide(desk: Desk, want: Want): Choice | Refusal {
  const { state, clock } = desk;
  const all = standingsOf(state, want, clock);
  const considered = withoutFailedHere(all, want);
  if (isHopeless(desk, want, considered)) return refuseFor("deadline", want, 0, all);
  if (want.hedge === true) return decideHedge(desk, want, considered);
  const chosen = choose(state, considered, want, clock.nowMs, desk.random);
  if (chosen === null) return refuse(want, all, considered, state.scheduling.prefetchMs);
  if (want.retry === true && state.scheduling.retryBudget && !mayRetry(state.budgets, state.retriesInFlight)) {
    return refuseFor("fairness", want, BUDGET_RECHECK_MS, all);
  }
  const { self } = desk;
  if (self !== null && mustYield(state.workers, self, want.priority, lowerClassIsDue(state), clock.nowMs)) {
    return refuseFor("fairness", want, yieldMs(desk, self), all);
  }
  return { chosen, all, considered };
}

/**
 * A source could start in time, but none would answer within what is left of the call's deadline. What was never measured
 * may be fast; a wait beyond the deadline is told as that wait.
 */
function isHopeless({ state, clock }: Desk, want: Want, standings: readonly Standing[]): boolean {
  const { remainingMs } = want;
  if (remainingMs === undefined || !state.scheduling.deadlineRefusal) return false;
  let couldStart = false;
  for (const { source, waitMs, reason } of standings) {
    if (!isMeasured(source.health, clock.nowMs)) return false;
    // What a release ends may end at any moment.
    const leastMs = reason !== null && endsAnyTime(reason) ? 0 : waitMs;
    if (leastMs + usualMs(state, source, want, clock.nowMs) <= remainingMs) return false;
    if (leastMs <= remainingMs) couldStart = true;
  }
  return couldStart;
}

function decideHedge({ state, clock, random }: Desk, want: Want, standings: readonly Standing[]): Choice | Refusal {
  if (mayHedge(state.budgets)) {
    const roomy = standings.filter((standing) => hasRoomForHedge(state, standing, clock.nowMs));
    const chosen = choose(state, roomy, want, clock.nowMs, random);
    if (chosen !== null) return { chosen, all: standings, considered: standings };
  }
  return refuseFor("fairness", want, 0, standings);
}

function hasRoomForHedge(state: ScopeState, { source, startable, probe, waitMs }: Standing, nowMs: number): boolean {
  if (!startable || probe || waitMs > HEDGE_WAIT_MS) return false;
  const inflight = state.leases.inflightOf(source.config.name);
  return inflight <= HEDGE_USED_SHARE * windowInForce(state, source, nowMs);
}

/** Those ahead are served one by one, not as a herd: rank / ΣR. */
function yieldMs({ state, clock }: Desk, self: WorkerRecord): number {
  let ratePerS = 0;
  for (const source of state.sourceList) ratePerS += rateInForce(state, source, clock.nowMs);
  const rank = rankOf(state.workers, self, clock.nowMs);
  const waitMs = ratePerS === Infinity || ratePerS === 0 ? 0 : (rank * 1_000) / ratePerS;
  return Math.min(YIELD_RECHECK_MS, Math.max(LEAST_YIELD_MS, waitMs));
}

/** A grant is booked completely, a refusal changes nothing (spec 02 §3). */
function book(desk: Desk, want: Want, choice: Choice): Grant {
  if (desk.self !== null) desk.self.virtualTime += 1;
  return grantTo(desk.state, want, choice.chosen, passedBy(desk.state, choice), desk.clock);
}

function passedBy({ lineup }: ScopeState, { chosen, all, considered }: Choice): readonly Passed[] {
  const isWhole = lineup !== null && lineup.standings === all && considered === all;
  return isWhole && lineup.waiting === 0 ? NONE_PASSED : passedOver(all, considered, chosen);
}
