import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, RequestRejectedError, SourceDeadError, TransientError } from "../../src/errors.js";
import { failureOf, GOVERNOR_KINDS, hi, inOrder, simulateOn } from "./harness.js";

describe.each(GOVERNOR_KINDS)("the loop (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("answers a call and leaves one final row, no lease and no timer", async () => {
    const { kernel, client, recorder } = simulate();
    const reply = await kernel.run(client.chat(hi));
    expect(reply).toMatchObject({ content: "answer", sourceName: "s_1", attempts: 1, finishReason: "stop" });
    expect(recorder.rows).toHaveLength(1);
    expect(recorder.rows[0]).toMatchObject({ outcome: "success", final: true, attempt: 1, callId: reply.callId });
    expect((await client.snapshot()).sources[0]).toMatchObject({ inflight: 0, state: "closed" });
    expect(kernel.pendingTimers()).toBe(0);
  });

  it("retries a transient failure on another source", async () => {
    const { kernel, client, transport, recorder } = simulate({
      sources: [{}, {}],
      options: inOrder,
      script: (_, n) =>
        n === 1 ? { afterMs: 10, error: new TransientError("s_1 transient failure: 500") } : { afterMs: 10 },
    });
    const reply = await kernel.run(client.chat(hi));
    expect(reply.attempts).toBe(2);
    expect(transport.sends.map((send) => send.source)).toEqual(["s_1", "s_2"]);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["transient", false],
      ["success", true],
    ]);
  });

  it("throws a rejection as itself, with one final row", async () => {
    const { kernel, client, recorder } = simulate({
      script: () => ({
        afterMs: 10,
        error: new RequestRejectedError("s_1 request rejected: 400", { statusCode: 400 }),
      }),
    });
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(RequestRejectedError);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["rejected", true]]);
  });

  it("gives up after maxAttempts with the last failure as cause", async () => {
    const { kernel, client, transport, recorder } = simulate({
      script: () => ({ afterMs: 10, error: new TransientError("s_1 transient failure: 500", { statusCode: 500 }) }),
    });
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect(error).toMatchObject({ reason: "retry_exhausted", operation: "chat" });
    expect((error as Error).cause).toBeInstanceOf(TransientError);
    expect(transport.sends).toHaveLength(4);
    expect(recorder.rows.map((row) => row.outcome)).toEqual([
      "transient",
      "transient",
      "transient",
      "transient",
      "unavailable",
    ]);
    expect(recorder.rows.filter((row) => row.final)).toHaveLength(1);
  });

  it("three dead keys of six lose no call at maxAttempts 2", async () => {
    const dead = new Set(["s_1", "s_3", "s_5"]);
    const { kernel, client } = simulate({
      sources: [{}, {}, {}, {}, {}, {}],
      options: { retry: { maxAttempts: 2 } },
      script: ({ source }) =>
        dead.has(source.name)
          ? { afterMs: 5, error: new SourceDeadError("401", { statusCode: 401 }) }
          : { afterMs: 50 },
    });
    const replies = await kernel.run(Promise.all(Array.from({ length: 50 }, () => client.chat(hi))));
    expect(replies).toHaveLength(50);
  });

  it("holds a concurrency limit and the queue order", async () => {
    const { kernel, client, transport } = simulate({ sources: [{ maxConcurrency: 2 }] });
    const order: number[] = [];
    await kernel.run(Promise.all(Array.from({ length: 10 }, (_, i) => client.chat(hi).then(() => order.push(i)))));
    expect(transport.sends.map((send) => send.atMs)).toEqual([0, 0, 100, 100, 200, 200, 300, 300, 400, 400]);
    expect(order).toHaveLength(10);
  });

  it("streams events and resolves final", async () => {
    const { kernel, client } = simulate({ script: () => ({ firstTokenMs: 20, afterMs: 100, content: "hello" }) });
    const stream = client.stream(hi);
    const types: string[] = [];
    await kernel.run(
      (async () => {
        for await (const event of stream) types.push(event.type);
      })(),
    );
    expect(types).toEqual(["text-delta", "usage", "finish"]);
    expect((await stream.final).content).toBe("hello");
    expect(kernel.pendingTimers()).toBe(0);
  });
});
