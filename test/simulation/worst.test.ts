import { expect, test } from "vitest";
import { runScenario } from "../../src/testing/simulation/run.js";
import { scenarioOf, WORST_ID } from "../../src/testing/simulation/scenarios.js";

const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1);
/** 89: a frozen worker's stale permit came back after the same id had been given another one. */
const ONCE_BROKEN = [89];

test.each([...SEEDS, ...ONCE_BROKEN])(
  "deaths, freezes, lost replies and a store that forgets break no invariant: seed %i",
  async (seed) => {
    const scenario = scenarioOf(WORST_ID, seed);
    const { metrics, violations } = await runScenario(scenario, { seed });
    expect(violations).toEqual([]);
    expect(Object.values(metrics.failures).reduce((sum, count) => sum + count, 0)).toBe(metrics.lost);
    expect(metrics.lost).toBeLessThan(scenario.calls / 10);
  },
);

test("the seeds meet every kind of trouble", () => {
  const chaos = SEEDS.map((seed) => scenarioOf(WORST_ID, seed).chaos!);
  expect(chaos.some(({ deathsMs }) => deathsMs.length > 1)).toBe(true);
  expect(chaos.some(({ freezes }) => freezes.some(({ forMs }) => forMs > 31_000))).toBe(true);
  expect(chaos.some(({ lostReplyShare }) => lostReplyShare > 0)).toBe(true);
  expect(chaos.some(({ restartsMs }) => restartsMs.length > 0)).toBe(true);
  expect(chaos.some(({ pauses }) => pauses.some(({ forMs }) => forMs > 250))).toBe(true);
});
