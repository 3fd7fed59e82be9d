import { afterAll, describe, expect, test } from "vitest";
import { createSystemRuntime } from "../../src/backends/system.js";
import { GatewayClient } from "../../src/gateway.js";
import { startSimulatedProvider } from "../../src/testing/index.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, startRedis } from "../services/redis.js";

/** What people are told of an outage of Redis is true when it is told. */

const isHere = (await sharedRedis()) !== null;
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
});

const HI = { messages: [{ role: "user" as const, content: "hi" }], stream: false };

async function setUp(leaseTtlMs?: number) {
  const server = await startRedis();
  open.push(() => server.stop());
  const provider = await startSimulatedProvider({ seed: 1, latency: { ttftMedianMs: 60_000 } });
  open.push(() => provider.stop());
  const said: string[] = [];
  const client = new GatewayClient({
    scope: `WORDS${process.pid}`,
    sources: [{ name: "a", baseUrl: provider.baseUrl, apiKey: "none", model: "m" }],
    limiterBackend: "redis",
    redis: { url: server.url },
    runtime: createSystemRuntime({ log: (level, message) => void (level === "warn" && said.push(message)) }),
    backpressure: { backendGraceMs: 60_000 },
    ...(leaseTtlMs === undefined ? {} : { leaseTtlMs }),
  });
  const inflight = async () => (await client.snapshot()).sources[0]?.inflight;
  const count = (text: string) => said.filter((line) => line.includes(text)).length;
  return { server, provider, client, inflight, said, count };
}

describe.skipIf(!isHere)("a Redis that takes nothing in", () => {
  test("has its end told when permits are given again, not when it books what ended", async () => {
    const { server, provider, client, inflight, count } = await setUp();
    open.push(() => client.close());
    const aborts = Array.from({ length: 3 }, () => new AbortController());
    const held = aborts.map(({ signal }) => client.chat({ ...HI, signal }).catch(() => {}));
    await eventually(async () => expect(await inflight()).toBe(3));
    await server.command("CONFIG", "SET", "maxmemory", 1);
    provider.change({ latency: { ttftMedianMs: 0 } });
    const waiting = client.chat(HI);
    await eventually(async () => expect(count("the limits can't be asked")).toBe(1));
    for (const [index, abort] of aborts.entries()) {
      abort.abort(new Error("left"));
      await held[index];
      await eventually(async () => expect(await inflight()).toBe(2 - index));
    }
    // All that ended is booked, and the one that waits was refused meanwhile.
    await eventually(async () => expect(client.leases().live).toBe(0));
    expect(count("can be asked again")).toBe(0);
    await server.command("CONFIG", "SET", "maxmemory", 0);
    expect((await waiting).content).not.toBe("");
    expect(count("can be asked again")).toBe(1);
    expect(count("can't be asked")).toBe(1);
  });
});

describe.skipIf(!isHere)("a Redis that stands still", () => {
  test.each(["governor", "client"] as const)(
    "does not hold up the end of a %s, which says what becomes of permits",
    async (what) => {
      const { server, client, inflight, said, count } = await setUp(3_000);
      const abort = new AbortController();
      const held = client.chat({ ...HI, signal: abort.signal }).catch(() => {});
      await eventually(async () => expect(await inflight()).toBe(1));
      server.pause();
      open.push(async () => server.resume());
      const closed = what === "governor" ? client.governor.close() : client.close();
      abort.abort(new Error("left"));
      await held;
      const end = await Promise.race([
        closed.then(() => "closed"),
        new Promise((resolve) => setTimeout(resolve, 10_000)),
      ]);
      expect(end, said.join("\n")).toBe("closed");
      expect(count("closed with 1 permit, held or asked for, that could not be given back"), said.join("\n")).toBe(1);
      expect(said.join("\n")).toMatch(/comes back by itself when its lease ends, within 3 s/);
      await client.close();
    },
  );

  test("does not hold up a governor's end by a call that outlives its permit", async () => {
    const { server, client, inflight, count } = await setUp(3_000);
    const abort = new AbortController();
    const held = client.chat({ ...HI, signal: abort.signal }).catch((error: unknown) => String(error));
    await eventually(async () => expect(await inflight()).toBe(1));
    server.pause();
    open.push(async () => server.resume());
    // The call's answer is a minute away; its lease ends in three seconds.
    await client.governor.close();
    expect(client.leases().live).toBe(1);
    abort.abort(new Error("left"));
    expect(await held).toContain("left");
    await client.close();
    expect(count("could not be given back")).toBe(1);
  });
});
