import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Refusal, Want } from "../domain/tick.js";
import { nextToAsk } from "./want-batch.js";
import {
  allEntries,
  block,
  dequeue,
  earliestUnblockMs,
  emptyWantQueue,
  enqueue,
  goesBefore,
  pause,
  type QueueEntry,
  resumeAll,
  unblockAll,
} from "./want-queue.js";

let sequence = 0;

function entry(overrides: Partial<Want> = {}): QueueEntry {
  sequence += 1;
  return {
    want: {
      leaseId: `lease-${sequence}`,
      callId: `call-${sequence}`,
      candidates: ["a", "b"],
      failedHere: [],
      limitedHere: [],
      estTokens: 0,
      priority: 0,
      waitedMs: 0,
      ...overrides,
    },
    sequence,
    staysAfter: () => true,
    backendGraceMs: 0,
  };
}

const refusal = (waitHintMs: number): Refusal => ({ leaseId: "", kind: "gate", waitHintMs, passedOver: [] });

describe("want queue", () => {
  test("gives the next in order of priority, then of first enqueue, over all groups", () => {
    const queue = emptyWantQueue();
    const [late, normal, urgent, other] = [
      entry({ priority: 1 }),
      entry(),
      entry({ priority: -1 }),
      entry({ candidates: ["c"], priority: -2 }),
    ];
    for (const one of [late, normal, urgent, other]) enqueue(queue, one);
    expect(nextToAsk(queue, 32)).toEqual([other, urgent, normal, late]);
    expect(nextToAsk(queue, 1)).toEqual([other]);
    expect(nextToAsk(queue, 2)).toEqual([other, urgent]);
    expect(new Set(allEntries(queue))).toEqual(new Set([late, normal, urgent, other]));
  });

  test("a group that is blocked or paused is not asked; others are", () => {
    const queue = emptyWantQueue();
    const [first, second] = [entry(), entry({ candidates: ["c"] })];
    enqueue(queue, first);
    enqueue(queue, second);
    block(queue, first, refusal(500), 1_000);
    expect(nextToAsk(queue, 32)).toEqual([second]);
    expect(earliestUnblockMs(queue)).toBe(1_500);
    pause(queue, second, 1_000);
    expect(nextToAsk(queue, 32)).toEqual([]);
    resumeAll(queue);
    unblockAll(queue);
    expect(nextToAsk(queue, 32)).toEqual([first, second]);
    expect(earliestUnblockMs(queue)).toBe(Infinity);
  });

  test("a new head, by arrival or because the old one left, has to be asked itself", () => {
    const queue = emptyWantQueue();
    const [head, next, urgent] = [entry(), entry(), entry({ priority: -1 })];
    enqueue(queue, head);
    enqueue(queue, next);
    block(queue, head, refusal(500), 0);
    enqueue(queue, urgent);
    expect(nextToAsk(queue, 1)).toEqual([urgent]);
    block(queue, urgent, refusal(500), 0);
    dequeue(queue, urgent);
    expect(nextToAsk(queue, 1)).toEqual([head]);
    block(queue, head, refusal(500), 0);
    // One that leaves from behind changes nothing for the head.
    dequeue(queue, next);
    expect(nextToAsk(queue, 1)).toEqual([]);
  });

  test("sources that failed or an order of the user's make a group of their own; equal names share one", () => {
    const queue = emptyWantQueue();
    const groups = [
      entry(),
      entry({ candidates: ["a", "b"] }),
      entry({ failedHere: ["a"] }),
      entry({ ordered: true }),
      entry({ candidates: ["b", "a"] }),
    ].map((one) => enqueue(queue, one));
    expect(groups[0]).toBe(groups[1]);
    expect(new Set(groups).size).toBe(4);
  });

  test("a call that was rate-limited stands with the others of its candidates, one that failed does not", () => {
    const queue = emptyWantQueue();
    const [sentBack, fresh, failed] = [
      entry({ limitedHere: ["a"], estTokens: 1_000 }),
      entry(),
      entry({ failedHere: ["a"] }),
    ];
    for (const one of [sentBack, fresh, failed]) enqueue(queue, one);
    block(queue, sentBack, refusal(500), 0);
    expect(nextToAsk(queue, 32)).toEqual([failed]);
  });

  test("a refused entry blocks its group only while it is the head; another class may have its turn sooner", () => {
    const queue = emptyWantQueue();
    const [head, later] = [entry(), entry({ priority: 3 })];
    enqueue(queue, head);
    enqueue(queue, later);
    const urgent = entry({ priority: -1 });
    enqueue(queue, urgent);
    expect(block(queue, head, refusal(500), 0)).toBeNull();
    expect(nextToAsk(queue, 1)).toEqual([urgent]);
    expect(block(queue, urgent, refusal(500), 0)?.entries).toEqual([urgent, head, later]);
    block(queue, later, refusal(100), 0);
    expect(earliestUnblockMs(queue)).toBe(100);
    expect(nextToAsk(queue, 8)).toEqual([]);
  });

  test("taking out what is not there says so and changes nothing", () => {
    const queue = emptyWantQueue();
    const [there, never] = [entry(), entry()];
    expect(dequeue(queue, there)).toBe(false);
    enqueue(queue, there);
    expect(dequeue(queue, never)).toBe(false);
    expect(dequeue(queue, there)).toBe(true);
    expect(dequeue(queue, there)).toBe(false);
    expect(queue.size).toBe(0);
    expect(block(queue, entry({ candidates: ["z"] }), refusal(1), 0)).toBeNull();
    pause(queue, entry({ candidates: ["z"] }), 0);
  });

  const step = fc.record({
    put: fc.boolean(),
    which: fc.nat(),
    priority: fc.integer({ min: -2, max: 2 }),
    candidates: fc.constantFrom(["a"], ["b"], ["a", "b"]),
  });

  test("after any puts and takes it holds exactly what was put and not taken, in order", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 40 }), (steps, limit) => {
        const queue = emptyWantQueue();
        const held: QueueEntry[] = [];
        for (const { put, which, priority, candidates } of steps) {
          if (put || held.length === 0) {
            const one = entry({ priority, candidates });
            held.push(one);
            enqueue(queue, one);
          } else {
            const [taken] = held.splice(which % held.length, 1);
            expect(dequeue(queue, taken!)).toBe(true);
          }
        }
        const inOrder = [...held].sort((a, b) => (goesBefore(a, b) ? -1 : 1));
        const first = inOrder.slice(0, limit);
        const priority = first.at(-1)?.want.priority;
        const isOneClass = limit > 1 && first.length === limit && first[0]?.want.priority === priority;
        const lower = isOneClass ? inOrder.find((one) => one.want.priority > priority!) : undefined;
        if (lower === undefined) expect(nextToAsk(queue, limit)).toEqual(first);
        else expect(nextToAsk(queue, limit)).toEqual([...(limit < 32 ? first : first.slice(0, 31)), lower]);
        expect(queue.size).toBe(held.length);
      }),
    );
  });
});
