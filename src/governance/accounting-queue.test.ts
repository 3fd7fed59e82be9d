import { expect, test } from "vitest";
import type { Settle, Verdict } from "../domain/tick.js";
import {
  accountCount,
  addSettle,
  addVerdict,
  emptyAccountingQueue,
  giveBack,
  itemsOf,
  NO_ACCOUNTS,
  takeAll,
  takeOne,
} from "./accounting-queue.js";
import { releaseSettle } from "./unsent.js";

const TTL_MS = 30_000;
const settle = (leaseId: string): Settle => ({ ...releaseSettle(leaseId, "s_1"), sent: true, outcome: "success" });
const verdict = (leaseId: string): Verdict => ({
  leaseId,
  source: "s_1",
  epoch: 0,
  probe: false,
  kind: "first_token",
});

test("what is taken is gone; what a failed tick gives back comes again", () => {
  const queue = emptyAccountingQueue();
  expect(takeAll(queue)).toBe(NO_ACCOUNTS);
  addSettle(queue, settle("a"));
  addVerdict(queue, verdict("b"));
  queue.renew = ["c"];
  const taken = takeAll(queue);
  expect(accountCount(taken)).toBe(3);
  expect(accountCount(queue)).toBe(0);
  addSettle(queue, settle("d"));
  expect(giveBack(queue, taken, 0, TTL_MS)).toBe(0);
  expect(new Set(itemsOf(queue.settles).map((item) => item.leaseId))).toEqual(new Set(["a", "d"]));
  expect(itemsOf(queue.verdicts)).toHaveLength(1);
  expect(queue.renew).toEqual(["c"]);
});

test("an entry is dropped once its lease has ended since its first failure, and counted", () => {
  const queue = emptyAccountingQueue();
  addSettle(queue, settle("a"));
  addVerdict(queue, verdict("a"));
  expect(giveBack(queue, takeAll(queue), 1_000, TTL_MS)).toBe(0);
  expect(giveBack(queue, takeAll(queue), 30_999, TTL_MS)).toBe(0);
  expect(giveBack(queue, takeAll(queue), 31_000, TTL_MS)).toBe(2);
  expect(accountCount(queue)).toBe(0);
});

test("a mere release is dropped without being counted: nothing may have been granted at all", () => {
  const queue = emptyAccountingQueue();
  addSettle(queue, releaseSettle("a", "s_1"), true);
  giveBack(queue, takeAll(queue), 0, TTL_MS);
  expect(giveBack(queue, takeAll(queue), TTL_MS, TTL_MS)).toBe(0);
  expect(accountCount(queue)).toBe(0);
});

test("one at a time, a refused entry goes behind the others, so that every other one gets through", () => {
  const queue = emptyAccountingQueue();
  for (const id of ["poison", "b", "c"]) addSettle(queue, settle(id));
  addVerdict(queue, verdict("d"));
  queue.renew = ["e"];
  const through: string[] = [];
  for (let i = 0; i < 8 && accountCount(queue) > 1; i += 1) {
    const taken = takeOne(queue);
    const ids = [...itemsOf(taken.settles), ...itemsOf(taken.verdicts)].map((item) => item.leaseId);
    if (ids.includes("poison")) giveBack(queue, taken, 0, TTL_MS);
    else through.push(...ids, ...taken.renew);
  }
  expect(through).toEqual(expect.arrayContaining(["b", "c"]));
});
