import type { LimitOptions } from "../../config/options.js";
import { createDraws, type Draws } from "./draws.js";
import type { Fault } from "./faults.js";
import type { Scenario, SourceSpec, UpstreamSpec } from "./scenario.js";
import { broken, FIVE, smaller } from "./sources.js";

const MIXED_STREAM = 5_000_000;
const CALLS = 120;
const MOST_WORKERS = 5;
const MOST_CALLERS = 14;
const MOST_SOURCES = 4;
/** The largest call must fit. */
const LEAST_TPM = 25_000;
/** A breaker stays open for 33 s at most, an aligned minute has 60 s; a probe may then hang for as long as its first token may take. */
const MAY_IDLE_MS = 100_000;

/**
 * Ordinary trouble in every mixture: one worker or several, on a governor of its own or a shared one, one class or two,
 * permits ahead or not, both limit rules, sources that hang or flap. Nobody dies and nothing is lost, so that every
 * promise holds to the letter: no permit may run out, and nobody may wait while nothing happens.
 */
export function mixedScenario(seed: number): Scenario {
  const draws = createDraws(seed, MIXED_STREAM);
  const between = (least: number, most: number): number => Math.round(least + draws.uniform() * (most - least));
  const workers = between(1, MOST_WORKERS);
  const countsMinutes = draws.chance(0.3);
  const names = FIVE.slice(0, between(1, MOST_SOURCES));
  const faulty = draws.chance(0.4) ? between(0, names.length - 1) : -1;
  const classes = draws.chance(0.6) ? { highShare: 0.1 + 0.6 * draws.uniform() } : {};
  return {
    id: "mixed",
    title: "workers, classes, limit rules and faults in every mixture",
    sources: names.map((upstream, index) => sourceOf(upstream, draws, index === faulty, countsMinutes)),
    calls: CALLS,
    callers: Array.from({ length: workers }, () => between(1, MOST_CALLERS)),
    scheduling: { prefetchMs: draws.chance(0.5) ? 1_000 : 0, hedge: draws.chance(0.4) },
    ownGovernor: workers === 1 && draws.chance(0.6),
    idlesAtMostMs: MAY_IDLE_MS,
    ...classes,
    ...(draws.chance(0.25) ? { deadlineMs: between(4_000, 60_000) } : {}),
  };
}

/**
 * The client knows the true limits, which are a fraction of the usual ones, so that few calls meet them: mostly those of
 * requests, sometimes those of tokens.
 */
function sourceOf(upstream: UpstreamSpec, draws: Draws, isFaulty: boolean, countsMinutes: boolean): SourceSpec {
  const limited = smaller(upstream, 0.03 + 0.25 * draws.uniform());
  const tpm = Math.max(LEAST_TPM, Math.round(limited.tpm * (draws.chance(0.4) ? 0.4 : 1)));
  const slow = { ...limited, tpm, slowStart: { share: 0.05, factor: 12 } };
  const configured: LimitOptions = {
    rpm: limited.rpm,
    tpm,
    maxConcurrency: limited.concurrency,
    ...(countsMinutes ? { limitRule: "window" } : {}),
  };
  return { upstream: isFaulty ? broken(slow, faultOf(draws)) : slow, configured };
}

function faultOf(draws: Draws): Fault {
  const kind = draws.uniform();
  if (kind < 0.6) return { kind: "half_dead", fromMs: 5_000, toMs: 60_000, hangShare: 0.5 };
  return { kind: "flapping", fromMs: 5_000, toMs: 120_000, periodMs: 20_000, brokenMs: 6_000 };
}
