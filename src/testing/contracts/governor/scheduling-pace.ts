import assert from "node:assert/strict";
import { type ContractTest, isRefusal, near, sourceConfig, within } from "./bench.js";

/** Pacer, headers, scheduled grants, learned reservations (spec 10 §§2, 3, 8). */
export const paceTests: readonly ContractTest[] = [
  {
    name: "pacer: unknown concurrency starts at 8 and grows by a success; off, it has no limit",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")], scheduling: { pacer: true } });
      const { grants, refusal } = await bench.fill("a");
      assert.equal(grants.length, 8);
      assert.equal(refusal.gate, "concurrency");
      await bench.settle(grants[0]!, "success");
      assert.equal((await bench.fill("a")).grants.length, 2);
      const plain = await open({ sources: [sourceConfig("a")] });
      for (let n = 0; n < 40; n += 1) await plain.granted("a");
    },
  },
  {
    name: "pacer: a 429 cuts the rate to what was admitted, and the source reopens with an empty burst",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 1_200 })], scheduling: { pacer: true } });
      let last = await bench.granted("a");
      for (let n = 0; n < 100; n += 1) {
        await bench.settle(last, "success");
        await bench.advance(100);
        last = await bench.granted("a");
      }
      await bench.settle(last, "alive", { rateLimited: "requests", retryAfterMs: 2_000 });
      const cut = await bench.source("a");
      within(cut.adaptive?.ratePerS ?? 0, 6, 9, "up to 10 a second were admitted, three quarters of that are left");
      near(cut.coolingMs, 2_000, 1, "cooldown");
      await bench.advance(2_000);
      await bench.settle(await bench.granted("a"), "success");
      const early = await bench.refused("a");
      within(early.waitHintMs, 50, 250, "one interval, no burst");
    },
  },
  {
    name: "pacer: only an attempt that started after the last cut cuts again",
    body: async (open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 40 })];
      const bench = await open({ sources, scheduling: { pacer: true } });
      const grants = [];
      for (let n = 0; n < 20; n += 1) grants.push(await bench.granted("a"));
      await bench.advance(10);
      for (const grant of grants.reverse()) {
        await bench.settle(grant, "alive", { rateLimited: "concurrency", retryAfterMs: 1 });
      }
      near((await bench.source("a")).adaptive?.window ?? 0, 17, 1, "85 % of the 20 in flight, cut once");
    },
  },
  {
    name: "pacer: a 429 that names nothing doesn't touch a concurrency of which little was used",
    body: async (open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 40 }), sourceConfig("b", { maxConcurrency: 4 })];
      const bench = await open({ sources, scheduling: { pacer: true } });
      for (const [name, window] of [
        ["a", 40],
        ["b", 2],
      ] as const) {
        await bench.attempt(name, "success");
        await bench.advance(6_000);
        const grants = [];
        for (let n = 0; n < 3; n += 1) grants.push(await bench.granted(name));
        await bench.advance(10);
        await bench.settle(grants[2]!, "alive", { rateLimited: "unknown", retryAfterMs: 1 });
        assert.equal((await bench.source(name)).adaptive?.window, window);
        assert.ok(Number.isFinite((await bench.source(name)).adaptive?.ratePerS ?? Infinity), "the rate is cut");
      }
    },
  },
  {
    name: "pacer: the limit grows back, and never beyond the configured one",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 10 })], scheduling: { pacer: true } });
      const { grants } = await bench.fill("a");
      await bench.settle(grants[9]!, "alive", { rateLimited: "concurrency", retryAfterMs: 1 });
      const cut = (await bench.source("a")).adaptive?.window ?? 0;
      assert.equal(cut, 8);
      await bench.advance(600_000);
      assert.equal((await bench.source("a")).adaptive?.window, 10);
    },
  },
  {
    name: "headers: a told limit caps requests and tokens below the configured ones, never above",
    body: async (open) => {
      const sources = [sourceConfig("a", { rpm: 600 }), sourceConfig("b", { rpm: 600 })];
      const bench = await open({ sources, scheduling: { pacer: true, headers: true } });
      await bench.attempt("a", "success", { limits: { limitRequests: 60, limitTokens: 6_000 } });
      await bench.attempt("b", "success", { limits: { limitRequests: 6_000 } });
      const { learnedRpm, learnedTpm, ratePerS } = (await bench.source("a")).adaptive!;
      assert.deepEqual([learnedRpm, learnedTpm, ratePerS], [60, 6_000, 1]);
      assert.equal((await bench.source("b")).adaptive?.ratePerS, 10);
      const off = await open({ sources, scheduling: { pacer: true } });
      await off.attempt("a", "success", { limits: { limitRequests: 60 } });
      assert.equal((await off.source("a")).adaptive?.learnedRpm, null);
    },
  },
  {
    name: "headers: little left is a cut before anything fails",
    body: async (open) => {
      const sources = [sourceConfig("a", { rpm: 600 })];
      const bench = await open({ sources, scheduling: { pacer: true, headers: true } });
      for (let n = 0; n < 50; n += 1) {
        await bench.attempt("a", "success", { limits: { remainingRequests: 500 } });
        await bench.advance(200);
      }
      assert.equal((await bench.source("a")).adaptive?.lastCutAgoMs, null);
      await bench.attempt("a", "success", { limits: { remainingRequests: 2 } });
      assert.equal((await bench.source("a")).adaptive?.lastCutAgoMs, 0);
    },
  },
  {
    name: "scheduled grants: a slot within the horizon is given now, to start then; a later one is not",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 60 })], scheduling: { prefetchMs: 1_500 } });
      const { grants, refusal } = await bench.fill("a");
      // A burst of 4, then one every 1.06 s.
      assert.deepEqual(
        grants.map((grant) => grant.startInMs > 0),
        [false, false, false, false, true],
      );
      within(grants[4]!.startInMs, 1_000, 1_200, "the fifth starts with its slot");
      within(refusal.waitHintMs, 1_000, 2_200, "asked again half a horizon before its slot");
    },
  },
  {
    name: "scheduled grants: a full concurrency gate is never given ahead",
    body: async (open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 1 })];
      const bench = await open({ sources, scheduling: { prefetchMs: 10_000 }, leaseTtlMs: 3_000 });
      await bench.granted("a");
      assert.equal((await bench.refused("a")).gate, "concurrency");
    },
  },
  {
    name: "scheduled grants: no minute, however long it runs, starts more than the limit",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 30 })], scheduling: { prefetchMs: 1_000 } });
      const starts: number[] = [];
      for (let now = 0; now < 180_000; now += 250) {
        const answer = await bench.want("a");
        if (!isRefusal(answer)) {
          starts.push(now + answer.startInMs);
          await bench.settle(answer, "success");
        }
        await bench.advance(250);
      }
      for (const start of starts) {
        const inMinute = starts.filter((other) => other >= start && other < start + 60_000).length;
        assert.ok(inMinute <= 30, `${inMinute} within a minute`);
      }
      assert.ok(starts.length >= 80, `only ${starts.length} in three minutes`);
    },
  },
  {
    name: "learned reservations: after 20 calls of a kind the mean of what they used is reserved",
    body: async (open) => {
      const sources = [sourceConfig("a", { tpm: 1_000_000 }), sourceConfig("b", { tpm: 1_000_000, estTokens: 77 })];
      const bench = await open({ sources, scheduling: { learnTokens: true } });
      const want = { promptTokens: 1_000, maxTokens: 4_000, estTokens: 2_024, tag: "chat" };
      for (const source of ["a", "b"]) {
        for (let n = 0; n < 20; n += 1) {
          const grant = await bench.granted(source, want);
          assert.equal(grant.reservedTokens, source === "a" ? 2_024 : 77);
          await bench.settle(grant, "success", { actualTokens: 1_300, inTokens: 1_200, outTokens: 100 });
          await bench.advance(2_000);
        }
        // EST_TOKENS is the user's word.
        near((await bench.granted(source, want)).reservedTokens, source === "a" ? 1_300 : 77, 2, "reservation");
      }
      near((await bench.granted("a", { ...want, maxTokens: 10 })).reservedTokens, 1_210, 2, "maxTokens bounds it");
      assert.equal((await bench.granted("a", { ...want, tag: "other" })).reservedTokens, 2_024);
    },
  },
];
