import { describe, expect, test } from "vitest";
import { BASELINES } from "../../src/testing/simulation/baselines.js";
import { nominalCapacity } from "../../src/testing/simulation/capacity.js";
import { runScenario } from "../../src/testing/simulation/run.js";
import { scenarioOf } from "../../src/testing/simulation/scenarios.js";
import { planWorkload } from "../../src/testing/simulation/workload.js";
import { small } from "./small.js";

describe("nominal capacity", () => {
  const workload = { calls: [], meanTokens: 1_000, meanOutputTokens: 400 };

  test("is the tightest limit of each source, over time, and what the buckets hold at the start", () => {
    const nominal = nominalCapacity(scenarioOf("A", 1), workload);
    // 300/min · 240/min · 300,000/1,000 a minute · 120/min · 200/min.
    expect(nominal.totalRate).toBeCloseTo(5 + 4 + 5 + 2 + 200 / 60, 6);
    const credit = 10 * (5 + 4 + 5 + 2 + 200 / 60);
    expect(nominal.callsUntil(0)).toBeCloseTo(credit, 6);
    expect(nominal.callsUntil(60_000)).toBeCloseTo(credit + 60 * nominal.totalRate, 3);
  });

  test("a broken source counts for nothing while it is broken", () => {
    const whole = nominalCapacity(scenarioOf("A", 1), workload).callsUntil(600_000);
    const halfDead = nominalCapacity(scenarioOf("C", 1), workload).callsUntil(600_000);
    expect(whole - halfDead).toBeCloseTo(360 * 5, 0);
    const outage = nominalCapacity(scenarioOf("E", 1), workload);
    expect(whole - outage.callsUntil(600_000)).toBeCloseTo(120 * outage.totalRate, 0);
  });

  test("a ramp counts as far as it has come", () => {
    const whole = nominalCapacity(scenarioOf("A", 1), workload);
    const slow = nominalCapacity(scenarioOf("G", 1), workload);
    const lost = whole.callsUntil(150_000) - whole.callsUntil(0) - (slow.callsUntil(150_000) - slow.callsUntil(0));
    expect(lost).toBeCloseTo(0.375 * 150 * whole.totalRate, 0);
  });
});

test("the workload has the sizes of the specification", () => {
  const { calls } = planWorkload(scenarioOf("A", 1), 7);
  const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length / 2]!;
  expect(median(calls.map(({ inputTokens }) => inputTokens)) / 700).toBeCloseTo(1, 1);
  expect(median(calls.map(({ outputTokens }) => outputTokens)) / 350).toBeCloseTo(1, 1);
  expect(Math.max(...calls.map(({ outputTokens }) => outputTokens))).toBe(2_048);
});

describe("what is measured", () => {
  test("healthy sources: nothing lost, nothing refused, all workers alike", async () => {
    const { metrics } = await runScenario(small("A"), { seed: 1 });
    expect(metrics.lost).toBe(0);
    expect(metrics.limitedShare).toBe(0);
    expect(metrics.jain).toBeGreaterThan(0.9);
    expect(metrics.attempts).toBeGreaterThanOrEqual(300);
    expect(metrics.p50Ms).toBeLessThan(metrics.p99Ms);
    expect(metrics.firstTokenP99Ms).toBeLessThan(metrics.p99Ms);
    expect(metrics.capacity).toBeGreaterThan(0.1);
    expect(metrics.capacity).toBeLessThan(1.3);
  });

  test("a half-dead source: when it was isolated, what went into it, when it was back", async () => {
    const sources = scenarioOf("C", 1).sources.map(({ upstream, configured }) => ({
      upstream: {
        ...upstream,
        faults:
          upstream.faults.length === 0
            ? []
            : [{ kind: "half_dead" as const, fromMs: 5_000, toMs: 80_000, hangShare: 0.9 }],
      },
      configured,
    }));
    const watched = { source: "alpha_1", fromMs: 5_000, toMs: 80_000 };
    const { metrics, violations } = await runScenario(
      small("C", { sources, watched, calls: 2_500, callers: [60, 60, 60] }),
      { seed: 1 },
    );
    expect(violations).toEqual([]);
    expect(metrics.isolation!.afterMs).toBeLessThan(75_000);
    expect(metrics.isolation!.attempts).toBeLessThanOrEqual(metrics.intoBroken!);
    expect(metrics.recoveryMs! % 5_000).toBe(0);
  });

  test("hammering without shared limits wastes most of its attempts, and more where they are charged", async () => {
    const baseline = BASELINES.find(({ name }) => name === "round-robin 80")!;
    const play = async (id: string) => {
      const scenario = small(id, { calls: 1_500, callers: [100, 100, 100] });
      return (await runScenario(scenario, { seed: 1, baseline })).metrics;
    };
    const [kind, charged] = [await play("A"), await play("Ap")];
    expect(kind.limitedShare).toBeGreaterThan(0.1);
    expect(charged.capacity).toBeLessThan(kind.capacity);
  });

  test.each(BASELINES)("$name ends every call", async (baseline) => {
    const { metrics } = await runScenario(small("D"), { seed: 2, baseline });
    expect(metrics.attempts).toBeGreaterThan(300);
    expect(metrics.lost).toBeLessThan(300);
  });
});
