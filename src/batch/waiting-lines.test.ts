import { expect, it } from "vitest";
import { createWaitingLines } from "./waiting-lines.js";

const entry = (line: string, dueMs: number, outage = false) => ({ line, chars: 10, notBeforeMs: 1_000, dueMs, outage });

it("hands lines out when they are due, the earliest first, and knows their size", () => {
  const waiting = createWaitingLines<string>();
  for (const [line, dueMs] of [
    ["b", 5],
    ["c", 5],
    ["a", 1],
    ["d", 9],
  ] as const)
    waiting.add(entry(line, dueMs));
  expect([waiting.size, waiting.chars, waiting.nextDueMs]).toEqual([4, 40, 1]);
  expect([0, 5, 5, 5, 8].map((now) => waiting.takeDue(now))).toEqual([undefined, "a", "b", "c", undefined]);
  expect([waiting.size, waiting.chars, waiting.nextDueMs]).toEqual([1, 10, 9]);
});

it("lets the lines of an outage go when it ends, not before the moment their errors asked for", () => {
  const waiting = createWaitingLines<string>();
  waiting.add(entry("other", 30_000));
  waiting.add(entry("outage", 60_000, true));
  waiting.endOutage();
  expect(waiting.nextDueMs).toBe(1_000);
  expect([waiting.takeDue(999), waiting.takeDue(1_000), waiting.takeDue(1_000)]).toEqual([
    undefined,
    "outage",
    undefined,
  ]);
});
