import type { PricingSource, SourceOptions } from "../config/options.js";
import { PricingTable } from "../telemetry/pricing.js";
import { type SimulatedProvider, startSimulatedProvider } from "../testing/provider/server.js";

/**
 * The demo's four sources: one that works, one with a tight limit, one that hangs most of the time, one whose key is
 * dead. The providers are real HTTP servers on loopback with ledgers of their own; nothing else is needed.
 */
export interface DemoSource {
  readonly provider: SimulatedProvider;
  readonly options: SourceOptions;
  /** What a reader should know about it before the run. */
  readonly story: string;
}

export interface DemoStage {
  readonly sources: readonly DemoSource[];
  close(): Promise<void>;
}

const MODEL = "demo-model";
const LIMITED_RPM = 40;
const HALF_DEAD_TTFT_TIMEOUT_MS = 2_000;

type Cast = readonly [
  story: string,
  provider: Parameters<typeof startSimulatedProvider>[0] & { readonly name: string },
  source: Pick<SourceOptions, "maxConcurrency"> & Partial<SourceOptions>,
];

const CAST: readonly Cast[] = [
  [
    "answers, in about a second",
    { name: "healthy_1", latency: { ttftMedianMs: 400, ttftSigma: 0.3, tokenMs: 30 } },
    { maxConcurrency: 4 },
  ],
  [
    `refuses more than ${LIMITED_RPM} requests a minute`,
    {
      name: "limited_1",
      limits: { rpm: LIMITED_RPM, maxConcurrency: 4 },
      latency: { ttftMedianMs: 250, ttftSigma: 0.3, tokenMs: 10 },
    },
    { maxConcurrency: 4, rpm: LIMITED_RPM },
  ],
  [
    "never finishes 7 of 10 answers, and says nothing about it",
    {
      name: "halfdead_1",
      faults: { hangRate: 0.7 },
      latency: { ttftMedianMs: 300, ttftSigma: 0.3, tokenMs: 15 },
    },
    {
      maxConcurrency: 4,
      ttftTimeoutMs: HALF_DEAD_TTFT_TIMEOUT_MS,
      interTokenTimeoutMs: HALF_DEAD_TTFT_TIMEOUT_MS,
    },
  ],
  ["its key was revoked", { name: "deadkey_1", apiKeys: ["sk-demo-the-new-key"] }, { maxConcurrency: 4 }],
];

async function startSource([story, provider, source]: Cast, seed: number): Promise<DemoSource> {
  const started = await startSimulatedProvider({ ...provider, seed });
  const options: SourceOptions = {
    name: provider.name,
    baseUrl: started.baseUrl,
    apiKey: `sk-demo-${provider.name}-0000`,
    model: MODEL,
    timeoutMs: 15_000,
    ttftTimeoutMs: 5_000,
    interTokenTimeoutMs: 5_000,
    ...source,
  };
  return { provider: started, options, story };
}

/** Starts the four providers; when one can't be started, none is left. */
export async function startDemoStage(): Promise<DemoStage> {
  const started = await Promise.allSettled(CAST.map((cast, index) => startSource(cast, index + 1)));
  const sources = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(sources.map(({ provider }) => provider.stop()));
  };
  const failed = started.find((result) => result.status === "rejected");
  if (failed === undefined) return { sources, close };
  await close();
  throw failed.reason;
}

/** Invented prices, so that the money columns have something to show. */
export function demoPrices(): PricingSource {
  return new PricingTable({ [MODEL]: { inputPer1M: 2, outputPer1M: 8 } });
}
