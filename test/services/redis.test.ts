import { Cluster, Redis } from "ioredis";
import { expect, test } from "vitest";
import { isRunning } from "./processes.js";
import { sharedRedis, sharedRedisCluster, startRedis, startRedisCluster } from "./redis.js";

const redis = await sharedRedis();
const cluster = await sharedRedisCluster();

test.skipIf(redis === null)("one server serves the whole run", async () => {
  expect((await sharedRedis())?.pid).toBe(redis?.pid);
  expect(await redis?.command("PING")).toBe("PONG");
});

test.skipIf(redis === null)(
  "a private server is paused, killed, restarted empty on its port, and leaves nothing",
  async () => {
    const own = await startRedis();
    const client = new Redis(own.port, { retryStrategy: () => 20, commandTimeout: 200 });
    client.on("error", () => {});
    try {
      await client.set("k", "v", "PX", 60_000);
      own.pause();
      await expect(client.get("k")).rejects.toThrow("timed out");
      own.resume();
      expect(await own.command("GET", "k")).toBe("v");
      const before = own.pid;
      await own.restart();
      expect(own.pid).not.toBe(before);
      expect(isRunning(before)).toBe(false);
      expect(await own.command("GET", "k")).toBeNull();
      await own.kill();
      await expect(own.command("PING")).rejects.toThrow();
      await own.start();
      await own.command("SET", "k", "v");
      await own.flush();
      expect(await own.command("DBSIZE")).toBe(0);
    } finally {
      client.disconnect();
      await own.stop();
    }
    expect(isRunning(own.pid)).toBe(false);
  },
);

test.skipIf(cluster === null)("a cluster of three takes keys of all slots", async () => {
  const client = new Cluster([...(cluster?.seeds ?? [])]);
  try {
    const prefix = `pgw-test:services:${process.pid}:`;
    const keys = Array.from({ length: 30 }, (_, index) => `${prefix}${index}`);
    await Promise.all(keys.map((key) => client.set(key, key, "PX", 60_000)));
    expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
    const sizes = await Promise.all((cluster?.nodes ?? []).map((node) => node.command("DBSIZE")));
    expect(sizes.every((size) => Number(size) > 0)).toBe(true);
  } finally {
    client.disconnect();
  }
});

test("a server that can't start says why", async () => {
  if (redis === null) return;
  await expect(startRedis({ config: { "no-such-setting": "1" } })).rejects.toThrow("redis-server ended");
});

test("a cluster of one's own is ended by its pids", async () => {
  if (cluster === null) return;
  const own = await startRedisCluster();
  await own.stop();
  expect(own.nodes.map(({ pid }) => isRunning(pid))).toEqual([false, false, false]);
});
