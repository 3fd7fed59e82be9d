import { describe, expect, it } from "vitest";
import type { ChatCompletion } from "../../src/domain/chat.js";
import { TransientError } from "../../src/errors.js";
import type { AttemptContext, ChatAttempt, ChatTransport } from "../../src/ports/transport.js";
import { sampleCompletion } from "../../src/testing/sample-answers.js";
import { expectNothingLeft, failureOf, GOVERNOR_KINDS, hi, simulateOn } from "./harness.js";

const stop = new Error("the user pressed stop");

const answer = sampleCompletion();

const transportOf = (complete: (attempt: ChatAttempt) => Promise<ChatCompletion>): ChatTransport => ({
  complete,
  async close() {},
});

/** What an attempt gives its transport, and what the loop makes of transports that don't behave. */
describe.each(GOVERNOR_KINDS)("the seam to a transport (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("an attempt knows its ids, its operation and its clock; the messages are written once", async () => {
    const seen: ChatAttempt[] = [];
    const { kernel, client, recorder } = simulate({
      options: {
        retry: { backoffBaseMs: 60 },
        transport: transportOf(async (attempt) => {
          seen.push(attempt);
          attempt.context.markSent();
          if (seen.length === 1) throw new TransientError("once");
          return answer;
        }),
      },
    });
    const reply = await kernel.run(client.chat(hi));
    const [first, second] = seen.map((attempt) => attempt.context);
    expect(second).toMatchObject({ callId: reply.callId, requestId: reply.requestId, operation: "chat" });
    expect(first!.requestId).toBe(reply.requestId);
    expect(first!.callId).not.toBe(reply.callId);
    expect(first!.runtime.now()).toBe(kernel.now());
    expect(seen[0]!.messagesJson).toBe(JSON.stringify(hi.messages));
    expect(seen[1]!.messagesJson).toBe(seen[0]!.messagesJson);
    expect(recorder.rows.map((row) => row.callId)).toEqual([first!.callId, second!.callId]);
  });

  it("an abort is told once to those who listen, at once to those who come later, and not to those who left", async () => {
    const told: string[] = [];
    let kept: AttemptContext | null = null;
    const simulation = simulate({
      options: {
        transport: transportOf(({ context }) => {
          kept = context;
          context.markSent();
          const leave = context.onAbort(() => told.push("left"));
          leave();
          return new Promise((_, reject) => {
            context.onAbort((reason) => {
              told.push("stayed");
              context.onAbort((again) => told.push(again === reason ? "late" : "wrong"))();
              reject(reason);
            });
          });
        }),
      },
    });
    const { kernel, client } = simulation;
    const controller = new AbortController();
    const call = client.chat({ ...hi, signal: controller.signal, deadlineMs: 500 });
    await kernel.advance(100);
    expect(kept!.aborted).toBe(false);
    controller.abort(stop);
    expect(await failureOf(kernel, call)).toBe(stop);
    await kernel.advance(1_000);
    expect(told).toEqual(["stayed", "late"]);
    expect(kept).toMatchObject({ aborted: true, abortReason: stop });
    await expectNothingLeft(simulation, controller.signal);
  });

  it.each([
    [
      "throws in the same turn",
      () => {
        throw new TypeError("no such file");
      },
    ],
    ["rejects with an error of its own", () => Promise.reject(new TypeError("no such file"))],
    ["rejects with no error at all", () => Promise.reject("no such file")],
    ["gives no promise", () => undefined as unknown as Promise<ChatCompletion>],
  ])("a transport that %s leaves the call inside the taxonomy", async (_, complete) => {
    const simulation = simulate({
      options: { retry: { maxAttempts: 1 }, transport: transportOf(complete as () => Promise<ChatCompletion>) },
    });
    const { kernel, client, recorder } = simulation;
    const error = (await failureOf(kernel, client.chat(hi))) as Error;
    expect(error).toMatchObject({
      reason: "retry_exhausted",
      cause: { name: "TransientError", code: "upstream_error" },
    });
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["transient", false],
      ["unavailable", true],
    ]);
    await kernel.advance(0);
    await expectNothingLeft(simulation);
  });

  it("a first token told twice is told once; its time stands in the row of a failed attempt", async () => {
    const { kernel, client, recorder } = simulate({
      options: {
        retry: { maxAttempts: 1 },
        transport: transportOf(async ({ context }) => {
          context.markSent();
          await context.runtime.sleep(30);
          context.markFirstToken();
          await context.runtime.sleep(30);
          context.markFirstToken();
          throw new TransientError("cut");
        }),
      },
    });
    await failureOf(kernel, client.chat(hi));
    expect(recorder.rows[0]).toMatchObject({ ttftMs: 30, latencyMs: 60 });
  });

  it("an answer that arrives although its caller left is not lost", async () => {
    const simulation = simulate({
      options: {
        transport: transportOf(async ({ context }) => {
          context.markSent();
          await context.runtime.sleep(200);
          return answer;
        }),
      },
    });
    const { kernel, client, recorder } = simulation;
    const controller = new AbortController();
    const call = client.chat({ ...hi, signal: controller.signal });
    await kernel.advance(100);
    controller.abort(stop);
    expect((await kernel.run(call)).content).toBe("answer");
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["success", true]]);
    await kernel.advance(0);
    await expectNothingLeft(simulation, controller.signal);
  });
});
