import type { Scenario } from "../../src/testing/simulation/scenario.js";
import { scenarioOf } from "../../src/testing/simulation/scenarios.js";

/** A scenario of the full simulation with few calls, fit for a test. */
export function small(id: string, changes: Partial<Scenario> = {}): Scenario {
  const scenario = scenarioOf(id, 1);
  return { ...scenario, calls: 300, callers: [20, 20, 20], ...changes };
}
