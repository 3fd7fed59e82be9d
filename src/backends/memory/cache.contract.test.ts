import { describe, test } from "vitest";
import { cacheContract } from "../../testing/contracts/cache.js";
import { MemoryCache } from "./cache.js";

describe("MemoryCache", () => {
  cacheContract({
    test,
    makeCache: async ({ ttlMs, largestBytes }) => {
      let nowMs = 0;
      const cache = new MemoryCache({ ttlMs, maxBytes: largestBytes, runtime: { now: () => nowMs } });
      const pass = async (ms: number) => {
        nowMs += ms;
      };
      return { cache, pass };
    },
  });
});
