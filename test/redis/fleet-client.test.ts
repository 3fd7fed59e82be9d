import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { GatewayClient } from "../../src/index.js";
import { judgeLimits, startSimulatedProvider } from "../../src/testing/index.js";
import { sharedRedis } from "../services/redis.js";

/** Clients made from configuration alone, as two processes would make them: each with a connection of its own. */
const shared = await sharedRedis();
const redis = shared === null ? null : new Redis(shared.port);
afterAll(() => redis?.disconnect());

const REQUEST = { messages: [{ role: "user" as const, content: "hello" }], stream: false };

function envOf(scope: string, baseUrl: string, limits: Record<string, string>): Record<string, string> {
  return {
    [`${scope}__MOCK__1__BASE_URL`]: baseUrl,
    [`${scope}__MOCK__1__API_KEY`]: "sk-fleet-0123456789",
    [`${scope}__MOCK__1__MODEL`]: "sim-model",
    ...Object.fromEntries(Object.entries(limits).map(([name, value]) => [`${scope}__MOCK__1__${name}`, value])),
    PGW_LIMITER_BACKEND: "redis",
    PGW_BREAKER_BACKEND: "redis",
    REDIS_URL: shared!.url,
    // The machine may be busy.
    PGW_REDIS_TIMEOUT_S: "5",
  };
}

test.skipIf(shared === null)("two clients from the environment share one limit, and leave nothing behind", async () => {
  const scope = `FLEET${process.pid}`;
  const provider = await startSimulatedProvider({ seed: 1 });
  const env = envOf(scope, provider.baseUrl, { MAX_CONCURRENCY: "3" });
  const clients = [GatewayClient.fromEnv(scope, { env }), GatewayClient.fromEnv(scope, { env })];
  try {
    await Promise.all(Array.from({ length: 40 }, (_, n) => clients[n % 2]!.chat(REQUEST)));
    const { leases, backend, sources } = await clients[0]!.snapshot();
    expect(backend.kind).toBe("redis");
    expect(leases.lost).toBe(0);
    expect(sources[0]?.maxConcurrency).toBe(3);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await provider.stop();
  }
  const judgement = judgeLimits(provider.ledger(), { maxConcurrency: 3 });
  expect(judgement.violations).toEqual([]);
  expect(provider.stats().arrived).toBe(40);
  expect(await redis!.zcard(`pgw:{${scope}}:l`)).toBe(0);
  for (const key of await redis!.keys(`pgw:{${scope}}:*`)) expect(await redis!.pttl(key), key).toBeGreaterThan(0);
});
