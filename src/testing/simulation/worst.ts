import { createDraws, type Draws } from "./draws.js";
import type { Scenario, UpstreamSpec } from "./scenario.js";
import { broken, FIVE, known, smaller, told } from "./sources.js";

const WORST_STREAM = 4_000_000;
const CALLS = 600;
const WORKERS = 5;
const CALLERS_EACH = 16;
/** About as long as the calls take when all goes well. */
const SPAN_MS = 45_000;

/**
 * Deaths, freezes, lost replies, a store that stops or forgets, sources that break and limits that are wrong, all of it
 * drawn from the seed. Only the invariants are judged.
 */
export function worstScenario(seed: number): Scenario {
  const draws = createDraws(seed, WORST_STREAM);
  const between = (least: number, most: number): number => Math.round(least + draws.uniform() * (most - least));
  const times = (most: number): number[] => Array.from({ length: between(0, most) }, () => between(1_000, SPAN_MS));
  return {
    id: "worst",
    title: "deaths, freezes, lost replies, store restarts and pauses",
    sources: FIVE.map((upstream) => sourceOf(upstream, draws, between)),
    calls: CALLS,
    callers: Array<number>(WORKERS).fill(CALLERS_EACH),
    scheduling: { prefetchMs: draws.chance(0.5) ? 1_000 : 0, hedge: draws.chance(0.3) },
    storeDelayMs: draws.chance(0.2) ? 10 : 0.5,
    chaos: {
      deathsMs: times(4),
      // Up to longer than a lease lives.
      freezes: times(3).map((atMs) => ({ atMs, forMs: between(100, 45_000) })),
      lostReplyShare: draws.chance(0.7) ? draws.uniform() * 0.03 : 0,
      restartsMs: times(2),
      pauses: times(3).map((atMs) => ({ atMs, forMs: between(20, 4_000) })),
    },
  };
}

function sourceOf(
  upstream: UpstreamSpec,
  draws: Draws,
  between: (least: number, most: number) => number,
): Scenario["sources"][number] {
  const fromMs = between(0, SPAN_MS);
  const toMs = fromMs + between(2_000, 30_000);
  const faulty = faultOf(upstream, draws.uniform(), fromMs, toMs);
  // A smaller true limit is one that is refused with 429.
  return draws.chance(0.4) ? told(smaller(faulty, 0.5), known(upstream).configured) : known(faulty);
}

function faultOf(upstream: UpstreamSpec, draw: number, fromMs: number, toMs: number): UpstreamSpec {
  if (draw < 0.2) return broken(upstream, { kind: "half_dead", fromMs, toMs, hangShare: 0.7 });
  if (draw < 0.35) return broken(upstream, { kind: "outage", fromMs, toMs, cutsAnswers: true });
  if (draw < 0.5)
    return broken(upstream, { kind: "flapping", fromMs, toMs: Infinity, periodMs: 15_000, brokenMs: 4_000 });
  return draw < 0.6 ? broken(upstream, { kind: "dead_key", fromMs, toMs }) : upstream;
}
