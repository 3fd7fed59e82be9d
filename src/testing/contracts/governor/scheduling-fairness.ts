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

/** Turns of the processes of a scope (spec 10 §6). */
export const fairnessTests: readonly ContractTest[] = [
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
      // It may be four ahead.
      for (let n = 0; n < 5; n += 1) {
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
    name: "fairness: a permit that comes back wakes one process that waits, the next in line",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })], scheduling: { fairness: true } });
      const [held] = await askAs(bench, "one", [bench.newWant("a")]);
      assert.ok(held && !isRefusal(held));
      const woken: unknown[] = [];
      bench.governor.onEvent(({ type, worker }) => type === "capacity" && woken.push(worker));
      await askAs(bench, "two", [bench.newWant("a", { priority: 1 })]);
      await askAs(bench, "three", [bench.newWant("a")]);
      await settleAs(bench, "one", held);
      assert.deepEqual(woken, ["three"]);
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
    name: "fairness: who comes new has no claim to what others were given before",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })], scheduling: { fairness: true } });
      for (let n = 0; n < 200; n += 1) {
        const [alone] = await askAs(bench, "old", [bench.newWant("a")]);
        assert.ok(alone && !isRefusal(alone));
        await settleAs(bench, "old", alone);
      }
      const counts: Record<string, number> = { old: 0, new: 0 };
      let held: [string, Grant] | null = null;
      for (let round = 0; round < 40; round += 1) {
        for (const worker of ["new", "old"]) {
          // More than there is room for, so that both always wait.
          const wants = [1, 2, 3].map(() => bench.newWant("a"));
          const granted = (await askAs(bench, worker, wants)).find((answer) => !isRefusal(answer));
          if (granted === undefined || isRefusal(granted)) continue;
          counts[worker]! += 1;
          held = [worker, granted];
        }
        await bench.advance(100);
        if (held !== null) await settleAs(bench, held[0], held[1]);
        held = null;
      }
      within(counts.old!, 14, 26, `old ${counts.old}, new ${counts.new} of 40`);
    },
  },
  {
    name: "fairness: the lower class's turn lets one of them go, never none",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })], scheduling: { fairness: true } });
      const low = () => [bench.newWant("a", { priority: 1 })];
      const mixed = () => [0, 0, 1].map((priority) => bench.newWant("a", { priority }));
      const served: string[] = [];
      let woken = "mixed";
      bench.governor.onEvent((event) => {
        woken = event.worker ?? woken;
      });
      for (let round = 0; round < 40; round += 1) {
        const granted: [string, Grant][] = [];
        const order = woken === "low" ? (["low", "mixed"] as const) : (["mixed", "low"] as const);
        for (const worker of order) {
          const wants = worker === "low" ? low() : mixed();
          for (const answer of await askAs(bench, worker, wants))
            if (!isRefusal(answer)) granted.push([worker, answer]);
        }
        assert.equal(granted.length, 1, `round ${round}: ${granted.length} granted, ${served.join(" ")}`);
        served.push(granted[0]![0]);
        await bench.advance(50);
        woken = "mixed";
        await settleAs(bench, ...granted[0]!);
      }
      const turns = served.filter((worker) => worker === "low").length;
      within(turns, 3, 6, `turns of the lower class: ${served.join(" ")}`);
    },
  },
];
