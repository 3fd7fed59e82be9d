import { describe, expect, it } from "vitest";
import { MemoryGovernor } from "../../src/backends/memory/governor.js";
import {
  GatewayUnavailableError,
  GovernanceBackendError,
  SourceNotConfiguredError,
  TransientError,
} from "../../src/errors.js";
import type { Governor, TickBatch } from "../../src/ports/governor.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { failingGovernor } from "./governors.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  type GovernorKind,
  hi,
  limited,
  noBreaker,
  patient,
  readAll,
  type Simulation,
  type SimulationOptions,
  serverError,
  simulate,
  storeFor,
} from "./harness.js";

type Fault = (batch: TickBatch) => Error | null;

/** A client on a governor of this kind that fails where the test says; `extra` replaces whole methods. */
function simulateFaulty(
  kind: GovernorKind,
  fault: Fault,
  setup: SimulationOptions = {},
  extra: Partial<Governor> = {},
): Simulation {
  const kernel = new SimulationKernel();
  const runtime = kernel.runtime();
  const store = storeFor(kernel, setup);
  const governor =
    kind === "sync"
      ? failingGovernor(store.inner, fault, extra)
      : {
          ...store.connect(runtime, {
            fault: (batch) => {
              const error = fault(batch);
              return error === null ? null : { refuse: error };
            },
          }),
          ...extra,
        };
  return simulate({ ...setup, kernel, options: { ...setup.options, runtime, governor } });
}

const failures = [
  ["GovernanceBackendError", () => new GovernanceBackendError("store is away", { scope: "LLM" })],
  ["SourceNotConfiguredError", () => new SourceNotConfiguredError("no such source", { sourceName: "s_1" })],
  ["a plain Error", () => new Error("socket hang up")],
] as const;

const steps: readonly [string, (batch: TickBatch) => boolean][] = [
  ["settle", (batch) => batch.settles.length > 0],
  ["verdict (first token, progress)", (batch) => batch.verdicts.length > 0],
  ["renewal", (batch) => batch.renew.length > 0],
  ["account of any kind", (batch) => batch.settles.length + batch.verdicts.length + batch.renew.length > 0],
];

const cases = GOVERNOR_KINDS.flatMap((kind) =>
  failures.flatMap(([errorName, makeError]) =>
    steps.map(([step, concerns]) => ({ kind, errorName, makeError, step, concerns })),
  ),
);

