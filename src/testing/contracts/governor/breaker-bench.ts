import type { BreakerConfig } from "../../../domain/scope.js";
import { type GovernorBench, isRefusal, type Open, sourceConfig, within } from "./bench.js";

/** One failure opens. */
export const ONE_STRIKE: Partial<BreakerConfig> = { failThreshold: 1 };
/** A healthy neighbour stands by, so that rules about "every source is broken" stay out of these tests. */
export async function openWithNeighbour(open: Open, breaker: Partial<BreakerConfig>, tpm = 0): Promise<GovernorBench> {
  return await open({ sources: [sourceConfig("a", { tpm }), sourceConfig("z")], breaker });
}

export async function stateOf(bench: GovernorBench): Promise<string> {
  return (await bench.source("a")).state;
}

export async function openForMs(bench: GovernorBench): Promise<number> {
  return (await bench.source("a")).openForMs;
}

/** Within ± 10 % of the n-th trip's open time, never above the maximum. */
export function openTime(actualMs: number, trips: number, cooldownMs = 4_000, cooldownMaxMs = 30_000): void {
  const planned = Math.min(cooldownMs * 1.7 ** (trips - 1), cooldownMaxMs);
  within(actualMs, planned * 0.9 - 1e-6, Math.min(planned * 1.1, cooldownMaxMs) + 1e-6, `open time of trip ${trips}`);
}

/** Wants sent as one full tick and as many single ticks at the same moment. */
export async function fiftyAtOnce(bench: GovernorBench, source: string): Promise<number> {
  const together = bench.ask(Array.from({ length: 25 }, () => bench.newWant(source)));
  const single = Array.from({ length: 25 }, () => bench.want(source));
  const answers = [...(await together), ...(await Promise.all(single))];
  return answers.filter((answer) => !isRefusal(answer)).length;
}
