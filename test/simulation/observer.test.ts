import { describe, expect, test } from "vitest";
import type { Governor, Grant, ScopeSnapshot, Settle, TickBatch, TickReply } from "../../src/ports/governor.js";
import type { AttemptRecord } from "../../src/testing/simulation/records.js";
import { runScenario } from "../../src/testing/simulation/run.js";
import type { Scenario } from "../../src/testing/simulation/scenario.js";
import { broken, FIVE, known, smaller, told } from "../../src/testing/simulation/sources.js";
import type { Tamper } from "../../src/testing/simulation/store.js";
import { small } from "./small.js";

/** A governor whose ticks are not quite what they should be. */
function tampered(tick: (governor: Governor, batch: TickBatch) => TickReply): Tamper {
  return (governor) => ({
    scope: governor.scope,
    tick: (batch) => tick(governor, batch),
    onEvent: (listener) => governor.onEvent(listener),
    snapshot: () => governor.snapshot(),
    progressAgeMs: () => governor.progressAgeMs(),
    close: () => governor.close(),
  });
}

const run = (governor: Governor, batch: TickBatch): TickReply => governor.tick(batch) as TickReply;

async function violationsOf(scenario: Scenario, tamper?: Tamper): Promise<readonly string[]> {
  const result = await runScenario(scenario, { seed: 2, ...(tamper === undefined ? {} : { tamper }) });
  expect(result.metrics.makespanMs).toBeGreaterThan(1_000);
  return result.violations;
}

/** The store believes in another configuration than the clients and the observer were told. */
const grantsMore: Tamper = tampered((governor, batch) => {
  const reply = run(governor, batch);
  const twins = reply.grants.map((grant) => ({ ...grant, leaseId: `${grant.leaseId}-twin` }));
  return { ...reply, grants: [...reply.grants, ...twins] };
});

const withSettles = (change: (settle: Settle) => Settle | null): Tamper =>
  tampered((governor, batch) => {
    const settles = batch.settles.flatMap((settle) => change(settle) ?? []);
    const reply = run(governor, { ...batch, settles });
    // As if all had been taken.
    const applied = [...batch.settles.map(() => true), ...reply.applied.slice(settles.length)];
    return { ...reply, applied };
  });

