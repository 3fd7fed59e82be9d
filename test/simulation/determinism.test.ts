import { describe, expect, test } from "vitest";
import { BASELINES } from "../../src/testing/simulation/baselines.js";
import { runScenario } from "../../src/testing/simulation/run.js";
import { scenarioOf, WORST_ID } from "../../src/testing/simulation/scenarios.js";
import { small } from "./small.js";

describe("a run is a function of its seed", () => {
  test.each(["A", "B", "D", "H", "F", "prio"])("scenario %s", async (id) => {
    const [first, again, other] = [
      await runScenario(small(id), { seed: 3 }),
      await runScenario(small(id), { seed: 3 }),
      await runScenario(small(id), { seed: 4 }),
    ];
    expect(again.hash).toBe(first.hash);
    expect(again.metrics).toEqual(first.metrics);
    expect(other.hash).not.toBe(first.hash);
  });

  test("with everything that goes wrong, and whether or not the trace is kept", async () => {
    const run = (keepsTrace: boolean) => runScenario(scenarioOf(WORST_ID, 17), { seed: 17, keepsTrace });
    const [silent, traced] = [await run(false), await run(true)];
    expect(traced.hash).toBe(silent.hash);
    expect(silent.trace).toEqual([]);
    expect(traced.trace.length).toBeGreaterThan(1_000);
    expect(traced.trace.some((line) => / worker-\d(\.\d)? send \w+_1 call \d+$/.test(line))).toBe(true);
  });

  test("of a baseline too", async () => {
    const baseline = BASELINES[0]!;
    const [first, again] = [
      await runScenario(small("A"), { seed: 5, baseline }),
      await runScenario(small("A"), { seed: 5, baseline }),
    ];
    expect(again.hash).toBe(first.hash);
  });
});
