import { describe, expect, it } from "vitest";
import type { ChatEvent } from "../../src/domain/chat.js";
import { AllSourcesExhausted } from "../../src/errors.js";
import type { ChatSink, ChatTransport } from "../../src/ports/transport.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { sampleCompletion } from "../../src/testing/sample-answers.js";
import type { ScriptedReply } from "../../src/testing/scripted-transport.js";
import {
  deadKey,
  expectNothingLeft,
  GOVERNOR_KINDS,
  hi,
  limited,
  noBreaker,
  readAll,
  rejected,
  type SimulationOptions,
  serverError,
} from "./harness.js";
import { type GovernorScript, type Scheduled, simulateScheduled } from "./scripted-governor.js";

const answer = sampleCompletion({ content: "" });
const stop = new Error("the user pressed stop");
const outcomeOf = <T>(work: Promise<T>): Promise<unknown> => work.catch((error: unknown) => error);
type Sparing = GovernorScript & { once?: boolean };
const hedged = { ...hi, hedge: true };

/** A second attempt beside one that shows no token (spec 10 §7). */
describe.each(GOVERNOR_KINDS)("hedging (%s governor)", (kind) => {
  /** After 1 s without a token the second source may be asked too. */
  function simulate(
    first: ScriptedReply,
    second: ScriptedReply,
    setup: Omit<SimulationOptions, "governor" | "script"> = {},
    script: GovernorScript = {},
  ): Scheduled {
    return simulateScheduled(
      kind,
      { grant: () => ({ hedgeAfterMs: 1_000 }), ...script },
      {
        sources: [{}, { priority: 1 }],
        ...setup,
        options: { breaker: noBreaker, ...setup.options },
        script: ({ source }) => (source.name === "s_1" ? first : second),
      },
    );
  }

  const sendsOf = ({ transport }: Scheduled) => transport.sends.map((send) => [send.source, send.atMs]);

  it("asks once for the others; the first success wins, the loser is booked as consumed", async () => {
    const simulation = simulate({ afterMs: 30_000 }, { afterMs: 500, content: "quick" });
    const { kernel, client, heard, recorder } = simulation;
    const reply = await kernel.run(client.chat(hedged));
    expect(reply).toMatchObject({ content: "quick", sourceName: "s_2", attempts: 2 });
    expect(sendsOf(simulation)).toEqual([
      ["s_1", 0],
      ["s_2", 1_000],
    ]);
    expect(heard.wants.filter((want) => want.hedge)).toMatchObject([{ candidates: ["s_2"], retry: false }]);
    await kernel.advance(0);
    const loser = heard.settles.find((settle) => settle.source === "s_1");
    // Its prompt is used, whatever came of it.
    expect(loser).toMatchObject({ outcome: "cancelled", sent: true, durationMs: 1_500 });
    expect(loser!.actualTokens).toBeGreaterThan(0);
    expect(recorder.rows).toHaveLength(2);
    expect(recorder.rows[0]).toMatchObject({ sourceName: "s_1", outcome: "cancelled", final: false, latencyMs: 1_500 });
    expect(recorder.rows[0]!.error).toBe("cancelled: another attempt of the call was faster");
    expect(recorder.rows[1]).toMatchObject({ sourceName: "s_2", outcome: "success", final: true });
    await expectNothingLeft(simulation);
  });

  it("the first attempt may win after all, even with a token that came late", async () => {
    const simulation = simulate({ firstTokenMs: 1_200, afterMs: 1_500, content: "late" }, { afterMs: 10_000 });
    const { kernel, client, recorder } = simulation;
    expect(await kernel.run(client.chat(hedged))).toMatchObject({ content: "late", sourceName: "s_1", attempts: 2 });
    expect(recorder.rows.map((row) => [row.sourceName, row.outcome])).toEqual([
      ["s_2", "cancelled"],
      ["s_1", "success"],
    ]);
    await expectNothingLeft(simulation);
  });

  it.each([
    ["it is off", hi, { afterMs: 3_000 }, {}],
    ["the answer came in time", hedged, { afterMs: 900 }, {}],
    ["the token came in time", hedged, { firstTokenMs: 999, afterMs: 3_000 }, {}],
    ["the attempt doesn't stream", { ...hedged, stream: false }, { afterMs: 3_000 }, {}],
    ["the governor says never", hedged, { afterMs: 3_000 }, { grant: () => ({ hedgeAfterMs: null }) }],
    ["the call stays with one source", { ...hedged, failover: "off" as const }, { afterMs: 3_000 }, {}],
    ["one send is all the call has", hedged, { afterMs: 3_000 }, { once: true }],
  ] as const)("sends nothing twice when %s", async (_, request, reply, { once = false, ...script }: Sparing) => {
    const options = once ? { retry: { maxAttempts: 1 } } : {};
    const simulation = simulate(reply, { afterMs: 10 }, { options }, script);
    const { kernel, client, heard } = simulation;
    expect(await kernel.run(client.chat(request))).toMatchObject({ sourceName: "s_1", attempts: 1 });
    expect(heard.wants.filter((want) => want.hedge)).toEqual([]);
    await expectNothingLeft(simulation);
  });

  it("a refusal ends it silently: it never queues, and the call goes on", async () => {
    const refuse: GovernorScript["refuse"] = (want) => (want.hedge ? { kind: "fairness", waitHintMs: 100 } : null);
    const simulation = simulate({ afterMs: 5_000 }, { afterMs: 10 }, {}, { refuse });
    const { kernel, client, heard, recorder } = simulation;
    const call = client.chat(hedged);
    await kernel.advance(2_000);
    expect((await kernel.run(Promise.resolve(client.snapshot()))).waiting.count).toBe(0);
    expect(await kernel.run(call)).toMatchObject({ sourceName: "s_1", attempts: 1 });
    expect(heard.wants.filter((want) => want.hedge)).toHaveLength(1);
    expect(recorder.rows).toHaveLength(1);
    await expectNothingLeft(simulation);
  });

  it("a source without a free slot is not waited for", async () => {
    const sources = [{ model: "a" }, { model: "b", priority: 1, maxConcurrency: 1 }];
    const simulation = simulate({ afterMs: 5_000 }, { firstTokenMs: 1, afterMs: 2_000 }, { sources });
    const { kernel, client, heard } = simulation;
    const calls = [client.chat({ ...hi, model: "b" }), client.chat(hedged)];
    const [, reply] = await kernel.run(Promise.all(calls));
    expect(reply).toMatchObject({ sourceName: "s_1", attempts: 1 });
    expect(heard.wants.filter((want) => want.hedge)).toHaveLength(1);
    await expectNothingLeft(simulation);
  });

  it.each([
    ["fails", serverError(), "transient"],
    ["is rate-limited", limited(5_000), "rate_limited"],
    ["turns out dead", deadKey(), "source_dead"],
    ["is rejected", rejected(), "rejected"],
  ])("when one of them %s the other one simply goes on; its failure has its own row", async (_, error, outcome) => {
    for (const failing of ["s_1", "s_2"]) {
      const good: ScriptedReply = { afterMs: 4_000, content: "good" };
      const bad: ScriptedReply = { afterMs: 1_500, error };
      const simulation = failing === "s_1" ? simulate(bad, good) : simulate(good, bad);
      const { kernel, client, recorder } = simulation;
      const reply = await kernel.run(client.chat(hedged));
      expect(reply).toMatchObject({ content: "good", attempts: 2 });
      expect(recorder.rows.map((row) => [row.sourceName, row.outcome, row.final])).toEqual([
        [failing, outcome, false],
        [failing === "s_1" ? "s_2" : "s_1", "success", true],
      ]);
      await expectNothingLeft(simulation);
    }
  });

  it("when both fail, the last failure is judged and counted once", async () => {
    const bad: ScriptedReply = { afterMs: 2_000, error: serverError() };
    const simulation = simulate(bad, bad, { options: { retry: { maxAttempts: 2, backoffBaseMs: 60 } } });
    const { kernel, client, heard, recorder } = simulation;
    const error = await kernel.run(outcomeOf(client.chat(hedged)));
    // Two counted failures: both attempts of the hedge are one, the third send is the other.
    expect(error).toMatchObject({ reason: "retry_exhausted" });
    expect(recorder.rows.map((row) => row.outcome)).toEqual(["transient", "transient", "transient", "unavailable"]);
    expect(heard.wants.filter((want) => want.hedge)).toHaveLength(1);
    expect(heard.wants.at(-1)).toMatchObject({ failedHere: ["s_1", "s_2"], retry: true });
    await expectNothingLeft(simulation);
  });

  it.each(["caller", "deadline"] as const)("%s ends both, and nothing is left", async (who) => {
    const controller = new AbortController();
    const simulation = simulate({}, {});
    const { kernel, client, heard, recorder } = simulation;
    const limits = who === "caller" ? { signal: controller.signal } : { deadlineMs: 2_000 };
    const call = outcomeOf(client.chat({ ...hedged, ...limits }));
    await kernel.advance(1_900);
    expect(simulation.transport.inflight()).toBe(2);
    if (who === "caller") controller.abort(stop);
    const end = await kernel.run(call);
    if (who === "caller") expect(end).toBe(stop);
    else expect(end).toMatchObject({ reason: "deadline_exceeded" });
    await kernel.advance(0);
    expect(heard.settles.map((settle) => settle.outcome)).toEqual(["cancelled", "cancelled"]);
    expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
    expect(recorder.rows.filter((row) => row.attempt !== null).map((row) => row.outcome)).toEqual([
      "cancelled",
      "cancelled",
    ]);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("a permit that comes when it is no longer needed goes back unsent", async () => {
    const grant: GovernorScript["grant"] = (_, want) => (want.hedge ? { startInMs: 500 } : { hedgeAfterMs: 1_000 });
    const endings: [ScriptedReply, number][] = [
      [{ afterMs: 1_200 }, 1_200],
      [{ firstTokenMs: 1_200, afterMs: 3_000 }, 3_000],
    ];
    for (const [first, endMs] of endings) {
      const simulation = simulate(first, { afterMs: 10 }, {}, { grant });
      const { kernel, client, heard } = simulation;
      expect(await kernel.run(client.chat(hedged))).toMatchObject({ sourceName: "s_1", attempts: 1 });
      expect(kernel.runtime().now()).toBe(endMs);
      await kernel.advance(0);
      expect(heard.settles.find((settle) => settle.source === "s_2")).toMatchObject({ sent: false });
      await expectNothingLeft(simulation);
    }
    const used = simulate({ afterMs: 9_000 }, { afterMs: 10 }, {}, { grant });
    expect(await used.kernel.run(used.client.chat(hedged))).toMatchObject({ sourceName: "s_2" });
    expect(sendsOf(used)[1]).toEqual(["s_2", 1_500]);
  });

  it("happens at most once in a call", async () => {
    const bad: ScriptedReply = { afterMs: 2_000, error: serverError() };
    const simulation = simulate(bad, bad, { options: { retry: { maxAttempts: 3, backoffBaseMs: 60 } } });
    const { kernel, client, heard } = simulation;
    await kernel.run(outcomeOf(client.chat(hedged)));
    expect(heard.wants.filter((want) => want.hedge)).toHaveLength(1);
  });

  it("an evacuated attempt leaves its hedge to go on alone", async () => {
    const simulation = simulate({}, { afterMs: 4_000, content: "safe" });
    const { kernel, client, emit, recorder } = simulation;
    const call = client.chat(hedged);
    await kernel.advance(2_000);
    emit({ type: "state", source: "s_1", evacuateAfterMs: 1_000 });
    expect(await kernel.run(call)).toMatchObject({ content: "safe", attempts: 2 });
    expect(recorder.rows.map((row) => row.outcome)).toEqual(["transient", "success"]);
    await expectNothingLeft(simulation);
  });

  it("elapsed time is never counted twice, nor lost: the winner's interval holds the loser's", async () => {
    const times = { ttftTimeoutMs: 5_000, timeoutMs: 900_000, interTokenTimeoutMs: 5_000 };
    const simulation = simulate(
      { firstTokenMs: 1_500, afterMs: 60_000, error: serverError() },
      { firstTokenMs: 4_000, afterMs: 60_000, error: serverError() },
      {
        sources: [times, { ...times, priority: 1 }],
        options: { backpressure: { stallWindowMs: 6_000 }, retry: { maxAttempts: 2 } },
      },
    );
    // Both run for a minute, far over the stall window; the next attempt is let through all the same.
    const { kernel, client, transport } = simulation;
    await kernel.run(outcomeOf(client.chat(hedged)));
    expect(transport.sends).toHaveLength(3);
  });

  it("where both sources trip, one attempt leaves and the other stays: once a call", async () => {
    const simulation = simulate({}, { afterMs: 6_000, content: "stays" });
    const { kernel, client, emit, transport } = simulation;
    const call = client.chat(hedged);
    await kernel.advance(3_000);
    for (const source of ["s_1", "s_2"]) emit({ type: "state", source, evacuateAfterMs: 1_000 });
    expect(await kernel.run(call)).toMatchObject({ content: "stays", attempts: 2 });
    expect(transport.sends.map((send) => send.endedAtMs)).toEqual([3_000, 7_000]);
  });

  it("attempts that aren't counted refund their time, both of them", async () => {
    const times = { ttftTimeoutMs: 5_000, timeoutMs: 900_000, interTokenTimeoutMs: 5_000 };
    const busy: ScriptedReply = { afterMs: 2_000, error: limited(4_000) };
    const simulation = simulate(busy, busy, {
      sources: [times, { ...times, priority: 1 }],
      options: { backpressure: { stallWindowMs: 6_000 } },
    });
    const { kernel, client, transport } = simulation;
    // Both were rate-limited by 3 s: what is left of the window is less than they ask to wait.
    expect(await kernel.run(outcomeOf(client.chat(hedged)))).toBeInstanceOf(AllSourcesExhausted);
    expect(transport.sends).toHaveLength(2);
    await expectNothingLeft(simulation);
  });

  describe("stream()", () => {
    const texts = (events: readonly ChatEvent[]): string =>
      events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");

    it("the first token commits; no event of the loser reaches the consumer", async () => {
      const simulation = simulate(
        { firstTokenMs: 1_300, afterMs: 5_000, content: "first" },
        { firstTokenMs: 200, afterMs: 5_000, content: "second" },
      );
      const { kernel, client, recorder, transport } = simulation;
      const stream = client.stream(hedged);
      const events = await kernel.run(readAll(stream));
      expect(texts(events)).toBe("second");
      expect(transport.sends[0]!.endedAtMs).toBe(1_200);
      expect((await stream.final).sourceName).toBe("s_2");
      expect(recorder.rows.map((row) => [row.sourceName, row.outcome])).toEqual([
        ["s_1", "cancelled"],
        ["s_2", "success"],
      ]);
      await expectNothingLeft(simulation);
    });

    it("tokens of the same moment: one attempt is heard, whichever it is", async () => {
      const winners = new Set<string>();
      for (let seed = 1; seed <= 20; seed += 1) {
        const simulation = simulate(
          { firstTokenMs: 1_200, afterMs: 1_200, content: "first" },
          { firstTokenMs: 200, afterMs: 200, content: "second" },
          { kernel: new SimulationKernel({ seed }) },
        );
        const { kernel, client, recorder } = simulation;
        const stream = client.stream(hedged);
        const text = texts(await kernel.run(readAll(stream)));
        const { sourceName } = await stream.final;
        expect(text).toBe(sourceName === "s_1" ? "first" : "second");
        winners.add(text);
        expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
        expect(recorder.rows.filter((row) => row.outcome === "success")).toHaveLength(1);
        await expectNothingLeft(simulation);
      }
      expect(winners.size).toBe(2);
    });

    it("tokens that come before the loop has heard of the other's: the first one is heard alone", async () => {
      const sinks: ChatSink[] = [];
      const ends: (() => void)[] = [];
      const transport: ChatTransport = {
        complete: ({ source, sink, context }) =>
          new Promise((resolve, reject) => {
            context.markSent();
            context.onAbort(reject);
            sinks.push(sink!);
            ends.push(() => resolve({ ...answer, content: source.name }));
          }),
        async close() {},
      };
      const { kernel, client } = simulate({}, {}, { options: { transport } });
      const stream = client.stream(hedged);
      const reading = readAll(stream);
      await kernel.advance(1_100);
      expect(sinks).toHaveLength(2);
      sinks[1]!.push([{ type: "text-delta", text: "second" }]);
      sinks[0]!.push([{ type: "text-delta", text: "first" }]);
      for (const end of ends) end();
      expect(texts(await kernel.run(reading))).toBe("second");
      expect(await stream.final).toMatchObject({ sourceName: "s_2", content: "s_2" });
    });

    it("leaving the loop ends both attempts", async () => {
      const simulation = simulate({}, {});
      const { kernel, client } = simulation;
      const stream = client.stream(hedged);
      const reading = outcomeOf(stream.next());
      await kernel.advance(1_500);
      expect(simulation.transport.inflight()).toBe(2);
      await kernel.run(stream.return!());
      await kernel.run(reading);
      await expectNothingLeft(simulation);
    });

    it("after the commit an interruption ends the winner, with what has come", async () => {
      const controller = new AbortController();
      const simulation = simulate({}, { firstTokenMs: 100, content: "so far" });
      const { kernel, client } = simulation;
      const stream = client.stream({ ...hedged, signal: controller.signal });
      const first = await kernel.run(stream.next());
      expect(first.value).toMatchObject({ text: "so far" });
      controller.abort(stop);
      expect(await kernel.run(outcomeOf(stream.next()))).toBe(stop);
      await expectNothingLeft(simulation, controller.signal);
    });

    it("a winner that breaks begins again with onBreak: restart", async () => {
      const simulation = simulate({}, { firstTokenMs: 100, afterMs: 500, error: serverError(), content: "broken" });
      const { kernel, client, transport } = simulation;
      const stream = client.stream({ ...hedged, onBreak: "restart", deadlineMs: 20_000 });
      const events: ChatEvent[] = [];
      const reading = outcomeOf(
        (async () => {
          for await (const event of stream) events.push(event);
        })(),
      );
      await kernel.run(reading);
      expect(events.slice(0, 1)).toMatchObject([{ text: "broken" }]);
      expect(transport.sends.length).toBeGreaterThan(2);
      await expectNothingLeft(simulation);
    });
  });
});
