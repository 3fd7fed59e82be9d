import type { StoreClock } from "../gates/gate.js";
import type { ScopeState, SourceState, Standing } from "../scope-state.js";
import { estimatedTokens, standingOf } from "../standing.js";
import type { Want } from "../tick.js";
import { mayRetry } from "./budgets.js";
import { rateInForce, tokensInForce } from "./in-force.js";
import { fitsBetter, isTwoSided, LOOK_AHEAD, MOST_SKIPS, matchingSize, mismatch } from "./size-match.js";

export interface Match {
  /** Index in the line. */
  readonly at: number;
  readonly standing: Standing;
}

/** Is it worth looking: do the closed sources differ in the size of calls they have room for? */
export function canMatchSizes(state: ScopeState, nowMs: number): boolean {
  if (!state.scheduling.sizeMatching || state.meanTokens === 0) return false;
  const sizes: number[] = [];
  for (const source of state.sourceList) {
    if (source.breaker.state === "closed") sizes.push(sizeOf(state, source, nowMs));
  }
  return isTwoSided(sizes, state.meanTokens);
}

function sizeOf(state: ScopeState, source: SourceState, nowMs: number): number {
  return matchingSize(tokensInForce(source), rateInForce(state, source, nowMs));
}

/**
 * The call among the next ones of the same class that fits the chosen source best; null = the one at `from` itself. Who was
 * passed over too often comes first.
 */
export function betterFitting(
  state: ScopeState,
  source: SourceState,
  line: readonly number[],
  from: number,
  wants: readonly Want[],
  clock: StoreClock,
): Match | null {
  const size = sizeOf(state, source, clock.nowMs);
  if (size === 0) return null;
  const head = wants[line[from]!]!;
  if ((head.skips ?? 0) >= MOST_SKIPS || head.ordered === true) return null;
  let best = mismatch(estimatedTokens(state, source, head), size);
  let found: Match | null = null;
  for (let at = from + 1; at < line.length && at < from + LOOK_AHEAD; at += 1) {
    const want = wants[line[at]!]!;
    if (want.priority !== head.priority) break;
    const isOverdue = (want.skips ?? 0) >= MOST_SKIPS;
    const badness = mismatch(estimatedTokens(state, source, want), size);
    if (!isOverdue && !fitsBetter(best, badness)) continue;
    const standing = standingFor(state, source, want, clock);
    if (standing === null) continue;
    found = { at, standing };
    best = badness;
    if (isOverdue) break;
  }
  return found;
}

/** null when this call can't be given that source now. */
function standingFor(state: ScopeState, source: SourceState, want: Want, clock: StoreClock): Standing | null {
  const { name } = source.config;
  if (!want.candidates.includes(name) || want.failedHere.includes(name) || want.ordered === true) return null;
  if (want.hedge === true || state.leases.get(want.leaseId) !== undefined) return null;
  if (want.retry === true && state.scheduling.retryBudget && !mayRetry(state.budgets, state.retriesInFlight))
    return null;
  const standing = standingOf(state, source, want, clock);
  return standing.startable ? standing : null;
}
