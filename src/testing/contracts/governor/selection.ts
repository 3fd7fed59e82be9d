import assert from "node:assert/strict";
import type { SelectorName } from "../../../domain/scope.js";
import type { TickReply, Want } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, near, type Open, sourceConfig } from "./bench.js";

/** Grants that stay in flight, counted by source. */
async function spread(bench: GovernorBench, candidates: string[], calls: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let call = 0; call < calls; call++) {
    const { source } = await bench.granted(candidates);
    counts[source] = (counts[source] ?? 0) + 1;
  }
  return counts;
}

async function chosen(bench: GovernorBench, overrides: Partial<Want>, candidates = ["a", "b"]): Promise<string> {
  const grant = await bench.granted(candidates, overrides);
  await bench.settle(grant, "cancelled");
  return grant.source;
}

const leastInflight: ContractTest[] = (["least_inflight", "health_aware"] as SelectorName[]).flatMap((selector) => [
  {
    name: `${selector}: the lowest used fraction goes first, so large sources carry more`,
    body: async (open: Open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 10 }), sourceConfig("b", { maxConcurrency: 20 })];
      const bench = await open({ sources, selector });
      const counts = await spread(bench, ["a", "b"], 15);
      near(counts.a ?? 0, 5, 1, "calls on a");
      near(counts.b ?? 0, 10, 1, "calls on b");
    },
  },
  {
    name: `${selector}: without a limit the fewest in flight goes first`,
    body: async (open: Open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b"), sourceConfig("c")], selector });
      await bench.granted("a");
      await bench.granted("a");
      const counts = await spread(bench, ["a", "b", "c"], 10);
      assert.deepEqual(counts, { a: 2, b: 4, c: 4 });
    },
  },
  {
    name: `${selector}: WEIGHT 2 carries twice as much as WEIGHT 1`,
    body: async (open: Open) => {
      const limited = { maxConcurrency: 100 };
      const sources = [sourceConfig("a", limited), sourceConfig("b", { ...limited, weight: 2 })];
      const bench = await open({ sources, selector });
      const counts = await spread(bench, ["a", "b"], 18);
      near(counts.a ?? 0, 6, 1, "calls on a");
      near(counts.b ?? 0, 12, 1, "calls on b");
    },
  },
  {
    name: `${selector}: a source comes back into use as its calls end`,
    body: async (open: Open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], selector });
      const held = [await bench.granted("a"), await bench.granted("a"), await bench.granted("b")];
      assert.equal((await bench.granted(["a", "b"])).source, "b");
      for (const grant of held) await bench.settle(grant, "success");
      assert.equal((await bench.granted(["a", "b"])).source, "a");
    },
  },
]);

const roundRobin: ContractTest[] = [
  {
    name: "round_robin: each in turn",
    body: async (open) => {
      const names = ["a", "b", "c"];
      const bench = await open({ sources: names.map((name) => sourceConfig(name)), selector: "round_robin" });
      const order: string[] = [];
      for (let call = 0; call < 9; call++) order.push(await chosen(bench, {}, names));
      for (const from of [0, 3, 6]) assert.deepEqual(order.slice(from, from + 3).sort(), names);
    },
  },
  {
    name: "round_robin: by weight",
    body: async (open) => {
      const sources = [sourceConfig("a"), sourceConfig("b", { weight: 3 })];
      const bench = await open({ sources, selector: "round_robin" });
      const counts = await spread(bench, ["a", "b"], 40);
      near(counts.a ?? 0, 10, 1, "calls on a");
      near(counts.b ?? 0, 30, 1, "calls on b");
    },
  },
  {
    name: "round_robin: a full source is skipped without losing the turn of the others",
    body: async (open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 1 }), sourceConfig("b"), sourceConfig("c")];
      const bench = await open({ sources, selector: "round_robin" });
      await bench.granted("a");
      const counts = await spread(bench, ["a", "b", "c"], 10);
      assert.deepEqual(counts, { b: 5, c: 5 });
    },
  },
];

const ordered: ContractTest[] = [
  {
    name: "ordered: the first of the user's order that has a free slot is taken",
    body: async (open) => {
      const names = ["a", "b", "c"];
      const bench = await open({ sources: names.map((name) => sourceConfig(name, { maxConcurrency: 2 })) });
      const want = { ordered: true } as const;
      const order = [];
      for (let call = 0; call < 6; call++) order.push((await bench.granted(["c", "a", "b"], want)).source);
      assert.deepEqual(order, ["c", "c", "a", "a", "b", "b"]);
      assert.equal((await bench.refused(["c", "a", "b"], want)).gate, "concurrency");
    },
  },
  {
    name: "ordered: an open and a cooling source are passed over",
    body: async (open) => {
      const sources = ["a", "b", "c"].map((name) => sourceConfig(name));
      const bench = await open({ sources, breaker: { failThreshold: 1 } });
      await bench.attempt("a", "failure");
      await bench.attempt("b", "alive", { rateLimited: "requests", retryAfterMs: 1_000 });
      assert.equal((await bench.granted(["a", "b", "c"], { ordered: true })).source, "c");
    },
  },
];

