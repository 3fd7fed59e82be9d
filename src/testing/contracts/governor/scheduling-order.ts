import assert from "node:assert/strict";
import type { Grant, Refusal, Want } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, isRefusal, sourceConfig, within } from "./bench.js";

async function askAs(bench: GovernorBench, worker: string, wants: readonly Want[]): Promise<(Grant | Refusal)[]> {
  const reply = await bench.tick({ worker, wants });
  return wants.map((want) => [...reply.grants, ...reply.refusals].find((answer) => answer.leaseId === want.leaseId)!);
}

async function settleAs(bench: GovernorBench, worker: string, grant: Grant): Promise<void> {
  const { leaseId, source, epoch, probe, windowId, reservedTokens } = grant;
  const facts = { leaseId, source, epoch, probe, windowId, reservedTokens };
  await bench.tick({
    worker,
    settles: [{ ...facts, actualTokens: null, sent: true, outcome: "success", durationMs: 10 }],
  });
}

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
    name: "fairness: a process that asks five times as much gets no more than the other while both wait",
    body: async (open) => {
      const bench = await open({
        sources: [sourceConfig("a", { maxConcurrency: 4 })],
        scheduling: { fairness: true },
      });
      const counts: Record<string, number> = { greedy: 0, modest: 0 };
      const held: [string, Grant][] = [];
      for (let round = 0; round < 100; round += 1) {
        for (const [worker, calls] of [
          ["greedy", 10],
          ["modest", 2],
        ] as const) {
          const wants = Array.from({ length: calls }, () => bench.newWant("a"));
          for (const answer of await askAs(bench, worker, wants)) {
            if (isRefusal(answer)) continue;
            counts[worker]! += 1;
            held.push([worker, answer]);
          }
        }
        await bench.advance(100);
        for (const [worker, grant] of held.splice(0, 2)) await settleAs(bench, worker, grant);
      }
      within(counts.greedy! / counts.modest!, 0.8, 1.25, `greedy ${counts.greedy}, modest ${counts.modest}`);
    },
  },
  {
    name: "fairness: who waits silently for 1.5 s holds nobody up",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })], scheduling: { fairness: true } });
      const [first] = await askAs(bench, "one", [bench.newWant("a")]);
      await askAs(bench, "dead", [bench.newWant("a")]);
      let current = first as Grant;
      for (let n = 0; n < 4; n += 1) {
        await settleAs(bench, "one", current);
        [current] = (await askAs(bench, "one", [bench.newWant("a")])) as [Grant];
        assert.ok(!isRefusal(current));
      }
      await settleAs(bench, "one", current);
      const [yields] = await askAs(bench, "one", [bench.newWant("a")]);
      assert.equal(isRefusal(yields!) && yields.kind, "fairness");
      await bench.advance(1_600);
      const [goes] = await askAs(bench, "one", [bench.newWant("a")]);
      assert.ok(!isRefusal(goes!));
    },
  },
  {
    name: "fairness: more urgent calls of another process go first",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })], scheduling: { fairness: true } });
      const [first] = await askAs(bench, "batch", [bench.newWant("a", { priority: 5 })]);
      await askAs(bench, "chat", [bench.newWant("a", { priority: 0 })]);
      await settleAs(bench, "batch", first as Grant);
      const [later] = await askAs(bench, "batch", [bench.newWant("a", { priority: 5 })]);
      assert.equal(isRefusal(later!) && later.kind, "fairness");
      const [urgent] = await askAs(bench, "chat", [bench.newWant("a", { priority: 0 })]);
      assert.ok(!isRefusal(urgent!));
    },
  },
  {
    name: "fairness: processes of any classes and histories never all wait for each other",
    body: async (open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 3 }), sourceConfig("b", { maxConcurrency: 2 })];
      const bench = await open({ sources, scheduling: { fairness: true, prefetchMs: 1_000 } });
      const workers = ["one", "two", "three", "four"];
      const priorities = [[0, 1], [1], [0, 0, 1], [1, 2]];
      let held: [string, Grant][] = [];
      let random = 7;
      const below = (limit: number): number => {
        random = (random * 16_807) % 2_147_483_647;
        return random % limit;
      };
      for (let round = 0; round < 400; round += 1) {
        const at = below(workers.length);
        const wants = priorities[at]!.flatMap((priority) =>
          Array.from({ length: 1 + below(3) }, () => bench.newWant(["a", "b"], { priority })),
        );
        for (const answer of await askAs(bench, workers[at]!, wants)) {
          if (!isRefusal(answer)) held.push([workers[at]!, answer]);
        }
        await bench.advance(20 + below(200));
        if (round % 3 > 0) continue;
        for (const [worker, grant] of held) await settleAs(bench, worker, grant);
        held = [];
        // Nothing is in flight: whoever asks first, somebody of those that wait is let through.
        let passed = false;
        for (let n = 0; n < workers.length; n += 1) {
          const again = priorities[n]!.map((priority) => bench.newWant(["a", "b"], { priority }));
          for (const answer of await askAs(bench, workers[n]!, again)) {
            if (isRefusal(answer)) continue;
            passed = true;
            held.push([workers[n]!, answer]);
          }
        }
        assert.ok(passed, `round ${round}: everybody waits`);
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
        for (const grant of held) await bench.settle(grant, "success");
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
