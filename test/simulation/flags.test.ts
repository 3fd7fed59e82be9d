import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FlagError } from "../../src/testing/simulation/flag-values.js";
import { parseFlags } from "../../src/testing/simulation/flags.js";
import { GOALS, judgeGoals } from "../../src/testing/simulation/goals.js";
import type { Metrics } from "../../src/testing/simulation/metrics.js";
import { SCENARIOS } from "../../src/testing/simulation/scenarios.js";
import { withTables } from "../../src/testing/simulation/write-tables.js";

describe("flags", () => {
  test("by default every scenario with five seeds", () => {
    const flags = parseFlags([], 2);
    expect(flags.scenarios).toEqual(SCENARIOS.map(({ id }) => id));
    expect(flags.seeds).toEqual([1, 2, 3, 4, 5]);
    expect(flags).toMatchObject({ baselines: false, worst: false, trace: false, forMs: null, jobs: 2 });
  });

  test("as given", () => {
    expect(parseFlags(["--scenario", "C,A", "--seed", "7", "--for", "1.5m", "--jobs", "1"], 2)).toMatchObject({
      scenarios: ["A", "C"],
      seeds: [7],
      forMs: 90_000,
      jobs: 1,
    });
    expect(parseFlags(["--worst"], 2)).toMatchObject({ scenarios: ["worst", "mixed"], worst: true });
    expect(parseFlags(["--worst", "--for", "5m"], 2).seeds.length).toBeGreaterThan(10_000);
    expect(parseFlags(["--worst", "--for", "5m", "--seeds", "3"], 2).seeds).toEqual([1, 2, 3]);
  });

  test.each([
    [["--scenario", "A,Z"], 'There is no scenario "Z"'],
    [["--seeds", "0"], '--seeds must be a whole number from 1, not "0"'],
    [["--seeds", "five"], '--seeds must be a whole number from 1, not "five"'],
    [["--seed", "1", "--seeds", "2"], "not both"],
    [["--for", "5"], "--for must be a length of time such as 90s, 5m or 1h"],
    [["--worst", "--scenario", "A"], "leave out --scenario"],
    [["--worst", "--baselines"], "don't go together"],
    [["--turbo"], "--turbo"],
    [["A"], "A"],
  ])("%j is told", (args, message) => {
    expect(() => parseFlags(args, 2)).toThrow(FlagError);
    expect(() => parseFlags(args, 2)).toThrow(message);
  });
});

describe("goals", () => {
  const metrics = (changes: Partial<Metrics>): Metrics => ({ capacity: 1.05, p99Ms: 40_000, ...changes }) as Metrics;
  const capacityOf = (verdicts: ReturnType<typeof judgeGoals>, scenario: string) =>
    verdicts.find(({ goal }) => goal.scenario === scenario && goal.name === "capacity");

  test("every one belongs to a scenario that exists", () => {
    const ids = new Set(SCENARIOS.map(({ id }) => id));
    for (const { scenario } of GOALS) expect(ids).toContain(scenario);
  });

  test("the worst seed decides, and a figure that is none is missed", () => {
    const judged = (...capacities: number[]) =>
      capacityOf(
        judgeGoals(
          new Map([["A", capacities.map((capacity, index) => ({ seed: index + 1, metrics: metrics({ capacity }) }))]]),
        ),
        "A",
      );
    expect(judged(1.06, 1.05, 1.07)).toMatchObject({ met: true, worst: 105, worstSeed: 2, seeds: 3 });
    expect(judged(1.06, 1.03)).toMatchObject({ met: false, worstSeed: 2 });
    expect(judged(1.04)).toMatchObject({ met: true });
    expect(judged(1.06, Number.NaN)).toMatchObject({ met: false });
  });

  test("a comparison uses the same seed, and is left out without it", () => {
    const ofC = (runs: Parameters<typeof judgeGoals>[0]) =>
      judgeGoals(runs).find(({ goal }) => goal.scenario === "C" && goal.name === "p99 over that of A");
    const c = [{ seed: 2, metrics: metrics({ p99Ms: 48_000 }) }];
    expect(ofC(new Map([["C", c]]))).toBeUndefined();
    const a = [
      { seed: 1, metrics: metrics({ p99Ms: 10_000 }) },
      { seed: 2, metrics: metrics({}) },
    ];
    expect(
      ofC(
        new Map([
          ["A", a],
          ["C", c],
        ]),
      ),
    ).toMatchObject({ met: true, worst: 1.2 });
  });
});

describe("the place in docs/benchmarks.md", () => {
  test("is there, takes the tables in place of older ones, and nothing else changes", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/benchmarks.md"), "utf8");
    const once = withTables(page, "| a |\n| b |");
    expect(once).toContain("<!-- sim:begin -->\n| a |\n| b |\n<!-- sim:end -->");
    expect(withTables(once, "| c |")).toBe(once.replace("| a |\n| b |", "| c |"));
    expect(() => withTables("no place", "x")).toThrow("docs/benchmarks.md has no place");
  });

  test("--write has nothing to write of --worst", () => {
    expect(parseFlags(["--write"], 1).write).toBe(true);
    expect(() => parseFlags(["--worst", "--write"], 1)).toThrow(FlagError);
  });
});
