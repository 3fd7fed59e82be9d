import type { LimitOptions, SourceOptions } from "polygateway";
import {
  type FaultOptions,
  type SimulatedProvider,
  type SimulatedProviderOptions,
  startSimulatedProvider,
} from "../../src/testing/provider/server.js";

/** What one source is: how the fleet has it configured, and how its provider behaves. */
export interface SourcePlan {
  readonly name: string;
  readonly limits: LimitOptions;
  readonly options: Partial<SourceOptions>;
  readonly provider: Omit<SimulatedProviderOptions, "name" | "seed" | "ledger">;
}

/** Reserved for a call: about what one uses, so that some use more. */
export const EST_TOKENS = 25;
const SLOW_MEDIAN_MS = 1_800;
const OUTPUT = { medianTokens: 12, sigma: 0.4, maxTokens: 40 };

/**
 * One source for each gate, one that is half dead and one that is dead. Together they allow `rate` calls a second.
 */
export function sourcePlans(rate: number): SourcePlan[] {
  const perMinute = (share: number): number => Math.max(30, Math.round(rate * share * 60));
  return [
    {
      name: "requests",
      // With a limit of concurrency the time per token, which a loaded machine stretches, is no reason to send less.
      limits: { rpm: perMinute(0.4), maxConcurrency: Math.ceil(rate / 3) },
      options: {},
      provider: {
        latency: { ttftMedianMs: 80, ttftSigma: 0.5, tokenMs: 5 },
        faults: { cutRate: 0.01, resetRate: 0.01 },
      },
    },
    {
      name: "tokens",
      limits: { tpm: perMinute(0.25) * EST_TOKENS, maxConcurrency: Math.ceil(rate / 4) },
      options: { estTokens: EST_TOKENS },
      provider: { latency: { ttftMedianMs: 60, ttftSigma: 0.5, tokenMs: 5 } },
    },
    {
      // Some of its answers take longer than a permit lives: what a frozen process loses.
      name: "slots",
      limits: { maxConcurrency: Math.max(3, Math.ceil((rate * 0.15 * SLOW_MEDIAN_MS) / 1_000)) },
      options: { timeoutMs: 20_000, ttftTimeoutMs: 20_000 },
      provider: { latency: { ttftMedianMs: SLOW_MEDIAN_MS, ttftSigma: 1, tokenMs: 5 } },
    },
    {
      name: "half_dead",
      limits: { rpm: perMinute(0.2), maxConcurrency: Math.ceil(rate / 5) },
      options: { ttftTimeoutMs: 3_000, interTokenTimeoutMs: 2_000, timeoutMs: 8_000 },
      provider: {
        latency: { ttftMedianMs: 120, ttftSigma: 0.5, tokenMs: 5 },
        faults: { errorRate: 0.12, cutRate: 0.06, resetRate: 0.06, hangRate: 0.02 },
      },
    },
    { name: "dead", limits: { rpm: 600 }, options: {}, provider: { faults: { deadKey: true } } },
  ];
}

/** Over all sources; a little less than they allow together. */
export function globalLimits(rate: number): LimitOptions {
  return { rpm: Math.round(rate * 0.95 * 60), maxConcurrency: Math.max(6, Math.ceil(rate * 0.7)) };
}

/** A provider whose faults can be made worse for a while. */
export interface Upstream {
  readonly plan: SourcePlan;
  readonly provider: SimulatedProvider;
  /** What it is asked with. */
  readonly apiKey: string;
  /** In place of its usual faults, until `restore`. */
  worsen(faults: FaultOptions): void;
  restore(): void;
}

/** In this process: their ledgers have the clock that kills and freezes are noted by. */
export function startUpstreams(
  plans: readonly SourcePlan[],
  seed: number,
  apiKeyOf: (name: string) => string,
): Promise<Upstream[]> {
  return Promise.all(
    plans.map(async (plan, index) => {
      const provider = await startSimulatedProvider({
        output: OUTPUT,
        ...plan.provider,
        name: plan.name,
        seed: seed * 100 + index,
        ledger: { keep: 5_000_000 },
      });
      const usual = plan.provider.faults ?? {};
      return {
        plan,
        provider,
        apiKey: apiKeyOf(plan.name),
        worsen: (faults: FaultOptions) => provider.change({ faults }),
        restore: () => provider.change({ faults: usual }),
      };
    }),
  );
}

export function sourceOptions({ plan, provider, apiKey }: Upstream): SourceOptions {
  const common = { baseUrl: provider.baseUrl, apiKey, model: "sim-model", timeoutMs: 10_000 };
  return {
    name: plan.name,
    ...common,
    ttftTimeoutMs: 5_000,
    interTokenTimeoutMs: 3_000,
    ...plan.limits,
    ...plan.options,
  };
}
