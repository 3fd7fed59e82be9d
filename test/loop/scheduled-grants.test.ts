import { describe, expect, it } from "vitest";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { expectNothingLeft, failureOf, GOVERNOR_KINDS, hi, type SimulationOptions } from "./harness.js";
import { type Scheduled, simulateScheduled } from "./scripted-governor.js";

const stop = new Error("the user pressed stop");

/** What becomes of a call while the test moves the clock by itself. */
const outcomeOf = <T>(work: Promise<T>): Promise<unknown> => work.catch((error: unknown) => error);

/** Permits that are given ahead of their start (spec 10 §2). */
describe.each(GOVERNOR_KINDS)("a grant with a start ahead (%s governor)", (kind) => {
  /** The first `times` grants start 400 ms later. */
  function simulate(times = 1, setup: Omit<SimulationOptions, "governor"> = {}): Scheduled {
    let left = times;
    return simulateScheduled(kind, { grant: () => (left-- > 0 ? { startInMs: 400 } : {}) }, setup);
  }

  it("waits for its start without another question, and its row tells the wait", async () => {
    const simulation = simulate();
    const { kernel, client, transport, heard, recorder } = simulation;
    await kernel.run(client.chat(hi));
    expect(transport.sends.map((send) => send.atMs)).toEqual([400]);
    expect(heard.wants).toHaveLength(1);
    expect(recorder.rows[0]).toMatchObject({ waitedMs: 400, latencyMs: 100, outcome: "success" });
    await expectNothingLeft(simulation);
  });

  it.each(["state", "cooling"] as const)(
    "goes back unsent after news of type %s about its source; the call keeps its queue position",
    async (type) => {
      const simulation = simulate(1, { sources: [{ maxConcurrency: 1 }] });
      const { kernel, client, transport, heard, emit, recorder } = simulation;
      const first = client.chat(hi);
      const second = client.chat(hi);
      await kernel.advance(200);
      emit({ type, source: "s_1" });
      const [early, late] = await kernel.run(Promise.all([first, second]));
      expect(heard.settles[0]).toMatchObject({ sent: false, outcome: "cancelled" });
      expect(transport.sends.map((send) => send.callId)).toEqual([early.callId, late.callId]);
      expect(transport.sends[0]!.atMs).toBe(400);
      // Nothing was sent under it, so it is no attempt.
      expect(early.attempts).toBe(1);
      expect(recorder.rows).toHaveLength(2);
      expect(recorder.rows[0]).toMatchObject({ waitedMs: 400 });
      await expectNothingLeft(simulation);
    },
  );

  it("asks again with fail_fast too: the slot it gives back is its own", async () => {
    const simulation = simulate(1, {
      sources: [{ maxConcurrency: 1 }],
      options: { backpressure: { quotaFull: "fail_fast" } },
    });
    const { kernel, client, emit } = simulation;
    const call = outcomeOf(client.chat(hi));
    await kernel.advance(200);
    emit({ type: "state", source: "s_1" });
    expect(await kernel.run(call)).toMatchObject({ content: "answer" });
  });

  it("is not touched by news about another source, or by a permit that came back", async () => {
    const simulation = simulate(1, { sources: [{}, { priority: 1 }] });
    const { kernel, client, heard, emit } = simulation;
    const call = client.chat(hi);
    await kernel.advance(100);
    emit({ type: "state", source: "s_2" });
    emit({ type: "capacity", source: "s_1" });
    await kernel.run(call);
    expect(heard.settles.map((settle) => settle.sent)).toEqual([true]);
  });

  it("knows the news of the moment before it came, but not those of the moment after", async () => {
    let tellBefore = true;
    const simulation = simulateScheduled(kind, {
      grant: ({ startInMs }, { leaseId }) => {
        if (tellBefore) simulation.emit({ type: "state", source: "s_1" });
        return simulation.heard.wants[0]!.leaseId === leaseId ? { startInMs: 400 } : { startInMs };
      },
    });
    const { kernel, client, emit, heard } = simulation;
    await kernel.run(client.chat(hi));
    expect(heard.wants).toHaveLength(1);
    tellBefore = false;
    heard.wants.length = 0;
    const call = client.chat(hi);
    await kernel.advance(0);
    emit({ type: "state", source: "s_1" });
    await kernel.run(call);
    expect(heard.wants).toHaveLength(2);
  });

  it("counts as waiting for the stall window, not as an attempt", async () => {
    const simulation = simulate(1_000, {
      sources: [{ ttftTimeoutMs: 500, timeoutMs: 1_000, interTokenTimeoutMs: 500 }],
      options: { backpressure: { stallWindowMs: 1_000 } },
    });
    const { kernel, client, emit, transport } = simulation;
    const call = outcomeOf(client.chat(hi));
    for (let i = 0; i < 4; i += 1) {
      await kernel.advance(399);
      emit({ type: "cooling", source: "s_1" });
    }
    expect(await kernel.run(call)).toMatchObject({ reason: "stalled" });
    expect(transport.sends).toHaveLength(0);
    await expectNothingLeft(simulation);
  });

  it("is given back unsent when the caller leaves or the deadline passes meanwhile", async () => {
    const simulation = simulate(2);
    const { kernel, client, heard, transport } = simulation;
    const controller = new AbortController();
    const left = outcomeOf(client.chat({ ...hi, signal: controller.signal }));
    await kernel.advance(100);
    controller.abort(stop);
    expect(await kernel.run(left)).toBe(stop);
    const late = await failureOf(kernel, client.chat({ ...hi, deadlineMs: 300 }));
    expect(late).toMatchObject({ reason: "deadline_exceeded" });
    expect(transport.sends).toHaveLength(0);
    await kernel.advance(0);
    expect(heard.settles.map((settle) => settle.sent)).toEqual([false, false]);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("is not sent when its process slept longer than its lease", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const setup = { kernel, options: { runtime, leaseTtlMs: 3_000 } };
    const simulation = simulate(1, setup);
    const { client, transport, heard } = simulation;
    const call = client.chat(hi);
    await kernel.advance(100);
    kernel.freeze(runtime);
    await kernel.advance(5_000);
    kernel.thaw(runtime);
    await kernel.run(call);
    expect(transport.sends).toHaveLength(1);
    expect(transport.sends[0]!.callId).not.toBe(heard.wants[0]!.leaseId);
  });
});
