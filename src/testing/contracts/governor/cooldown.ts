import assert from "node:assert/strict";
import type { Settle } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, near, type Open, sourceConfig, within } from "./bench.js";

const TEN_MINUTES_MS = 600_000;

async function rateLimit(bench: GovernorBench, overrides: Partial<Settle> = {}): Promise<number> {
  await bench.attempt("a", "alive", { rateLimited: "unknown", ...overrides });
  return (await bench.source("a")).coolingMs;
}

function openOne(open: Open): Promise<GovernorBench> {
  return open({ sources: [sourceConfig("a"), sourceConfig("z")] });
}

export const cooldownTests: readonly ContractTest[] = [
  {
    name: "cooldown: Retry-After is obeyed to the millisecond, never early",
    body: async (open) => {
      const bench = await openOne(open);
      near(await rateLimit(bench, { retryAfterMs: 5_000 }), 5_000, 0.01, "cooling");
      const refusal = await bench.refused("a");
      assert.equal(refusal.kind, "cooldown");
      assert.equal(refusal.passedOver[0]?.reason, "cooling");
      near(refusal.waitHintMs, 5_000, 0.01, "wait");
      assert.equal((await bench.granted(["a", "z"])).source, "z");
      await bench.advance(4_999);
      await bench.refused("a");
      await bench.advance(1);
      await bench.granted("a");
    },
  },
  {
    name: "cooldown: a rate limit is no failure: the breaker stays closed however many come",
    body: async (open) => {
      const bench = await openOne(open);
      for (let count = 0; count < 30; count++) {
        await bench.advance(Math.ceil(await rateLimit(bench)));
        assert.equal((await bench.source("a")).state, "closed");
      }
    },
  },
  {
    name: "cooldown: Retry-After counts up to 10 minutes",
    body: async (open) => {
      const bench = await openOne(open);
      near(await rateLimit(bench, { retryAfterMs: 3_600_000 }), TEN_MINUTES_MS, 0.01, "cooling");
    },
  },
  {
    name: "cooldown without Retry-After: 400 ms · 2^(n−1) ± 25 % for n in a row, planned at most 15 s",
    body: async (open) => {
      const bench = await openOne(open);
      for (let inRow = 1; inRow <= 9; inRow++) {
        const planned = Math.min(400 * 2 ** (inRow - 1), 15_000);
        const cooling = await rateLimit(bench);
        within(cooling, planned * 0.75 - 1e-6, planned * 1.25 + 1e-6, `cooldown ${inRow}`);
        await bench.advance(Math.ceil(cooling));
      }
    },
  },
  {
    name: "cooldown without Retry-After: sources limited together don't come back together",
    body: async (open) => {
      const names = Array.from({ length: 24 }, (_, index) => `s${index}`);
      const bench = await open({ sources: names.map((name) => sourceConfig(name)) });
      for (const name of names) await bench.attempt(name, "alive", { rateLimited: "unknown" });
      const times = (await bench.snapshot()).sources.map((source) => source.coolingMs);
      for (const time of times) within(time, 300 - 1e-6, 500 + 1e-6, "cooldown");
      assert.ok(Math.max(...times) - Math.min(...times) > 50, `no spread in ${times}`);
    },
  },
  {
    name: "cooldown without Retry-After: a success ends the row",
    body: async (open) => {
      const bench = await openOne(open);
      for (let inRow = 1; inRow <= 6; inRow++) await bench.advance(Math.ceil(await rateLimit(bench)));
      await bench.attempt("a", "success");
      within(await rateLimit(bench), 300 - 1e-6, 500 + 1e-6, "first cooldown after a success");
    },
  },
  {
    name: "cooldown: a later, shorter one never shortens a longer one",
    body: async (open) => {
      const bench = await openOne(open);
      const [first, second] = [await bench.granted("a"), await bench.granted("a")];
      await bench.settle(first, "alive", { rateLimited: "tokens", retryAfterMs: 30_000 });
      await bench.settle(second, "alive", { rateLimited: "tokens", retryAfterMs: 1_000 });
      near((await bench.source("a")).coolingMs, 30_000, 0.01, "cooling");
    },
  },
  {
    name: "cooldown: a rejected request (alive without a rate limit) cools nothing",
    body: async (open) => {
      const bench = await openOne(open);
      await bench.attempt("a", "alive");
      assert.equal((await bench.source("a")).coolingMs, 0);
      await bench.granted("a");
    },
  },
];
