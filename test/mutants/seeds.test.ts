import { expect, test } from "vitest";
import { runScenario } from "../../src/testing/simulation/run.js";
import { MIXED_ID, scenarioOf, WORST_ID } from "../../src/testing/simulation/scenarios.js";

/** A plain run only shows that the unchanged code keeps every promise; `npm run mutate` says how many seeds to play. */
const SEEDS = Number(process.env.MUTANT_SEEDS ?? "") || 20;
/** Sources that hang or flap may cost a call its last try, and no more than that. */
const MAY_BE_LOST = 0.1;

/** What a fleet did wrong; null = nothing. */
async function troubleOf(id: string, seed: number): Promise<string | null> {
  const scenario = scenarioOf(id, seed);
  try {
    const { violations, metrics } = await runScenario(scenario, { seed });
    if (violations.length > 0) return violations[0]!;
    const mayBeLate = scenario.deadlineMs !== undefined;
    if (!mayBeLate && metrics.lost > MAY_BE_LOST * scenario.calls) return `lost ${JSON.stringify(metrics.failures)}`;
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

test("every promise of the simulated fleet holds, seed by seed", { timeout: 110_000 }, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const id of [MIXED_ID, WORST_ID]) {
      const trouble = await troubleOf(id, seed);
      if (trouble !== null) expect.fail(`broken at seed ${seed} in ${id}: ${trouble}`);
    }
  }
});
