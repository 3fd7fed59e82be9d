import { describe, expect, it } from "vitest";
import { RequestRejectedError, TransientError } from "../../src/errors.js";
import type { SourceSnapshot } from "../../src/ports/governor.js";
import { sampleUsage } from "../../src/testing/sample-answers.js";
import {
  deadKey,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  limited,
  noBreaker,
  noPacer,
  rejected,
  type Simulation,
  serverError,
  settled,
  simulateOn,
} from "./harness.js";

const wholeWindow = (limit: number) => ({ limitRule: "window" as const, tpm: limit });

async function firstSource({ kernel, client }: Simulation): Promise<SourceSnapshot> {
  return (await kernel.run(client.snapshot())).sources[0]!;
}

/** Most sends in any half-open 60 s, wherever it starts. */
function mostPerMinute(sentMs: readonly number[]): number {
  return Math.max(...sentMs.map((from) => sentMs.filter((at) => at >= from && at < from + 60_000).length));
}

/** The six gates as a provider would see them (spec 02 §3). */
describe.each(GOVERNOR_KINDS)("limits through the client (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it.each([1, 3, 10, 60])("smooth, rpm %i: no 60 s hold more sends, and the limit is used", async (rpm) => {
    const { kernel, client, transport } = simulate({
      sources: [{ rpm }],
      options: { backpressure: { stallWindowMs: 1_000_000 } },
    });
    await kernel.run(Promise.all(Array.from({ length: 3 * rpm }, () => client.chat(hi))));
    const most = mostPerMinute(transport.sends.map((send) => send.atMs));
    expect(most).toBeLessThanOrEqual(rpm);
    expect(most).toBeGreaterThanOrEqual(Math.min(rpm, 1));
    expect(kernel.now()).toBeLessThan(190_000);
  });

  it("smooth without strict: a burst is allowed on top, more than that is not", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ rpm: 60, strict: false, burstS: 10 }],
      options: noPacer,
    });
    await kernel.run(Promise.all(Array.from({ length: 200 }, () => client.chat(hi))));
    const times = transport.sends.map((send) => send.atMs);
    expect(times.filter((at) => at === 0)).toHaveLength(10);
    expect(mostPerMinute(times)).toBeLessThanOrEqual(70);
  });

  it("window: the limit at once, the rest in the next aligned minute", async () => {
    const { kernel, client, transport } = simulate({ sources: [{ rpm: 5, limitRule: "window" }] });
    await kernel.advance(10_000);
    await kernel.run(Promise.all(Array.from({ length: 12 }, () => client.chat(hi))));
    const minutes = transport.sends.map((send) => Math.floor(send.atMs / 60_000));
    expect(minutes).toEqual([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
  });

  it("global gates hold over all sources together", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{}, {}, {}],
      options: { global: { maxConcurrency: 2, rpm: 30 } },
      script: () => {
        expect(transport.inflight()).toBeLessThanOrEqual(2);
        return { afterMs: 500 };
      },
    });
    await kernel.run(Promise.all(Array.from({ length: 60 }, () => client.chat(hi))));
    expect(mostPerMinute(transport.sends.map((send) => send.atMs))).toBeLessThanOrEqual(30);
    expect(new Set(transport.sends.map((send) => send.source)).size).toBe(3);
  });

  it("tokens: no minute books more than the limit while estimates are right", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ ...wholeWindow(1_000), estTokens: 300 }],
      script: () => ({ afterMs: 10, totalTokens: 300 }),
    });
    await kernel.run(Promise.all(Array.from({ length: 7 }, () => client.chat(hi))));
    expect(transport.sends.map((send) => Math.floor(send.atMs / 60_000))).toEqual([0, 0, 0, 1, 1, 1, 2]);
  });

  it("a refused admission changes nothing: gates, breaker and leases stand as before", async () => {
    const simulation = simulate({
      sources: [
        { ...wholeWindow(2_000), rpm: 10, maxConcurrency: 1 },
        { rpm: 1, model: "other" },
      ],
      options: { backpressure: { quotaFull: "fail_fast" }, global: { rpm: 100 } },
      script: () => ({ afterMs: 1_000 }),
    });
    const { kernel, client } = simulation;
    const holders = [client.chat({ ...hi, model: "m" }), client.chat({ ...hi, model: "other" })];
    await kernel.advance(100);
    const before = (await kernel.run(client.snapshot())).sources;
    const refused = await kernel.run(settled(Array.from({ length: 20 }, () => client.chat(hi))));
    expect(refused.every((end) => end.status === "rejected")).toBe(true);
    expect((await kernel.run(client.snapshot())).sources).toEqual(before);
    await kernel.run(Promise.all(holders));
  });

  it("EST_TOKENS is only the reservation: usage, cost and telemetry never see it", async () => {
    const simulation = simulate({
      sources: [{ ...wholeWindow(100_000), estTokens: 9_999 }],
      options: { pricing: { costNanos: (_, usage) => BigInt(usage.totalTokens) } },
    });
    const { kernel, client, recorder } = simulation;
    const call = client.chat(hi);
    await kernel.advance(50);
    expect((await firstSource(simulation)).tokensUsed).toBe(9_999);
    const reply = await kernel.run(call);
    expect(reply.usage).toMatchObject({ totalTokens: 15, source: "measured" });
    expect(reply.cost).toBe(15 / 1e9);
    expect(recorder.rows[0]).toMatchObject({ promptTokens: 10, completionTokens: 5, costNanos: 15n });
    await kernel.advance(0);
    expect((await firstSource(simulation)).tokensUsed).toBe(15);
  });

  it("without a token gate nothing is reserved or booked", async () => {
    const simulation = simulate({ sources: [{ estTokens: 500 }] });
    await simulation.kernel.run(simulation.client.chat(hi));
    expect(await firstSource(simulation)).toMatchObject({ tokensUsed: 0, requestsUsed: 0 });
  });

  it("an answer without usage settles what its actual texts are estimated at, marked estimated", async () => {
    const simulation = simulate({ sources: [{ ...wholeWindow(100_000), estTokens: 9_999 }] });
    const { kernel, client, recorder, transport } = simulation;
    const complete = transport.complete.bind(transport);
    // The provider reports nothing.
    transport.complete = async (attempt) => ({ ...(await complete(attempt)), usage: null, content: "x".repeat(400) });
    const reply = await kernel.run(client.chat(hi));
    expect(reply.usage).toMatchObject({ source: "estimated", completionTokens: 100 });
    expect(reply.usage.totalTokens).toBe(reply.usage.promptTokens + 100);
    expect(reply.usage.promptTokens).toBeLessThan(20);
    expect(recorder.rows[0]).toMatchObject({ usageSource: "estimated", completionTokens: 100 });
    await kernel.advance(0);
    expect((await firstSource(simulation)).tokensUsed).toBe(reply.usage.totalTokens);
  });

  it("more than reserved is the truth: the gate overfills and later calls wait", async () => {
    const simulation = simulate({
      sources: [{ ...wholeWindow(1_000), estTokens: 100 }],
      script: () => ({ afterMs: 10, totalTokens: 5_000 }),
    });
    const { kernel, client, transport } = simulation;
    await kernel.run(client.chat(hi));
    await kernel.advance(0);
    expect((await firstSource(simulation)).tokensUsed).toBe(5_000);
    await kernel.run(client.chat(hi));
    expect(transport.sends[1]!.atMs).toBeGreaterThanOrEqual(60_000);
  });

  it("tpmCharge max: max_tokens is reserved and nothing is refunded", async () => {
    const simulation = simulate({ sources: [{ ...wholeWindow(100_000), tpmCharge: "max" }] });
    const { kernel, client } = simulation;
    await kernel.run(client.chat({ ...hi, sampling: { maxTokens: 7_000 } }));
    await kernel.advance(0);
    const { tokensUsed } = await firstSource(simulation);
    expect(tokensUsed).toBeGreaterThanOrEqual(7_000);
    expect(tokensUsed).toBeLessThan(7_100);
  });

  it.each([
    ["answered with an error status", rejected(), 0],
    ["a rate limit", limited(600_000), 0],
    ["a dead key", deadKey(), 0],
    ["a reset", new TransientError("ECONNRESET", { code: "network" }), 5],
    [
      "a cut stream with text",
      new TransientError("cut", {
        code: "truncated",
        partial: { content: "x".repeat(400), thinking: "", toolCalls: [], usage: null },
      }),
      105,
    ],
    [
      "a cut stream that reported its usage",
      new TransientError("cut", {
        code: "truncated",
        partial: {
          content: "x",
          thinking: "",
          toolCalls: [],
          usage: sampleUsage(40, 2),
        },
      }),
      42,
    ],
  ])("a failed attempt settles what it cost: %s", async (_, failure, tokens) => {
    const simulation = simulate({
      sources: [{ ...wholeWindow(100_000) }],
      options: { retry: { maxAttempts: 1 }, breaker: noBreaker },
      script: () => ({ afterMs: 10, error: failure }),
    });
    await failureOf(simulation.kernel, simulation.client.chat(hi));
    await simulation.kernel.advance(0);
    expect((await firstSource(simulation)).tokensUsed).toBe(tokens);
  });

  it("a timeout settles its prompt", async () => {
    const simulation = simulate({
      sources: [{ ...wholeWindow(100_000), timeoutMs: 2_000, ttftTimeoutMs: 1_000, interTokenTimeoutMs: 1_000 }],
      options: { retry: { maxAttempts: 1 }, breaker: noBreaker },
      script: () => ({}),
    });
    await failureOf(simulation.kernel, simulation.client.chat(hi));
    await simulation.kernel.advance(0);
    expect((await firstSource(simulation)).tokensUsed).toBe(5);
  });

  it.each(["smooth", "window"] as const)("%s: a request counts although its attempt failed", async (limitRule) => {
    const simulation = simulate({
      sources: [{ rpm: 10, limitRule }],
      options: { retry: { maxAttempts: 1 }, breaker: noBreaker },
      script: () => ({ afterMs: 0, error: serverError() }),
    });
    for (let i = 0; i < 3; i += 1) await failureOf(simulation.kernel, simulation.client.chat(hi)).catch(() => null);
    expect((await firstSource(simulation)).requestsUsed).toBeGreaterThanOrEqual(1);
  });

  it("an attempt of which no byte left gives its request back", async () => {
    const simulation = simulate({
      sources: [{ rpm: 10, limitRule: "window" }],
      options: { retry: { maxAttempts: 1 }, breaker: noBreaker },
    });
    const { kernel, client, transport } = simulation;
    transport.complete = () => Promise.reject(new TransientError("ECONNREFUSED", { code: "network" }));
    await failureOf(kernel, client.chat(hi));
    await kernel.advance(0);
    expect(await firstSource(simulation)).toMatchObject({ requestsUsed: 0, tokensUsed: 0, inflight: 0 });
  });

  it("refused for ever, typed and at once: larger than a source's or the global token limit", async () => {
    for (const setup of [{ sources: [{ tpm: 500 }] }, { options: { global: { tpm: 500 } } }]) {
      const { kernel, client, transport, recorder } = simulate(setup);
      const error = await failureOf(kernel, client.chat(hi));
      expect(error).toBeInstanceOf(RequestRejectedError);
      expect(error).toMatchObject({ code: "request_too_large_for_tier", operation: "chat" });
      expect((error as Error).message).toContain("TPM");
      expect(transport.sends).toHaveLength(0);
      expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["rejected", true]]);
    }
  });

  it("a limit of 0 is off", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ maxConcurrency: 0, rpm: 0, tpm: 0 }],
      options: noPacer,
    });
    await kernel.run(Promise.all(Array.from({ length: 500 }, () => client.chat(hi))));
    expect(transport.sends.every((send) => send.atMs === 0)).toBe(true);
  });
});
