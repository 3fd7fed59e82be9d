import { describe, expect, test } from "vitest";
import { SCENARIOS } from "../../../src/testing/simulation/scenarios.js";
import { planWorkload, promptOf } from "../../../src/testing/simulation/workload.js";
import { indexOf, markedPrompt } from "./messages.js";
import { REAL_SCENARIOS, scaledOptions } from "./options.js";
import { type RealResult, reachesSimulation, scenarioReport } from "./report.js";

const result = (capacity: number, changes: Partial<RealResult> = {}): RealResult => ({
  plan: { scenario: "A", seed: 1, scale: 5 },
  simulated: { capacity: 1.08, makespanMs: 500_000, attempts: 9_010, limitedShare: 0, wastedShare: 0.001 },
  real: { capacity, makespanMs: 510_000, attempts: 9_020, limited: 3, wastedShare: 0.002 },
  failures: {},
  scriptsPerCall: 1.9,
  redisCpuShare: 0.2,
  ...changes,
});

describe("a scenario played for real", () => {
  test("is good from 95 % of the simulated throughput on", () => {
    expect(reachesSimulation(result(1.03))).toBe(true);
    expect(reachesSimulation(result(1.02))).toBe(false);
    expect(scenarioReport(result(1.02))).toContain("94.4 % of the simulated throughput (at least 95 %: MISSED)");
  });

  test("loses no call", () => {
    const lost = result(1.08, { failures: { retry_exhausted: 2 } });
    expect(reachesSimulation(lost)).toBe(false);
    expect(scenarioReport(lost)).toContain("2 retry_exhausted");
  });

  test("tells both times and the 429s", () => {
    const text = scenarioReport(result(1.08));
    expect(text).toMatch(/makespan, simulated time +500\.0 s +510\.0 s/);
    expect(text).toMatch(/makespan, real time +102\.0 s/);
    expect(text).toMatch(/429s +0 +3/);
  });

  test.each(REAL_SCENARIOS)("%s has its limits times the scale, and the same slots", (id) => {
    const scenario = SCENARIOS.find((one) => one.id === id)!;
    const { sources } = scaledOptions(scenario, 5, "redis://127.0.0.1:1", "http://127.0.0.1:2");
    expect(sources).toHaveLength(scenario.sources.length);
    for (const [index, { upstream }] of scenario.sources.entries()) {
      const { rpm, tpm, concurrency: maxConcurrency } = upstream;
      expect(sources[index]).toMatchObject({ rpm: rpm * 5, tpm: tpm * 5, maxConcurrency });
      // Nothing of it depends on the time of the simulation.
      expect(upstream).toMatchObject({ faults: [], headers: false });
    }
  });

  test("a prompt says which call it is of, at its full length", () => {
    const call = planWorkload({ ...SCENARIOS[0]!, calls: 20 }, 1).calls[17]!;
    const prompt = markedPrompt(call.index, promptOf(call));
    expect(prompt).toHaveLength(call.promptCharacters);
    expect(indexOf(prompt)).toBe(17);
  });
});
