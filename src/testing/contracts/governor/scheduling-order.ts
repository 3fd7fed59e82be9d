import assert from "node:assert/strict";
import { type ContractTest, isRefusal, sourceConfig } from "./bench.js";

/** Two sources of opposite kind: `light` has few tokens a request, `heavy` many. */
const TWO_SIDED = [
  sourceConfig("heavy", { rpm: 60, tpm: 600_000, maxConcurrency: 2 }),
  sourceConfig("light", { rpm: 600, tpm: 60_000, maxConcurrency: 2 }),
];

/** Size matching, classes, fairness, budgets, deadlines, affinity, health-aware order (spec 10 §§5–7). */
export const orderTests: readonly ContractTest[] = [
  {
    name: "size matching: heavy calls go where requests are scarce, light ones where tokens are; off, in their order",
    body: async (open) => {
      for (const sizeMatching of [true, false]) {
        const bench = await open({ sources: TWO_SIDED, scheduling: { sizeMatching } });
        // What calls usually weigh has to be known first.
        for (const estTokens of [1_000, 1_000])
          await bench.settle(await bench.granted("heavy", { estTokens }), "success");
        await bench.advance(10_000);
        const sizes = [50, 5_000, 60, 6_000];
        const wants = sizes.map((estTokens) => bench.newWant("heavy", { estTokens }));
        const answers = await bench.ask(wants);
        const served = answers.map((answer) => !isRefusal(answer));
        assert.deepEqual(served, sizeMatching ? [false, true, false, true] : [true, true, false, false]);
      }
    },
  },
  {
    name: "size matching: a call taken for its size says whom it passed over too",
    body: async (open) => {
      const bench = await open({ sources: TWO_SIDED, scheduling: { sizeMatching: true } });
      await bench.settle(await bench.granted("heavy", { estTokens: 1_000 }), "success");
      await bench.settle(await bench.granted("light", { estTokens: 1_000 }), "alive", {
        rateLimited: "unknown",
        retryAfterMs: 60_000,
      });
      await bench.advance(10_000);
      const wants = [50, 5_000].map((estTokens) => bench.newWant(["heavy", "light"], { estTokens }));
      const [, taken] = await bench.ask(wants);
      assert.ok(taken !== undefined && !isRefusal(taken));
      assert.deepEqual(
        taken.passedOver.map(({ source, reason }) => [source, reason]),
        [["light", "cooling"]],
      );
    },
  },
  {
    name: "size matching: a call passed over 24 times is served next",
    body: async (open) => {
      const bench = await open({ sources: TWO_SIDED, scheduling: { sizeMatching: true } });
      await bench.settle(await bench.granted("heavy", { estTokens: 1_000 }), "success");
      await bench.advance(10_000);
      const wants = [50, 5_000, 6_000].map((estTokens, n) =>
        bench.newWant("heavy", { estTokens, skips: n === 0 ? 24 : 0 }),
      );
      const answers = await bench.ask(wants);
      assert.deepEqual(
        answers.map((answer) => !isRefusal(answer)),
        [true, false, true],
      );
    },
  },
  {
    name: "classes: strict, but every tenth grant belongs to the class below",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })] });
      const order: number[] = [];
      for (let n = 0; n < 40; n += 1) {
        const wants = [0, 0, 5].map((priority) => bench.newWant("a", { priority }));
        const answers = await bench.ask(wants);
        answers.forEach((answer, at) => {
          if (!isRefusal(answer)) order.push(wants[at]!.priority);
        });
        for (const answer of answers) if (!isRefusal(answer)) await bench.settle(answer, "success");
      }
      assert.equal(order.length, 40);
      assert.equal(order.filter((priority) => priority === 5).length, 4);
    },
  },
  {
    name: "classes: a lower class whose turn can't be used holds nobody of the upper one back",
    body: async (open) => {
      const limits = { tpm: 1_000, limitRule: "window" } as const;
      const bench = await open({ sources: [sourceConfig("a", limits)], scheduling: {} });
      await bench.alignToMinute();
      const large = bench.newWant("a", { priority: 1, estTokens: 995 });
      for (let round = 0; round < 12; round += 1) {
        const [upper, lower] = await bench.ask([bench.newWant("a", { estTokens: 10 }), large]);
        assert.ok(upper && !isRefusal(upper), `round ${round}: the small call of the upper class fits`);
        assert.ok(lower && isRefusal(lower), "the first grant left no room for it");
      }
    },
  },
  {
    name: "retry budget: twenty at first, then three at a time and one for ten successes; off, any number",
    body: async (open) => {
      for (const retryBudget of [true, false]) {
        const bench = await open({ sources: [sourceConfig("a")], scheduling: { retryBudget } });
        for (let n = 0; n < 20; n += 1) await bench.settle(await bench.granted("a", { retry: true }), "cancelled");
        const held = [];
        for (let n = 0; n < 3; n += 1) held.push(await bench.granted("a", { retry: true }));
        const next = await bench.want("a", { retry: true });
        assert.equal(isRefusal(next) && next.kind, retryBudget ? "fairness" : false);
        assert.ok(!isRefusal(await bench.want("a")), "a first try needs no budget");
        // One more than ten: ten tenths add up to a little less than one.
        await bench.attempts("a", "success", 11);
        const earned = await bench.granted("a", { retry: true });
        const spent = await bench.want("a", { retry: true });
        assert.equal(isRefusal(spent) && spent.kind, retryBudget ? "fairness" : false);
        for (const grant of [...held, earned]) await bench.settle(grant, "cancelled");
        assert.ok(!isRefusal(await bench.want("a", { retry: true })));
      }
    },
  },
  {
    name: "hedging: one for twenty successes, only on a closed source with room",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 5 })] });
      await bench.settle(await bench.granted("a", { hedge: true }), "cancelled");
      const spent = await bench.refused("a", { hedge: true }).catch(() => null);
      assert.equal(spent, null, "refused without a hint: it never waits");
      await bench.attempts("a", "success", 20);
      const held = [];
      for (let n = 0; n < 5; n += 1) held.push(await bench.granted("a"));
      assert.ok(isRefusal(await bench.want("a", { hedge: true })), "no room");
      for (const grant of held) await bench.settle(grant, "success");
      assert.ok(!isRefusal(await bench.want("a", { hedge: true })));
    },
  },
  {
    name: "deadline: a call that no source would answer in time is refused at once; off, or unmeasured, it is tried",
    body: async (open) => {
      for (const deadlineRefusal of [true, false]) {
        const bench = await open({ sources: [sourceConfig("a")], scheduling: { deadlineRefusal } });
        assert.ok(!isRefusal(await bench.want("a", { remainingMs: 1 })), "nothing is known yet");
        for (let n = 0; n < 30; n += 1) {
          await bench.attempt("a", "success", { durationMs: 6_000, ttftMs: 1_000, tpotMs: 50, outTokens: 100 });
        }
        const late = await bench.want("a", { remainingMs: 3_000 });
        assert.equal(isRefusal(late) && late.kind, deadlineRefusal ? "deadline" : false);
        assert.ok(!isRefusal(await bench.want("a", { remainingMs: 60_000 })));
      }
    },
  },
  {
    name: "affinity: the session's own source while it is not much worse",
    body: async (open) => {
      const sources = ["a", "b", "c"].map((name) => sourceConfig(name, { maxConcurrency: 10 }));
      const bench = await open({ sources });
      for (let n = 0; n < 20; n += 1) {
        const grant = await bench.granted(["a", "b", "c"], { affinity: "c" });
        assert.equal(grant.source, "c");
        await bench.settle(grant, "success");
      }
      for (let n = 0; n < 10; n += 1) await bench.granted("c");
      assert.notEqual((await bench.granted(["a", "b", "c"], { affinity: "c" })).source, "c");
    },
  },
  {
    name: "health_aware: the faster and the healthier source carries more",
    body: async (open) => {
      for (const worse of [
        { durationMs: 9_000, ttftMs: 4_000, tpotMs: 50, outTokens: 100 },
        { durationMs: 2_000, ttftMs: 1_000, tpotMs: 10, outTokens: 100, fails: true },
      ]) {
        const sources = ["good", "worse"].map((name) => sourceConfig(name, { maxConcurrency: 40 }));
        const bench = await open({
          sources,
          selector: "health_aware",
          breaker: { failThreshold: 100, minSamples: 1_000 },
        });
        const { fails = false, ...facts } = worse as typeof worse & { fails?: boolean };
        for (let n = 0; n < 20; n += 1) {
          await bench.attempt("good", "success", { durationMs: 2_000, ttftMs: 1_000, tpotMs: 10, outTokens: 100 });
          await bench.attempt("worse", fails && n % 2 === 0 ? "failure" : "success", facts);
        }
        let good = 0;
        for (let n = 0; n < 20; n += 1) if ((await bench.granted(["good", "worse"])).source === "good") good += 1;
        assert.ok(good >= 15, `${good} of 20 on the better source`);
      }
    },
  },
];
