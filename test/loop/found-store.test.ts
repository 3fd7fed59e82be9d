import { describe, expect, it } from "vitest";
import { type AllSourcesExhausted, GovernanceBackendError } from "../../src/errors.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { failingGovernor } from "./governors.js";
import {
  deadKey,
  failureOf,
  hi,
  noBreaker,
  noPacer,
  patient,
  serverError,
  settled,
  simulate,
  storeFor,
} from "./harness.js";

const stop = new Error("the user pressed stop");

/** Faults of the loop behind a slow, lossy or broken store that were found once, each with the test that found it. */
describe("a store that answers late or not at all", () => {
  it("a permit whose reply was lost is given back by its lease id", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const store = storeFor(kernel);
    let losing = true;
    const governor = store.connect(runtime, {
      backMs: () => 10,
      fault: (batch) => (losing && batch.wants.length > 0 ? { loseReply: new Error("reply lost") } : null),
    });
    const { client } = simulate({ kernel, options: { runtime, governor } });
    await failureOf(kernel, client.chat(hi));
    losing = false;
    await kernel.advance(5_000);
    expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({ inflight: 0 });
  });

  it("a permit that arrives older than its lease (frozen process) is never used, it goes back", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime("frozen");
    const setup = { sources: [{ maxConcurrency: 1 }] };
    const store = storeFor(kernel, setup);
    const governor = store.connect(runtime, { thereMs: () => 5, backMs: () => 5 });
    const simulation = simulate({
      kernel,
      ...setup,
      options: { runtime, governor },
      script: () => ({ afterMs: 10_000 }),
    });
    const call = simulation.client.chat(hi);
    await kernel.advance(7);
    kernel.freeze(runtime);
    await kernel.advance(60_000);
    const otherRuntime = kernel.runtime("other");
    const other = simulate({
      kernel,
      ...setup,
      options: { runtime: otherRuntime, governor: store.connect(otherRuntime) },
      script: () => ({ afterMs: 10_000 }),
    });
    const otherCall = other.client.chat(hi);
    await kernel.advance(100);
    kernel.thaw(runtime);
    await kernel.advance(500);
    expect(simulation.transport.inflight() + other.transport.inflight()).toBe(1);
    await kernel.run(Promise.all([call, otherCall]));
  });

  it("close() right after the last answer still gives every permit back", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const store = storeFor(kernel);
    const governor = store.connect(runtime, { thereMs: () => 50, backMs: () => 50 });
    const { client } = simulate({
      kernel,
      options: { runtime, governor },
      // The second ends while the account of the first is on its way.
      script: (_, n) => ({ afterMs: n === 1 ? 1_000 : 950 }),
    });
    const calls = [client.chat(hi), client.chat(hi)];
    await kernel.run(Promise.all(calls));
    await kernel.run(client.close());
    await kernel.advance(1_000);
    expect((await store.inner.snapshot()).sources[0]).toMatchObject({ inflight: 0 });
  });

  it("an outage is told to all waiting callers at once, not one after the other", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const governor = storeFor(kernel).connect(runtime, {
      thereMs: () => 250,
      fault: () => ({ refuse: new Error("hung") }),
    });
    const { client } = simulate({ kernel, options: { runtime, governor } });
    const ends = await kernel.run(settled(Array.from({ length: 40 }, () => client.chat(hi))));
    expect(ends.every((end) => end.status === "rejected")).toBe(true);
    expect(kernel.now()).toBeLessThanOrEqual(1_000);
  });

  it("a dead source is named dead, with its re-check, though another account is on its way", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = { sources: [{ model: "fine" }, { model: "gone" }] };
    const governor = storeFor(kernel, setup).connect(runtime, { thereMs: () => 50, backMs: () => 50 });
    const { client } = simulate({
      kernel,
      ...setup,
      options: { runtime, governor },
      script: ({ source }) => (source.model === "fine" ? { afterMs: 1_000 } : { afterMs: 950, error: deadKey() }),
    });
    const fine = client.chat({ ...hi, model: "fine" });
    const error = (await failureOf(kernel, client.chat({ ...hi, model: "gone" }))) as AllSourcesExhausted;
    expect(error).toMatchObject({ reason: "all_sources_dead", perSourceReasons: { s_2: { reason: "dead" } } });
    expect(error.retryAfterMs).toBeGreaterThan(30_000);
    await kernel.run(fine);
  });

  it("a failing call is not held up by the traffic of the others", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = { sources: [{ model: "busy" }, { model: "failing" }], options: { retry: { maxAttempts: 1 } } };
    const governor = storeFor(kernel, setup).connect(runtime, { thereMs: () => 5, backMs: () => 5 });
    const { client } = simulate({
      kernel,
      ...setup,
      options: { ...setup.options, runtime, governor },
      script: ({ source }) => (source.model === "busy" ? { afterMs: 33 } : { afterMs: 100, error: serverError() }),
    });
    let stopping = false;
    const traffic = Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        await runtime.sleep(i * 3);
        while (!stopping && kernel.now() < 60_000) await client.chat({ ...hi, model: "busy" });
      }),
    );
    const error = failureOf(kernel, client.chat({ ...hi, model: "failing" }));
    expect(await error).toMatchObject({ reason: "retry_exhausted" });
    expect(kernel.now()).toBeLessThan(1_000);
    stopping = true;
    await kernel.run(traffic);
  });

  it.each([
    ["while the tick is on its way", 5],
    ["while the outage is waited out", 100],
  ])("a permit whose reply was lost goes back when its caller leaves %s", async (_, leavesAtMs) => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    let losing = true;
    const governor = storeFor(kernel).connect(runtime, {
      backMs: () => 10,
      fault: (batch) => (losing && batch.wants.length > 0 ? { loseReply: new Error("reply lost") } : null),
    });
    const { client } = simulate({
      kernel,
      options: { runtime, governor, backpressure: { backendGraceMs: 60_000 } },
    });
    const controller = new AbortController();
    const call = client.chat({ ...hi, signal: controller.signal });
    await kernel.advance(leavesAtMs);
    controller.abort(stop);
    expect(await failureOf(kernel, call)).toBe(stop);
    losing = false;
    await kernel.advance(5_000);
    expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({ inflight: 0 });
  });

  it("a refusal that arrives while the progress of the scope is asked for doesn't end the wait", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = {
      sources: [
        { ...patient, model: "full", maxConcurrency: 1 },
        { model: "fine", ttftTimeoutMs: 9_000 },
      ],
      options: { backpressure: { stallWindowMs: 9_000 } },
    };
    const governor = storeFor(kernel, setup).connect(runtime, { thereMs: () => 200, backMs: () => 200 });
    const { client } = simulate({
      kernel,
      ...setup,
      options: { ...setup.options, runtime, governor },
      script: ({ source }, n) => ({ afterMs: source.model === "full" ? 15_000 : n === 2 ? 4_000 : 7_900 }),
    });
    const calls = [
      client.chat({ ...hi, model: "full" }),
      client.chat({ ...hi, model: "full" }),
      // Progress at 4,800; at 8,700 an account goes out that lets the waiting call be asked again, until 9,100.
      client.chat({ ...hi, model: "fine" }),
      client.chat({ ...hi, model: "fine" }),
    ];
    expect(await kernel.run(Promise.all(calls))).toHaveLength(4);
  });

  it("a first token that is not told yet is progress all the same", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = {
      sources: [
        { ...patient, model: "full", maxConcurrency: 1 },
        { model: "slow", timeoutMs: 600_000, ttftTimeoutMs: 9_000 },
        { model: "quick", ttftTimeoutMs: 9_000 },
      ],
      options: { backpressure: { stallWindowMs: 9_000 }, breaker: noBreaker, retry: { maxAttempts: 1 } },
    };
    const governor = storeFor(kernel, setup).connect(runtime, { thereMs: () => 200, backMs: () => 200 });
    const { client } = simulate({
      kernel,
      ...setup,
      options: { ...setup.options, runtime, governor },
      script: ({ source }) => {
        if (source.model === "full") return { afterMs: 15_000 };
        return source.model === "slow"
          ? { firstTokenMs: 8_150, afterMs: 20_000 }
          : { afterMs: 8_000, error: serverError() };
      },
    });
    // All start at 400 or 800; the one that waits is asked for its patience at 9,000.
    const holder = client.chat({ ...hi, model: "full" });
    const waiting = client.chat({ ...hi, model: "full" });
    const slow = client.chat({ ...hi, model: "slow" });
    const quick = client.chat({ ...hi, model: "quick" }).catch(() => null);
    // A tick is on its way (8,800 to 9,200) when the first token comes at 8,950 and patience ends at 9,000.
    expect((await kernel.run(waiting)).content).toBe("answer");
    await kernel.run(Promise.all([holder, slow, quick]));
  });
});