const tiers: ContractTest[] = [
  {
    name: "priority tiers: a higher tier is used only while no lower one has a free slot",
    body: async (open) => {
      const sources = [sourceConfig("a", { priority: 1 }), sourceConfig("b", { maxConcurrency: 1 })];
      for (const selector of ["least_inflight", "round_robin", "health_aware"] as const) {
        const bench = await open({ sources, selector });
        const first = await bench.granted(["a", "b"]);
        assert.equal(first.source, "b");
        assert.equal((await bench.granted(["a", "b"])).source, "a");
        await bench.settle(first, "success");
        assert.equal((await bench.granted(["a", "b"])).source, "b");
      }
    },
  },
  {
    name: "priority tiers: a cooling, open or rate-limited lower tier gives way",
    body: async (open) => {
      const sources = [sourceConfig("a", { rpm: 10 }), sourceConfig("b", { priority: 5 })];
      const bench = await open({ sources, breaker: { failThreshold: 1 } });
      await bench.attempt("a", "alive", { rateLimited: "requests", retryAfterMs: 1_000 });
      assert.equal(await chosen(bench, {}), "b");
      await bench.advance(1_000);
      assert.equal(await chosen(bench, {}), "b", "its RPM slot is still ahead");
      await bench.advance(6_050);
      assert.equal(await chosen(bench, {}), "a");
      await bench.advance(6_050);
      await bench.attempt("a", "failure");
      assert.equal(await chosen(bench, {}), "b");
    },
  },
];

const demotion: ContractTest[] = [
  {
    name: "failedHere: a source that failed in this call stays out while another closed one is able",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")] });
      await bench.granted("b");
      const grant = await bench.granted(["a", "b"], { failedHere: ["a"] });
      assert.equal(grant.source, "b");
      assert.deepEqual(
        grant.passedOver.map(({ source, reason }) => [source, reason]),
        [["a", "failed_in_call"]],
      );
    },
  },
  {
    name: "failedHere: a busy closed source is waited for rather than trying the failed one again",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b", { maxConcurrency: 1 })] });
      await bench.granted("b");
      const refusal = await bench.refused(["a", "b"], { failedHere: ["a"] });
      assert.equal(refusal.gate, "concurrency");
    },
  },
  {
    name: "failedHere: it is used again when no other one is closed, when all have failed, and when it is alone",
    body: async (open) => {
      const sources = [sourceConfig("a"), sourceConfig("b")];
      const bench = await open({ sources, breaker: { failThreshold: 1 } });
      assert.ok(["a", "b"].includes(await chosen(bench, { failedHere: ["a", "b"] })));
      assert.equal(await chosen(bench, { failedHere: ["a"] }, ["a"]), "a");
      await bench.attempt("b", "failure");
      assert.equal(await chosen(bench, { failedHere: ["a"] }), "a");
    },
  },
  {
    name: "limitedHere: a source that rate-limited this call gives way to an equal one, and is used when that one is full",
    body: async (open) => {
      const limited = { maxConcurrency: 4 };
      const bench = await open({ sources: [sourceConfig("a", limited), sourceConfig("b", limited)] });
      for (const [limitedHere, expected] of [
        ["a", "b"],
        ["b", "a"],
      ] as const) {
        for (let count = 0; count < 4; count++) {
          assert.equal(await chosen(bench, { limitedHere: [limitedHere] }), expected);
        }
      }
      await bench.fill("b");
      assert.equal(await chosen(bench, { limitedHere: ["a"] }), "a");
    },
  },
];

/** The same verbs, the same seeds: whatever is random must come from the tick alone. */
async function transcript(open: Open, selector: SelectorName): Promise<TickReply[]> {
  const sources = ["a", "b", "c"].map((name) => sourceConfig(name, { maxConcurrency: 4, rpm: 60 }));
  const bench = await open({ sources, selector, breaker: { failThreshold: 1 } });
  const replies: TickReply[] = [];
  for (let step = 0; step < 30; step++) {
    const reply = await bench.tick({ wants: [bench.newWant(["a", "b", "c"]), bench.newWant(["c", "a"])] });
    replies.push(reply);
    for (const [index, grant] of reply.grants.entries()) {
      const limited = index === 0 && step % 5 === 0;
      if (limited) await bench.settle(grant, "alive", { rateLimited: "unknown" });
      else await bench.settle(grant, step % 7 === 3 ? "failure" : "success");
    }
    await bench.advance(700);
  }
  return replies;
}

const deterministic: ContractTest[] = (["least_inflight", "round_robin", "health_aware"] as SelectorName[]).map(
  (selector) => ({
    name: `${selector}: the same verbs and seeds give the same answers, jitter included`,
    body: async (open: Open) => {
      const rounded = (replies: TickReply[]) =>
        JSON.parse(JSON.stringify(replies), (_, value) => (typeof value === "number" ? Math.round(value) : value));
      const second = rounded(await transcript(open, selector));
      assert.deepEqual(second, rounded(await transcript(open, selector)));
    },
  }),
);

export const selectionTests: readonly ContractTest[] = [
  ...leastInflight,
  ...roundRobin,
  ...ordered,
  ...tiers,
  ...demotion,
  ...deterministic,
];
