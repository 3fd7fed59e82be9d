import { scoreFor } from "./lineup.js";
import { jittered, jitteredBy, nextState, presentState, type SeededRandom } from "./random.js";
import { attemptTimeMs, successTimeMs } from "./scheduling/expected-time.js";
import { successShare } from "./scheduling/health.js";
import { windowInForce } from "./scheduling/in-force.js";
import { poolOf } from "./scheduling/pool.js";
import { learnedOutTokens } from "./scheduling/token-learning.js";
import type { Lineup, ScopeState, SourceState, Standing } from "./scope-state.js";
import type { Want } from "./tick.js";

/** Assumed capacity of a source without a concurrency limit; only relations between sources matter. */
const UNLIMITED_CAPACITY = 32;
/** A source that rate-limited this call is chosen only when the others are four times as busy. */
const LIMITED_HERE_FACTOR = 4;
/** Waiting longer than this for an untried source is worse than trying a failed one again. */
const FAILED_HERE_PATIENCE_MS = 30_000;
/** A lease ends at a whole millisecond. */
const LEASE_ROUNDING_MS = 1;
/** A session stays with its source while that is at most this much worse than the best. */
const AFFINITY_TOLERANCE = 1.5;
/** Equal sources share the calls by chance. */
const NOISE = 0.02;

/**
 * Sources that failed in this call are out while another closed one is able. When all have failed the list is void.
 */
export function withoutFailedHere(standings: readonly Standing[], want: Want): readonly Standing[] {
  if (want.failedHere.length === 0) return standings;
  const untried = standings.filter((s) => !want.failedHere.includes(s.source.config.name));
  const able = untried.some(
    (s) => s.source.breaker.state === "closed" && s.waitMs <= FAILED_HERE_PATIENCE_MS + LEASE_ROUNDING_MS,
  );
  return able ? untried : standings;
}

/**
 * The best of the standings that may be granted; null when none may. Order: tier → due probe → session's own source →
 * lowest score.
 */
export function choose(
  state: ScopeState,
  standings: readonly Standing[],
  want: Want,
  nowMs: number,
  random: SeededRandom,
): Standing | null {
  const { lineup } = state;
  if (standings.length > 1 && lineup?.standings === standings && isPlain(state, want)) {
    return chooseFromLineup(state, lineup, want, nowMs, random);
  }
  let best: Standing | null = null;
  let bestScore = 0;
  let own: Standing | null = null;
  let ownScore = 0;
  for (const standing of standings) {
    if (!standing.startable) continue;
    if (want.ordered === true) return standing;
    if (best !== null && standing.rank > best.rank) continue;
    // Nearly always there is just one candidate: it needs no score.
    const score = standings.length === 1 ? 0 : scoreOf(state, standing, want, nowMs, random);
    if (want.affinity !== undefined && standing.source.config.name === want.affinity) {
      own = standing;
      ownScore = score;
    }
    if (best === null || standing.rank < best.rank || isBetter(standing, score, best, bestScore)) {
      best = standing;
      bestScore = score;
    }
  }
  if (own === null || best === null || own.rank > best.rank || best.probe) return best;
  return ownScore <= AFFINITY_TOLERANCE * bestScore ? own : best;
}

/** No source is special to this call. */
function isPlain({ selector }: ScopeState, { ordered, affinity, limitedHere }: Want): boolean {
  return selector === "health_aware" && ordered !== true && affinity === undefined && limitedHere.length === 0;
}

/** The same as `choose`, where little is left to find: a tick asks this for every call and every source. */
function chooseFromLineup(
  state: ScopeState,
  lineup: Lineup,
  want: Want,
  nowMs: number,
  random: SeededRandom,
): Standing | null {
  const { standings, scores } = lineup;
  scoreFor(lineup, want);
  let best: Standing | null = null;
  let bestRank = Infinity;
  let bestScore = 0;
  let at = -1;
  let drawn = presentState(random);
  for (const standing of standings) {
    at += 1;
    const { rank } = standing;
    if (standing.startable && rank <= bestRank) {
      let steady = scores[at]!;
      if (steady < 0) {
        steady = steadyScore(state, standing.source, standing.waitMs, want, nowMs);
        scores[at] = steady;
      }
      drawn = nextState(drawn);
      const score = jitteredBy(drawn, steady, NOISE);
      if (
        best === null ||
        rank < bestRank ||
        score < bestScore ||
        (score === bestScore && isBetter(standing, score, best, bestScore))
      ) {
        best = standing;
        bestRank = rank;
        bestScore = score;
      }
    }
  }
  random.state = drawn;
  return best;
}