describe("warnings", () => {
  it("an outage of accounting under traffic is told once a minute at most for each kind", async () => {
    const kernel = new SimulationKernel();
    const governor = failingGovernor(storeFor(kernel, { options: noPacer }).inner, (batch) =>
      batch.settles.length > 0 ? new Error("down") : null,
    );
    const { client } = simulate({ kernel, options: { governor, breaker: noBreaker } });
    for (let i = 0; i < 300; i += 1) {
      await kernel.run(client.chat(hi));
      await kernel.advance(900);
    }
    const kinds = new Map<string, number>();
    for (const { message } of kernel.logs) kinds.set(message, (kinds.get(message) ?? 0) + 1);
    for (const count of kinds.values()) expect(count).toBeLessThanOrEqual(6);
  });

  it("leases lost together are one warning", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime("frozen");
    const store = storeFor(kernel, { options: noPacer });
    const { client } = simulate({
      kernel,
      sources: [patient],
      options: { runtime, governor: store.connect(runtime) },
      script: () => ({ afterMs: 200_000 }),
    });
    const calls = Promise.all(Array.from({ length: 50 }, () => client.chat(hi)));
    await kernel.advance(1_000);
    kernel.freeze(runtime);
    await kernel.advance(60_000);
    kernel.thaw(runtime);
    await kernel.run(calls);
    expect((await kernel.run(client.snapshot())).leases.lost).toBe(50);
    expect(kernel.logs.filter((line) => line.message.includes("lease"))).toHaveLength(1);
  });
});

