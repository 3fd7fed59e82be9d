import { describe, expect, it } from "vitest";
import type { BilledUsage, Usage } from "../../src/domain/usage.js";
import { TransientError } from "../../src/errors.js";
import {
  deadKey,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  limited,
  noBreaker,
  patient,
  rejected,
  serverError,
  settled,
  simulateOn,
} from "./harness.js";

const usage: Usage = {
  promptTokens: 40,
  completionTokens: 2,
  totalTokens: 42,
  reasoningTokens: 1,
  cachedPromptTokens: 8,
  source: "measured",
};
const pricing = {
  costNanos: (model: string, used: Usage, provider?: string) =>
    model === "unpriced" || provider === undefined ? null : BigInt(used.totalTokens),
};

/** What the loop writes about a call (spec 05): every attempt a row, every end exactly one final row. */
describe.each(GOVERNOR_KINDS)("rows of a call (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("the images of a request are paid too, as many as there were when it was made", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const messages = [
      { role: "user", content: [{ type: "text", text: "what?" }, image, image] },
      { role: "assistant", content: null },
      { role: "user", content: [image] },
    ];
    const perImage = { costNanos: (_: string, used: BilledUsage) => BigInt(used.images ?? 0) };
    const { kernel, client, recorder } = simulate({ options: { pricing: perImage } });
    const asked = client.chat({ messages });
    messages.length = 0;
    await kernel.run(asked);
    await kernel.run(client.chat(hi));
    expect(recorder.rows.map(({ costNanos }) => costNanos)).toEqual([3n, 0n]);
  });

  it("an attempt's row carries its call, source, request, answer, tokens and money", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ name: "acme_1", model: "m-large", extraBody: { seed: 7 } }],
      options: { pricing },
      script: () => ({ firstTokenMs: 30, afterMs: 100, content: "four" }),
    });
    const reply = await kernel.run(
      client.chat({ ...hi, sampling: { temperature: 0 }, sessionId: "session", parentCallId: "parent" }),
    );
    expect(recorder.rows).toEqual([
      expect.objectContaining({
        callId: reply.callId,
        requestId: reply.requestId,
        sessionId: "session",
        parentCallId: "parent",
        scope: "LLM",
        operation: "chat",
        provider: "acme",
        sourceName: "acme_1",
        model: "m-large",
        messages: JSON.stringify(hi.messages),
        response: "four",
        promptTokens: 10,
        completionTokens: 5,
        usageSource: "measured",
        latencyMs: 100,
        ttftMs: 30,
        costNanos: 15n,
        error: null,
        modelReported: "simulated",
        sampling: '{"seed":7,"temperature":0}',
        outcome: "success",
        attempt: 1,
        statusCode: 200,
        finishReason: "stop",
        waitedMs: 0,
        route: null,
        final: true,
      }),
    ]);
    expect(recorder.rows[0]!.worker).toMatch(/:\d+:/);
    expect(reply.cost).toBe(15 / 1e9);
  });

  it("a terminal row names no source, has the call's whole length, and says where the sources stood", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{}, {}],
      options: { breaker: { failThreshold: 1, cooldownMs: 20_000 } },
      script: () => ({ afterMs: 100, error: serverError() }),
    });
    await failureOf(kernel, client.chat({ ...hi, sampling: { temperature: 1 } }));
    const terminal = recorder.rows.at(-1)!;
    expect(terminal).toMatchObject({
      outcome: "unavailable",
      final: true,
      attempt: null,
      sourceName: null,
      provider: null,
      model: null,
      sampling: '{"temperature":1}',
      errorCode: "retry_exhausted",
      costNanos: null,
      waitedMs: null,
    });
    expect(terminal.latencyMs).toBe(kernel.now());
    const route = JSON.parse(terminal.route!);
    expect(route.map((entry: { source: string; reason: string }) => [entry.source, entry.reason])).toEqual([
      ["s_1", "breaker_open"],
      ["s_2", "breaker_open"],
    ]);
    for (const entry of route) expect(Number.isInteger(entry.waitMs)).toBe(true);
  });

  it("route tells whom an attempt passed over and why, in the words of perSourceReasons", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [
        { ...patient, priority: 0, maxConcurrency: 1 },
        { priority: 1, rpm: 1 },
        { priority: 2 },
        { priority: 3 },
      ],
      script: ({ source }) => ({ afterMs: source.name === "s_1" ? 10_000 : 10 }),
    });
    const holder = client.chat(hi);
    await kernel.advance(0);
    await kernel.run(client.chat(hi));
    await kernel.run(client.chat(hi));
    const route = JSON.parse(recorder.rows.at(-1)!.route!);
    expect(recorder.rows.at(-1)!.sourceName).toBe("s_3");
    expect(route).toEqual([
      { source: "s_1", reason: "concurrency", waitMs: expect.any(Number) },
      { source: "s_2", reason: "rpm", waitMs: expect.any(Number) },
    ]);
    await kernel.run(holder);
  });

  it("a retry on another source says which one failed in this call", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{}, {}],
      options: { breaker: noBreaker },
      script: (_, n) => (n === 1 ? { afterMs: 1, error: serverError() } : { afterMs: 1 }),
    });
    await kernel.run(client.chat(hi));
    expect(JSON.parse(recorder.rows[1]!.route!)).toEqual([
      {
        source: recorder.rows[0]!.sourceName,
        reason: "failed_in_call",
        waitMs: 0,
      },
    ]);
  });

  it("waitedMs is the admission time before each attempt", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ maxConcurrency: 1 }],
      script: (_, n) => (n === 2 ? { afterMs: 100, error: limited(3_000) } : { afterMs: 1_000 }),
    });
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    expect(recorder.rows.map((row) => [row.outcome, row.waitedMs])).toEqual([
      ["success", 0],
      ["rate_limited", 1_000],
      ["success", 3_000],
    ]);
  });

  it("a failed attempt that reported its usage is paid: tokens and cost stand in its row", async () => {
    const { kernel, client, recorder } = simulate({
      options: { pricing, retry: { maxAttempts: 2, backoffBaseMs: 50 } },
      script: (_, n) =>
        n === 1
          ? {
              afterMs: 10,
              error: new TransientError("cut", {
                code: "truncated",
                partial: { content: "half", thinking: "hm", toolCalls: [], usage },
              }),
            }
          : { afterMs: 10 },
    });
    const reply = await kernel.run(client.chat(hi));
    expect(recorder.rows[0]).toMatchObject({
      outcome: "transient",
      promptTokens: 40,
      completionTokens: 2,
      reasoningTokens: 1,
      cachedPromptTokens: 8,
      usageSource: "measured",
      costNanos: 42n,
      response: "half",
      thinking: "hm",
      errorCode: "truncated",
    });
    // The reply tells what its own attempt cost.
    expect(reply.cost).toBe(15 / 1e9);
  });

  it("a failed attempt without output has neither tokens nor cost", async () => {
    const { kernel, client, recorder } = simulate({
      options: { pricing, retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 10, error: serverError() }),
    });
    await failureOf(kernel, client.chat(hi));
    expect(recorder.rows[0]).toMatchObject({
      promptTokens: null,
      completionTokens: null,
      usageSource: null,
      costNanos: null,
      statusCode: 500,
      error: "s_1 transient failure: 500",
    });
  });

  it("an unknown price is null, in the row and in the reply", async () => {
    const { kernel, client, recorder } = simulate({ sources: [{ model: "unpriced" }], options: { pricing } });
    expect((await kernel.run(client.chat(hi))).cost).toBeNull();
    expect(recorder.rows[0]!.costNanos).toBeNull();
  });

  it("exactly one final row, the last of its call, whatever came", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{}, { model: "other" }],
      options: { breaker: noBreaker, retry: { maxAttempts: 3, backoffBaseMs: 50 } },
      script: (_, n) => {
        const failures = [serverError(), limited(10), deadKey(), rejected(), null, undefined];
        const failure = failures[n % failures.length];
        if (failure === undefined) return { firstTokenMs: 1 };
        return failure === null ? { afterMs: 10 } : { afterMs: 10, error: failure };
      },
    });
    const controller = new AbortController();
    const calls = settled(
      Array.from({ length: 30 }, (_, i) =>
        i % 3 === 0
          ? client.stream({ ...hi, signal: controller.signal }).final
          : client.chat({ ...hi, ...(i % 5 === 0 ? { deadlineMs: 500 } : {}), signal: controller.signal }),
      ),
    );
    await kernel.advance(1_000);
    controller.abort();
    await kernel.run(calls);
    const byCall = new Map<string, boolean[]>();
    for (const row of recorder.rows) byCall.set(row.requestId, [...(byCall.get(row.requestId) ?? []), row.final]);
    expect(byCall.size).toBe(30);
    for (const finals of byCall.values()) expect(finals).toEqual([...Array(finals.length - 1).fill(false), true]);
  });

  it("the journal opens a row before each send and closes it with the end", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ tpm: 100_000, estTokens: 77 }],
      script: () => ({ afterMs: 1_000 }),
    });
    const call = client.chat(hi);
    await kernel.advance(10);
    expect([...recorder.openAttempts.values()]).toEqual([
      expect.objectContaining({ scope: "LLM", sourceName: "s_1", estTokens: 77 }),
    ]);
    const reply = await kernel.run(call);
    expect(recorder.openAttempts.size).toBe(0);
    expect(recorder.rows[0]!.callId).toBe(reply.callId);
  });

  it("without telemetry a call is the same", async () => {
    const { kernel, client } = simulate({
      options: { telemetry: "none", retry: { maxAttempts: 2, backoffBaseMs: 50 } },
      script: (_, n) => (n === 1 ? { afterMs: 10, error: serverError() } : { afterMs: 10 }),
    });
    expect((await kernel.run(client.chat(hi))).attempts).toBe(2);
    const failing = simulate({
      options: { telemetry: [], retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 1, error: serverError() }),
    });
    expect(await failureOf(failing.kernel, failing.client.chat(hi))).toMatchObject({ reason: "retry_exhausted" });
  });
});
