import { describe, expect, it } from "vitest";
import type { ChatEvent } from "../../src/domain/chat.js";
import { AllSourcesExhausted, TransientError } from "../../src/errors.js";
import type { ChatTransport } from "../../src/ports/transport.js";
import { sampleCompletion } from "../../src/testing/sample-answers.js";
import {
  deadKey,
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  inOrder,
  noBreaker,
  patient,
  readAll,
  rejected,
  serverError,
  simulateOn,
} from "./harness.js";

const stop = new Error("the user pressed stop");
const half = { content: "half an", thinking: "", toolCalls: [], usage: null };
const cut = () => new TransientError("s_1 transient failure: cut", { code: "truncated", partial: half });
const textOf = (events: readonly ChatEvent[]) =>
  events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");

/** Public streams (spec 03 "Public stream", 11). */
describe.each(GOVERNOR_KINDS)("streams (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("failover is free until the first event: failures before it never show", async () => {
    const { kernel, client, transport, recorder } = simulate({
      sources: [{}, {}, {}],
      script: (_, n) =>
        n === 1
          ? { afterMs: 10, error: serverError() }
          : n === 2
            ? { afterMs: 10, error: deadKey() }
            : { firstTokenMs: 10, afterMs: 50, content: "whole" },
    });
    const stream = client.stream(hi);
    const events = await kernel.run(readAll(stream));
    expect(events.map((event) => event.type)).toEqual(["text-delta", "usage", "finish"]);
    expect(textOf(events)).toBe("whole");
    expect(await stream.final).toMatchObject({ content: "whole", attempts: 3 });
    expect(transport.sends).toHaveLength(3);
    expect(recorder.rows.map((row) => [row.outcome, row.operation, row.final])).toEqual([
      ["transient", "chat_stream", false],
      ["source_dead", "chat_stream", false],
      ["success", "chat_stream", true],
    ]);
  });

  it("after the first event a broken stream throws its own typed error with the partial answer, and nothing is retried", async () => {
    const simulation = simulate({
      sources: [{}, {}],
      script: () => ({ firstTokenMs: 10, afterMs: 50, content: "half an", error: cut() }),
    });
    const { kernel, client, transport, recorder } = simulation;
    const stream = client.stream(hi);
    const seen: ChatEvent[] = [];
    const reading = (async () => {
      for await (const event of stream) seen.push(event);
    })();
    const error = (await failureOf(kernel, reading)) as TransientError;
    expect(error).toBeInstanceOf(TransientError);
    expect(error).toMatchObject({ code: "truncated", operation: "chat_stream", partial: { content: "half an" } });
    await expect(stream.final).rejects.toBe(error);
    expect(textOf(seen)).toBe("half an");
    expect(transport.sends).toHaveLength(1);
    expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
    expect(recorder.rows[0]).toMatchObject({ outcome: "transient", response: "half an", usageSource: "estimated" });
    await kernel.advance(0);
    await expectNothingLeft(simulation);
  });

  describe("onBreak: restart", () => {
    const again = { ...hi, onBreak: "restart" } as const;
    const breaking = (content: string) => ({ firstTokenMs: 10, afterMs: 50, content, error: cut() });

    it("tells the consumer to discard what it has and reads another source from the start", async () => {
      const simulation = simulate({
        sources: [{}, {}],
        script: (_, n) =>
          n === 1
            ? breaking("half an")
            : n === 2
              ? { afterMs: 5, error: serverError() }
              : { firstTokenMs: 5, afterMs: 9, content: "whole" },
        options: { breaker: noBreaker, ...inOrder },
      });
      const { kernel, client, transport, recorder } = simulation;
      const stream = client.stream(again);
      const events = await kernel.run(readAll(stream));
      expect(events.map((event) => event.type)).toEqual(["text-delta", "restart", "text-delta", "usage", "finish"]);
      expect(events[1]).toEqual({ type: "restart", attempt: 2, reason: "truncated" });
      const reply = await kernel.run(stream.final);
      expect(reply).toMatchObject({ content: "whole", attempts: 3 });
      expect(transport.sends.map(({ source }) => source).slice(0, 2)).toEqual(["s_1", "s_2"]);
      expect(reply).toMatchObject({ sourceName: transport.sends[2]!.source, callId: transport.sends[2]!.callId });
      expect(recorder.rows.map((row) => [row.outcome, row.attempt, row.final])).toEqual([
        ["transient", 1, false],
        ["transient", 2, false],
        ["success", 3, true],
      ]);
      expect(recorder.rows[0]).toMatchObject({ response: "half an", callId: transport.sends[0]!.callId });
      await expectNothingLeft(simulation);
    });

    it("may break more than once, and ends when the budget is used up, with one final row", async () => {
      const simulation = simulate({
        sources: [{}, {}],
        script: () => breaking("half an"),
        options: { breaker: noBreaker, retry: { maxAttempts: 3, backoffBaseMs: 10 } },
      });
      const { kernel, client, transport, recorder } = simulation;
      const seen: ChatEvent[] = [];
      const stream = client.stream(again);
      const reading = (async () => {
        for await (const event of stream) seen.push(event);
      })();
      const error = await failureOf(kernel, reading);
      expect(error).toBeInstanceOf(AllSourcesExhausted);
      expect(error).toMatchObject({ reason: "retry_exhausted", cause: { code: "truncated", partial: half } });
      await expect(stream.final).rejects.toBe(error);
      expect(seen.map((event) => event.type)).toEqual(["text-delta", "restart", "text-delta", "restart", "text-delta"]);
      expect(transport.sends).toHaveLength(3);
      expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
      await expectNothingLeft(simulation);
    });

    it("what no other attempt can mend ends the stream at once", async () => {
      const { kernel, client, transport } = simulate({
        sources: [{}, {}],
        script: () => ({ firstTokenMs: 10, afterMs: 50, content: "half an", error: rejected() }),
      });
      expect(await failureOf(kernel, readAll(client.stream(again)))).toMatchObject({ name: "RequestRejectedError" });
      expect(transport.sends).toHaveLength(1);
    });

    it("a consumer that leaves between two attempts ends the call", async () => {
      const simulation = simulate({
        script: () => breaking("half an"),
        options: { breaker: noBreaker, retry: { maxAttempts: 9, backoffBaseMs: 10_000, backoffMaxMs: 10_000 } },
      });
      const { kernel, client, transport, recorder } = simulation;
      const leaving = new AbortController();
      const stream = client.stream({ ...again, signal: leaving.signal });
      kernel.runtime().setTimer(1_000, () => leaving.abort(stop));
      expect(await failureOf(kernel, readAll(stream))).toBe(stop);
      await expect(stream.final).rejects.toBe(stop);
      expect(transport.sends).toHaveLength(1);
      expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
        ["transient", false],
        ["cancelled", true],
      ]);
      await expectNothingLeft(simulation, leaving.signal);
    });

    it(".final alone gives the whole answer; a wish that is none is refused", async () => {
      const { kernel, client } = simulate({
        script: (_, n) => (n === 1 ? breaking("half") : { afterMs: 5, content: "ok" }),
      });
      expect(await kernel.run(client.stream(again).final)).toMatchObject({ content: "ok", attempts: 2 });
      const odd = client.stream({ ...hi, onBreak: "again" } as never);
      expect(await failureOf(kernel, odd.final)).toMatchObject({ code: "bad_request" });
    });
  });

  it("a stream that breaks before its first event may end as scope error", async () => {
    const { kernel, client } = simulate({
      options: { retry: { maxAttempts: 2, backoffBaseMs: 50 }, breaker: noBreaker },
      script: () => ({ afterMs: 10, error: serverError() }),
    });
    const stream = client.stream(hi);
    const error = await failureOf(kernel, readAll(stream));
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect(error).toMatchObject({ reason: "retry_exhausted", operation: "chat_stream" });
    await expect(stream.final).rejects.toBe(error);
  });

  it("final runs the stream by itself when nobody iterates; iterating later still gives every event", async () => {
    const { kernel, client } = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 50, content: "whole" }) });
    const stream = client.stream(hi);
    expect((await kernel.run(stream.final)).content).toBe("whole");
    expect(textOf(await readAll(stream))).toBe("whole");
  });

  it("final rejecting with nobody listening harms nobody", async () => {
    const { kernel, client } = simulate({ script: () => ({ afterMs: 10, error: rejected() }) });
    const stream = client.stream(hi);
    await failureOf(kernel, readAll(stream));
    const unheard: unknown[] = [];
    const listen = (error: unknown): number => unheard.push(error);
    process.on("unhandledRejection", listen);
    void client.stream(hi).final;
    await kernel.drain();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", listen);
    expect(unheard).toEqual([]);
  });

  it("nothing is admitted or sent before the first next()", async () => {
    const { kernel, client, transport } = simulate();
    const stream = client.stream(hi);
    await kernel.advance(10_000);
    expect(transport.sends).toHaveLength(0);
    await kernel.run(stream.next());
    expect(transport.sends).toHaveLength(1);
    await kernel.run(stream.final);
  });

  it("leaving after finish is a success", async () => {
    const { kernel, client, recorder } = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 50 }) });
    const stream = client.stream(hi);
    await kernel.run(
      (async () => {
        for await (const event of stream) if (event.type === "finish") break;
      })(),
    );
    expect((await stream.final).content).toBe("answer");
    expect(recorder.rows.map((row) => row.outcome)).toEqual(["success"]);
  });

  it.each([
    ["break", "the row is cancelled with estimated usage"],
    ["throw", "the reader's own error passes"],
  ])("leaving by %s before the end: %s, and nothing is left", async (how) => {
    const simulation = simulate({
      sources: [patient],
      script: () => ({ firstTokenMs: 10, afterMs: 60_000, content: "half an" }),
    });
    const { kernel, client, recorder, transport } = simulation;
    // The transport knows what has arrived so far.
    const { complete } = transport;
    transport.complete = (attempt) => {
      attempt.context.partialSoFar = () => half;
      return complete.call(transport, attempt);
    };
    const stream = client.stream(hi);
    const reading = (async () => {
      for await (const _ of stream) {
        if (how === "throw") throw stop;
        break;
      }
    })();
    if (how === "throw") expect(await failureOf(kernel, reading)).toBe(stop);
    else await kernel.run(reading);
    expect(recorder.rows).toHaveLength(1);
    expect(recorder.rows[0]).toMatchObject({
      outcome: "cancelled",
      final: true,
      response: "half an",
      usageSource: "estimated",
      promptTokens: 5,
      completionTokens: 2,
    });
    await kernel.advance(0);
    await expectNothingLeft(simulation);
  });

  it("a deadline that passes in an open stream is thrown with what had arrived", async () => {
    const simulation = simulate({ sources: [patient], script: () => ({ firstTokenMs: 10, afterMs: 60_000 }) });
    const { kernel, client, transport } = simulation;
    const { complete } = transport;
    transport.complete = (attempt) => {
      attempt.context.partialSoFar = () => half;
      return complete.call(transport, attempt);
    };
    const error = await failureOf(kernel, readAll(client.stream({ ...hi, deadlineMs: 2_000 })));
    expect(error).toMatchObject({ reason: "deadline_exceeded", partial: { content: "half an" } });
    expect(kernel.now()).toBe(2_000);
    await kernel.advance(0);
    await expectNothingLeft(simulation);
  });

  it("the caller's signal ends it in the queue, before the first event and after it, with its own reason", async () => {
    for (const atMs of [0, 50, 150]) {
      const simulation = simulate({
        sources: [{ ...patient, maxConcurrency: 1 }],
        script: () => ({ firstTokenMs: 100, afterMs: 1_000 }),
      });
      const { kernel, client } = simulation;
      const controller = new AbortController();
      const holder = atMs === 0 ? client.chat(hi) : null;
      const stream = client.stream({ ...hi, signal: controller.signal });
      const reading = failureOf(kernel, readAll(stream));
      kernel.runtime().setTimer(atMs, () => controller.abort(stop));
      expect(await reading).toBe(stop);
      await expect(stream.final).rejects.toBe(stop);
      if (holder !== null) await kernel.run(holder);
      await kernel.advance(0);
      await expectNothingLeft(simulation, controller.signal);
    }
  });

  it("a stream that was read to its end keeps neither its deadline's timer nor a listener", async () => {
    const simulation = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 50 }) });
    const { kernel, client } = simulation;
    const controller = new AbortController();
    await kernel.run(readAll(client.stream({ ...hi, deadlineMs: 100_000, signal: controller.signal })));
    await kernel.advance(0);
    await expectNothingLeft(simulation, controller.signal);
  });

  it("an aborted reader doesn't get what had been buffered", async () => {
    const simulation = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 60_000 }) });
    const { kernel, client } = simulation;
    const controller = new AbortController();
    const stream = client.stream({ ...hi, signal: controller.signal });
    void stream.final;
    await kernel.advance(100);
    controller.abort(stop);
    await kernel.advance(0);
    expect(await failureOf(kernel, stream.next())).toBe(stop);
    expect(await kernel.run(stream.next())).toEqual({ done: true, value: undefined });
  });

  it("a broken stream first gives what had arrived, then its error, then nothing", async () => {
    const { kernel, client } = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 50, error: cut() }) });
    const stream = client.stream(hi);
    await kernel.run(stream.final.catch(() => null));
    expect((await stream.next()).value).toMatchObject({ type: "text-delta" });
    await expect(stream.next()).rejects.toMatchObject({ code: "truncated" });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it("return() and throw() on a stream that was never started send nothing and leave nothing", async () => {
    const simulation = simulate();
    const { kernel, client, transport, recorder } = simulation;
    const left = client.stream(hi);
    expect(await left.return?.()).toEqual({ done: true, value: undefined });
    expect(await left.next()).toEqual({ done: true, value: undefined });
    await expect(client.stream(hi).throw?.(stop)).rejects.toBe(stop);
    await client.stream(hi)[Symbol.asyncDispose]();
    await kernel.drain();
    expect(transport.sends).toHaveLength(0);
    expect(recorder.rows.filter((row) => row.outcome !== "cancelled")).toHaveLength(0);
    await expectNothingLeft(simulation);
  });

  it("a slow reader holds the transport back; reading on lets it go", async () => {
    const pushes: boolean[] = [];
    let resumed = 0;
    const transport: ChatTransport = {
      async complete({ sink, context }) {
        context.markSent();
        for (let i = 0; i < 400; i += 1) {
          const ready = sink!.push([{ type: "text-delta", text: `${i} ` }]);
          pushes.push(ready);
          if (ready) continue;
          await new Promise<void>((resolve) => sink!.whenReady(resolve));
          resumed += 1;
        }
        return sampleCompletion({ content: "all", ttftMs: 1 });
      },
      async close() {},
    };
    const { kernel, client } = simulate({ options: { transport } });
    const stream = client.stream(hi);
    await kernel.run(stream.next());
    await kernel.advance(1_000);
    expect(pushes).toHaveLength(257);
    expect(pushes.at(-1)).toBe(false);
    const rest = await kernel.run(readAll(stream));
    expect(rest).toHaveLength(399 + 2);
    expect(resumed).toBeGreaterThanOrEqual(1);
    expect(pushes).toHaveLength(400);
  });

  it("whenReady calls back at once when nothing is unread", async () => {
    let calledAtOnce = false;
    const transport: ChatTransport = {
      async complete({ sink, context }) {
        context.markSent();
        sink!.whenReady(() => {
          calledAtOnce = true;
        });
        throw new TransientError("over");
      },
      async close() {},
    };
    const { kernel, client } = simulate({ options: { transport, retry: { maxAttempts: 1 } } });
    await failureOf(kernel, readAll(client.stream(hi)));
    expect(calledAtOnce).toBe(true);
  });

  it("refuses n > 1 and a bad request with the same typed error from next() and final", async () => {
    const { kernel, client, transport } = simulate();
    const many = client.stream({ ...hi, sampling: { n: 2 } });
    const error = await failureOf(kernel, many.next());
    expect(error).toMatchObject({ name: "RequestRejectedError", operation: "chat_stream" });
    await expect(many.final).rejects.toBe(error);
    expect(await failureOf(kernel, client.stream({ messages: [] }).final)).toMatchObject({
      name: "RequestRejectedError",
      operation: "chat_stream",
    });
    expect(transport.sends).toHaveLength(0);
  });

  it("close() waits for an open stream", async () => {
    const { kernel, client } = simulate({ script: () => ({ firstTokenMs: 10, afterMs: 5_000 }) });
    const stream = client.stream(hi);
    await kernel.run(stream.next());
    let closed = false;
    const closing = client.close().then(() => {
      closed = true;
    });
    await kernel.advance(4_000);
    expect(closed).toBe(false);
    await kernel.run(stream.final);
    await kernel.run(closing);
  });
});
