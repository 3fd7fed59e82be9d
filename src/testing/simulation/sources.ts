import type { LimitOptions } from "../../config/options.js";
import type { Fault } from "./faults.js";
import type { SourceSpec, UpstreamSpec } from "./scenario.js";

/**
 * The five sources of spec 10 §9. Open there and chosen here: their speed (60 tokens a second and 0.7 s to the first
 * one, give or take a third: a mean call takes 8 s, and D_ft = 6 · TTFT stays below the 5 s that the isolation goal counts
 * with), buckets of 10 s, and that two of the five say neither why
 * nor for how long they refuse. charlie_1, with the fewest tokens for its requests, is the fast one: only then do its 40
 * slots leave room for the many light calls by which matching sizes gains 12 % there, as the spec's linear program says.
 */
export const FIVE: readonly UpstreamSpec[] = [
  five("alpha_1", { rpm: 300, tpm: 600_000, concurrency: 60, ttftMs: 700, tpotMs: 16, retryAfter: true }),
  five("bravo_1", { rpm: 240, tpm: 400_000, concurrency: 50, ttftMs: 850, tpotMs: 18, retryAfter: false }),
  five("charlie_1", { rpm: 500, tpm: 300_000, concurrency: 40, ttftMs: 550, tpotMs: 11, retryAfter: true }),
  five("delta_1", { rpm: 120, tpm: 300_000, concurrency: 30, ttftMs: 800, tpotMs: 20, retryAfter: false }),
  five("echo_1", { rpm: 200, tpm: 500_000, concurrency: 24, ttftMs: 650, tpotMs: 13, retryAfter: true }),
];

function five(
  name: string,
  own: Pick<UpstreamSpec, "rpm" | "tpm" | "concurrency" | "ttftMs" | "tpotMs" | "retryAfter">,
): UpstreamSpec {
  return { name, ...own, bucketS: 10, headers: false, chargesRejected: false, faults: [] };
}

/** The client knows the true limits. */
export function known(upstream: UpstreamSpec): SourceSpec {
  const { rpm, tpm, concurrency } = upstream;
  return { upstream, configured: { rpm, tpm, maxConcurrency: concurrency } };
}

export function told(upstream: UpstreamSpec, configured: LimitOptions): SourceSpec {
  return { upstream, configured };
}

export function broken(upstream: UpstreamSpec, ...faults: readonly Fault[]): UpstreamSpec {
  return { ...upstream, faults };
}

/** Limits times `share`, speed unchanged. */
export function smaller(upstream: UpstreamSpec, share: number): UpstreamSpec {
  return {
    ...upstream,
    rpm: Math.round(upstream.rpm * share),
    tpm: Math.round(upstream.tpm * share),
    concurrency: Math.round(upstream.concurrency * share),
  };
}