describe("accounting", () => {
  it("one account that is refused for ever doesn't hold back the others", async () => {
    const kernel = new SimulationKernel();
    const setup = { sources: [{ model: "a" }, { model: "b" }] };
    const governor = failingGovernor(storeFor(kernel, setup).inner, (batch) =>
      batch.settles.some((settle) => settle.source === "s_1") ? new Error("poisoned record") : null,
    );
    const { client } = simulate({ kernel, ...setup, options: { governor } });
    await kernel.run(Promise.all([client.chat({ ...hi, model: "a" }), client.chat({ ...hi, model: "b" })]));
    await kernel.advance(10_000);
    expect((await kernel.run(client.snapshot())).sources[1]).toMatchObject({ inflight: 0 });
  });

  it("one account that is refused for ever doesn't keep the leases of running calls from being renewed", async () => {
    const kernel = new SimulationKernel();
    const setup = { sources: [{ model: "a" }, { ...patient, model: "b" }] };
    const governor = failingGovernor(storeFor(kernel, setup).inner, (batch) =>
      batch.settles.some((settle) => settle.source === "s_1") ? new Error("poisoned record") : null,
    );
    const { client } = simulate({
      kernel,
      ...setup,
      options: { governor },
      script: ({ source }) => ({ afterMs: source.model === "a" ? 100 : 90_000 }),
    });
    const running = client.chat({ ...hi, model: "b" });
    await kernel.run(client.chat({ ...hi, model: "a" }));
    await kernel.advance(60_000);
    const snapshot = await kernel.run(client.snapshot());
    expect(snapshot.leases.lost).toBe(0);
    expect(snapshot.sources[1]).toMatchObject({ inflight: 1 });
    await kernel.run(running);
  });

  it("a governor that admits at once but tells its progress later, and fails to, harms no process", async () => {
    const kernel = new SimulationKernel();
    const setup = {
      sources: [{ ...patient, maxConcurrency: 1 }],
      options: { backpressure: { stallWindowMs: 50_000, backendGraceMs: 60_000 } },
    };
    const governor = failingGovernor(storeFor(kernel, setup).inner, () => null, {
      progressAgeMs: () => Promise.reject(new Error("ECONNREFUSED")),
    });
    const { client } = simulate({
      kernel,
      ...setup,
      options: { ...setup.options, governor },
      script: (_, n) => ({ afterMs: n * 20_000 }),
    });
    const unheard: unknown[] = [];
    const listen = (error: unknown): number => unheard.push(error);
    process.on("unhandledRejection", listen);
    await kernel.run(settled([client.chat(hi), client.chat(hi), client.chat(hi), client.chat(hi)]));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", listen);
    expect(unheard).toEqual([]);
  });

  it("an outage told to several calls is each one's own error, with its own operation", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const down = new GovernanceBackendError("store is away", { scope: "LLM" });
    const governor = storeFor(kernel).connect(runtime, { thereMs: () => 50, fault: () => ({ refuse: down }) });
    const { client } = simulate({ kernel, options: { runtime, governor } });
    const plain = failureOf(kernel, client.chat(hi));
    const streamed = client.stream(hi).final.catch((error: unknown) => error);
    expect(await plain).toMatchObject({ reason: "governance_backend_down", operation: "chat" });
    expect(await streamed).toMatchObject({ reason: "governance_backend_down", operation: "chat_stream" });
    expect(await plain).not.toBe(await streamed);
  });
});