describe("the observer", () => {
  test.each(["A", "B", "C", "D", "G"])("finds nothing in scenario %s", async (id) => {
    expect(await violationsOf(small(id))).toEqual([]);
  });

  test("notices permits beyond a limit", async () => {
    const violations = await violationsOf(small("A"), grantsMore);
    expect(violations.join("\n")).toMatch(/has \d+ permits out, its limit is \d+/);
  });

  test("notices a lease that leaks", async () => {
    const leakOf = (lost: number): Tamper => {
      let count = 0;
      return withSettles((settle) => (++count === lost ? null : settle));
    };
    expect((await violationsOf(small("A"), leakOf(5))).join("\n")).toMatch(/counts \d+ permits, \d+ were granted/);
    expect((await violationsOf(small("A"), leakOf(300))).join("\n")).toMatch(/still counts 1 permits after the run/);
  });

  test("notices tokens that are settled wrongly", async () => {
    const wrong: Tamper = tampered((governor, batch) => {
      for (const settle of batch.settles as unknown as { actualTokens: number | null }[]) {
        if (settle.actualTokens !== null && settle.actualTokens > 0) settle.actualTokens += 1;
      }
      return run(governor, batch);
    });
    expect((await violationsOf(small("A"), wrong)).join("\n")).toMatch(
      /\d+ tokens were settled, the providers counted/,
    );
  });

  test("notices an attempt on an open source, and a second probe", async () => {
    const flapping = { kind: "flapping", fromMs: 1_000, toMs: Infinity, periodMs: 20_000, brokenMs: 10_000 } as const;
    const scenario = small("A", { sources: [known(broken(FIVE[0]!, flapping)), ...FIVE.slice(1).map(known)] });
    expect(await violationsOf(scenario)).toEqual([]);
    const blind = tampered((governor, batch) => {
      const reply = run(governor, batch);
      return { ...reply, grants: reply.grants.map((grant) => ({ ...grant, source: "alpha_1", probe: false })) };
    });
    expect((await violationsOf(scenario, blind)).join("\n")).toMatch(/alpha_1 is (half_)?open and granted/);
    const doubled = tampered((governor, batch) => {
      const reply = run(governor, batch);
      const probes = reply.grants.filter(({ probe }) => probe);
      return {
        ...reply,
        grants: [...reply.grants, ...probes.map((grant) => ({ ...grant, leaseId: `${grant.leaseId}-b` }))],
      };
    });
    expect((await violationsOf(scenario, doubled)).join("\n")).toMatch(/alpha_1 got a second probe/);
  });

  test("notices an attempt before Retry-After", async () => {
    // Half of what was promised, so that there are refusals; alpha_1 says when to come back.
    const sources = FIVE.map((upstream) => told(smaller(upstream, 0.2), known(upstream).configured));
    const scenario = small("A", { sources, scheduling: { pacer: false } });
    expect(await violationsOf(scenario)).toEqual([]);
    const heedless = tampered((governor, batch) => {
      const settles = batch.settles.map((settle) => ({ ...settle, rateLimited: undefined, retryAfterMs: undefined }));
      return run(governor, { ...batch, settles } as unknown as TickBatch);
    });
    expect((await violationsOf(scenario, heedless)).join("\n")).toMatch(/before its Retry-After has passed/);
  });

  test("notices a permit that its worker forgets", async () => {
    const { createObserver } = await import("../../src/testing/simulation/observer.js");
    const { SimulationKernel } = await import("../../src/testing/kernel.js");
    const kernel = new SimulationKernel();
    const observer = createObserver(kernel);
    const state: ScopeSnapshot = { scope: "SIM", sources: [], backend: { kind: "memory", ok: true } };
    const grant: Grant = {
      leaseId: "lease",
      source: "s",
      startInMs: 0,
      epoch: 0,
      probe: false,
      windowId: null,
      reservedTokens: 1,
      leaseTtlMs: 30_000,
      passedOver: [],
    };
    const batch: TickBatch = { worker: "w", seed: 1, settles: [], verdicts: [], renew: [], wants: [] };
    observer.ticked(batch, { grants: [grant], refusals: [], hintMs: null, applied: [] }, () => state);
    await kernel.advance(31_000);
    observer.finish([], 0, false, state);
    expect(observer.violations.join("\n")).toMatch(/1 permits ran out instead of being settled/);
  });

  test("notices an attempt without a permit, and a permit that the store knows nothing of", async () => {
    // A worker is told a permit that was given to another call.
    let last: Grant | undefined;
    const shared = tampered((governor, batch) => {
      const reply = run(governor, batch);
      const stolen = last;
      last = reply.grants[0] ?? last;
      const { wants } = batch;
      if (stolen === undefined || wants.length < 2 || reply.grants.length > 0) return reply;
      return { ...reply, grants: [{ ...stolen, leaseId: wants[1]!.leaseId }], refusals: [] };
    });
    expect((await violationsOf(small("A"), shared)).join("\n")).toMatch(/permits out|counts \d+ permits/);
    const { createObserver } = await import("../../src/testing/simulation/observer.js");
    const { SimulationKernel } = await import("../../src/testing/kernel.js");
    const observer = createObserver(new SimulationKernel());
    observer.expect({ limits: new Map() });
    const attempt: AttemptRecord = {
      leaseId: "lease",
      callIndex: 0,
      worker: 0,
      source: "s",
      startMs: 0,
      endMs: 0,
      outcome: "running",
      tokens: 0,
      refused: false,
    };
    observer.sent(attempt);
    expect(observer.violations.join("\n")).toMatch(/left for s without a permit of its own/);
  });

  test("notices a call without its final row", async () => {
    const { createObserver } = await import("../../src/testing/simulation/observer.js");
    const { SimulationKernel } = await import("../../src/testing/kernel.js");
    const observer = createObserver(new SimulationKernel());
    observer.row("a", true);
    observer.row("b", true);
    observer.row("b", true);
    observer.finish([], 3, false, { scope: "SIM", sources: [], backend: { kind: "memory", ok: true } });
    expect(observer.violations.join("\n")).toMatch(/1 calls have more than one final row/);
    expect(observer.violations.join("\n")).toMatch(/3 calls ended, 2 have a final row/);
  });
});
