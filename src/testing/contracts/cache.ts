import assert from "node:assert/strict";
import type { AnswerCache, CachedAnswer } from "../../ports/cache.js";

export interface CacheUnderTest {
  readonly cache: AnswerCache;
  /** Lets at least as much time pass for the cache. */
  readonly pass: (ms: number) => Promise<void>;
  /** Called after the test. */
  readonly dispose?: () => Promise<void>;
}

export interface CacheContractOptions {
  /** The runner's own function; nothing else of a runner is needed. */
  readonly test: (name: string, body: () => Promise<void>) => void;
  /** An empty cache of its own each time. `largestBytes`: an answer longer than this as JSON is not kept. */
  readonly makeCache: (options: { readonly ttlMs: number; readonly largestBytes: number }) => Promise<CacheUnderTest>;
  /** Tests this implementation can't pass, each with the reason; the reason shows in the test's name. */
  readonly skip?: readonly { readonly test: string; readonly reason: string }[];
}

interface ContractTest {
  readonly name: string;
  readonly ttlMs?: number;
  readonly body: (bench: CacheUnderTest) => Promise<void>;
}

const LARGEST_BYTES = 1_000_000;
const LONG_LIFE_MS = 600_000;
const SHORT_LIFE_MS = 300;

/** An answer with everything that an answer may have. */
export function sampleAnswer(content = "yes"): CachedAnswer {
  return {
    content,
    thinking: "hm",
    toolCalls: [{ id: "call_1", name: "look", arguments: '{"at":"sky"}' }],
    finishReason: "tool_calls",
    rawFinishReason: "tool_calls",
    modelReported: "model-a-2025",
    logprobs: { content: [{ token: "yes", logprob: -0.5 }] },
    usage: {
      promptTokens: 12,
      completionTokens: 3,
      totalTokens: 15,
      reasoningTokens: null,
      cachedPromptTokens: 4,
      source: "measured",
    },
    model: "model-a",
    provider: "acme",
    sourceName: "acme_1",
  };
}

/** Texts that a store might take for something else, or for one another. */
const HOSTILE_KEYS = [
  "",
  "k",
  "K",
  "{k}",
  "a:b",
  "a}b{c",
  "k\r\nDEL k",
  "k\0",
  "__proto__",
  "🔑",
  "x".repeat(10_000),
  "*",
];

async function kept(cache: AnswerCache, key: string): Promise<string | null> {
  return (await cache.get(key))?.content ?? null;
}

const TESTS: readonly ContractTest[] = [
  {
    name: "what was never kept is not there",
    body: async ({ cache }) => assert.equal(await cache.get("never"), null),
  },
  {
    name: "an answer comes back whole",
    body: async ({ cache }) => {
      const answer = sampleAnswer('line\n"quoted" 語 🔑 \u0000 \ud800');
      await cache.set("k", answer);
      assert.deepEqual(await cache.get("k"), answer);
    },
  },
  {
    name: "a kept answer is everybody's own",
    body: async ({ cache }) => {
      const answer = { ...sampleAnswer("first") };
      const keeping = cache.set("k", answer);
      answer.content = "changed by who gave it";
      await keeping;
      const read = (await cache.get("k")) as { content: string };
      read.content = "changed by who got it";
      assert.equal(await kept(cache, "k"), "first");
    },
  },
  {
    name: "the later of two answers is kept",
    body: async ({ cache }) => {
      await cache.set("k", sampleAnswer("first"));
      await cache.set("k", sampleAnswer("second"));
      assert.equal(await kept(cache, "k"), "second");
    },
  },
  {
    name: "any text is a key, and different texts are different keys",
    body: async ({ cache }) => {
      for (const [index, key] of HOSTILE_KEYS.entries()) await cache.set(key, sampleAnswer(`answer ${index}`));
      const found = await Promise.all(HOSTILE_KEYS.map((key) => kept(cache, key)));
      assert.deepEqual(
        found,
        HOSTILE_KEYS.map((_, index) => `answer ${index}`),
      );
    },
  },
  {
    name: "a long answer comes back whole",
    body: async ({ cache }) => {
      const content = Array.from({ length: 20_000 }, (_, index) => `word ${index}`).join(" 語 ");
      await cache.set("k", sampleAnswer(content));
      assert.equal(await kept(cache, "k"), content);
    },
  },
  {
    name: "an answer that is too long is not kept, and an earlier one under its key is gone",
    body: async ({ cache }) => {
      await cache.set("k", sampleAnswer("short"));
      await cache.set("k", sampleAnswer("語".repeat(LARGEST_BYTES / 2)));
      assert.equal(await cache.get("k"), null);
      await cache.set("k", sampleAnswer("short again"));
      assert.equal(await kept(cache, "k"), "short again");
    },
  },
  {
    name: "an answer is gone when its time is over",
    ttlMs: SHORT_LIFE_MS,
    body: async ({ cache, pass }) => {
      await cache.set("k", sampleAnswer());
      await pass(SHORT_LIFE_MS);
      assert.equal(await cache.get("k"), null);
    },
  },
  {
    name: "answers kept side by side don't disturb each other",
    body: async ({ cache }) => {
      const keys = Array.from({ length: 200 }, (_, index) => `side ${index}`);
      await Promise.all(keys.map((key) => cache.set(key, sampleAnswer(key))));
      assert.deepEqual(await Promise.all(keys.map((key) => kept(cache, key))), keys);
    },
  },
];

/**
 * The promises of the cache port, the same bodies for every implementation.
 * @throws Error when `skip` names a test that doesn't exist.
 */
export function cacheContract({ test, makeCache, skip = [] }: CacheContractOptions): void {
  for (const { test: name } of skip) {
    if (!TESTS.some((known) => known.name === name)) throw new Error(`skip names no test of the suite: ${name}`);
  }
  for (const { name, ttlMs = LONG_LIFE_MS, body } of TESTS) {
    const skipped = skip.find((entry) => entry.test === name);
    if (skipped) test(`${name} [skipped: ${skipped.reason}]`, async () => {});
    else
      test(name, async () => {
        const bench = await makeCache({ ttlMs, largestBytes: LARGEST_BYTES });
        try {
          await body(bench);
        } finally {
          await bench.dispose?.();
        }
      });
  }
}
