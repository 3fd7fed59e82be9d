import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "vitest";
import { RedisCache, type RedisCacheOptions } from "../../src/backends/redis/cache.js";
import { cacheContract } from "../../src/testing/contracts/cache.js";
import { sharedRedis, sharedRedisCluster } from "../services/redis.js";

const shared = await sharedRedis();
const cluster = await sharedRedisCluster();
/** The server's clock counts, this process only waits. */
const BOTH_CLOCKS_MS = 100;
let caches = 0;

function contractOn(address: RedisCacheOptions): void {
  cacheContract({
    test,
    makeCache: async ({ ttlMs, largestBytes }) => {
      caches += 1;
      const namespace = `contract-${process.pid}-${caches}`;
      const cache = new RedisCache({ ...address, ttlMs, maxValueBytes: largestBytes, namespace });
      return { cache, pass: (ms) => sleep(ms + BOTH_CLOCKS_MS), dispose: () => cache.close() };
    },
  });
}

describe.skipIf(shared === null)("RedisCache", () => contractOn({ url: shared?.url ?? "redis://none" }));

describe.skipIf(cluster === null)("RedisCache on a cluster", () => {
  contractOn({ cluster: { nodes: cluster?.seeds ?? [] } });
});
