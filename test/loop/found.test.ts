import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, GatewayUnavailableError, PolyGatewayError } from "../../src/errors.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { failingGovernor } from "./governors.js";
import {
  deadKey,
  expectNothingLeft,
  failureOf,
  hi,
  limited,
  patient,
  readAll,
  rejected,
  serverError,
  settled,
  simulate,
  storeFor,
} from "./harness.js";

const stop = new Error("the user pressed stop");

/** Faults that were found once, each with the test that found it. */
describe("cancellation at the edges of an await", () => {
  it("while the progress of the scope is asked for: the next attempt is not sent", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = { sources: [patient], options: { backpressure: { stallWindowMs: 10_000 } } };
    const governor = storeFor(kernel, setup).connect(runtime, { thereMs: () => 50, backMs: () => 50 });
    const simulation = simulate({
      kernel,
      ...setup,
      options: { ...setup.options, runtime, governor },
      // The 429 uses up the window; another call's success is progress, so this one may go on.
      script: ({ request }) => (request.priority === 1 ? { afterMs: 19_000 } : { afterMs: 20_000, error: limited(1) }),
    });
    const { client, transport } = simulation;
    const controller = new AbortController();
    const busy = client.chat({ ...hi, priority: 1 });
    const call = client.chat({ ...hi, signal: controller.signal });
    await kernel.run(busy);
    await kernel.advance(20_230 - kernel.now());
    controller.abort(stop);
    expect(await failureOf(kernel, call)).toBe(stop);
    expect(transport.sends).toHaveLength(2);
    await kernel.advance(5_000);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("while a user's selector waits for the snapshot: the call ends and nothing is sent", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const governor = storeFor(kernel).connect(runtime, { thereMs: () => 50, backMs: () => 50 });
    const simulation = simulate({
      kernel,
      options: { runtime, governor, selector: { order: (names) => names } },
      script: () => ({ afterMs: 10_000 }),
    });
    const controller = new AbortController();
    const call = simulation.client.chat({ ...hi, signal: controller.signal });
    await kernel.advance(60);
    controller.abort(stop);
    expect(await failureOf(kernel, call)).toBe(stop);
    expect(simulation.transport.sends).toHaveLength(0);
    await kernel.advance(1_000);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("in the moment the permit arrives: nothing is sent and the permit goes back", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const controller = new AbortController();
    const governor = storeFor(kernel).connect(runtime, { backMs: () => 50 });
    const simulation = simulate({
      kernel,
      options: {
        runtime,
        governor: {
          ...governor,
          tick: async (batch) => {
            const reply = await governor.tick(batch);
            if (batch.wants.length > 0)
              queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => controller.abort(stop))));
            return reply;
          },
        },
      },
      script: () => ({ afterMs: 10_000 }),
    });
    const call = simulation.client.chat({ ...hi, signal: controller.signal });
    expect(await failureOf(kernel, call)).toBe(stop);
    expect(kernel.now()).toBeLessThan(1_000);
    await kernel.advance(1_000);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("while the pause before a retry is looked up: the reason passes, not the deadline that is too near", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = { sources: [{ model: "a" }, { model: "b", maxConcurrency: 1 }] };
    const governor = storeFor(kernel, setup).connect(runtime, { thereMs: () => 50, backMs: () => 50 });
    const controller = new AbortController();
    const { client } = simulate({
      kernel,
      ...setup,
      options: { runtime, governor, retry: { backoffBaseMs: 20_000 } },
      script: ({ source }) => (source.model === "a" ? { afterMs: 1_000, error: serverError() } : { afterMs: 8_000 }),
    });
    const holder = client.chat({ ...hi, model: "b" });
    await kernel.advance(200);
    // Fails at 1,300; whether another source is free is known at 1,400 or 1,500, and none is.
    const call = client.chat({ ...hi, signal: controller.signal, deadlineMs: 4_000 });
    await kernel.advance(1_150);
    controller.abort(stop);
    expect(await failureOf(kernel, call)).toBe(stop);
    await kernel.run(holder);
  });

  it.each([
    ["the pause before a retry", { sources: [{}, {}], options: {} }],
    ["the end of a call", { sources: [{}], options: { retry: { maxAttempts: 1 } } }],
    ["a user's selector", { sources: [{}], options: { selector: { order: (names: readonly string[]) => names } } }],
  ])("while a store that hangs is asked for its snapshot (%s): the caller is let go", async (_, setup) => {
    const kernel = new SimulationKernel();
    const governor = failingGovernor(storeFor(kernel, setup).inner, () => null, {
      snapshot: () => new Promise(() => {}),
    });
    const { client } = simulate({
      kernel,
      sources: setup.sources,
      options: { ...setup.options, governor },
      script: () => ({ afterMs: 100, error: serverError() }),
    });
    for (const wish of ["signal", "deadline"]) {
      const controller = new AbortController();
      const call = client
        .chat({ ...hi, ...(wish === "signal" ? { signal: controller.signal } : { deadlineMs: 5_000 }) })
        .catch((error: unknown) => error);
      await kernel.advance(1_000);
      controller.abort(stop);
      let ended: unknown = null;
      void call.then((error) => {
        ended = error;
      });
      await kernel.advance(6_000);
      expect(ended).not.toBeNull();
    }
  });

  it("while it waits for a gate that time alone opens: no timer stays", async () => {
    const simulation = simulate({ sources: [{ rpm: 1 }] });
    const { kernel, client } = simulation;
    await kernel.run(client.chat(hi));
    const controller = new AbortController();
    const call = client.chat({ ...hi, signal: controller.signal });
    await kernel.advance(500);
    controller.abort(stop);
    expect(await failureOf(kernel, call)).toBe(stop);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("of the call at the head of the queue: those behind it go on at once", async () => {
    const simulation = simulate({
      sources: [{ tpm: 3_000, limitRule: "window" }],
      script: () => ({ afterMs: 10, totalTokens: 1_500 }),
    });
    const { kernel, client } = simulation;
    await kernel.run(client.chat(hi));
    const controller = new AbortController();
    const large = client.chat({ ...hi, sampling: { maxTokens: 1_000, n: 2 }, signal: controller.signal });
    const small = client.chat({ ...hi, sampling: { maxTokens: 10 } });
    await kernel.advance(500);
    controller.abort(stop);
    expect(await failureOf(kernel, large)).toBe(stop);
    await kernel.run(small);
    expect(kernel.now()).toBeLessThan(1_000);
  });

  it("with one of our own errors as reason: it passes untouched, and its text is not taken for this call's", async () => {
    const simulation = simulate({ script: () => ({ afterMs: 10_000 }), sources: [{ maxConcurrency: 1 }] });
    const { kernel, client, recorder } = simulation;
    const foreign = new AllSourcesExhausted("another call failed", {
      scope: "LLM",
      reason: "stalled",
      retryAfterMs: 1,
      partial: { content: "foreign text", thinking: "", toolCalls: [], usage: null },
    });
    const before = JSON.stringify(foreign);
    const controller = new AbortController();
    const calls = [1, 2].map(() => client.chat({ ...hi, signal: controller.signal }).catch((error: unknown) => error));
    await kernel.advance(100);
    controller.abort(foreign);
    const [running, queued] = await kernel.run(Promise.all(calls));
    expect(running).toBe(foreign);
    expect(queued).toBe(foreign);
    expect(JSON.stringify(foreign)).toBe(before);
    expect(recorder.rows.map((row) => [row.outcome, row.response])).toEqual([
      ["cancelled", null],
      ["cancelled", null],
    ]);
  });
});

describe("ends that never come", () => {
  it("a probe that brought its first token and then broke off was no failed probe: it counts", async () => {
    const { kernel, client, transport } = simulate({
      options: {
        breaker: { failThreshold: 1, cooldownMs: 1_000, cooldownMaxMs: 1_000 },
        backpressure: { whenOpen: "wait" },
      },
      script: () => ({ firstTokenMs: 10, afterMs: 20, error: serverError() }),
    });
    // Uncounted, such attempts go on for ever: each first token is progress of the scope.
    const error = await failureOf(kernel, client.chat({ ...hi, deadlineMs: 3_600_000 }));
    expect(error).toMatchObject({ reason: "retry_exhausted" });
    expect(transport.sends).toHaveLength(4);
  });

  it("a parameter of ours that is refused again and again ends the call", async () => {
    const { kernel, client, transport } = simulate({
      script: () => {
        const error = rejected();
        return {
          afterMs: 1,
          error: Object.assign(error, { code: "unsupported_param", details: { param: "x", droppedByUs: true } }),
        };
      },
    });
    const error = await failureOf(kernel, client.chat({ ...hi, deadlineMs: 60_000 }));
    expect(PolyGatewayError.isInstance(error)).toBe(true);
    expect(transport.sends.length).toBeLessThanOrEqual(50);
  });

  it("a stream of a closed client rejects", async () => {
    const { kernel, client } = simulate();
    await kernel.run(client.close());
    expect(await failureOf(kernel, readAll(client.stream(hi)))).toMatchObject({ name: "ConfigError" });
    expect(await failureOf(kernel, client.stream(hi).final)).toMatchObject({ name: "ConfigError" });
  });

  it("two reads at once each get their event", async () => {
    const { kernel, client } = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 20 }) });
    const stream = client.stream(hi);
    const events = await kernel.run(Promise.all([stream.next(), stream.next(), stream.next(), stream.next()]));
    expect(events.map((event) => (event.done === true ? "done" : event.value.type))).toEqual([
      "text-delta",
      "usage",
      "finish",
      "done",
    ]);
  });
});

