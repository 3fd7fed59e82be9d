import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { TransientError } from "../../src/errors.js";
import { expectNothingLeft, failureOf, GOVERNOR_KINDS, hi, simulateOn } from "./harness.js";

const reason = new Error("the user pressed stop");

describe.each(GOVERNOR_KINDS)("cancellation leaves nothing behind (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("before the start: nothing is sent, one terminal row", async () => {
    const simulation = simulate();
    const controller = new AbortController();
    controller.abort(reason);
    expect(await failureOf(simulation.kernel, simulation.client.chat({ ...hi, signal: controller.signal }))).toBe(
      reason,
    );
    expect(simulation.transport.sends).toHaveLength(0);
    expect(simulation.recorder.rows.map((row) => [row.outcome, row.final, row.attempt])).toEqual([
      ["cancelled", true, null],
    ]);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("inside an attempt: the reason passes untouched, the row is final and cancelled", async () => {
    const simulation = simulate({ script: () => ({ afterMs: 10_000 }) });
    const controller = new AbortController();
    const call = simulation.client.chat({ ...hi, signal: controller.signal });
    await simulation.kernel.advance(500);
    controller.abort(reason);
    expect(await failureOf(simulation.kernel, call)).toBe(reason);
    expect(simulation.recorder.rows.map((row) => [row.outcome, row.final, row.attempt])).toEqual([
      ["cancelled", true, 1],
    ]);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("in the queue", async () => {
    const simulation = simulate({ sources: [{ maxConcurrency: 1 }], script: () => ({ afterMs: 10_000 }) });
    const controller = new AbortController();
    const holder = simulation.client.chat(hi);
    const call = simulation.client.chat({ ...hi, signal: controller.signal });
    await simulation.kernel.advance(500);
    expect((await simulation.client.snapshot()).waiting.count).toBe(1);
    controller.abort(reason);
    expect(await failureOf(simulation.kernel, call)).toBe(reason);
    await simulation.kernel.run(holder);
    expect(simulation.transport.sends).toHaveLength(1);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("in backoff", async () => {
    const simulation = simulate({
      options: { retry: { backoffBaseMs: 10_000 } },
      script: () => ({ afterMs: 10, error: new TransientError("500") }),
    });
    const controller = new AbortController();
    const call = simulation.client.chat({ ...hi, signal: controller.signal });
    await simulation.kernel.advance(1_000);
    controller.abort(reason);
    expect(await failureOf(simulation.kernel, call)).toBe(reason);
    expect(simulation.transport.sends).toHaveLength(1);
    expect(simulation.recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["transient", false],
      ["cancelled", true],
    ]);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("of a probe: it is handed back, the next caller may probe at once, and the breaker learns nothing", async () => {
    let mode: "fail" | "hang" | "ok" = "fail";
    const simulation = simulate({
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 1, cooldownMs: 1_000 } },
      script: () =>
        mode === "fail" ? { afterMs: 1, error: new TransientError("500") } : mode === "ok" ? { afterMs: 1 } : {},
    });
    const { kernel, client } = simulation;
    await failureOf(kernel, client.chat(hi));
    await kernel.advance(2_000);
    mode = "hang";
    const controller = new AbortController();
    const probe = client.chat({ ...hi, signal: controller.signal });
    await kernel.advance(10);
    expect((await client.snapshot()).sources[0]).toMatchObject({ state: "half_open", probeInFlight: true });
    controller.abort(reason);
    expect(await failureOf(kernel, probe)).toBe(reason);
    expect((await client.snapshot()).sources[0]).toMatchObject({ state: "half_open", probeInFlight: false });
    mode = "ok";
    await kernel.run(client.chat(hi));
    expect((await client.snapshot()).sources[0]).toMatchObject({ state: "closed" });
    await expectNothingLeft(simulation, controller.signal);
  });

  it("while a commit before the send is awaited: nothing is sent and the request slot comes back", async () => {
    const simulation = simulate({
      sources: [{ rpm: 10 }],
      options: { telemetryOptions: { journal: "before_send" } },
      commit: (kernel) => kernel.runtime().sleep(500),
    });
    const controller = new AbortController();
    const call = simulation.client.chat({ ...hi, signal: controller.signal });
    await simulation.kernel.advance(100);
    controller.abort(reason);
    expect(await failureOf(simulation.kernel, call)).toBe(reason);
    expect(simulation.transport.sends).toHaveLength(0);
    expect((await simulation.client.snapshot()).sources[0]?.requestsUsed).toBe(0);
    await simulation.kernel.drain();
    await expectNothingLeft(simulation, controller.signal);
  });

  it("many calls on one signal: one listener, and none when they are done", async () => {
    const simulation = simulate({ sources: [{ maxConcurrency: 4 }] });
    const controller = new AbortController();
    const calls = Array.from({ length: 40 }, () => simulation.client.chat({ ...hi, signal: controller.signal }));
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    await simulation.kernel.run(Promise.all(calls));
    await expectNothingLeft(simulation, controller.signal);
  });

  it("a consumer that leaves a stream: socket, permit and timers are gone, the row is cancelled with estimated usage", async () => {
    const simulation = simulate({ script: () => ({ firstTokenMs: 50, afterMs: 60_000 }) });
    const { kernel, client, recorder } = simulation;
    const controller = new AbortController();
    const stream = client.stream({ ...hi, signal: controller.signal });
    await kernel.run(
      (async () => {
        for await (const event of stream) {
          expect(event.type).toBe("text-delta");
          break;
        }
      })(),
    );
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["cancelled", true]]);
    await expect(stream.final).rejects.toMatchObject({ name: "AbortError" });
    await expectNothingLeft(simulation, controller.signal);
  });

  it("a stream that is never started sends nothing and leaves no row", async () => {
    const simulation = simulate();
    const stream = simulation.client.stream(hi);
    await stream.return?.();
    await simulation.kernel.drain();
    expect(simulation.transport.sends).toHaveLength(0);
    expect(simulation.recorder.rows).toHaveLength(0);
  });

  it("the caller's signal ends an open stream with its own reason", async () => {
    const simulation = simulate({ script: () => ({ firstTokenMs: 50, afterMs: 60_000 }) });
    const { kernel, client } = simulation;
    const controller = new AbortController();
    const stream = client.stream({ ...hi, signal: controller.signal });
    const read = (async () => {
      for await (const event of stream) if (event.type === "text-delta") controller.abort(reason);
    })();
    expect(await failureOf(kernel, read)).toBe(reason);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("a deadline ends an open stream with a typed error", async () => {
    const simulation = simulate({ script: () => ({ firstTokenMs: 50, afterMs: 60_000 }) });
    const stream = simulation.client.stream({ ...hi, deadlineMs: 1_000 });
    const read = (async () => {
      for await (const _ of stream);
    })();
    expect(await failureOf(simulation.kernel, read)).toMatchObject({ reason: "deadline_exceeded" });
    expect(simulation.recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["cancelled", false],
      ["unavailable", true],
    ]);
  });

  it("close() waits for the calls in flight and refuses new ones", async () => {
    const simulation = simulate({ script: () => ({ afterMs: 1_000 }) });
    const call = simulation.client.chat(hi);
    const closed = simulation.client.close();
    await expect(simulation.client.chat(hi)).rejects.toMatchObject({ name: "ConfigError" });
    expect((await simulation.kernel.run(call)).content).toBe("answer");
    await simulation.kernel.run(closed);
    expect(simulation.kernel.pendingTimers()).toBe(0);
  });
});
