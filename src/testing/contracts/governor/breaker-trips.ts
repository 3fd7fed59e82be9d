import assert from "node:assert/strict";
import type { BreakerConfig } from "../../../domain/scope.js";
import type { ContractTest, Open } from "./bench.js";
import { openForMs, openTime, openWithNeighbour, stateOf } from "./breaker-bench.js";

const RATE_ONLY: Partial<BreakerConfig> = { failThreshold: 1_000, failRate: 0.5, minSamples: 20, windowMs: 60_000 };

const consecutive: ContractTest[] = [
  {
    name: "breaker: FAIL_THRESHOLD failures in a row open it, one fewer doesn't",
    body: async (open) => {
      const bench = await openWithNeighbour(open, { failThreshold: 5 });
      await bench.attempts("a", "failure", 4);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
      assert.equal((await bench.source("z")).state, "closed");
    },
  },
  {
    name: "breaker: the defaults are 5 failures in a row and 4 s",
    body: async (open) => {
      const bench = await openWithNeighbour(open, {});
      await bench.attempts("a", "failure", 4);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      openTime(await openForMs(bench), 1);
    },
  },
  {
    name: "breaker: failures count in the order they complete, over all workers",
    body: async (open) => {
      const bench = await openWithNeighbour(open, { failThreshold: 3 });
      const held = [await bench.granted("a"), await bench.granted("a"), await bench.granted("a")];
      for (const grant of held) assert.equal(await bench.settle(grant, "failure"), true);
      assert.equal(await stateOf(bench), "open");
    },
  },
  ...(["success", "alive"] as const).map((outcome) => ({
    name: `breaker: ${outcome} clears the failures in a row`,
    body: async (open: Open) => {
      const bench = await openWithNeighbour(open, { failThreshold: 3 });
      await bench.attempts("a", "failure", 2);
      await bench.attempt("a", outcome);
      await bench.attempts("a", "failure", 2);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  })),
  {
    name: "breaker: cancelled teaches nothing: it neither counts nor clears",
    body: async (open) => {
      const bench = await openWithNeighbour(open, { failThreshold: 3 });
      await bench.attempts("a", "cancelled", 10);
      await bench.attempts("a", "failure", 2);
      await bench.attempts("a", "cancelled", 10);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  },
];

const rate: ContractTest[] = [
  {
    name: "breaker: the failure rate opens it at MIN_SAMPLES, not before",
    body: async (open) => {
      const bench = await openWithNeighbour(open, RATE_ONLY);
      await bench.attempts("a", "success", 10);
      await bench.advance(15_000);
      await bench.attempts("a", "failure", 9);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  },
  {
    name: "breaker: below FAIL_RATE it stays closed however many samples there are",
    body: async (open) => {
      const bench = await openWithNeighbour(open, { ...RATE_ONLY, failRate: 0.6 });
      await bench.attempts("a", "success", 40);
      await bench.advance(15_000);
      await bench.attempts("a", "failure", 40);
      assert.equal(await stateOf(bench), "closed");
    },
  },
  {
    name: "breaker: the rate is suppressed while the newest buckets hold at least max(3, failures) successes",
    body: async (open) => {
      const bench = await openWithNeighbour(open, RATE_ONLY);
      await bench.attempts("a", "failure", 17);
      await bench.advance(15_000);
      await bench.attempts("a", "success", 4);
      await bench.attempts("a", "failure", 4);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  },
  {
    name: "breaker: two successes are too few to suppress the rate",
    body: async (open) => {
      const bench = await openWithNeighbour(open, RATE_ONLY);
      await bench.attempts("a", "failure", 17);
      await bench.advance(15_000);
      await bench.attempts("a", "success", 2);
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  },
  {
    name: "breaker: samples older than the window are forgotten",
    body: async (open) => {
      const bench = await openWithNeighbour(open, RATE_ONLY);
      await bench.attempts("a", "failure", 19);
      await bench.advance(65_000);
      await bench.attempts("a", "failure", 19);
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  },
  ...(["alive", "cancelled"] as const).map((outcome) => ({
    name: `breaker: ${outcome} is no sample of the rate`,
    body: async (open: Open) => {
      const bench = await openWithNeighbour(open, RATE_ONLY);
      await bench.attempts("a", "failure", 18);
      await bench.attempts("a", outcome, 5);
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "closed");
      await bench.attempt("a", "failure");
      assert.equal(await stateOf(bench), "open");
    },
  })),
];

export const tripTests: readonly ContractTest[] = [...consecutive, ...rate];
