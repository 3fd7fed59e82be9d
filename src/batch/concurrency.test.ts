import { expect, it } from "vitest";
import { defaultConcurrency } from "./concurrency.js";

it.each([
  [[8, 4], 0, 12],
  [[8, 4], 5, 5],
  [[0], 0, 32],
  [[8, 0], 0, 40],
  [[200, 200], 0, 256],
  [[200, 200], 1000, 256],
])("sources %j and global gate %i keep %i lines in flight", (limits, gate, expected) => {
  const sources = limits.map((maxConcurrency) => ({ maxConcurrency }));
  expect(defaultConcurrency({ sources, global: { maxConcurrency: gate } })).toBe(expected);
});
