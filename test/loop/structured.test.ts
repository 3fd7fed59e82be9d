import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, RequestRejectedError, ResultInvalidError } from "../../src/errors.js";
import type { ChatAttempt } from "../../src/ports/transport.js";
import { OBJECT_ONLY, PROMPT_ONLY } from "../support/weak-profiles.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  noBreaker,
  serverError,
  simulate,
  simulateOn,
} from "./harness.js";

const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };

describe.each(GOVERNOR_KINDS)("structured() on the loop (%s governor)", (governor) => {
  const simulate = simulateOn(governor);
  const answering = (contents: readonly string[], options = {}) =>
    simulate({
      script: (_, n) => ({ afterMs: 100, content: contents[n - 1] ?? contents.at(-1)!, totalTokens: 10 }),
      options: { pricing: { costNanos: () => 2_000_000_000n }, ...options },
    });

  it("each ask is a call with rows of its own; what doesn't fit is no success, and the source stays well", async () => {
    const { kernel, client, transport, recorder } = answering(["no", '{"a":"x"}', '{"a":1}']);
    const request = { ...hi, sessionId: "s", parentCallId: "p" };
    const reply = await kernel.run(client.structured(request, schema, { maxReasks: 2 }));
    expect(reply).toMatchObject({ value: { a: 1 }, asks: 3, cost: 6, usage: { totalTokens: 30 } });
    expect(reply.reply).toMatchObject({ parsed: { a: 1 }, cost: 2, attempts: 1 });
    expect(recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([
      ["invalid", true],
      ["invalid", true],
      ["success", true],
    ]);
    expect(recorder.rows.map((row) => row.errorCode)).toEqual(["malformed", "schema", undefined]);
    expect(recorder.rows.map((row) => row.response)).toEqual(["no", '{"a":"x"}', '{"a":1}']);
    expect(recorder.rows.every((row) => row.costNanos === 2_000_000_000n)).toBe(true);
    expect(new Set(recorder.rows.map((row) => row.requestId)).size).toBe(3);
    for (const row of recorder.rows)
      expect(row).toMatchObject({ sessionId: "s", parentCallId: "p", operation: "chat" });
    // What was sent stands in the row, the instruction and the re-ask included.
    expect(recorder.rows[1]!.messages).toContain("This answer can't be used");
    await expectNothingLeft({ kernel, client, transport });
  });

  it("many useless answers open no breaker", async () => {
    const { kernel, client } = answering(["no"], { breaker: { failThreshold: 2 } });
    for (let turn = 0; turn < 3; turn += 1) await failureOf(kernel, client.structured(hi, schema, { maxReasks: 3 }));
    expect((await client.snapshot()).sources[0]).toMatchObject({ state: "closed" });
  });

  it("at the end it tells the last reply, what is wrong and how often it asked", async () => {
    const { kernel, client } = answering(["no", "nope", '{"a":"x"}']);
    const error = await failureOf(kernel, client.structured(hi, schema));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({
      code: "schema",
      rawText: '{"a":"x"}',
      issues: [{ path: "a", expected: "number", got: '"x"' }],
      details: { asks: 3, cost: 6, usage: { totalTokens: 30 } },
      sourceName: "s_1",
      operation: "chat",
    });
    expect((error as Error).message).toContain("after 3 asks");
  });

  it("one deadline spans all asks", async () => {
    const { kernel, client, transport } = answering(["no"]);
    const error = await failureOf(kernel, client.structured({ ...hi, deadlineMs: 250 }, schema, { maxReasks: 50 }));
    expect(error).toMatchObject({ reason: "deadline_exceeded" });
    expect(transport.sends).toHaveLength(3);
    expect(kernel.now()).toBe(250);
    await expectNothingLeft({ kernel, client, transport });
  });

  it("what was paid and why it went on is told by an end that is no answer", async () => {
    const { kernel, client, transport } = answering(["no"]);
    const error = await failureOf(kernel, client.structured({ ...hi, deadlineMs: 250 }, schema, { maxReasks: 50 }));
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect(error).toMatchObject({
      reason: "deadline_exceeded",
      scope: "LLM",
      details: { asks: 3, cost: 4, usage: { totalTokens: 20 } },
      cause: { code: "malformed", rawText: "no" },
    });
    expect((error as Error).cause).toBeInstanceOf(ResultInvalidError);
    expect((error as Error).message).toMatch(/the deadline of 250 ms passed after 1 attempt \(in ask 3; .*JSON/);
    await expectNothingLeft({ kernel, client, transport });
  });

  it.each([
    ["a source failure", () => serverError(), AllSourcesExhausted, "retry_exhausted"],
    [
      "a refusal",
      () => new RequestRejectedError("s_1 refuses", { code: "context_length", details: { limit: 5 } }),
      RequestRejectedError,
      "context_length",
    ],
  ])("so does %s on a later ask", async (_, fault, kind, code) => {
    const { kernel, client } = simulate({
      script: (_send, n) => (n === 1 ? { afterMs: 1, content: "no", totalTokens: 10 } : { afterMs: 1, error: fault() }),
      options: { pricing: { costNanos: () => 2_000_000_000n }, retry: { maxAttempts: 1 } },
    });
    const error = await failureOf(kernel, client.structured(hi, schema));
    expect(error).toBeInstanceOf(kind);
    const details = { asks: 2, cost: 2, usage: { totalTokens: 10 }, ...(code === "context_length" && { limit: 5 }) };
    expect(error).toMatchObject({ code, operation: "chat", details, cause: { rawText: "no" } });
  });

  it("a first ask that fails tells its own end", async () => {
    const { kernel, client } = simulate({
      script: () => ({ afterMs: 1, error: serverError() }),
      options: { retry: { maxAttempts: 1 } },
    });
    const error = (await failureOf(kernel, client.structured(hi, schema))) as Error;
    expect(error).toMatchObject({ code: "retry_exhausted", cause: { code: "upstream_error" } });
    expect(error).not.toHaveProperty("details");
  });

  it("so does the scope's own deadline", async () => {
    const { kernel, client, transport } = answering(["no"], { deadlineMs: 250 });
    const error = await failureOf(kernel, client.structured(hi, schema, { maxReasks: 50 }));
    expect(error).toMatchObject({ reason: "deadline_exceeded", message: expect.stringContaining("of 250 ms") });
    expect(transport.sends).toHaveLength(3);
  });

  it.each([50, 150])("the caller's reason comes through, from whichever ask (%i ms)", async (atMs) => {
    const { kernel, client, transport, recorder } = answering(["no"]);
    const controller = new AbortController();
    const reason = new Error("left");
    kernel.runtime().setTimer(atMs, () => controller.abort(reason));
    const request = { ...hi, signal: controller.signal };
    expect(await failureOf(kernel, client.structured(request, schema))).toBe(reason);
    expect(recorder.rows.at(-1)).toMatchObject({ outcome: "cancelled", final: true });
    await expectNothingLeft({ kernel, client, transport }, controller.signal);
  });

  it("even when that reason is one of our own errors", async () => {
    const { kernel, client, transport } = answering(["no"]);
    const reason = new ResultInvalidError("of another call", { rawText: "" });
    const signal = AbortSignal.abort(reason);
    expect(await failureOf(kernel, client.structured({ ...hi, signal }, schema))).toBe(reason);
    expect(transport.sends).toHaveLength(0);
  });

  it("a validation that hangs is left by signal and deadline, and gives its permit back", async () => {
    const never = {
      "~standard": { version: 1 as const, vendor: "slow", validate: () => new Promise<never>(() => {}) },
    };
    const { kernel, client, transport } = answering(['{"a":1}']);
    const options = { jsonSchema: schema };
    const error = await failureOf(kernel, client.structured({ ...hi, deadlineMs: 500 }, never, options));
    expect(error).toMatchObject({ reason: "deadline_exceeded" });
    const controller = new AbortController();
    kernel.runtime().setTimer(200, () => controller.abort("left"));
    const asking = client.structured({ ...hi, signal: controller.signal }, never, options);
    expect(await failureOf(kernel, asking)).toBe("left");
    await expectNothingLeft({ kernel, client, transport }, controller.signal);
  });

  /** A Standard Schema whose `validate` is the test's. */
  const judge = (validate: (value: unknown) => unknown) => ({ "~standard": { version: 1, vendor: "test", validate } });

  it("a validation may ask the same client: it holds no permit while it takes long", async () => {
    const simulation = answering(['{"a":1}'], {});
    const only = simulate({ sources: [{ maxConcurrency: 1 }], script: () => ({ afterMs: 100, content: '{"a":1}' }) });
    const asks = judge(async (value) => {
      await only.client.chat(hi);
      return { value };
    });
    const reply = await only.kernel.run(only.client.structured(hi, asks as never, { jsonSchema: schema }));
    expect(reply.value).toEqual({ a: 1 });
    expect(only.recorder.rows.map(({ outcome }) => outcome)).toEqual(["success", "success"]);
    await expectNothingLeft(only);
    await expectNothingLeft(simulation);
  });

  it("a validation that never ends ends with the source's timeout, and is not paid for again", async () => {
    const simulation = simulate({
      sources: [{ timeoutMs: 5_000, maxConcurrency: 1 }],
      script: () => ({ afterMs: 100, content: '{"a":1}' }),
    });
    const { kernel, client, transport, recorder } = simulation;
    const never = judge(() => new Promise(() => {}));
    const error = await failureOf(kernel, client.structured(hi, never as never, { jsonSchema: schema }));
    expect(error).toMatchObject({ name: "ResultInvalidError", code: "schema", details: { asks: 1 } });
    expect((error as Error).message).toContain("5000 ms");
    expect(transport.sends).toHaveLength(1);
    expect(recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([["invalid", true]]);
    await expectNothingLeft(simulation);
  });

  it("a kept answer is judged no longer than the caller waits", async () => {
    let hangs = false;
    const simulation = simulate({
      script: () => ({ afterMs: 100, content: '{"a":1}' }),
      options: { cache: { backend: "memory" } },
    });
    const { kernel, client } = simulation;
    const moody = judge((value) => (hangs ? new Promise(() => {}) : { value }));
    const ask = (more: object) => client.structured({ ...hi, ...more }, moody as never, { jsonSchema: schema });
    await kernel.run(ask({}));
    hangs = true;
    const leaving = new AbortController();
    kernel.runtime().setTimer(300, () => leaving.abort("left"));
    expect(await failureOf(kernel, ask({ signal: leaving.signal }))).toBe("left");
    expect(await failureOf(kernel, ask({ deadlineMs: 500 }))).toMatchObject({ reason: "deadline_exceeded" });
    await kernel.run(client.close());
    await expectNothingLeft(simulation, leaving.signal);
  });

  it("close() waits for all asks, and no new call begins", async () => {
    const { kernel, client } = answering(["no", '{"a":1}']);
    const asking = client.structured(hi, schema);
    const closing = client.close();
    expect((await kernel.run(asking)).asks).toBe(2);
    await kernel.run(closing);
    expect(await failureOf(kernel, client.structured(hi, schema))).toMatchObject({ code: "config" });
  });

  it("service faults are retried by the loop and are no ask", async () => {
    const { kernel, client, recorder } = simulate({
      script: (_, n) => (n === 1 ? { afterMs: 10, error: serverError() } : { afterMs: 10, content: '{"a":1}' }),
      options: { breaker: noBreaker },
    });
    const reply = await kernel.run(client.structured(hi, schema));
    expect(reply).toMatchObject({ asks: 1, reply: { attempts: 2 } });
    expect(recorder.rows.map((row) => row.outcome)).toEqual(["transient", "success"]);
  });

  it("the schema in the prompt is part of what is reserved", async () => {
    const seen: number[] = [];
    const { kernel, client, recorder } = simulate({
      script: ({ context }) => {
        seen.push(recorder.openAttempts.get(context.callId)!.estTokens);
        return { afterMs: 10, content: '{"a":1}' };
      },
      sources: [{ tpm: 1_000_000 }],
    });
    const large = { ...schema, description: "x".repeat(4_000) };
    for (const given of [schema, large]) await kernel.run(client.structured(hi, given, { strategy: "prompt" }));
    expect(seen[1]! - seen[0]!).toBeGreaterThanOrEqual(1_000);
  });
});

describe("structured() and what a source's profile says", () => {
  it("a strategy that no source can follow is refused before anything is sent, with a row", async () => {
    const { kernel, client, transport, recorder } = simulate({ sources: [{ profile: OBJECT_ONLY }] });
    const error = await failureOf(kernel, client.structured(hi, schema, { strategy: "native" }));
    expect(error).toMatchObject({ name: "RequestRejectedError", code: "unsupported_param", operation: "chat" });
    expect(transport.sends).toHaveLength(0);
    expect(recorder.rows).toMatchObject([{ outcome: "rejected", final: true, attempt: null }]);
  });

  it("each source is asked in its own way", async () => {
    const seen: [string, unknown, boolean][] = [];
    const { kernel, client } = simulate({
      sources: [{}, { profile: OBJECT_ONLY }, { profile: PROMPT_ONLY }].map((one) => ({
        ...one,
        maxConcurrency: 1,
      })),
      script: ({ source, request, messagesJson }: ChatAttempt) => {
        const format = request.responseFormat as { type: string } | undefined;
        seen.push([source.name, format?.type, messagesJson.includes("JSON Schema")]);
        return { afterMs: 100, content: '{"a":1}' };
      },
    });
    await kernel.run(Promise.all([1, 2, 3].map(() => client.structured(hi, schema))));
    expect(seen.sort()).toEqual([
      ["s_1", "json_schema", false],
      ["s_2", "json_object", true],
      ["s_3", undefined, true],
    ]);
  });
});
