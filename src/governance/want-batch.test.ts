import { describe, expect, test } from "vitest";
import type { Grant, Want } from "../domain/tick.js";
import { countSkips, nextToAsk } from "./want-batch.js";
import { block, emptyWantQueue, enqueue, type QueueEntry } from "./want-queue.js";

let sequence = 0;

function entry(overrides: Partial<Want> = {}): QueueEntry {
  sequence += 1;
  const want: Want = {
    leaseId: `lease-${sequence}`,
    callId: `call-${sequence}`,
    candidates: ["a", "b"],
    failedHere: [],
    limitedHere: [],
    estTokens: 0,
    priority: 0,
    waitedMs: 0,
    ...overrides,
  };
  return { want, sequence, staysAfter: () => true, backendGraceMs: 0 };
}

const many = (count: number, overrides: Partial<Want> = {}) => Array.from({ length: count }, () => entry(overrides));

function queueOf(entries: readonly QueueEntry[]) {
  const queue = emptyWantQueue();
  for (const one of entries) enqueue(queue, one);
  return queue;
}

const grant = ({ want }: QueueEntry, source = "a"): Grant => ({
  leaseId: want.leaseId,
  source,
  startInMs: 0,
  epoch: 0,
  probe: false,
  windowId: null,
  reservedTokens: 0,
  leaseTtlMs: 30_000,
  passedOver: [],
});

describe("a batch", () => {
  test("one call alone is one want", () => {
    const one = entry();
    expect(nextToAsk(queueOf([one]), 8)).toEqual([one]);
    expect(nextToAsk(emptyWantQueue(), 8)).toEqual([]);
  });

  test("holds the head of the next lower priority beside a full look-ahead, wherever that one waits", () => {
    const high = many(20);
    const low = many(3, { priority: 1, candidates: ["b"] });
    const lowest = many(3, { priority: 2 });
    const queue = queueOf([...lowest, ...low, ...high]);
    expect(nextToAsk(queue, 8)).toEqual([...high.slice(0, 8), low[0]]);
    // A tick never carries more than 32.
    const more = many(20);
    for (const one of more) enqueue(queue, one);
    expect(nextToAsk(queue, 32)).toEqual([...high, ...more.slice(0, 11), low[0]]);
    // One that is blocked has been answered.
    block(queue, low[0]!, { leaseId: "", kind: "gate", waitHintMs: 1, passedOver: [] }, 0);
    expect(nextToAsk(queue, 8)).toEqual([...high.slice(0, 8), lowest[0]]);
  });

  test("takes several classes as they come", () => {
    const high = many(2);
    const low = many(20, { priority: 1 });
    const lowest = many(2, { priority: 2 });
    expect(nextToAsk(queueOf([...lowest, ...low, ...high]), 8)).toEqual([...high, ...low.slice(0, 6)]);
  });
});

describe("skips", () => {
  test("one for each later call of the same priority that was served first", () => {
    const batch = [...many(4), entry({ priority: 1 })];
    countSkips(batch, [grant(batch[1]!), grant(batch[3]!), grant(batch[4]!)]);
    expect(batch.map(({ want }) => want.skips)).toEqual([2, undefined, 1, undefined, undefined]);
    countSkips(batch, [grant(batch[1]!)]);
    expect(batch[0]!.want.skips).toBe(3);
  });

  test("a lower priority that had its turn passed nobody over", () => {
    const batch = [entry(), entry({ priority: 1 })];
    countSkips(batch, [grant(batch[1]!)]);
    expect(batch[0]!.want.skips).toBeUndefined();
  });

  test("a source that a call can't have was not taken from it", () => {
    const batch = [entry({ candidates: ["a"] }), entry()];
    countSkips(batch, [grant(batch[1]!, "b")]);
    expect(batch[0]!.want.skips).toBeUndefined();
    countSkips(batch, [grant(batch[1]!, "a")]);
    expect(batch[0]!.want.skips).toBe(1);
  });
});
