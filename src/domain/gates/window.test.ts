import { expect, test } from "vitest";
import { rollWindow, windowIdOf, windowWaitMs } from "./window.js";

const counts = (windowId: number) => ({ windowId, windowRequests: 7, windowTokens: 70 });

test("a clock stepped back into the minute before stays in the newer one: the same minute is not counted twice", () => {
  expect(windowIdOf(600_000, counts(10))).toBe(10);
  expect(windowIdOf(599_999, counts(10))).toBe(10);
  expect(windowIdOf(540_000, counts(10))).toBe(10);
});

test("a clock stepped back further starts where it is, else a wrong clock would close the gate for long", () => {
  expect(windowIdOf(539_999, counts(10))).toBe(8);
});

test("the wait ends with the minute, and is never 0", () => {
  expect(windowWaitMs(600_000, 10)).toBe(60_000);
  expect(windowWaitMs(659_999, 10)).toBe(1);
  // Stepped back: until the end of the newer minute.
  expect(windowWaitMs(599_000, 10)).toBe(61_000);
  expect(windowWaitMs(660_000, 10)).toBe(1);
});

test("a new minute starts empty, the same one keeps its counts", () => {
  const same = counts(10);
  rollWindow(same, 10);
  expect(same).toEqual(counts(10));
  rollWindow(same, 11);
  expect(same).toEqual({ windowId: 11, windowRequests: 0, windowTokens: 0 });
});