describe("accounting never loses a response", () => {
  it.each(cases)(
    "$errorName from every $step ($kind governor): the answer arrives, the row is written, the books are sent again",
    async ({ kind, makeError, concerns }) => {
      let failing = true;
      const simulation = simulateFaulty(kind, (batch) => (failing && concerns(batch) ? makeError() : null), {
        script: () => ({ firstTokenMs: 100, afterMs: 12_000 }),
      });
      const { kernel, client, recorder } = simulation;
      expect((await kernel.run(client.chat(hi))).content).toBe("answer");
      expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["success", true]]);
      failing = false;
      await kernel.advance(6_000);
      const snapshot = await kernel.run(client.snapshot());
      expect(snapshot.sources[0]).toMatchObject({ inflight: 0, state: "closed" });
      await expectNothingLeft(simulation);
    },
  );

  it.each(cases)(
    "$errorName from every $step ($kind governor): a failing call keeps its original error",
    async ({ kind, makeError, concerns }) => {
      const original = new TransientError("s_1 transient failure: 500", { statusCode: 500 });
      const { kernel, client } = simulateFaulty(kind, (batch) => (concerns(batch) ? makeError() : null), {
        options: { retry: { maxAttempts: 1 } },
        script: () => ({ firstTokenMs: 100, afterMs: 12_000, error: original }),
      });
      expect(((await failureOf(kernel, client.chat(hi))) as Error).cause).toBe(original);
    },
  );

  it.each(cases)(
    "$errorName from every $step ($kind governor): a stream is read to its end",
    async ({ kind, makeError, concerns }) => {
      const { kernel, client } = simulateFaulty(kind, (batch) => (concerns(batch) ? makeError() : null), {
        script: () => ({ firstTokenMs: 100, afterMs: 12_000 }),
      });
      const events = await kernel.run(readAll(client.stream(hi)));
      expect(events.map((event) => event.type)).toEqual(["text-delta", "usage", "finish"]);
    },
  );

  it.each(GOVERNOR_KINDS.flatMap((kind) => failures.map(([errorName, makeError]) => ({ kind, errorName, makeError }))))(
    "$errorName when a probe is handed back ($kind governor): the reason passes, the probe is free afterwards",
    async ({ kind, makeError }) => {
      let failing = false;
      let broken = true;
      const simulation = simulateFaulty(
        kind,
        (batch) => (failing && batch.settles.some((settle) => settle.probe) ? makeError() : null),
        {
          options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 1, cooldownMs: 1_000 } },
          script: () => (broken ? { afterMs: 1, error: serverError() } : {}),
        },
      );
      const { kernel, client } = simulation;
      await failureOf(kernel, client.chat(hi));
      await kernel.advance(1_500);
      broken = false;
      failing = true;
      const reason = new Error("the user pressed stop");
      const controller = new AbortController();
      const probe = client.chat({ ...hi, signal: controller.signal });
      await kernel.advance(10);
      controller.abort(reason);
      expect(await failureOf(kernel, probe)).toBe(reason);
      failing = false;
      await kernel.advance(1_000);
      expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({
        state: "half_open",
        probeInFlight: false,
        inflight: 0,
      });
      await expectNothingLeft(simulation, controller.signal);
    },
  );

  it.each(GOVERNOR_KINDS)(
    "while accounts fail, other calls are still admitted as far as the books allow (%s governor)",
    async (kind) => {
      let failing = true;
      const { kernel, client } = simulateFaulty(
        kind,
        (batch) => (failing && batch.settles.length > 0 ? new Error("down") : null),
        { sources: [{ maxConcurrency: 3 }] },
      );
      for (let i = 0; i < 3; i += 1) await kernel.run(client.chat(hi));
      const fourth = client.chat(hi);
      await kernel.advance(1_000);
      // Its permits could not be given back: admission stays closed, nothing is let through.
      expect((await kernel.run(client.snapshot())).waiting.count).toBe(1);
      failing = false;
      expect((await kernel.run(fourth)).content).toBe("answer");
    },
  );

  it.each(GOVERNOR_KINDS)(
    "what the governor never takes is dropped after the lease's life, with one counted warning (%s governor)",
    async (kind) => {
      const { kernel, client } = simulateFaulty(kind, (batch) => (batch.settles.length > 0 ? new Error("down") : null));
      await kernel.run(client.chat(hi));
      await kernel.advance(120_000);
      const dropped = kernel.logs.filter((entry) => entry.message.includes("accounting was dropped"));
      expect(dropped).toHaveLength(1);
      expect(dropped[0]!.level).toBe("warn");
      expect(dropped[0]!.atMs).toBeLessThanOrEqual(33_000);
      expect(dropped[0]!.message).toMatch(/\b1\b/);
      expect(kernel.pendingTimers()).toBe(0);
    },
  );
});

