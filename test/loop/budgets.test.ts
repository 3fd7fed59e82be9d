import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, RequestRejectedError, SourceDeadError, TransientError } from "../../src/errors.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { WHOLE_OPERATIONS } from "../support/operations.js";
import {
  failureOf,
  GOVERNOR_KINDS,
  inOrder,
  limited,
  noBreaker,
  noPacer,
  type SimulationOptions,
  serverError,
  simulateOperation,
} from "./harness.js";

const TABLE = WHOLE_OPERATIONS.flatMap(({ kind, open }) =>
  GOVERNOR_KINDS.map((governor) => [kind, governor, open] as const),
);

describe.each(TABLE)("two orthogonal budgets (%s, %s governor)", (_kind, governor, open) => {
  const simulate = (setup: SimulationOptions = {}) => simulateOperation(open, { governor, ...setup });

  it("one timeout of the full stall window doesn't condemn the scope", async () => {
    const { kernel, call, transport } = simulate({
      sources: [{ timeoutMs: 60_000, ttftTimeoutMs: 60_000, interTokenTimeoutMs: 60_000 }],
      options: { backpressure: { stallWindowMs: 60_000 } },
      script: (_, n) => (n === 1 ? {} : { afterMs: 100 }),
    });
    const reply = await kernel.run(call());
    expect(reply.attempts).toBe(2);
    expect(transport.sends).toHaveLength(2);
  });

  it("productive time never counts as stall", async () => {
    const { kernel, call } = simulate({
      options: {
        backpressure: { stallWindowMs: 60_000 },
        breaker: noBreaker,
        retry: { maxAttempts: 4, backoffBaseMs: 1 },
      },
      script: (_, n) => (n < 4 ? { afterMs: 50_000, error: serverError() } : { afterMs: 50_000 }),
      sources: [{ timeoutMs: 120_000, ttftTimeoutMs: 60_000 }],
    });
    const reply = await kernel.run(call());
    expect(reply.attempts).toBe(4);
    expect(kernel.now()).toBeGreaterThan(200_000);
  });

  it('slow telemetry counts as productive: a failing first attempt with durability "sync"', async () => {
    const { kernel, call, recorder } = simulate({
      options: {
        backpressure: { stallWindowMs: 800 },
        breaker: noBreaker,
        retry: { backoffBaseMs: 1 },
        telemetryOptions: { durability: "sync" },
      },
      sources: [{ timeoutMs: 60_000, ttftTimeoutMs: 800 }],
      // No progress anywhere, and the commit of the failed attempt's row alone takes longer than the stall window.
      script: (_, n) => (n === 1 ? { afterMs: 100, error: serverError() } : { afterMs: 100 }),
      commit: (k) => k.runtime().sleep(900),
    });
    const reply = await kernel.run(call());
    expect(reply.attempts).toBe(2);
    expect(recorder.rows).toHaveLength(2);
  });

  it("plain waiting over the window with no progress anywhere ends as stalled", async () => {
    const { kernel, call, recorder } = simulate({
      sources: [{ maxConcurrency: 1, timeoutMs: 600_000, ttftTimeoutMs: 100_000 }],
      options: { backpressure: { stallWindowMs: 100_000 } },
      script: () => ({ afterMs: 500_000 }),
    });
    const holder = call({ stream: false });
    const error = await failureOf(kernel, call());
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect(error).toMatchObject({ reason: "stalled" });
    expect((error as AllSourcesExhausted).retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(kernel.now()).toBe(100_000);
    expect(recorder.rows.map((row) => [row.outcome, row.final, row.attempt])).toEqual([["unavailable", true, null]]);
    await kernel.run(holder);
  });

  it("with progress elsewhere in the scope it goes on waiting", async () => {
    const { kernel, call } = simulate({
      sources: [{ maxConcurrency: 1, timeoutMs: 600_000, ttftTimeoutMs: 100_000, model: "a" }, { model: "b" }],
      options: { backpressure: { stallWindowMs: 100_000 } },
      script: ({ source }) => ({ afterMs: source.model === "a" ? 250_000 : 100 }),
    });
    const holder = call({ model: "a", stream: false });
    const waiting = call({ model: "a", stream: false });
    const busy = (async () => {
      for (let i = 0; i < 20; i += 1) {
        await kernel.runtime().sleep(30_000);
        await call({ model: "b" });
      }
    })();
    const reply = await kernel.run(waiting);
    expect(reply.attempts).toBe(1);
    expect(kernel.now()).toBe(500_000);
    await kernel.run(Promise.all([holder, busy]));
  });

  it("a call that just began in a scope that never had any progress isn't stalled", async () => {
    const { kernel, call } = simulate({
      sources: [{ maxConcurrency: 1, timeoutMs: 600_000, ttftTimeoutMs: 100_000 }],
      options: { backpressure: { stallWindowMs: 100_000 }, breaker: noBreaker },
      script: (_, n) =>
        n === 1 ? { afterMs: 150_000 } : n === 2 ? { afterMs: 10, error: serverError() } : { afterMs: 10 },
    });
    const first = call({ stream: false });
    await kernel.advance(140_000);
    // Waits for its permit.
    const late = call({ stream: false });
    expect((await kernel.run(late)).attempts).toBe(2);
    await kernel.run(first);
    // Fails right away, and is asked whether it is stalled before it is tried again.
    const fresh = simulate({
      options: { backpressure: { stallWindowMs: 100_000 }, breaker: noBreaker },
      script: (_, n) => (n === 1 ? { afterMs: 10, error: serverError() } : { afterMs: 10 }),
    });
    await fresh.kernel.advance(1_000_000);
    expect((await fresh.kernel.run(fresh.call())).attempts).toBe(2);
  });

  it("fail_fast ends before any stall rule", async () => {
    const { kernel, call, transport } = simulate({
      sources: [{ maxConcurrency: 1, timeoutMs: 600_000, ttftTimeoutMs: 100_000 }],
      options: { backpressure: { stallWindowMs: 100_000, quotaFull: "fail_fast" } },
      script: () => ({ afterMs: 500_000 }),
    });
    const holder = call({ stream: false });
    const error = await failureOf(kernel, call());
    expect(error).toMatchObject({ reason: "quota_exhausted", perSourceReasons: { s_1: { reason: "concurrency" } } });
    expect(kernel.now()).toBe(0);
    expect(transport.sends).toHaveLength(1);
    await kernel.run(holder);
  });

  it("a saturated 429 source ends instead of looping for ever", async () => {
    const { kernel, call, transport, recorder } = simulate({ script: () => ({ afterMs: 5, error: limited() }) });
    const error = await failureOf(kernel, call());
    expect(error).toMatchObject({ reason: "quota_exhausted" });
    expect((error as Error).cause).toBeInstanceOf(TransientError);
    expect(transport.sends).toHaveLength(21);
    expect(recorder.rows.filter((row) => row.outcome === "rate_limited")).toHaveLength(transport.sends.length);
    expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
  });

  it("a 429 that takes the full timeout is paid by the stall budget: at most 2 sends", async () => {
    const { kernel, call, transport } = simulate({
      sources: [{ timeoutMs: 300_000, ttftTimeoutMs: 300_000 }],
      options: { backpressure: { stallWindowMs: 300_000 } },
      script: () => ({ afterMs: 299_000, error: limited() }),
    });
    const error = await failureOf(kernel, call());
    expect(error).toMatchObject({ reason: "stalled" });
    expect(transport.sends.length).toBeLessThanOrEqual(2);
  });

  it("429s cost no attempt: a call survives more of them than maxAttempts", async () => {
    const { kernel, call, recorder } = simulate({
      options: { retry: { maxAttempts: 2 } },
      script: (_, n) => (n <= 6 ? { afterMs: 5, error: limited(1_000) } : { afterMs: 5 }),
    });
    const reply = await kernel.run(call());
    expect(reply.attempts).toBe(7);
    expect(recorder.rows.map((row) => row.outcome)).toEqual([...Array(6).fill("rate_limited"), "success"]);
  });

  it("never sends before a Retry-After is over", async () => {
    const { kernel, call, transport } = simulate({
      script: (_, n) => (n === 1 ? { afterMs: 5, error: limited(7_000) } : { afterMs: 5 }),
    });
    await kernel.run(call());
    expect(transport.sends[1]!.atMs).toBeGreaterThanOrEqual(7_005);
  });

  it("wakes after a shared Retry-After are paced, not simultaneous", async () => {
    const { kernel, call, transport } = simulate({
      script: (_, n) => (n <= 20 ? { afterMs: 5, error: limited(2_000) } : { afterMs: 60_000 }),
      options: noPacer,
      sources: [{ timeoutMs: 120_000 }],
    });
    const calls = Promise.all(Array.from({ length: 20 }, () => call({ stream: false })));
    await kernel.run(calls);
    const wakes = transport.sends.slice(20).map((send) => send.atMs);
    expect(Math.min(...wakes)).toBeGreaterThanOrEqual(2_005);
    expect(new Set(wakes).size).toBe(20);
  });

  it("the stall clock is per call: an idle gap over the window between two calls of one client costs nothing", async () => {
    const { kernel, call } = simulate({
      options: { backpressure: { stallWindowMs: 60_000 }, breaker: noBreaker },
      script: (_, n) => (n % 2 === 1 ? { afterMs: 5, error: serverError() } : { afterMs: 5 }),
    });
    await kernel.run(call());
    await kernel.advance(400_000);
    expect((await kernel.run(call())).attempts).toBe(2);
  });

  it("two concurrent calls don't share a stall clock", async () => {
    const { kernel, call } = simulate({
      sources: [
        { model: "stuck", maxConcurrency: 1, timeoutMs: 600_000, ttftTimeoutMs: 60_000 },
        { model: "free", timeoutMs: 600_000, ttftTimeoutMs: 60_000 },
      ],
      options: { backpressure: { stallWindowMs: 60_000 }, breaker: noBreaker },
      script: ({ source }) => (source.model === "stuck" ? { afterMs: 500_000 } : { afterMs: 300_000 }),
    });
    const holder = call({ model: "stuck", stream: false });
    const productive = call({ model: "free", stream: false });
    const stuck = failureOf(kernel, call({ model: "stuck", stream: false }));
    expect(await stuck).toMatchObject({ reason: "stalled" });
    expect((await kernel.run(productive)).attempts).toBe(1);
    await kernel.run(holder);
  });

  it.each([
    ["a server error", serverError(), "retry_exhausted"],
    ["a rate limit", limited(), "quota_exhausted"],
    ["a dead source", new SourceDeadError("401", { statusCode: 401 }), "all_sources_dead"],
  ])("maxAttempts 1 sends once after %s", async (_, failure, reason) => {
    const { kernel, call, transport } = simulate({
      options: { retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 5, error: failure }),
    });
    const error = await failureOf(kernel, call());
    expect(error).toMatchObject({ reason });
    expect((error as Error).cause).toBe(failure);
    expect(transport.sends).toHaveLength(1);
  });

  it("maxAttempts 1 sends once after a timeout, and throws a context overflow without trying another model", async () => {
    const timedOut = simulate({ options: { retry: { maxAttempts: 1 } }, script: () => ({}) });
    expect(await failureOf(timedOut.kernel, timedOut.call())).toMatchObject({ reason: "retry_exhausted" });
    expect(timedOut.transport.sends).toHaveLength(1);
    const overflow = simulate({
      sources: [{ model: "small" }, { model: "large" }],
      options: { retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 1, error: new RequestRejectedError("too long", { code: "context_length" }) }),
    });
    expect(await failureOf(overflow.kernel, overflow.call())).toMatchObject({ code: "context_length" });
    expect(overflow.transport.sends).toHaveLength(1);
  });

  it.each([
    ["a dead reused socket", new TransientError("stale", { code: "stale_socket" }), "stale_socket"],
    [
      "a refused parameter of ours",
      new RequestRejectedError("no stream_options", {
        code: "unsupported_param",
        details: { param: "stream_options", droppedByUs: true },
      }),
      "rejected",
    ],
  ])("maxAttempts 1 sends again after %s, with its own row and lease", async (_, failure, outcome) => {
    const { kernel, call, recorder, snapshot } = simulate({
      options: { retry: { maxAttempts: 1 } },
      script: (_attempt, n) => (n === 1 ? { afterMs: 1, error: failure } : { afterMs: 1 }),
    });
    const reply = await kernel.run(call());
    expect(reply.attempts).toBe(2);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      [outcome, false],
      ["success", true],
    ]);
    expect((await snapshot()).sources[0]).toMatchObject({ state: "closed", inflight: 0 });
  });

  it("context overflow goes to a source with another model, once each and without backoff", async () => {
    const { kernel, call, transport, recorder } = simulate({
      sources: [{ model: "small" }, { model: "small" }, { model: "large" }],
      options: inOrder,
      script: ({ source }) =>
        source.model === "small"
          ? { afterMs: 1, error: new RequestRejectedError("too long", { code: "context_length" }) }
          : { afterMs: 1 },
    });
    const reply = await kernel.run(call());
    expect(reply.sourceName).toBe("s_3");
    expect(transport.sends.map((send) => send.source)).toEqual(["s_1", "s_3"]);
    expect(kernel.now()).toBe(2);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["rejected", false],
      ["success", true],
    ]);
  });

  it('failover "off" keeps a call on its first source', async () => {
    const { kernel, call, transport } = simulate({
      sources: [{ model: "small" }, { model: "large" }],
      options: { failover: "off", breaker: noBreaker },
      script: () => ({ afterMs: 1, error: serverError() }),
    });
    expect(await failureOf(kernel, call())).toMatchObject({ reason: "retry_exhausted" });
    expect(new Set(transport.sends.map((send) => send.source)).size).toBe(1);
    expect(transport.sends).toHaveLength(4);
  });

  it("a deadline covers queue, attempts and backoff", async () => {
    const queued = simulate({
      sources: [{ maxConcurrency: 1, timeoutMs: 600_000, ttftTimeoutMs: 60_000 }],
      script: () => ({ afterMs: 500_000 }),
    });
    const holder = queued.call({ stream: false });
    const error = await failureOf(queued.kernel, queued.call({ deadlineMs: 5_000 }));
    expect(error).toMatchObject({ reason: "deadline_exceeded", retryAfterMs: 0 });
    expect(queued.kernel.now()).toBe(5_000);
    await queued.kernel.run(holder);
    const sending = simulate({ script: () => ({}) });
    expect(await failureOf(sending.kernel, sending.call({ deadlineMs: 3_000 }))).toMatchObject({
      reason: "deadline_exceeded",
    });
    expect(sending.kernel.now()).toBe(3_000);
    expect(sending.recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["cancelled", false],
      ["unavailable", true],
    ]);
  });

  it("a wait that can't end before the deadline is told at once, with its moment", async () => {
    const { kernel, call } = simulate({ sources: [{ rpm: 1 }] });
    await kernel.run(call());
    const error = await failureOf(kernel, call({ deadlineMs: 5_000 }));
    expect(error).toMatchObject({ reason: "quota_exhausted" });
    expect((error as AllSourcesExhausted).retryAfterMs).toBeGreaterThan(55_000);
    expect(kernel.now()).toBe(100);
  });

  it("a call larger than every TPM limit is refused at once, even behind a full queue", async () => {
    const { kernel, call, transport } = simulate({ sources: [{ tpm: 500, maxConcurrency: 1 }] });
    const error = await failureOf(kernel, call({ large: true }));
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "request_too_large_for_tier" });
    expect(transport.sends).toHaveLength(0);
  });

  it("the breaker opens, one probe is sent, and success closes it", async () => {
    let healthy = false;
    const { kernel, call, transport, snapshot } = simulate({
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 3, cooldownMs: 4_000 } },
      script: () => (healthy ? { afterMs: 10 } : { afterMs: 10, error: serverError() }),
    });
    for (let i = 0; i < 3; i += 1) await failureOf(kernel, call());
    expect(await failureOf(kernel, call())).toMatchObject({
      name: "CircuitOpenError",
      reason: "circuit_open",
    });
    healthy = true;
    await kernel.advance(5_000);
    const before = transport.sends.length;
    const calls = Array.from({ length: 50 }, () => call().catch((error: unknown) => error));
    await kernel.advance(0);
    expect(transport.sends.length - before).toBe(1);
    const results = await kernel.run(Promise.all(calls));
    expect(results.filter((result) => !(result instanceof Error))).toHaveLength(1);
    expect((await snapshot()).sources[0]?.state).toBe("closed");
  });

  it("with WHEN_OPEN wait the waiting calls go on after the probe", async () => {
    let healthy = false;
    const { kernel, call } = simulate({
      options: { breaker: { failThreshold: 3 }, backpressure: { whenOpen: "wait" } },
      script: () => (healthy ? { afterMs: 10 } : { afterMs: 10, error: serverError() }),
    });
    const calls = Promise.all(Array.from({ length: 30 }, () => call().catch((error: unknown) => error)));
    await kernel.advance(200);
    healthy = true;
    const results = await kernel.run(calls);
    expect(results.filter((result) => result instanceof Error)).toHaveLength(0);
  });

  it("elapsed time is the same for any seed: the simulation is deterministic", async () => {
    const hashes = await Promise.all(
      [1, 1, 2].map(async (seed) => {
        const kernel = new SimulationKernel({ seed });
        const { call } = simulate({
          kernel,
          sources: [{}, { rpm: 60 }],
          script: (_, n) => (n % 3 === 0 ? { afterMs: 20, error: serverError() } : { afterMs: 50 }),
        });
        await kernel.run(Promise.all(Array.from({ length: 20 }, () => call().catch(() => null))));
        return kernel.traceHash();
      }),
    );
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).not.toBe(hashes[2]);
  });
});
