import type { GatewayOptions } from "polygateway";
import { gatewayOptions } from "../../../src/testing/simulation/gateway-caller.js";
import type { Scenario } from "../../../src/testing/simulation/scenario.js";

/** Scenarios whose sources are whole and whose limits are known: nothing in them depends on the length of a rule's own times. */
export const REAL_SCENARIOS = ["A", "T"] as const;

const BACKEND_GRACE_MS = 10_000;

/** The simulator's options with every limit per minute `scale` times as high, on a Redis and providers that are there. */
export function scaledOptions(scenario: Scenario, scale: number, redisUrl: string, origin: string): GatewayOptions {
  const { scope, sources, backpressure, scheduling } = gatewayOptions(scenario);
  return {
    scope,
    sources: sources.map(({ name, model, rpm = 0, tpm = 0, maxConcurrency = 0 }) => ({
      ...{ name, model, apiKey: "sk-simulated-key", baseUrl: `${origin}/${name}/v1`, maxConcurrency },
      rpm: rpm * scale,
      tpm: tpm * scale,
      // The silence between the first token and the rest.
      interTokenTimeoutMs: 60_000,
    })),
    // On a busy machine Redis may answer late; the simulated one never does.
    backpressure: { ...backpressure, backendGraceMs: BACKEND_GRACE_MS },
    scheduling: { ...scheduling, prefetchMs: Math.round(scheduling.prefetchMs / scale) },
    limiterBackend: "redis",
    redis: { url: redisUrl },
  };
}