describe("what users plug in", () => {
  it("a price table that throws doesn't cost the answer", async () => {
    const { kernel, client, recorder } = simulate({
      options: {
        pricing: {
          costNanos() {
            throw new Error("no such price");
          },
        },
      },
    });
    expect((await kernel.run(client.chat(hi))).cost).toBeNull();
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["success", true]]);
  });

  it("a selector that throws ends the call inside the taxonomy, or is done without", async () => {
    const simulation = simulate({
      options: {
        selector: {
          order() {
            throw new Error("bad selector");
          },
        },
      },
    });
    const { kernel, client, recorder } = simulation;
    const [end] = await kernel.run(settled([client.chat(hi)]));
    if (end?.status === "rejected") expect(PolyGatewayError.isInstance(end.reason)).toBe(true);
    expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
    expect(recorder.rows.map((row) => row.outcome)).not.toContain("cancelled");
    await expectNothingLeft(simulation);
  });
});

describe("queue", () => {
  it("calls of clients that share a governor keep one order, however they name the same sources", async () => {
    const simulation = simulate({
      sources: [{ tpm: 3_000, limitRule: "window" }],
      script: () => ({ afterMs: 10, totalTokens: 1_500 }),
    });
    const { kernel, client, transport } = simulation;
    await kernel.run(client.chat(hi));
    const large = client.chat({ ...hi, sampling: { maxTokens: 1_000, n: 2 } });
    const small = client.chat({ ...hi, model: "m", sampling: { maxTokens: 10 } });
    await kernel.advance(1_000);
    expect(transport.sends).toHaveLength(1);
    await kernel.run(Promise.all([large, small]));
  });
});

