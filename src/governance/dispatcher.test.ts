import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GovernanceBackendError, SourceNotConfiguredError } from "../errors.js";
import {
  asked,
  createBench,
  FREED,
  type GovernorKind,
  SETTLE,
  type TestEntry,
  WORKER,
} from "./dispatcher.test-helper.js";

const KINDS: readonly GovernorKind[] = ["sync", "async"];

const ids = (entries: readonly TestEntry[]) => entries.map(({ want }) => want.leaseId);
const granted = (entries: readonly TestEntry[]) => ids(entries.filter(({ end }) => end === "granted"));

describe.each(KINDS)("look-ahead (%s governor)", (kind) => {
  const most = kind === "sync" ? 8 : 32;

  /** So many calls that wait behind a refusal; the ticks until then are forgotten. */
  async function crowd(count: number, bench = createBench(kind)) {
    const entries = Array.from({ length: count }, () => bench.entry());
    await bench.admitAll(entries);
    bench.ticks.length = 0;
    return { bench, entries };
  }

  it("a call alone is asked for alone, and by one tick", async () => {
    const bench = createBench(kind);
    bench.answer = () => true;
    for (let i = 0; i < 3; i += 1) await bench.admitAll([bench.entry()]);
    expect(asked(bench.ticks)).toEqual([["1"], ["2"], ["3"]]);
  });

  it("the first of a crowd are asked for together, and once while nothing changes", async () => {
    const { bench, entries } = await crowd(50);
    bench.emit(FREED);
    await bench.rest();
    expect(asked(bench.ticks)).toEqual([ids(entries).slice(0, most)]);
    await bench.kernel.advance(50_000);
    expect(bench.ticks).toHaveLength(1);
    // The hint of the head has come.
    await bench.kernel.advance(10_000);
    expect(bench.ticks).toHaveLength(2);
    expect(bench.kernel.pendingTimers()).toBe(1);
  });

  it("a later one may be served first; the head is asked again only when something changes", async () => {
    const { bench, entries } = await crowd(20);
    bench.answer = (want) => (want.leaseId === "5" && !bench.held.has("5") ? true : {});
    bench.emit(FREED);
    await bench.rest();
    expect(granted(entries)).toEqual(["5"]);
    expect(bench.ticks).toHaveLength(1);
    // One more arrives behind those that wait: it learns what they wait for, nobody is asked again.
    const late = bench.admit(bench.entry());
    await bench.rest();
    expect(bench.ticks).toHaveLength(1);
    bench.answer = () => true;
    bench.emit(FREED);
    await bench.rest();
    expect(granted([...entries, late])).toHaveLength(21);
    const order = asked(bench.ticks.slice(1)).flat();
    expect(order).toEqual(ids([...entries.filter(({ want }) => want.leaseId !== "5"), late]));
  });

  it("when all of a batch were served the next ones are asked for at once", async () => {
    const { bench, entries } = await crowd(70);
    bench.reply = (batch, usual) => {
      for (const { leaseId } of batch.wants.slice(0, 66 - bench.held.size)) bench.held.add(leaseId);
      return usual();
    };
    bench.emit(FREED);
    await bench.rest();
    expect(granted(entries)).toEqual(ids(entries).slice(0, 66));
    expect(bench.ticks).toHaveLength(Math.ceil(66 / most));
  });

  it("the governor sees how often each was passed over", async () => {
    const { bench } = await crowd(6);
    const seen: (number | undefined)[] = [];
    for (const chosen of ["3", "2", "5"]) {
      bench.answer = (want) => want.leaseId === chosen || {};
      bench.emit(FREED);
      await bench.rest();
      seen.push(bench.ticks.at(-1)!.wants[0]!.skips);
    }
    bench.emit(FREED);
    await bench.rest();
    expect(seen).toEqual([undefined, 1, 2]);
    expect(bench.ticks.at(-1)!.wants.map(({ leaseId, skips }) => [leaseId, skips])).toEqual([
      ["1", 3],
      ["4", 1],
      ["6", undefined],
    ]);
  });

  it("the head of the next lower priority is always among them", async () => {
    const bench = createBench(kind);
    const low = Array.from({ length: 3 }, () => bench.entry({ priority: 1 }));
    const high = Array.from({ length: 40 }, () => bench.entry());
    await bench.admitAll([...low, ...high]);
    bench.ticks.length = 0;
    bench.answer = (want) => want.leaseId === "1" || {};
    bench.emit(FREED);
    await bench.rest();
    const expected = kind === "sync" ? [...ids(high).slice(0, 8), "1"] : [...ids(high).slice(0, 31), "1"];
    expect(asked(bench.ticks)).toEqual([expected]);
    expect(granted(low)).toEqual(["1"]);
    expect(high[0]!.want.skips).toBeUndefined();
  });

  it("who stands behind one that leaves is asked again: it may have been refused for its sake", async () => {
    const bench = createBench(kind);
    const head = bench.entry({}, (refusal) => refusal.waitHintMs < 90_000);
    const rest = [bench.entry(), bench.entry()];
    await bench.admitAll([head, ...rest]);
    bench.ticks.length = 0;
    bench.answer = (_, { wants }) => (wants[0]!.leaseId === head.want.leaseId ? { waitHintMs: 100_000 } : true);
    bench.emit(FREED);
    await bench.rest();
    expect(head.end).toMatchObject({ kind: "gate", waitHintMs: 100_000 });
    expect(granted(rest)).toEqual(ids(rest));
    expect(bench.ticks).toHaveLength(2);
  });

  it("everyone asked for is told its own refusal, the others learn once what their head waits for", async () => {
    const bench = createBench(kind);
    let told: string[] = [];
    const entries = Array.from({ length: 40 }, (): TestEntry => {
      const entry: TestEntry = bench.entry({}, (refusal) => told.push(`${entry.want.leaseId}: ${refusal.leaseId}`) > 0);
      return entry;
    });
    await bench.admitAll(entries);
    expect(told.slice(-39)).toEqual(ids(entries.slice(1)).map((id) => `${id}: 1`));
    told = [];
    bench.emit(FREED);
    await bench.rest();
    expect(told).toEqual(ids(entries.slice(0, most)).map((id) => `${id}: ${id}`));
  });

  it("no endless ticks with a governor that answers nothing: the callers are told", async () => {
    const { bench, entries } = await crowd(10);
    bench.reply = () => ({ grants: [], refusals: [], hintMs: null, applied: [] });
    bench.emit(FREED);
    await bench.rest();
    for (const { end } of entries) expect(end).toBeInstanceOf(GovernanceBackendError);
    expect((entries[0]!.end as Error).message).toContain("neither granted nor refused");
    expect(bench.ticks.length).toBeLessThanOrEqual(2);
  });

  it("one unknown source in a batch ends its own call only", async () => {
    const { bench, entries } = await crowd(5);
    bench.reply = (batch, usual) => {
      if (batch.wants.some((want) => want.leaseId === "3")) {
        throw new SourceNotConfiguredError("no such source", { sourceName: "a" });
      }
      return usual();
    };
    bench.answer = () => true;
    bench.emit(FREED);
    await bench.rest();
    expect(granted(entries)).toEqual(["1", "2", "4", "5"]);
    expect(entries[2]!.end).toBeInstanceOf(SourceNotConfiguredError);
  });

  it("news for another worker is none, nor is a cooldown; news for all or for this one is", async () => {
    const { bench } = await crowd(2);
    bench.emit({ ...FREED, worker: "another:2:worker" });
    bench.emit({ type: "cooling", source: "a" });
    await bench.rest();
    expect(bench.ticks).toHaveLength(0);
    bench.emit({ ...FREED, worker: WORKER });
    await bench.rest();
    expect(bench.ticks).toHaveLength(1);
    bench.emit({ type: "state", source: "a" });
    await bench.rest();
    expect(bench.ticks).toHaveLength(2);
  });

  it("says how many wait for what", async () => {
    const { bench } = await crowd(3);
    expect(bench.dispatcher.waiting()).toMatchObject({ count: 3, reasons: { gate: 3 }, byPriority: { 0: 3 } });
    bench.answer = (want) => (want.candidates[0] === "c" ? { kind: "fairness" } : { gate: "rpm" });
    await bench.admitAll([bench.entry({ candidates: ["c"], priority: 4 })]);
    bench.emit(FREED);
    await bench.kernel.advance(500);
    expect(bench.dispatcher.waiting()).toEqual({
      count: 4,
      oldestMs: 500,
      reasons: { rpm: 3, fairness: 1 },
      byPriority: { 0: 3, 4: 1 },
    });
    if (kind === "async") {
      bench.admit(bench.entry({ candidates: ["d"] }));
      expect(bench.dispatcher.waiting().reasons).toEqual({ rpm: 3, fairness: 1, queue: 1 });
    }
  });

  it("says that the store is waited for while it is", async () => {
    const bench = createBench(kind);
    bench.reply = () => {
      throw new Error("down");
    };
    const entry = bench.entry({}, () => true, 60_000);
    await bench.admitAll([entry]);
    expect(bench.dispatcher.waiting().reasons).toEqual({ backend: 1 });
    bench.reply = null;
    bench.answer = () => true;
    await bench.kernel.advance(5_000);
    expect(granted([entry])).toHaveLength(1);
    expect(bench.dispatcher.waiting()).toMatchObject({ count: 0, reasons: {}, byPriority: {} });
  });
});

