import { describe, expect, it } from "vitest";
import type { Runtime } from "../../src/ports/runtime.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import type { ConnectionOptions, Store } from "./governors.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  patient,
  type Simulation,
  type SimulationOptions,
  serverError,
  settled,
  simulate,
  simulateOn,
  storeFor,
} from "./harness.js";

/** One process of a fleet: its own clock, which can stop, and its own connection to the store. */
function worker(
  kernel: SimulationKernel,
  store: Store,
  setup: SimulationOptions,
  connection: ConnectionOptions = { thereMs: () => 1, backMs: () => 1 },
): Simulation & { runtime: Runtime } {
  const runtime = kernel.runtime();
  const governor = store.connect(runtime, connection);
  return { ...simulate({ kernel, ...setup, options: { ...setup.options, runtime, governor } }), runtime };
}

async function inflight(store: Store): Promise<number> {
  return (await store.inner.snapshot()).sources.reduce((sum, source) => sum + source.inflight, 0);
}

/** Permits are leases (spec 02 §3): of workers that live, freeze, die, and of a store that forgets. */
describe("permits of a fleet", () => {
  const setup = { sources: [{ ...patient, maxConcurrency: 2 }], script: () => ({ afterMs: 100_000 }) };

  it("a dead worker's permits come back within TTL + 1 s, however long its timeouts are", async () => {
    const kernel = new SimulationKernel();
    const store = storeFor(kernel, setup);
    const victim = worker(kernel, store, setup);
    void victim.client.chat(hi).catch(() => {});
    void victim.client.chat(hi).catch(() => {});
    await kernel.advance(45_000);
    expect(await inflight(store)).toBe(2);
    kernel.kill(victim.runtime);
    const survivor = worker(kernel, store, setup);
    const calls = [survivor.client.chat(hi), survivor.client.chat(hi)];
    await kernel.advance(31_000);
    expect(survivor.transport.inflight()).toBe(2);
    await kernel.run(Promise.all(calls));
  });

  it("a dead worker's probe ends with its lease: another one probes within TTL + 1 s", async () => {
    const kernel = new SimulationKernel();
    const probeSetup = {
      sources: [patient],
      options: {
        breaker: { failThreshold: 1, cooldownMs: 1_000 },
        retry: { maxAttempts: 1 },
        backpressure: { whenOpen: "wait" as const },
      },
    };
    const store = storeFor(kernel, probeSetup);
    let broken = true;
    const victim = worker(kernel, store, {
      ...probeSetup,
      script: () => (broken ? { afterMs: 1, error: serverError() } : {}),
    });
    await failureOf(kernel, victim.client.chat(hi));
    broken = false;
    await kernel.advance(1_500);
    void victim.client.chat(hi).catch(() => {});
    await kernel.advance(10);
    expect((await store.inner.snapshot()).sources[0]).toMatchObject({ state: "half_open", probeInFlight: true });
    kernel.kill(victim.runtime);
    const survivor = worker(kernel, store, { ...probeSetup, script: () => ({ afterMs: 10 }) });
    const killedMs = kernel.now();
    expect((await kernel.run(survivor.client.chat(hi))).content).toBe("answer");
    expect(kernel.now() - killedMs).toBeLessThanOrEqual(31_000);
  });

  it("renewal keeps the permit of a call far longer than its TTL, and costs one tick for all of them", async () => {
    const kernel = new SimulationKernel();
    const long = { sources: [{ ...patient, maxConcurrency: 30 }], script: () => ({ afterMs: 200_000 }) };
    const store = storeFor(kernel, long);
    const renewals: number[] = [];
    const busy = worker(kernel, store, long, {
      thereMs: () => 1,
      backMs: () => 1,
      onTick: (batch) => batch.renew.length > 0 && renewals.push(batch.renew.length),
    });
    const calls = Array.from({ length: 30 }, () => busy.client.chat(hi));
    await kernel.advance(150_000);
    expect(await inflight(store)).toBe(30);
    expect(renewals.every((count) => count === 30)).toBe(true);
    expect(renewals).toHaveLength(14);
    await kernel.run(Promise.all(calls));
    expect((await kernel.run(busy.client.snapshot())).leases).toEqual({ live: 0, lost: 0 });
    await expectNothingLeft(busy);
  });

  it("a frozen worker loses its lease, not its call; it settles and releases nobody else's", async () => {
    const kernel = new SimulationKernel();
    const one = { sources: [{ ...patient, maxConcurrency: 1, tpm: 100_000, limitRule: "window" as const }] };
    const store = storeFor(kernel, one);
    const frozen = worker(kernel, store, { ...one, script: () => ({ afterMs: 40_000, totalTokens: 40_000 }) });
    const call = frozen.client.chat(hi);
    await kernel.advance(100);
    kernel.freeze(frozen.runtime);
    await kernel.advance(31_000);
    const other = worker(kernel, store, { ...one, script: () => ({ afterMs: 20_000, totalTokens: 100 }) });
    const theirs = other.client.chat(hi);
    await kernel.advance(1_000);
    expect(other.transport.inflight()).toBe(1);
    const held = (await store.inner.snapshot()).sources[0]!;
    kernel.thaw(frozen.runtime);
    expect((await kernel.run(call)).content).toBe("answer");
    await kernel.advance(10);
    const after = (await store.inner.snapshot()).sources[0]!;
    expect(after).toMatchObject({ inflight: 1, tokensUsed: held.tokensUsed, requestsUsed: held.requestsUsed });
    expect((await kernel.run(frozen.client.snapshot())).leases).toEqual({ live: 0, lost: 1 });
    expect(kernel.logs.some((line) => line.level === "warn" && line.message.includes("lease"))).toBe(true);
    await kernel.run(theirs);
    await kernel.advance(10);
    expect(await inflight(store)).toBe(0);
  });

  it("a lease that ended before its call did counts as lost, though only the settle finds out", async () => {
    const kernel = new SimulationKernel();
    const one = { sources: [{ ...patient, maxConcurrency: 1 }] };
    const store = storeFor(kernel, one);
    const frozen = worker(kernel, store, { ...one, script: () => ({ afterMs: 8_000 }) });
    const other = worker(kernel, store, { ...one, script: () => ({ afterMs: 1_000 }) });
    const call = frozen.client.chat(hi);
    await kernel.advance(1_000);
    // It wakes up to the end of its call, before any renewal.
    kernel.freeze(frozen.runtime);
    await kernel.advance(40_000);
    await kernel.run(other.client.chat(hi));
    kernel.thaw(frozen.runtime);
    expect((await kernel.run(call)).content).toBe("answer");
    await kernel.advance(10);
    expect((await kernel.run(frozen.client.snapshot())).leases).toEqual({ live: 0, lost: 1 });
    expect((await kernel.run(other.client.snapshot())).leases).toEqual({ live: 0, lost: 0 });
    expect(kernel.logs.some((line) => line.level === "warn" && line.message.includes("lease"))).toBe(true);
  });

  it("an outcome that comes too late for the breaker is no lost lease", async () => {
    const kernel = new SimulationKernel();
    const two = {
      sources: [{ ...patient, maxConcurrency: 2 }],
      options: { breaker: { failThreshold: 1, cooldownMs: 60_000 }, retry: { maxAttempts: 1 } },
    };
    const store = storeFor(kernel, two);
    const one = worker(kernel, store, {
      ...two,
      script: (_, n) => (n === 1 ? { afterMs: 40_000 } : { afterMs: 10, error: serverError() }),
    });
    const slow = one.client.chat(hi);
    await kernel.advance(10);
    await failureOf(kernel, one.client.chat(hi));
    expect((await kernel.run(slow)).content).toBe("answer");
    await kernel.advance(10);
    expect((await kernel.run(one.client.snapshot())).leases).toEqual({ live: 0, lost: 0 });
  });

  it("a permit that grew older than its lease while its journal row was committed is given back unsent", async () => {
    const kernel = new SimulationKernel();
    const one = { sources: [{ ...patient, maxConcurrency: 1, rpm: 60, limitRule: "window" as const }] };
    const store = storeFor(kernel, one);
    const frozen = worker(kernel, store, {
      ...one,
      options: { telemetryOptions: { journal: "before_send" } },
      commit: () => frozen.runtime.sleep(200),
      script: () => ({ afterMs: 1_000 }),
    });
    const call = frozen.client.chat(hi);
    await kernel.advance(100);
    kernel.freeze(frozen.runtime);
    await kernel.advance(40_000);
    kernel.thaw(frozen.runtime);
    const reply = await kernel.run(call);
    expect(frozen.transport.sends).toHaveLength(1);
    expect(frozen.transport.sends[0]!.callId).toBe(reply.callId);
    expect(frozen.recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["cancelled", false],
      ["success", true],
    ]);
    expect(frozen.recorder.rows[0]!.error).toContain("unsent");
    await kernel.advance(100);
    expect(await inflight(store)).toBe(0);
  });

  it("limits hold over workers that freeze and die: never more than the limit among the living", async () => {
    const kernel = new SimulationKernel({ seed: 7 });
    const three = { sources: [{ ...patient, maxConcurrency: 3 }] };
    const store = storeFor(kernel, three);
    const alive: ReturnType<typeof worker>[] = [];
    let most = 0;
    for (let i = 0; i < 4; i += 1) {
      const one = worker(kernel, store, {
        ...three,
        script: (_, n) => {
          most = Math.max(
            most,
            alive.reduce((sum, each) => sum + each.transport.inflight(), 0),
          );
          return { afterMs: 3_000 + 500 * (n % 5) };
        },
      });
      alive.push(one);
    }
    const survivors = [alive[2]!, alive[3]!];
    const doomed = alive.slice(0, 2).flatMap((each) => Array.from({ length: 6 }, () => each.client.chat(hi)));
    for (const call of doomed) call.catch(() => {});
    const calls = survivors.flatMap((each) => Array.from({ length: 12 }, () => each.client.chat(hi)));
    await kernel.advance(4_000);
    for (const victim of alive.splice(0, 2)) kernel.kill(victim.runtime);
    expect(await kernel.run(settled(calls))).toHaveLength(24);
    await kernel.advance(31_000);
    expect(most).toBe(3);
    expect(await inflight(store)).toBe(0);
  });

  it("a store that restarts empty: calls in flight end well, their leases count as lost, new ones go on", async () => {
    const kernel = new SimulationKernel();
    const store = storeFor(kernel, setup);
    const simulation = worker(kernel, store, { ...setup, script: () => ({ afterMs: 15_000 }) });
    const calls = Array.from({ length: 4 }, () => simulation.client.chat(hi));
    await kernel.advance(5_000);
    store.restartEmpty();
    expect(await kernel.run(Promise.all(calls))).toHaveLength(4);
    expect((await kernel.run(simulation.client.snapshot())).leases).toMatchObject({ live: 0, lost: 2 });
    expect(await inflight(store)).toBe(0);
  });

  it("a lease taken on one connection refuses on another, and a success there is progress here", async () => {
    const kernel = new SimulationKernel();
    const shared = {
      sources: [
        { ...patient, maxConcurrency: 1, model: "a" },
        { model: "b", ttftTimeoutMs: 20_000 },
      ],
      options: { backpressure: { stallWindowMs: 30_000 } },
    };
    const store = storeFor(kernel, shared);
    const here = worker(kernel, store, { ...shared, script: () => ({ afterMs: 100_000 }) });
    const there = worker(kernel, store, { ...shared, script: () => ({ afterMs: 100 }) });
    const holder = here.client.chat({ ...hi, model: "a" });
    await kernel.advance(10);
    const waiting = there.client.chat({ ...hi, model: "a" });
    await kernel.advance(10);
    expect((await kernel.run(there.client.snapshot())).waiting.count).toBe(1);
    // Somebody else's successes keep the scope alive, for those who wait here and there.
    const third = worker(kernel, store, { ...shared, script: () => ({ afterMs: 100 }) });
    for (let i = 0; i < 10; i += 1) {
      await kernel.run(third.client.chat({ ...hi, model: "b" }));
      await kernel.advance(10_000);
    }
    expect((await kernel.run(waiting)).content).toBe("answer");
    await kernel.run(holder);
  });
});

describe.each(GOVERNOR_KINDS)("permits of one client (%s governor)", (governor) => {
  it("a call longer than the lease keeps its permit by renewal", async () => {
    const simulation = simulateOn(governor)({
      sources: [{ ...patient, maxConcurrency: 1 }],
      options: { leaseTtlMs: 3_000 },
      script: () => ({ afterMs: 60_000 }),
    });
    const { kernel, client, transport } = simulation;
    const calls = [client.chat(hi), client.chat(hi)];
    await kernel.advance(59_000);
    expect(transport.inflight()).toBe(1);
    await kernel.run(Promise.all(calls));
    await expectNothingLeft(simulation);
  });
});