describe("what a call is told", () => {
  it("stalled in the queue names what the call waited for", async () => {
    const { kernel, client } = simulate({
      sources: [{ ...patient, maxConcurrency: 1 }],
      options: { backpressure: { stallWindowMs: 100_000 } },
      script: () => ({ afterMs: 300_000 }),
    });
    const holder = client.chat(hi);
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({
      reason: "stalled",
      perSourceReasons: { s_1: { reason: "concurrency" } },
    });
    await kernel.run(holder);
  });

  it("a deadline in the queue names what the call waited for", async () => {
    const { kernel, client } = simulate({
      sources: [{ ...patient, maxConcurrency: 1 }],
      script: () => ({ afterMs: 90_000 }),
    });
    const holder = client.chat(hi);
    expect(await failureOf(kernel, client.chat({ ...hi, deadlineMs: 1_000 }))).toMatchObject({
      reason: "deadline_exceeded",
      perSourceReasons: { s_1: { reason: "concurrency" } },
    });
    await kernel.run(holder);
  });

  it("a source too small for the call is not able: a dead key beside it is no rejection of the request", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ tpm: 500 }, {}],
      script: () => ({ afterMs: 10, error: deadKey() }),
    });
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({ reason: "all_sources_dead" });
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({ reason: "all_sources_dead" });
    expect(kernel.now()).toBe(10);
    expect(transport.sends).toHaveLength(1);
  });

  it("a context overflow whose larger source is broken keeps the refusal as cause", async () => {
    const { kernel, client } = simulate({
      sources: [{ model: "small" }, { model: "large" }],
      options: { breaker: { failThreshold: 1 }, retry: { maxAttempts: 2 } },
      script: ({ source }) =>
        source.model === "large"
          ? { afterMs: 1, error: serverError() }
          : { afterMs: 1, error: Object.assign(rejected(), { code: "context_length" }) },
    });
    await failureOf(kernel, client.chat({ ...hi, model: "large" }));
    const error = (await failureOf(kernel, client.chat(hi))) as GatewayUnavailableError;
    expect(error).toBeInstanceOf(GatewayUnavailableError);
    expect(error.cause).toMatchObject({ code: "context_length" });
  });

  it("a parameter of ours refused to the end leaves its one final row on the attempt", async () => {
    const { kernel, client, recorder } = simulate({
      script: () => ({
        afterMs: 1,
        error: Object.assign(rejected(), { code: "unsupported_param", details: { droppedByUs: true } }),
      }),
    });
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toMatchObject({ code: "unsupported_param" });
    expect(recorder.rows.filter((row) => row.attempt === null)).toHaveLength(0);
    expect(recorder.rows.at(-1)).toMatchObject({ outcome: "rejected", final: true });
  });
});