/** Any sequence of arrivals, leavers and releases, with a governor that serves whom it likes. */
describe.each(KINDS)("whatever a governor chooses (%s)", (kind) => {
  const action = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("ask" as const), priority: fc.integer({ min: 0, max: 2 }) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const), which: fc.nat() }) },
  );

  it("nobody waits beside a free place, nobody is served twice, skips and ticks are as counted", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 5 }),
        fc.infiniteStream(fc.nat({ max: 7 })),
        fc.boolean(),
        async (actions, capacity, picks, restsBetween) => {
          const bench = createBench(kind);
          const skips = new Map<string, number>();
          const grants: string[] = [];
          /** Serves one after the other as long as places are free, each time any of the first eight of a class. */
          let chosen = new Set<string>();
          bench.reply = (batch, usual) => {
            for (const settle of batch.settles) bench.held.delete(settle.leaseId);
            const open = batch.wants.map(({ leaseId, priority }) => ({ leaseId, priority }));
            chosen = new Set();
            while (open.length > 0 && bench.held.size + chosen.size < capacity) {
              const sameClass = open.filter(({ priority }) => priority === open[0]!.priority).length;
              const [taken] = open.splice(picks.next().value % Math.min(8, sameClass), 1);
              chosen.add(taken!.leaseId);
            }
            for (const { leaseId, skips: seen } of batch.wants) expect(seen ?? 0).toBe(skips.get(leaseId) ?? 0);
            countExpected(batch.wants, chosen, skips);
            grants.push(...chosen);
            return usual();
          };
          bench.answer = (want) => chosen.has(want.leaseId) || {};
          const entries: TestEntry[] = [];
          for (const step of actions) {
            const waiting = entries.filter(({ end }) => end === null);
            const running = [...bench.held];
            if (step.do === "ask") entries.push(bench.admit(bench.entry({ priority: step.priority })));
            else if (step.do === "end" && running.length > 0) {
              bench.dispatcher.settle({ ...SETTLE, leaseId: running[step.which % running.length]! });
            } else if (step.do === "leave" && waiting.length > 0) {
              const leaver = waiting[step.which % waiting.length]!;
              bench.dispatcher.withdraw(leaver, new Error("left"));
            }
            if (restsBetween) await bench.rest();
          }
          await bench.rest();
          const waiting = entries.filter(({ end }) => end === null);
          if (waiting.length > 0) expect(bench.held.size).toBe(capacity);
          expect(new Set(grants).size).toBe(grants.length);
          expect(bench.dispatcher.waiting().count).toBe(waiting.length);
          for (const tick of bench.ticks) expectInQueueOrder(tick.wants);
          expect(bench.ticks.length).toBeLessThanOrEqual(2 * actions.length + grants.length + 2);
        },
      ),
      { numRuns: 150 },
    );
  });
});

function expectInQueueOrder(wants: readonly { leaseId: string; priority: number }[]): void {
  const order = wants.map(({ priority, leaseId }) => priority * 1_000_000 + Number(leaseId));
  expect(order).toEqual([...order].sort((a, b) => a - b));
}

/** The rule in its plainest words. */
function countExpected(
  wants: readonly { leaseId: string; priority: number }[],
  served: ReadonlySet<string>,
  skips: Map<string, number>,
): void {
  wants.forEach(({ leaseId, priority }, index) => {
    if (served.has(leaseId)) return;
    const later = wants.slice(index + 1).filter((want) => want.priority === priority && served.has(want.leaseId));
    skips.set(leaseId, (skips.get(leaseId) ?? 0) + later.length);
  });
}
