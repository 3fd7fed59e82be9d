import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { createSystemRuntime } from "../../src/backends/system.js";
import { GatewayClient, type GatewayOptions, type Runtime } from "../../src/index.js";
import { type SimulatedProvider, startSimulatedProvider } from "../../src/testing/index.js";
import { eventually } from "../services/processes.js";
import { sharedRedis } from "../services/redis.js";

/** Processes whose clocks are wrong, or that stood still: what they share is kept by the server's clock alone. */

const redis = await sharedRedis();
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
});

const HI = { messages: [{ role: "user" as const, content: "hi" }], stream: false };
const DAY_MS = 86_400_000;
let scopes = 0;

async function provider(options: Parameters<typeof startSimulatedProvider>[0] = {}): Promise<SimulatedProvider> {
  const started = await startSimulatedProvider({ seed: 1, ...options });
  open.push(() => started.stop());
  return started;
}

/** Clients of one scope, each with the clock that it is given. */
function clients(upstream: SimulatedProvider, runtimes: readonly Runtime[], options: Partial<GatewayOptions> = {}) {
  scopes += 1;
  const scope = `LATE${process.pid}x${scopes}`;
  return runtimes.map((runtime) => {
    const source = { name: "a", baseUrl: upstream.baseUrl, apiKey: "none", model: "m", maxConcurrency: 1 };
    const client = new GatewayClient({
      scope,
      sources: [source],
      limiterBackend: "redis",
      redis: { url: redis!.url, timeoutMs: 5_000 },
      proxyEnv: {},
      runtime,
      ...options,
    });
    open.push(() => client.close());
    return client;
  });
}

function skewed(byMs: number): Runtime {
  const system = createSystemRuntime({ log: () => {} });
  return { ...system, now: () => system.now() + byMs, wallNow: () => system.wallNow() + byMs };
}

describe.skipIf(redis === null)("processes that share a scope", () => {
  test("F43 clocks that are a day ahead or behind: permits, cooldowns and progress are the server's", async () => {
    const upstream = await provider({ latency: { ttftMedianMs: 300, ttftSigma: 0 } });
    const [ahead, right, behind] = clients(upstream, [skewed(DAY_MS), skewed(0), skewed(-DAY_MS)]) as [
      GatewayClient,
      GatewayClient,
      GatewayClient,
    ];
    await Promise.all([ahead, right, behind].flatMap((client) => [client.chat(HI), client.chat(HI)]));
    const ledger = upstream.ledger();
    expect(ledger).toHaveLength(6);
    // One place for all of them: nobody's clock let a second call in, or held the place for a day.
    for (const client of [ahead, right, behind]) {
      const { sources, leases } = await client.snapshot();
      expect(leases).toMatchObject({ live: 0, lost: 0 });
      expect(sources[0]).toMatchObject({ state: "closed", inflight: 0 });
    }
    upstream.script({ status: 429, headers: { "retry-after": "1" }, chunks: [], end: "close" } as never, 1);
    const limited = ahead.chat(HI);
    await eventually(async () => {
      const { sources } = await behind.snapshot();
      expect(sources[0]!.coolingMs).toBeGreaterThan(0);
      expect(sources[0]!.coolingMs).toBeLessThanOrEqual(1_100);
    });
    await limited;
    await Promise.all([right.chat(HI), behind.chat(HI)]);
  });

  test("F52 a process that stood still beyond its permits: told as lost, and another's permit stays its own", async () => {
    const upstream = await provider({ latency: { ttftMedianMs: 6_000, ttftSigma: 0 } });
    const [client, other] = clients(upstream, [skewed(0), skewed(0)], { leaseTtlMs: 3_000 }) as [
      GatewayClient,
      GatewayClient,
    ];
    const call = client.chat(HI);
    await eventually(async () => expect(upstream.stats().arrived).toBe(1));
    // As a long computation does: no timer fires, no lease is renewed.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_200);
    await sleep(10);
    const next = other.chat(HI);
    expect((await call).content.length).toBeGreaterThan(0);
    expect((await client.snapshot()).leases.lost).toBe(1);
    // Its end gave back nothing that is the other's.
    expect((await other.snapshot()).sources[0]?.inflight).toBe(1);
    await next;
    expect((await other.snapshot()).sources[0]?.inflight).toBe(0);
  });
});
