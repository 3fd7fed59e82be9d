import { afterAll, expect, test } from "vitest";
import { createSystemRuntime } from "../../src/backends/system.js";
import { GatewayClient, type Runtime } from "../../src/index.js";
import { startSimulatedProvider } from "../../src/testing/index.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, startRedis } from "../services/redis.js";

/** F38: a Redis that throws keys away when memory runs out throws limits away. */

const isHere = (await sharedRedis()) !== null;
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
});

const HI = { messages: [{ role: "user" as const, content: "hi" }], stream: false };

async function setUp(config: Record<string, string>) {
  const server = await startRedis({ config });
  open.push(() => server.stop());
  const provider = await startSimulatedProvider({ seed: 1 });
  open.push(() => provider.stop());
  const said: string[] = [];
  let aheadMs = 0;
  const system = createSystemRuntime({ log: (level, message) => void (level === "warn" && said.push(message)) });
  const runtime: Runtime = { ...system, now: () => system.now() + aheadMs };
  const scope = `EVICT${process.pid}`;
  const options = {
    scope,
    sources: [{ name: "a", baseUrl: provider.baseUrl, apiKey: "none", model: "m" }],
    limiterBackend: "redis",
    redis: { url: server.url, timeoutMs: 5_000 },
    runtime,
    proxyEnv: {},
  } as const;
  const client = new GatewayClient(options);
  open.push(() => client.close());
  const later = (ms: number): void => {
    aheadMs += ms;
  };
  const evictions = () => said.filter((text) => text.includes("maxmemory-policy"));
  return { server, client, said, evictions, later };
}

test.skipIf(!isHere)(
  "F38 an evicting policy is warned of at the start, and looked at again while work goes on",
  async () => {
    const { server, client, evictions, later } = await setUp({ "maxmemory-policy": "allkeys-lru" });
    for (let n = 0; n < 3; n += 1) await client.chat(HI);
    await eventually(async () => expect(evictions()).toHaveLength(1));
    expect(evictions()[0]).toMatch(/scope EVICT\d+: .*127\.0\.0\.1.*maxmemory-policy is allkeys-lru.*noeviction/);
    // Once is enough for a while.
    later(60_000);
    await client.chat(HI);
    later(600_000);
    await client.chat(HI);
    await eventually(async () => expect(evictions()).toHaveLength(2));
    await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    later(600_000);
    await client.chat(HI);
    await client.chat(HI);
    expect(evictions()).toHaveLength(2);
    await server.command("CONFIG", "SET", "maxmemory-policy", "volatile-ttl");
    later(600_000);
    await client.chat(HI);
    await eventually(async () => expect(evictions().at(-1)).toContain("volatile-ttl"));
  },
);

test.skipIf(!isHere)("F38 a server that keeps what it has, or doesn't say, is nothing to warn of", async () => {
  const { server, client, said, later } = await setUp({});
  await client.chat(HI);
  // Rights may end there.
  await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  await server.command("ACL", "SETUSER", "default", "-info", "-config");
  later(600_000);
  await client.chat(HI);
  await client.close();
  expect(said).toEqual([]);
});
