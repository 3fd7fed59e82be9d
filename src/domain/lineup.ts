import type { Lineup, SourceState, Standing } from "./scope-state.js";
import type { Want } from "./tick.js";

const NOT_FOUND = -1;

export function newLineup({ candidates, tag, maxTokens }: Want, standings: Standing[]): Lineup {
  const scores: number[] = [];
  let waiting = 0;
  for (const { waitMs } of standings) {
    scores.push(NOT_FOUND);
    if (waitMs !== 0) waiting += 1;
  }
  return { candidates, standings, waiting, tightest: tightestOf(standings), scores, tag, maxTokens, stale: null };
}

export function replaceStanding(lineup: Lineup, at: number, standing: Standing): void {
  const { standings, scores } = lineup;
  if (standings[at]!.waitMs !== 0) lineup.waiting -= 1;
  if (standing.waitMs !== 0) lineup.waiting += 1;
  standings[at] = standing;
  scores[at] = NOT_FOUND;
}

/** Scores are of calls of one tag and length. */
export function scoreFor(lineup: Lineup, { tag, maxTokens }: Want): void {
  if (lineup.tag === tag && lineup.maxTokens === maxTokens) return;
  for (let at = 0; at < lineup.scores.length; at += 1) lineup.scores[at] = NOT_FOUND;
  lineup.tag = tag;
  lineup.maxTokens = maxTokens;
}

function tightestOf(standings: readonly Standing[]): SourceState[] {
  const tightest: SourceState[] = [];
  for (const { source } of standings) {
    if (source.mostTokens === 0) continue;
    const at = tightest.findIndex((other) => areUsedAlike(source, other));
    if (at < 0) tightest.push(source);
    else if (source.mostTokens < tightest[at]!.mostTokens) tightest[at] = source;
  }
  return tightest;
}

/** The same call is believed to use the same there. */
function areUsedAlike(a: SourceState, b: SourceState): boolean {
  return a.sizes === b.sizes && a.config.estTokens === b.config.estTokens && a.config.tpmCharge === b.config.tpmCharge;
}
