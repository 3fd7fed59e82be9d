import { inflightOf } from "./leases.js";
import type { ScopeState, Standing } from "./scope-state.js";
import type { Want } from "./tick.js";

/** Assumed capacity of a source without a concurrency limit; only relations between sources matter. */
const UNLIMITED_CAPACITY = 32;
/** A source that rate-limited this call is chosen only when the others are four times as busy. */
const LIMITED_HERE_FACTOR = 4;
/** Waiting longer than this for an untried source is worse than trying a failed one again. */
const FAILED_HERE_PATIENCE_MS = 30_000;

/**
 * Sources that failed in this call are out while another closed one is able. When all have failed the list is void.
 */
export function withoutFailedHere(standings: readonly Standing[], want: Want): readonly Standing[] {
  if (want.failedHere.length === 0) return standings;
  const untried = standings.filter((s) => !want.failedHere.includes(s.source.config.name));
  const able = untried.some((s) => s.source.breaker.state === "closed" && s.waitMs <= FAILED_HERE_PATIENCE_MS);
  return able ? untried : standings;
}

/** The best of the standings that may start now; null when none may. Order: tier → due probe → lowest score. */
export function choose(state: ScopeState, standings: readonly Standing[], want: Want): Standing | null {
  let best: Standing | null = null;
  for (const standing of standings) {
    if (standing.waitMs > 0) continue;
    if (best === null || isBetter(state, standing, best, want)) best = standing;
    if (want.ordered === true) return best;
  }
  return best;
}

function isBetter(state: ScopeState, a: Standing, b: Standing, want: Want): boolean {
  const tier = a.source.config.priority - b.source.config.priority;
  if (tier !== 0) return tier < 0;
  if (a.probe !== b.probe) return a.probe;
  const score = scoreOf(state, a, want) - scoreOf(state, b, want);
  if (score !== 0) return score < 0;
  return a.source.lastGrant < b.source.lastGrant;
}

function scoreOf(state: ScopeState, standing: Standing, want: Want): number {
  const { config } = standing.source;
  const demotion = want.limitedHere.includes(config.name) ? LIMITED_HERE_FACTOR : 1;
  if (state.selector === "round_robin") return Math.max(standing.source.turns, state.turnFloor) * demotion;
  const capacity = config.maxConcurrency > 0 ? config.maxConcurrency : UNLIMITED_CAPACITY;
  // One more than in flight: an idle source that just refused must lose against an idle one that did not.
  return ((inflightOf(state.leases, config.name) + 1) / (capacity * config.weight)) * demotion;
}

/** Books the turn of a granted source. */
export function noteTurn(state: ScopeState, standing: Standing): void {
  const { source } = standing;
  const start = Math.max(source.turns, state.turnFloor);
  state.turnFloor = start;
  source.turns = start + 1 / source.config.weight;
  state.grantCount += 1;
  source.lastGrant = state.grantCount;
}