function isBetter(a: Standing, scoreA: number, b: Standing, scoreB: number): boolean {
  if (scoreA !== scoreB) return scoreA < scoreB;
  return a.source.lastGrant < b.source.lastGrant;
}

/** Lower is better. */
function scoreOf(state: ScopeState, standing: Standing, want: Want, nowMs: number, random: SeededRandom): number {
  const { source } = standing;
  const demotion = demotionOf(source, want);
  if (state.selector === "health_aware") {
    return jittered(steadyScore(state, source, standing.waitMs, want, nowMs) * demotion, NOISE, random);
  }
  const { config } = source;
  if (state.selector === "round_robin") return Math.max(source.turns, state.turnFloor) * demotion;
  const busy = state.leases.inflightOf(config.name);
  const capacity = config.maxConcurrency > 0 ? config.maxConcurrency : UNLIMITED_CAPACITY;
  // One more than in flight: an idle source that just refused must lose against an idle one that did not.
  return ((busy + 1) / (capacity * config.weight)) * demotion;
}

function demotionOf(source: SourceState, { limitedHere }: Want): number {
  return limitedHere.length > 0 && limitedHere.includes(source.config.name) ? LIMITED_HERE_FACTOR : 1;
}

/** Found once where a tick judges several calls of one kind. */
function steadyScore(state: ScopeState, source: SourceState, waitMs: number, want: Want, nowMs: number): number {
  if (!state.keepsFacts) return steadyScoreNow(state, source, waitMs, want, nowMs);
  const kept = source.score;
  if (kept !== null && kept.waitMs === waitMs && kept.maxTokens === want.maxTokens && kept.tag === want.tag) {
    return kept.value;
  }
  const value = steadyScoreNow(state, source, waitMs, want, nowMs);
  source.score = { tag: want.tag, maxTokens: want.maxTokens, waitMs, value };
  return value;
}

function steadyScoreNow(state: ScopeState, source: SourceState, waitMs: number, want: Want, nowMs: number): number {
  const { config, health } = source;
  const window = windowInForce(state, source, nowMs);
  const capacity = window === Infinity ? UNLIMITED_CAPACITY : window;
  const used = Math.min(1, (state.leases.inflightOf(config.name) + 1) / (capacity * config.weight));
  const timeMs = expectedMs(state, source, want, nowMs);
  const successMs = successTimeMs(health, successShare(health, nowMs), timeMs, waitMs);
  return (successMs / (1 - 0.5 * used)) * source.priceFactor;
}

/** T of this call on this source. */
function expectedMs(state: ScopeState, source: SourceState, want: Want, nowMs: number): number {
  const learned = learnedOutTokens(source.sizes.book, want.tag ?? "");
  const outTokens = learned === null ? null : Math.min(learned, want.maxTokens ?? Infinity);
  return attemptTimeMs(source.health, poolOf(state, nowMs), outTokens);
}

/** What an answer there takes: of calls of this kind, or of all while the kind is not known. */
export function usualMs(state: ScopeState, source: SourceState, want: Want, nowMs: number): number {
  const isKnown = learnedOutTokens(source.sizes.book, want.tag ?? "") !== null;
  return isKnown && source.health.tpotMs > 0 ? expectedMs(state, source, want, nowMs) : source.health.durationMs;
}

/** Books the turn of a granted source. */
export function noteTurn(state: ScopeState, { source }: Standing): void {
  const start = Math.max(source.turns, state.turnFloor);
  state.turnFloor = start;
  source.turns = start + 1 / source.config.weight;
  state.grantCount += 1;
  source.lastGrant = state.grantCount;
}
