import { describe, expect, it } from "vitest";
import { MemoryGovernor } from "../../src/backends/memory/governor.js";
import {
  GatewayUnavailableError,
  GovernanceBackendError,
  SourceNotConfiguredError,
  TransientError,
} from "../../src/errors.js";
import type { Governor, TickBatch, TickReply } from "../../src/ports/governor.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { failureOf, hi, simulate } from "./harness.js";

type Fault = (batch: TickBatch) => Error | null;

/** The real governor behind a wrapper that fails where the test says. */
function faultyGovernor(kernel: SimulationKernel, fault: Fault, extra: Partial<Governor> = {}): Governor {
  const probe = simulate({ kernel });
  void probe;
  const inner = new MemoryGovernor({ scope: "LLM", sources: sourceConfigs(), runtime: kernel.runtime() });
  return {
    scope: "LLM",
    tick(batch): TickReply {
      const error = fault(batch);
      if (error !== null) throw error;
      return inner.tick(batch);
    },
    onEvent: (listener) => inner.onEvent(listener),
    snapshot: () => inner.snapshot(),
    progressAgeMs: () => inner.progressAgeMs(),
    close: () => inner.close(),
    ...extra,
  };
}

import { resolveScope } from "../../src/config/resolve.js";

function sourceConfigs() {
  return resolveScope({
    scope: "LLM",
    sources: [{ name: "s_1", baseUrl: "http://127.0.0.1:9/v1", apiKey: "sk-simulated-key", model: "m" }],
  }).config.sources;
}

const failures = [
  ["GovernanceBackendError", () => new GovernanceBackendError("store is away", { scope: "LLM" })],
  ["SourceNotConfiguredError", () => new SourceNotConfiguredError("no such source", { sourceName: "s_1" })],
  ["a plain Error", () => new Error("socket hang up")],
] as const;

const steps: readonly [string, (batch: TickBatch) => boolean][] = [
  ["settle", (batch) => batch.settles.length > 0],
  ["verdict", (batch) => batch.verdicts.length > 0],
  ["renewal", (batch) => batch.renew.length > 0],
];

describe("accounting never loses a response", () => {
  for (const [errorName, makeError] of failures) {
    for (const [step, concerns] of steps) {
      it(`${errorName} from every ${step}: the answer arrives, the row is written, the books are sent again`, async () => {
        const kernel = new SimulationKernel();
        let failing = true;
        const governor = faultyGovernor(kernel, (batch) => (failing && concerns(batch) ? makeError() : null));
        const { client, recorder } = simulate({
          kernel,
          options: { governor },
          script: () => ({ firstTokenMs: 100, afterMs: 12_000 }),
        });
        const reply = await kernel.run(client.chat(hi));
        expect(reply.content).toBe("answer");
        expect(recorder.rows.map((row) => row.outcome)).toEqual(["success"]);
        failing = false;
        await kernel.advance(5_000);
        expect((await client.snapshot()).sources[0]).toMatchObject({ inflight: 0, state: "closed" });
      });

      it(`${errorName} from every ${step}: a failing call keeps its original error`, async () => {
        const kernel = new SimulationKernel();
        const governor = faultyGovernor(kernel, (batch) => (concerns(batch) ? makeError() : null));
        const original = new TransientError("s_1 transient failure: 500", { statusCode: 500 });
        const { client } = simulate({
          kernel,
          options: { governor, retry: { maxAttempts: 1 } },
          script: () => ({ firstTokenMs: 100, afterMs: 12_000, error: original }),
        });
        expect(((await failureOf(kernel, client.chat(hi))) as Error).cause).toBe(original);
      });
    }
  }

  it("what the governor never takes is dropped after the lease's life, with one counted warning", async () => {
    const kernel = new SimulationKernel();
    const governor = faultyGovernor(kernel, (batch) => (batch.settles.length > 0 ? new Error("down") : null));
    const { client } = simulate({ kernel, options: { governor } });
    await kernel.run(client.chat(hi));
    await kernel.advance(120_000);
    expect(kernel.logs.filter((entry) => entry.message.includes("accounting was dropped"))).toHaveLength(1);
    expect(kernel.pendingTimers()).toBe(0);
  });
});

