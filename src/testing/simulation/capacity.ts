import { activeFault } from "./faults.js";
import type { Scenario, UpstreamSpec } from "./scenario.js";
import { shareOf } from "./upstream.js";
import type { Workload } from "./workload.js";

/** Spec 10: Σ min(rpm/60, tpm/60/average tokens, concurrency/average latency) over the sources, a broken one being 0. */
const STEP_MS = 250;

export interface NominalCapacity {
  /** Calls the sources could answer from 0 to `untilMs`, full buckets at the start included. */
  callsUntil(untilMs: number): number;
  /** Calls per second of one source while it is whole. */
  rateOf(source: string): number;
  /** Calls per second of all sources while they are whole. */
  readonly totalRate: number;
}

interface NominalRate {
  readonly perS: number;
  /** Calls the full bucket adds at the start; 0 where concurrency is what binds. */
  readonly credit: number;
}

export function nominalCapacity(scenario: Scenario, workload: Workload): NominalCapacity {
  const upstreams = scenario.sources.map(({ upstream }) => upstream);
  const rates = new Map(upstreams.map((upstream) => [upstream.name, nominalRate(upstream, workload)]));
  let totalRate = 0;
  for (const { perS } of rates.values()) totalRate += perS;

  function rateAt(atMs: number): number {
    let rate = 0;
    for (const upstream of upstreams) {
      if (activeFault(upstream.faults, atMs) !== null) continue;
      rate += rates.get(upstream.name)!.perS * shareOf(upstream, atMs);
    }
    return rate;
  }

  return {
    totalRate,
    rateOf: (source) => rates.get(source)!.perS,
    callsUntil(untilMs) {
      let calls = 0;
      for (const upstream of upstreams) calls += rates.get(upstream.name)!.credit * shareOf(upstream, 0);
      for (let atMs = 0; atMs < untilMs; atMs += STEP_MS) {
        const stepMs = Math.min(STEP_MS, untilMs - atMs);
        calls += (rateAt(atMs + stepMs / 2) * stepMs) / 1_000;
      }
      return calls;
    },
  };
}

function nominalRate(upstream: UpstreamSpec, { meanTokens, meanOutputTokens }: Workload): NominalRate {
  const latencyS = (upstream.ttftMs + meanOutputTokens * upstream.tpotMs) / 1_000;
  const slots = upstream.knee ?? upstream.concurrency;
  const bySlots = slots > 0 ? slots / latencyS : Infinity;
  const byRequests = upstream.rpm > 0 ? upstream.rpm / 60 : Infinity;
  const byTokens = upstream.tpm > 0 ? upstream.tpm / 60 / meanTokens : Infinity;
  const perS = Math.min(bySlots, byRequests, byTokens);
  const credit = perS < bySlots ? Math.min(bySlots, perS) * upstream.bucketS : 0;
  return { perS, credit };
}
