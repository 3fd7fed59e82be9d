import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { Redis } from "ioredis";
import { afterAll, describe, expect, test } from "vitest";
import { RedisCache, type RedisCacheOptions } from "../../src/backends/redis/cache.js";
import { packEntry } from "../../src/backends/redis/cache-entry.js";
import { ConfigError } from "../../src/errors.js";
import { sampleAnswer } from "../../src/testing/contracts/cache.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, sharedRedisCluster, startRedis } from "../services/redis.js";

const shared = await sharedRedis();
const cluster = await sharedRedisCluster();
const open: { close(): Promise<void> }[] = [];
let spaces = 0;
afterAll(async () => void (await Promise.all(open.map((one) => one.close()))));

/** A cache with a namespace of its own. */
function cacheOn(options: RedisCacheOptions): { cache: RedisCache; prefix: string } {
  spaces += 1;
  const namespace = `cache-test-${process.pid}-${spaces}`;
  const cache = new RedisCache({ namespace, ...options });
  open.push(cache);
  return { cache, prefix: `pgw:cache:1:${namespace}:` };
}

describe.skipIf(shared === null)("on a server", () => {
  const url = shared?.url ?? "";
  const ask = (name: string, ...args: (string | number)[]) => shared?.command(name, ...args);

  test("every key has the life of an answer, whatever it is; a long text is packed", async () => {
    const { cache, prefix } = cacheOn({ url, ttlMs: 60_000 });
    const long = sampleAnswer("again and ".repeat(5_000));
    await cache.set("a".repeat(64), sampleAnswer());
    await cache.set("any text: {x}\n", long);
    const keys = (await ask("KEYS", `${prefix}*`)) as string[];
    expect(keys).toHaveLength(2);
    expect(keys).toContain(`${prefix}{${"a".repeat(64)}}`);
    for (const key of keys) {
      const left = Number(await ask("PTTL", key));
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(60_000);
      expect(Number(await ask("STRLEN", key))).toBeLessThan(2_000);
    }
  });

  test.each<[string, (key: string, redis: Redis) => Promise<unknown>]>([
    ["a list", (key, redis) => redis.multi().del(key).rpush(key, "x").exec()],
    ["nothing but a mark", (key, redis) => redis.set(key, "pgw1")],
    ["foreign text", (key, redis) => redis.set(key, '{"content":"planted"}')],
    ["foreign bytes", (key, redis) => redis.set(key, randomBytes(5_000))],
    ["a huge value", (key, redis) => redis.setrange(key, 100 * 1_024 * 1_024, "x")],
    ["a cut entry", async (key, redis) => redis.set(key, (await redis.getBuffer(key))?.subarray(0, -1) ?? "")],
    [
      "a changed entry",
      async (key, redis) => {
        const last = (await redis.strlen(key)) - 1;
        await redis.setrange(key, last, "!");
      },
    ],
    [
      "another key's entry",
      async (key, redis) => {
        const foreign = await packEntry(JSON.stringify(sampleAnswer()), { key: "other", salt: "s", maxBytes: 1e6 });
        await redis.set(key, foreign ?? "");
      },
    ],
    [
      "an entry of somebody who doesn't know the salt",
      async (key, redis) => {
        const foreign = await packEntry(JSON.stringify(sampleAnswer()), { key: "k", salt: "", maxBytes: 1e6 });
        await redis.set(key, foreign ?? "");
      },
    ],
    [
      "a bomb",
      async (key, redis) => {
        const foreign = await packEntry("x".repeat(5e7), { key: "k", salt: "s", maxBytes: 1e9 });
        await redis.set(key, foreign ?? "");
      },
    ],
    ["gzip alone", (key, redis) => redis.set(key, gzipSync(JSON.stringify(sampleAnswer())))],
  ])("%s under a key is a failure, and the next answer takes its place", async (_, poison) => {
    const { cache, prefix } = cacheOn({ url, salt: "s" });
    const redis = new Redis(url);
    try {
      await cache.set("k", sampleAnswer("good"));
      await poison(`${prefix}{k}`, redis);
      await expect(cache.get("k")).rejects.toThrow();
      await cache.set("k", sampleAnswer("new"));
      expect((await cache.get("k"))?.content).toBe("new");
      expect(await redis.pttl(`${prefix}{k}`)).toBeGreaterThan(0);
    } finally {
      await redis.del(`${prefix}{k}`);
      redis.disconnect();
    }
  });

  test("caches with one namespace share answers, with two they don't", async () => {
    const { cache, prefix } = cacheOn({ url });
    const namespace = prefix.split(":")[3] ?? "";
    const { cache: same } = cacheOn({ url, namespace });
    const { cache: other } = cacheOn({ url, namespace: `{${namespace}}` });
    await cache.set("k", sampleAnswer());
    expect(await same.get("k")).toEqual(sampleAnswer());
    expect(await other.get("k")).toBeNull();
  });

  test("a client of the user's own stays open", async () => {
    const client = new Redis(url);
    const { cache } = cacheOn({ client });
    await cache.set("k", sampleAnswer());
    expect(await cache.get("k")).toEqual(sampleAnswer());
    await cache.close();
    expect(await client.ping()).toBe("PONG");
    client.disconnect();
  });

  test("close waits for what is being written", async () => {
    const { cache, prefix } = cacheOn({ url });
    await cache.get("k");
    const writing = cache.set("k", sampleAnswer("x".repeat(100_000)));
    await cache.close();
    await writing;
    expect(await ask("EXISTS", `${prefix}{k}`)).toBe(1);
  });

  test("a server that hangs costs a wait once, then calls go on without it until it is back", async () => {
    const own = await startRedis();
    open.push({ close: () => own.stop() });
    let nowMs = 0;
    const timers: (() => void)[] = [];
    const setTimer = (_: number, callback: () => void) => {
      timers.push(callback);
      return () => void timers.splice(timers.indexOf(callback), 1);
    };
    const { cache } = cacheOn({ url: own.url, runtime: { now: () => nowMs, setTimer } });
    await cache.set("k", sampleAnswer());
    own.pause();
    const waiting = expect(cache.get("k")).rejects.toThrow("no answer within 250 ms");
    expect(timers).toHaveLength(1);
    nowMs += 250;
    for (const fire of [...timers]) fire();
    await waiting;
    for (let n = 0; n < 100; n += 1) await expect(cache.get("k")).rejects.toThrow("no answer within 250 ms");
    expect(timers.length).toBeLessThanOrEqual(1);
    own.resume();
    nowMs += 500;
    await eventually(async () => expect(await cache.get("k")).toEqual(sampleAnswer()));
  });

  test("a server without room keeps nothing, and says so", async () => {
    const own = await startRedis({ config: { maxmemory: "1" } });
    open.push({ close: () => own.stop() });
    const { cache } = cacheOn({ url: own.url });
    await expect(cache.set("k", sampleAnswer())).rejects.toThrow("maxmemory");
    expect(await cache.get("k")).toBeNull();
  });
});

test.skipIf(cluster === null)("in a cluster the keys of one namespace lie on all nodes", async () => {
  const { cache, prefix } = cacheOn({ cluster: { nodes: cluster?.seeds ?? [] } });
  await Promise.all(Array.from({ length: 60 }, (_, n) => cache.set(`key ${n}`, sampleAnswer())));
  const counts = await Promise.all((cluster?.nodes ?? []).map((node) => node.command("KEYS", `${prefix}*`)));
  const sizes = counts.map((keys) => (keys as string[]).length);
  expect(Math.min(...sizes)).toBeGreaterThan(0);
  expect(sizes.reduce((a, b) => a + b)).toBe(60);
});

test.each([{ ttlMs: 0 }, { ttlMs: 1.5 }, { maxValueBytes: -1 }, { timeoutMs: Number.NaN }])(
  "%j is refused",
  (options) => {
    expect(() => new RedisCache({ url: "redis://127.0.0.1:1", ...options })).toThrow(ConfigError);
  },
);