describe.each(GOVERNOR_KINDS)("admission fails closed (%s governor)", (kind) => {
  it("an unknown source name reaches the caller as itself and leaves one row", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const empty = new MemoryGovernor({ scope: "LLM", sources: [], runtime });
    const governor: Governor =
      kind === "sync" ? empty : { ...failingGovernor(empty, () => null), tick: async (batch) => empty.tick(batch) };
    const { client, recorder, transport } = simulate({ kernel, options: { governor, runtime } });
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toBeInstanceOf(SourceNotConfiguredError);
    expect(error).not.toBeInstanceOf(GatewayUnavailableError);
    expect((error as Error).message).toContain("s_1");
    expect(transport.sends).toHaveLength(0);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["misconfigured", true]]);
  });

  it("a wrong configuration is not waited out, however long the grace", async () => {
    const { kernel, client } = simulateFaulty(kind, () => new SourceNotConfiguredError("no such source"), {
      options: { backpressure: { backendGraceMs: 60_000 } },
    });
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(SourceNotConfiguredError);
    expect(kernel.now()).toBe(0);
  });

  it("one call with an unknown source doesn't take the others down with it", async () => {
    const setup = { sources: [{ model: "known" }, { model: "unknown" }] };
    const { kernel, client } = simulateFaulty(
      kind,
      (batch) =>
        batch.wants.some((want) => want.candidates.includes("s_2")) ? new SourceNotConfiguredError("no s_2") : null,
      setup,
    );
    const ends = await kernel.run(
      Promise.allSettled(["known", "unknown", "known", "unknown"].map((model) => client.chat({ ...hi, model }))),
    );
    expect(ends.map((end) => end.status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
  });

  it("GovernanceBackendError with scope, reason, the message kept, and 5 s; nothing is sent", async () => {
    const { kernel, client, transport, recorder } = simulateFaulty(kind, () => new Error("ECONNREFUSED store:6379"));
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toBeInstanceOf(GovernanceBackendError);
    expect(error).toMatchObject({
      scope: "LLM",
      reason: "governance_backend_down",
      retryAfterMs: 5_000,
      perSourceReasons: {},
      sourceName: "s_1",
      operation: "chat",
    });
    expect((error as Error).message).toBe("governor tick failed: ECONNREFUSED store:6379");
    expect((error as Error).cause).toMatchObject({ message: "ECONNREFUSED store:6379" });
    expect(transport.sends).toHaveLength(0);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["unavailable", true]]);
  });

  it("a GovernanceBackendError of the governor keeps its message", async () => {
    const { kernel, client } = simulateFaulty(
      kind,
      () => new GovernanceBackendError("store: command timed out after 250 ms", { scope: "LLM" }),
    );
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({
      message: "store: command timed out after 250 ms",
      retryAfterMs: 5_000,
    });
  });

  const down = () => {
    throw new Error("ECONNREFUSED store:6379");
  };
  const rejecting = () => Promise.reject(new Error("ECONNREFUSED store:6379"));

  it.each([
    ["progress age throws", { progressAgeMs: down }],
    ["progress age rejects", { progressAgeMs: rejecting }],
    ["the snapshot of a stalled call rejects", { snapshot: rejecting }],
    ["the snapshot of a stalled call throws", { snapshot: down }],
  ])("%s while a call waits: GovernanceBackendError", async (_, extra) => {
    const { kernel, client } = simulateFaulty(
      kind,
      () => null,
      {
        sources: [{ timeoutMs: 600_000, ttftTimeoutMs: 50_000 }],
        options: { backpressure: { stallWindowMs: 50_000 } },
        script: () => ({ afterMs: 30_000, error: limited(10_000) }),
      },
      extra,
    );
    const error = await failureOf(kernel, client.chat({ ...hi, stream: false }));
    expect(error).toBeInstanceOf(GovernanceBackendError);
    expect(error).toMatchObject({ scope: "LLM", retryAfterMs: 5_000 });
    expect((error as Error).message).toContain("ECONNREFUSED");
  });

  it("the same of a call that waits in the queue", async () => {
    const { kernel, client } = simulateFaulty(
      kind,
      () => null,
      {
        sources: [{ ...patient, maxConcurrency: 1 }],
        options: { backpressure: { stallWindowMs: 50_000 } },
        script: () => ({ afterMs: 200_000 }),
      },
      { progressAgeMs: rejecting },
    );
    const holder = client.chat(hi);
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(GovernanceBackendError);
    expect(kernel.now()).toBe(50_000);
    await kernel.run(holder);
  });

  it("within its grace a waiting call survives that the progress can't be asked", async () => {
    let failing = true;
    const { kernel, client } = simulateFaulty(
      kind,
      () => null,
      {
        sources: [{ ...patient, maxConcurrency: 1 }],
        options: { backpressure: { stallWindowMs: 50_000, backendGraceMs: 30_000 } },
        script: () => ({ afterMs: 70_000 }),
      },
      { progressAgeMs: () => (failing ? rejecting() : 1_000) },
    );
    const calls = Promise.all([client.chat(hi), client.chat(hi)]);
    await kernel.advance(60_000);
    failing = false;
    expect(await kernel.run(calls)).toHaveLength(2);
  });

  it("a user's selector asks for the snapshot: its failure is a GovernanceBackendError too", async () => {
    const { kernel, client } = simulateFaulty(
      kind,
      () => null,
      { options: { selector: { order: (names) => names } } },
      { snapshot: rejecting },
    );
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(GovernanceBackendError);
  });

  it("snapshot() of the client fails the same way", async () => {
    const { kernel, client } = simulateFaulty(kind, () => null, {}, { snapshot: rejecting });
    expect(await failureOf(kernel, Promise.resolve(client.snapshot()))).toBeInstanceOf(GovernanceBackendError);
  });

  it("a snapshot that only explains is done without: the failure that is told stays", async () => {
    const { kernel, client } = simulateFaulty(
      kind,
      () => null,
      {
        sources: [{}, {}],
        options: { retry: { maxAttempts: 2, backoffBaseMs: 100 }, breaker: noBreaker },
        script: () => ({ afterMs: 1, error: serverError() }),
      },
      { snapshot: rejecting },
    );
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({
      reason: "retry_exhausted",
      cause: { statusCode: 500 },
    });
  });

  it("within backendGraceMs calls allowed to wait survive an outage; without it they are told at once", async () => {
    let down = true;
    const { kernel, client } = simulateFaulty(kind, () => (down ? new Error("down") : null), {
      options: { backpressure: { backendGraceMs: 60_000 } },
    });
    const calls = Promise.all([client.chat(hi), client.chat(hi)]);
    await kernel.advance(20_000);
    const late = client.chat(hi);
    await kernel.advance(5_000);
    down = false;
    expect(await kernel.run(calls)).toHaveLength(2);
    await kernel.run(late);
    down = true;
    const fromMs = kernel.now();
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(GovernanceBackendError);
    expect(kernel.now() - fromMs).toBeGreaterThanOrEqual(60_000);
    expect(kernel.now() - fromMs).toBeLessThanOrEqual(63_000);
    // Said once per outage and minute, not with every try.
    const said = kernel.logs.filter((line) => line.level === "warn");
    expect(said.length).toBeLessThanOrEqual(4);
  });

  it("every outage has a grace of its own, however long ago the last one was", async () => {
    let down = false;
    const { kernel, client } = simulateFaulty(kind, () => (down ? new Error("down") : null), {
      sources: [{ maxConcurrency: 1, timeoutMs: 400_000 }],
      options: { backpressure: { backendGraceMs: 60_000 } },
      script: () => ({ afterMs: 200_000 }),
    });
    const plain = { ...hi, stream: false };
    const calls = Promise.all([client.chat(plain), client.chat(plain)]);
    for (const atMs of [20_000, 120_000]) {
      await kernel.advance(atMs - kernel.now());
      down = true;
      // Somebody else has to be refused, for those who wait to be asked for.
      const other = client.chat({ ...plain, priority: -1, deadlineMs: 9_000 }).catch(() => null);
      await kernel.advance(10_000);
      down = false;
      await kernel.run(other);
      await kernel.advance(40_000);
    }
    expect(await kernel.run(calls)).toHaveLength(2);
  });

  it("cancellation and deadline end a call that waits out an outage", async () => {
    let down = true;
    const simulation = simulateFaulty(kind, () => (down ? new Error("down") : null), {
      options: { backpressure: { backendGraceMs: 60_000 } },
    });
    const { kernel, client } = simulation;
    const reason = new Error("the user pressed stop");
    const controller = new AbortController();
    const cancelled = client.chat({ ...hi, signal: controller.signal });
    const late = client.chat({ ...hi, deadlineMs: 7_000 });
    await kernel.advance(5_000);
    controller.abort(reason);
    expect(await failureOf(kernel, cancelled)).toBe(reason);
    expect(await failureOf(kernel, late)).toMatchObject({ reason: "deadline_exceeded" });
    expect(kernel.now()).toBe(7_000);
    // What may have been granted is given back once the governor listens again.
    down = false;
    await kernel.advance(3_000);
    await expectNothingLeft(simulation, controller.signal);
  });
});