describe("admission fails closed", () => {
  it("an unknown source name reaches the caller as itself and leaves one row", async () => {
    const kernel = new SimulationKernel();
    const governor = new MemoryGovernor({ scope: "LLM", sources: [], runtime: kernel.runtime() });
    const { client, recorder, transport } = simulate({ kernel, options: { governor } });
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toBeInstanceOf(SourceNotConfiguredError);
    expect(error).not.toBeInstanceOf(GatewayUnavailableError);
    expect((error as Error).message).toContain("s_1");
    expect(transport.sends).toHaveLength(0);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["misconfigured", true]]);
  });

  const down = () => {
    throw new Error("ECONNREFUSED store:6379");
  };
  const rejecting = () => Promise.reject(new Error("ECONNREFUSED store:6379"));

  it.each([
    ["tick throws", (k: SimulationKernel) => faultyGovernor(k, () => new Error("ECONNREFUSED store:6379"))],
    ["tick rejects", (k: SimulationKernel) => faultyGovernor(k, () => null, { tick: rejecting })],
  ])("%s: GovernanceBackendError with scope, reason, message and retryAfterMs; nothing is sent", async (_, make) => {
    const kernel = new SimulationKernel();
    const { client, transport, recorder } = simulate({ kernel, options: { governor: make(kernel) } });
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toBeInstanceOf(GovernanceBackendError);
    expect(error).toMatchObject({
      scope: "LLM",
      reason: "governance_backend_down",
      retryAfterMs: 5_000,
      perSourceReasons: {},
    });
    expect((error as Error).message).toBe("governor tick failed: ECONNREFUSED store:6379");
    expect(transport.sends).toHaveLength(0);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["unavailable", true]]);
  });

  it.each([
    ["progress age throws", { progressAgeMs: down }],
    ["progress age rejects", { progressAgeMs: rejecting }],
    ["the snapshot of a stalled call rejects", { snapshot: rejecting }],
  ])("%s while a call waits: GovernanceBackendError", async (_, extra) => {
    const kernel = new SimulationKernel();
    const governor = faultyGovernor(kernel, () => null, extra);
    const { client } = simulate({
      kernel,
      sources: [{ timeoutMs: 600_000, ttftTimeoutMs: 50_000 }],
      options: { governor, global: {}, backpressure: { stallWindowMs: 50_000 } },
      script: () => ({
        afterMs: 30_000,
        error: new TransientError("429", { rateLimited: true, retryAfterMs: 10_000 }),
      }),
    });
    const error = await failureOf(kernel, client.chat({ ...hi, stream: false }));
    expect(error).toBeInstanceOf(GovernanceBackendError);
    expect(error).toMatchObject({ scope: "LLM", retryAfterMs: 5_000 });
    expect((error as Error).message).toContain("ECONNREFUSED");
  });

  it("a user's selector asks for the snapshot: its failure is a GovernanceBackendError too", async () => {
    const kernel = new SimulationKernel();
    const governor = faultyGovernor(kernel, () => null, { snapshot: rejecting });
    const { client } = simulate({ kernel, options: { governor, selector: { order: (names) => names } } });
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(GovernanceBackendError);
  });

  it("within backendGraceMs a call allowed to wait survives an outage of the governor", async () => {
    const kernel = new SimulationKernel();
    let down = true;
    const governor = faultyGovernor(kernel, () => (down ? new Error("down") : null));
    const { client } = simulate({ kernel, options: { governor, backpressure: { backendGraceMs: 60_000 } } });
    const calls = Promise.all([client.chat(hi), client.chat(hi)]);
    await kernel.advance(20_000);
    down = false;
    expect(await kernel.run(calls)).toHaveLength(2);
    down = true;
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(GovernanceBackendError);
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
  });
});

describe("fencing and probes through the client", () => {
  it("a probe's late verdict after its lease moved on is not applied", async () => {
    const kernel = new SimulationKernel();
    let mode: "fail" | "slow" | "hang" = "fail";
    const { client } = simulate({
      kernel,
      sources: [{ timeoutMs: 600_000, ttftTimeoutMs: 600_000 }],
      options: {
        retry: { maxAttempts: 1 },
        breaker: { failThreshold: 1, cooldownMs: 1_000 },
        backpressure: { stallWindowMs: 900_000 },
        leaseTtlMs: 1_000_000,
        leaseRenewal: false,
        governor: new MemoryGovernor({
          scope: "LLM",
          sources: sourceConfigs(),
          breaker: { failThreshold: 1, cooldownMs: 1_000 },
          leaseTtlMs: 5_000,
          runtime: kernel.runtime(),
        }),
      },
      script: () =>
        mode === "fail" ? { afterMs: 1, error: new TransientError("500") } : mode === "slow" ? { afterMs: 20_000 } : {},
    });
    await failureOf(kernel, client.chat(hi));
    await kernel.advance(2_000);
    mode = "slow";
    const late = client.chat({ ...hi, stream: false });
    await kernel.advance(10_000);
    // The first probe's lease (5 s, not renewed) is gone: somebody else probes, and fails.
    mode = "fail";
    await failureOf(kernel, client.chat({ ...hi, stream: false }));
    const epoch = (await client.snapshot()).sources[0]!.epoch;
    expect((await kernel.run(late)).content).toBe("answer");
    expect((await client.snapshot()).sources[0]).toMatchObject({ state: "open", epoch });
  });
});
