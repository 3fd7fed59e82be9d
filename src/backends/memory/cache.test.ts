import { expect, test } from "vitest";
import { ConfigError } from "../../errors.js";
import type { CachedAnswer } from "../../ports/cache.js";
import { MemoryCache } from "./cache.js";

const answer = (content = "yes"): CachedAnswer => ({
  content,
  thinking: "",
  toolCalls: [],
  finishReason: "stop",
  rawFinishReason: "stop",
  modelReported: null,
  usage: {
    promptTokens: 1,
    completionTokens: 1,
    totalTokens: 2,
    reasoningTokens: null,
    cachedPromptTokens: null,
    source: "measured",
  },
  model: "m",
  provider: "p",
  sourceName: "s_1",
});

test("an answer is kept until its time is over, and is everybody's own", () => {
  let nowMs = 0;
  const cache = new MemoryCache({ ttlMs: 1_000, runtime: { now: () => nowMs } });
  expect(cache.get("k")).toBeNull();
  cache.set("k", answer());
  (cache.get("k") as { content: string }).content = "changed";
  nowMs = 999;
  expect(cache.get("k")).toEqual(answer());
  nowMs = 1_000;
  expect(cache.get("k")).toBeNull();
  expect(cache.stats().answers).toBe(0);
});

test("its size is bounded: what was not asked for longest goes first, what never fits is not kept", () => {
  const cache = new MemoryCache({ maxBytes: 2_000 });
  cache.set("a", answer("x".repeat(300)));
  cache.set("b", answer("x".repeat(300)));
  cache.get("a");
  cache.set("c", answer("x".repeat(300)));
  expect(["a", "b", "c"].map((key) => cache.get(key) !== null)).toEqual([true, false, true]);
  cache.set("d", answer("x".repeat(3_000)));
  expect(cache.get("d")).toBeNull();
  expect(cache.stats().bytes).toBeLessThanOrEqual(2_000);
  cache.clear();
  expect(cache.stats()).toEqual({ answers: 0, bytes: 0 });
});

test("bytes are counted, not characters", () => {
  const cache = new MemoryCache({ maxBytes: 2_000 });
  cache.set("k", answer("語".repeat(600)));
  expect(cache.get("k")).toBeNull();
});

test.each([{ maxBytes: 0 }, { ttlMs: -1 }, { ttlMs: Number.NaN }, { maxBytes: 1.5 }])("%j is refused", (options) => {
  expect(() => new MemoryCache(options)).toThrow(ConfigError);
});
