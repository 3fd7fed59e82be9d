import { describe, expect, it } from "vitest";
import type { ScriptedReply } from "../../src/testing/scripted-transport.js";
import {
  expectNothingLeft,
  GOVERNOR_KINDS,
  hi,
  noBreaker,
  readAll,
  type SimulationOptions,
  serverError,
} from "./harness.js";
import { type Scheduled, simulateScheduled } from "./scripted-governor.js";

const outcomeOf = <T>(work: Promise<T>): Promise<unknown> => work.catch((error: unknown) => error);

/** When a source trips, its attempts without a token go elsewhere (spec 10 §4). */
describe.each(GOVERNOR_KINDS)("evacuation (%s governor)", (kind) => {
  const tripped = { type: "state", source: "s_1", evacuateAfterMs: 1_500 } as const;

  /** The first source shows nothing, the second one answers in 100 ms. */
  function simulate(
    setup: Omit<SimulationOptions, "governor" | "script"> = {},
    first: ScriptedReply = {},
    second: ScriptedReply = { afterMs: 100 },
  ): Scheduled {
    return simulateScheduled(
      kind,
      {},
      {
        sources: [{}, { priority: 1 }],
        ...setup,
        options: { breaker: noBreaker, ...setup.options },
        script: ({ source }) => (source.name === "s_1" ? first : second),
      },
    );
  }

  it("sends the call to another source at no cost of its own, and tells why in the row", async () => {
    const simulation = simulate({ options: { retry: { maxAttempts: 2 } } });
    const { kernel, client, emit, heard, recorder, transport } = simulation;
    const call = client.chat(hi);
    await kernel.advance(2_000);
    emit(tripped);
    const reply = await kernel.run(call);
    expect(reply).toMatchObject({ sourceName: "s_2", attempts: 2 });
    expect(transport.sends.map((send) => [send.source, send.atMs])).toEqual([
      ["s_1", 0],
      ["s_2", 2_000],
    ]);
    expect(heard.wants.at(-1)).toMatchObject({ failedHere: ["s_1"], retry: false });
    expect(recorder.rows[0]).toMatchObject({ outcome: "transient", errorCode: "ttft_timeout", final: false });
    expect(recorder.rows[0]!.error).toContain("its breaker opened while this attempt had no token after 2000 ms");
    await expectNothingLeft(simulation);
  });

  it("leaves the young, the streaming, the whole answers and other sources' attempts alone", async () => {
    const young = simulate();
    const youngCall = young.client.chat(hi);
    await young.kernel.advance(1_500);
    young.emit(tripped);
    young.emit({ ...tripped, source: "s_2", evacuateAfterMs: 0 });
    young.emit({ type: "state", source: "s_1" });
    await young.kernel.advance(100);
    expect(young.transport.inflight("s_1")).toBe(1);
    young.emit({ ...tripped, evacuateAfterMs: 1_599 });
    expect(await young.kernel.run(youngCall)).toMatchObject({ sourceName: "s_2" });

    for (const [request, reply] of [
      [hi, { firstTokenMs: 1_000, afterMs: 5_000 }],
      [{ ...hi, stream: false }, { afterMs: 5_000 }],
    ] as const) {
      const simulation = simulate({}, reply);
      const call = simulation.client.chat(request);
      await simulation.kernel.advance(4_000);
      simulation.emit(tripped);
      expect(await simulation.kernel.run(call)).toMatchObject({ sourceName: "s_1", attempts: 1 });
      await expectNothingLeft(simulation);
    }
  });

  it("happens once in a call: where the next source trips too, the attempt stays", async () => {
    const simulation = simulate({}, {}, { afterMs: 5_000 });
    const { kernel, client, emit } = simulation;
    const call = client.chat(hi);
    await kernel.advance(2_000);
    emit(tripped);
    await kernel.advance(3_000);
    emit({ ...tripped, source: "s_2" });
    expect(await kernel.run(call)).toMatchObject({ sourceName: "s_2", attempts: 2 });
  });

  it("doesn't touch a call that has nowhere else to go, or one send only", async () => {
    const alone = simulate({ sources: [{}] }, { afterMs: 5_000 });
    const call = alone.client.chat(hi);
    await alone.kernel.advance(2_000);
    alone.emit(tripped);
    expect(await alone.kernel.run(call)).toMatchObject({ attempts: 1 });

    const oneSend = simulate({ options: { retry: { maxAttempts: 1 } } }, { afterMs: 5_000 });
    const single = oneSend.client.chat(hi);
    await oneSend.kernel.advance(2_000);
    oneSend.emit(tripped);
    expect(await oneSend.kernel.run(single)).toMatchObject({ sourceName: "s_1" });
  });

  it("with whenOpen: wait a lone source is left too, and the call waits for it", async () => {
    let sends = 0;
    const simulation = simulateScheduled(
      kind,
      {},
      {
        options: { breaker: noBreaker, backpressure: { whenOpen: "wait" } },
        script: () => {
          sends += 1;
          return sends === 1 ? {} : { afterMs: 10 };
        },
      },
    );
    const call = simulation.client.chat(hi);
    await simulation.kernel.advance(2_000);
    simulation.emit(tripped);
    expect(await simulation.kernel.run(call)).toMatchObject({ attempts: 2 });
  });

  it("refunds its time: what it hung belongs to the stall window", async () => {
    const times = { ttftTimeoutMs: 900, timeoutMs: 900_000, interTokenTimeoutMs: 900 };
    const simulation = simulateScheduled(
      kind,
      { grant: (_, want) => (want.failedHere.length > 0 ? { startInMs: 300 } : {}) },
      {
        sources: [times, { ...times, priority: 1 }],
        options: { breaker: noBreaker, backpressure: { stallWindowMs: 1_000 } },
        script: () => ({}),
      },
    );
    const { kernel, client, emit } = simulation;
    const call = outcomeOf(client.chat(hi));
    await kernel.advance(800);
    emit({ ...tripped, evacuateAfterMs: 100 });
    await kernel.advance(100);
    // The next permit turns stale when 1,100 ms have passed.
    emit({ type: "state", source: "s_2" });
    expect(await kernel.run(call)).toMatchObject({ reason: "stalled" });
    expect(kernel.runtime().now()).toBe(1_100);
  });

  it("doesn't wait behind a retry that the fleet's budget holds back", async () => {
    const simulation = simulateScheduled(
      kind,
      { refuse: (want) => (want.retry === true ? { kind: "fairness", waitHintMs: 10_000 } : null) },
      {
        sources: [{}, { priority: 1 }],
        options: { breaker: noBreaker },
        script: ({ source }, n) =>
          n === 1 ? { afterMs: 10, error: serverError() } : source.name === "s_1" ? {} : { afterMs: 100 },
      },
    );
    const { kernel, client, emit } = simulation;
    void outcomeOf(client.chat({ ...hi, deadlineMs: 30_000 }));
    const call = client.chat(hi);
    await kernel.advance(2_000);
    emit(tripped);
    expect(await kernel.run(call)).toMatchObject({ sourceName: "s_2" });
    expect(kernel.runtime().now()).toBe(2_100);
  });

  it("a stream before its first event goes elsewhere unnoticed by its consumer", async () => {
    const simulation = simulate({}, {}, { firstTokenMs: 50, afterMs: 100, content: "from the second" });
    const { kernel, client, emit } = simulation;
    const events = readAll(client.stream(hi));
    await kernel.advance(2_000);
    emit(tripped);
    const told = await kernel.run(events);
    expect(told.map((event) => event.type)).toEqual(["text-delta", "usage", "finish"]);
    expect(told[0]).toMatchObject({ text: "from the second" });
    await expectNothingLeft(simulation);
  });
});