describe("telemetry never fails a call", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("disk");
      },
    ],
    ["rejects", () => Promise.reject(new Error("disk"))],
    ["never resolves", () => new Promise<void>(() => {})],
  ])("a recorder that %s", async (_, record) => {
    const kernel = new SimulationKernel();
    const recorder = {
      name: "faulty",
      open: record,
      record,
      flush: async () => {},
      close: async () => {},
      stats: () => ({ written: 0, queued: 0, dropped: 0 }),
    };
    const { client } = simulate({
      kernel,
      options: { telemetry: recorder, telemetryOptions: { journal: "before_send", durability: "sync" } },
    });
    expect((await kernel.run(client.chat(hi))).content).toBe("answer");
    expect((await kernel.run(client.stream(hi).final)).content).toBe("answer");
    await kernel.run(client.close());
    expect(kernel.pendingTimers()).toBe(0);
  });
});

describe.each(GOVERNOR_KINDS)("fencing through the client (%s governor)", (kind) => {
  it("a probe's late verdict after its lease moved on is not applied", async () => {
    let mode: "fail" | "slow" | "slower" = "fail";
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    // The store's leases live 5 s; this client believes in much longer ones and renews too late.
    const setup = {
      sources: [patient],
      options: { breaker: { failThreshold: 1, cooldownMs: 1_000 }, leaseTtlMs: 5_000 },
    };
    const store = storeFor(kernel, setup);
    const governor = kind === "sync" ? failingGovernor(store.inner, () => null) : store.connect(runtime);
    const { client } = simulate({
      kernel,
      ...setup,
      options: { ...setup.options, leaseTtlMs: 10_000_000, retry: { maxAttempts: 1 }, governor, runtime },
      script: () => {
        if (mode === "fail") return { afterMs: 1, error: serverError() };
        return mode === "slow" ? { afterMs: 11_000 } : { afterMs: 4_000, error: serverError() };
      },
    });
    await failureOf(kernel, client.chat(hi));
    await kernel.advance(2_000);
    mode = "slow";
    const late = client.chat(hi);
    await kernel.advance(10_000);
    // The first probe's lease is gone: somebody else probes, and is still at it when the late answer comes.
    mode = "slower";
    const probe = client.chat(hi).catch(() => null);
    expect((await kernel.run(late)).content).toBe("answer");
    await kernel.advance(0);
    expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({
      state: "half_open",
      probeInFlight: true,
      inflight: 1,
      epoch: 1,
    });
    await kernel.run(probe);
    await kernel.advance(0);
    expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({ state: "open", epoch: 2, inflight: 0 });
  });
});
