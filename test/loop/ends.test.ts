import { describe, expect, it } from "vitest";
import {
  type AllSourcesExhausted,
  CircuitOpenError,
  GatewayUnavailableError,
  ResultInvalidError,
  type SourceDeadError,
  TransientError,
} from "../../src/errors.js";
import {
  deadKey,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  inOrder,
  limited,
  noBreaker,
  patient,
  rejected,
  serverError,
  simulateOn,
} from "./harness.js";

/** How calls end: the reasons of spec 02 §1, what `retryAfterMs` then says, and which attempts were paid. */
describe.each(GOVERNOR_KINDS)("ends of a call (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("circuit_open: all sources open and this call sent nothing; retryAfterMs is the smallest wait", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ model: "a" }, { model: "b" }],
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 1, cooldownMs: 10_000 } },
      script: () => ({ afterMs: 10, error: serverError() }),
    });
    await failureOf(kernel, client.chat({ ...hi, model: "a" }));
    await kernel.advance(3_000);
    await failureOf(kernel, client.chat({ ...hi, model: "b" }));
    const error = (await failureOf(kernel, client.chat(hi))) as CircuitOpenError;
    expect(error).toBeInstanceOf(CircuitOpenError);
    expect(error).toMatchObject({ reason: "circuit_open", code: "circuit_open", scope: "LLM", operation: "chat" });
    const waits = Object.values(error.perSourceReasons).map((detail) => detail.waitMs);
    expect(waits).toHaveLength(2);
    expect(error.retryAfterMs).toBe(Math.min(...waits));
    expect(error.retryAfterMs).toBeGreaterThan(5_000);
    expect(error.retryAfterMs).toBeLessThan(8_500);
    expect(error.perSourceReasons.s_1).toMatchObject({
      reason: "breaker_open",
      lastError: { code: "upstream_error", message: "s_1 transient failure: 500" },
    });
    expect(transport.sends).toHaveLength(2);
  });

  it("nothing left after a failed attempt: retry_exhausted with the failure as cause, not circuit_open", async () => {
    const { kernel, client, transport } = simulate({
      options: { breaker: { failThreshold: 1, cooldownMs: 20_000 } },
      script: () => ({ afterMs: 10, error: serverError(503) }),
    });
    const error = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(error).not.toBeInstanceOf(CircuitOpenError);
    expect(error).toMatchObject({ reason: "retry_exhausted", cause: { statusCode: 503 } });
    expect(error.retryAfterMs).toBeGreaterThan(15_000);
    expect(transport.sends).toHaveLength(1);
  });

  it.each(["wait", "fail"] as const)(
    "all_sources_dead whatever WHEN_OPEN (%s), sent or not; retryAfterMs is the earliest re-check",
    async (whenOpen) => {
      const { kernel, client, transport } = simulate({
        sources: [{}, {}],
        options: { backpressure: { whenOpen }, ...inOrder },
        script: ({ source }) => ({ afterMs: source.name === "s_1" ? 10 : 5_010, error: deadKey() }),
      });
      const first = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
      expect(first).toMatchObject({ reason: "all_sources_dead", cause: { code: "auth" } });
      expect(first.retryAfterMs).toBe(60_000 - 5_010);
      expect(first.perSourceReasons).toMatchObject({ s_1: { reason: "dead" }, s_2: { reason: "dead" } });
      const second = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
      expect(second).toMatchObject({ reason: "all_sources_dead" });
      expect(second.cause).toBeUndefined();
      expect(transport.sends).toHaveLength(2);
    },
  );

  it("a dead source is checked again when due: one probe, whose success closes it", async () => {
    let paid = false;
    const { kernel, client, transport } = simulate({
      script: () => (paid ? { afterMs: 10 } : { afterMs: 10, error: deadKey() }),
    });
    await failureOf(kernel, client.chat(hi));
    await kernel.advance(59_000);
    await failureOf(kernel, client.chat(hi));
    expect(transport.sends).toHaveLength(1);
    paid = true;
    await kernel.advance(2_000);
    expect((await kernel.run(client.chat(hi))).content).toBe("answer");
    expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({ state: "closed", dead: false });
  });

  it("a dead source names its own moment: no check before it, at the latest after 30 minutes", async () => {
    const { kernel, client, transport } = simulate({
      script: (_, n) => ({ afterMs: 0, error: deadKey(n === 1 ? 600_000 : 86_400_000) }),
    });
    const first = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(first.retryAfterMs).toBe(600_000);
    await kernel.advance(599_000);
    await failureOf(kernel, client.chat(hi));
    expect(transport.sends).toHaveLength(1);
    await kernel.advance(1_000);
    const second = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(transport.sends).toHaveLength(2);
    expect(second.retryAfterMs).toBe(30 * 60_000);
    // The error of the attempt still carries what the other side said, uncapped.
    expect((second.cause as SourceDeadError).retryAfterMs).toBe(86_400_000);
  });

  it("quota_exhausted by fail_fast carries the wait hint", async () => {
    const { kernel, client } = simulate({
      sources: [{ rpm: 1 }],
      options: { backpressure: { quotaFull: "fail_fast" } },
    });
    await kernel.run(client.chat(hi));
    const error = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(error).toMatchObject({ reason: "quota_exhausted", perSourceReasons: { s_1: { reason: "rpm" } } });
    expect(error.retryAfterMs).toBe(60_400);
  });

  it("a wait that can't end within the stall window is told at once, with its moment", async () => {
    const { kernel, client } = simulate({
      sources: [{ rpm: 1, ttftTimeoutMs: 20_000 }],
      options: { backpressure: { stallWindowMs: 30_000 } },
      script: () => ({ afterMs: 10, error: rejected() }),
    });
    await failureOf(kernel, client.chat(hi));
    const error = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(error).toMatchObject({ reason: "quota_exhausted" });
    expect(error.retryAfterMs).toBe(60_490);
    expect(kernel.now()).toBe(10);
  });

  it("retry_exhausted waits for the Retry-After of the last failure or its backoff, whichever is longer", async () => {
    const asked = simulate({
      options: { retry: { maxAttempts: 1 }, breaker: noBreaker },
      script: () => ({ afterMs: 1, error: new TransientError("503", { statusCode: 500, retryAfterMs: 42_000 }) }),
    });
    const far = (await failureOf(asked.kernel, asked.client.chat(hi))) as AllSourcesExhausted;
    expect(far.retryAfterMs).toBeGreaterThanOrEqual(42_000);
    const own = simulate({
      options: { retry: { maxAttempts: 3, backoffBaseMs: 1_000 }, breaker: noBreaker },
      script: () => ({ afterMs: 1, error: serverError() }),
    });
    const near = (await failureOf(own.kernel, own.client.chat(hi))) as AllSourcesExhausted;
    expect(near.retryAfterMs).toBeGreaterThanOrEqual(2_000);
    expect(near.retryAfterMs).toBeLessThanOrEqual(4_000);
  });

  it("no_sources: a client whose sources are all disabled says so and asks nobody", async () => {
    const { kernel, client, recorder } = simulate({ sources: [{ disabled: true }] });
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({
      reason: "no_sources",
      retryAfterMs: 0,
      perSourceReasons: {},
    });
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["unavailable", true]]);
  });

  it("scope-level errors carry no body; the cause carries the refused one", async () => {
    const failure = new TransientError("s_1 transient failure: 500: boom", {
      statusCode: 500,
      bodyText: '{"e":"boom"}',
    });
    const { kernel, client } = simulate({
      options: { retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 1, error: failure }),
    });
    const error = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(error.bodyText).toBe("");
    expect((error.cause as TransientError).bodyText).toBe('{"e":"boom"}');
    expect(error.message).toContain("s_1 transient failure: 500: boom");
  });

  it("an unusable result is thrown as itself, is no failure of the source, and ends the call", async () => {
    const failure = new ResultInvalidError("not the schema", { rawText: "{" });
    const { kernel, client, transport, recorder } = simulate({
      sources: [{}, {}],
      options: { breaker: { failThreshold: 1 } },
      script: () => ({ afterMs: 10, error: failure }),
    });
    expect(await failureOf(kernel, client.chat(hi))).toBe(failure);
    expect(failure).toMatchObject({ operation: "chat", rawText: "{", bodyText: "" });
    expect(transport.sends).toHaveLength(1);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([["invalid", true]]);
    expect((await kernel.run(client.snapshot())).sources[0]).toMatchObject({ state: "closed", inflight: 0 });
  });

  it("one catch covers every case of try later", async () => {
    const ends = [
      simulate({ options: { retry: { maxAttempts: 1 } }, script: () => ({ afterMs: 1, error: serverError() }) }),
      simulate({ options: { retry: { maxAttempts: 1 } }, script: () => ({ afterMs: 1, error: limited() }) }),
      simulate({ script: () => ({ afterMs: 1, error: deadKey() }) }),
      simulate({ sources: [{ disabled: true }] }),
      simulate({ sources: [patient], options: { deadlineMs: 1_000 }, script: () => ({}) }),
    ];
    for (const { kernel, client } of ends) {
      const error = await failureOf(kernel, client.chat(hi));
      expect(error).toBeInstanceOf(GatewayUnavailableError);
      expect((error as GatewayUnavailableError).retryAfterMs).toBeGreaterThanOrEqual(0);
    }
  });

  it("a deadline covers the pause before a retry, and the call's own wins over the scope's", async () => {
    const { kernel, client } = simulate({
      options: { retry: { backoffBaseMs: 20_000 }, breaker: noBreaker, deadlineMs: 500_000 },
      script: () => ({ afterMs: 100, error: serverError() }),
    });
    expect(await failureOf(kernel, client.chat({ ...hi, deadlineMs: 2_000 }))).toMatchObject({
      reason: "deadline_exceeded",
      retryAfterMs: 0,
      cause: { code: "upstream_error" },
    });
    expect(kernel.now()).toBeLessThanOrEqual(2_000);
  });

  it("a pause is cut by the deadline that passes during it", async () => {
    // The spread before an untried source is short enough for the deadline when it begins, the source is then full.
    const { kernel, client } = simulate({
      sources: [{ model: "m" }, { model: "m", maxConcurrency: 1, priority: 1 }],
      options: { breaker: noBreaker },
      script: ({ source }) => (source.name === "s_1" ? { afterMs: 100, error: serverError() } : { afterMs: 50_000 }),
    });
    expect(await failureOf(kernel, client.chat({ ...hi, deadlineMs: 400 }))).toMatchObject({
      reason: "deadline_exceeded",
    });
    expect(kernel.now()).toBe(400);
  });
});

describe.each(GOVERNOR_KINDS)("which sources a call tries (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("a source that failed in this call is out while another one is able", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{}, { maxConcurrency: 1 }],
      options: { breaker: noBreaker },
      script: ({ source }) => (source.name === "s_1" ? { afterMs: 10, error: serverError() } : { afterMs: 2_000 }),
    });
    const holder = client.chat({ ...hi, model: "m" });
    await kernel.advance(0);
    const reply = await kernel.run(Promise.all([holder, client.chat(hi)]));
    expect(reply.map((one) => one.sourceName)).toEqual(["s_2", "s_2"]);
    expect(transport.sends.filter((send) => send.source === "s_1").length).toBeLessThanOrEqual(2);
  });

  it("before another untried source only a spread of 50 to 200 ms passes, before the same one the backoff", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{}, {}],
      options: { retry: { maxAttempts: 3, backoffBaseMs: 10_000 }, breaker: noBreaker },
      script: (_, n) => (n < 3 ? { afterMs: 0, error: serverError() } : { afterMs: 0 }),
    });
    await kernel.run(client.chat(hi));
    const [first, second, third] = transport.sends;
    expect(new Set([first!.source, second!.source]).size).toBe(2);
    expect(second!.atMs).toBeGreaterThanOrEqual(50);
    expect(second!.atMs).toBeLessThanOrEqual(200);
    expect(third!.atMs - second!.atMs).toBeGreaterThanOrEqual(10_000);
  });

  it("backoff is never below the Retry-After of the failure", async () => {
    const { kernel, client, transport } = simulate({
      options: { breaker: noBreaker },
      script: (_, n) =>
        n === 1 ? { afterMs: 0, error: new TransientError("500", { retryAfterMs: 25_000 }) } : { afterMs: 0 },
    });
    await kernel.run(client.chat(hi));
    expect(transport.sends[1]!.atMs).toBeGreaterThanOrEqual(25_000);
  });

  it("context overflow goes to a source with larger contextTokens, the same model notwithstanding", async () => {
    const tooLong = () => Object.assign(rejected(), { code: "context_length" });
    const sources = [
      { contextTokens: 8_000, priority: 0 },
      { contextTokens: 8_000, priority: 1 },
      { contextTokens: 128_000, priority: 2 },
    ];
    const served = simulate({
      sources,
      script: ({ source }) => (source.name === "s_3" ? { afterMs: 1 } : { afterMs: 1, error: tooLong() }),
    });
    expect((await served.kernel.run(served.client.chat(hi))).sourceName).toBe("s_3");
    expect(served.transport.sends.map((send) => send.source)).toEqual(["s_1", "s_3"]);
    const refused = simulate({ sources, script: () => ({ afterMs: 1, error: tooLong() }) });
    expect(await failureOf(refused.kernel, refused.client.chat(hi))).toMatchObject({ code: "context_length" });
    expect(refused.transport.sends.map((send) => send.source)).toEqual(["s_1", "s_3"]);
    expect(refused.recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["rejected", false],
      ["rejected", true],
    ]);
  });

  it("an unsupported modality goes to another model but not to a larger context", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ contextTokens: 8_000 }, { contextTokens: 128_000, priority: 1 }],
      script: () => ({ afterMs: 1, error: Object.assign(rejected(), { code: "unsupported_modality" }) }),
    });
    expect(await failureOf(kernel, client.chat(hi))).toMatchObject({ code: "unsupported_modality" });
    expect(transport.sends).toHaveLength(1);
  });

  it('failover "off", from the scope or the call, forbids another model and another source', async () => {
    for (const where of ["scope", "call"] as const) {
      const { kernel, client, transport } = simulate({
        sources: [{ model: "small" }, { model: "large" }],
        options: where === "scope" ? { failover: "off" } : {},
        script: () => ({ afterMs: 1, error: Object.assign(rejected(), { code: "context_length" }) }),
      });
      const request = where === "call" ? { ...hi, failover: "off" as const } : hi;
      expect(await failureOf(kernel, client.chat(request))).toMatchObject({ code: "context_length" });
      expect(transport.sends).toHaveLength(1);
    }
    const dead = simulate({
      sources: [{}, {}],
      options: { failover: "off" },
      script: () => ({ afterMs: 1, error: deadKey() }),
    });
    expect(await failureOf(dead.kernel, dead.client.chat(hi))).toMatchObject({ reason: "all_sources_dead" });
    expect(dead.transport.sends).toHaveLength(1);
  });

  it('failover "on" in a call wins over "off" in the scope', async () => {
    const { kernel, client } = simulate({
      sources: [{}, {}],
      options: { failover: "off" },
      script: (_, n) => (n === 1 ? { afterMs: 1, error: deadKey() } : { afterMs: 1 }),
    });
    expect((await kernel.run(client.chat({ ...hi, failover: "on" }))).attempts).toBe(2);
  });

  it("a source that turned out dead leaves the call for good, also when its re-check is due while the call waits", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ model: "m" }, { ...patient, model: "full", maxConcurrency: 1, priority: 1 }],
      script: ({ source }) => (source.name === "s_1" ? { afterMs: 10, error: deadKey() } : { afterMs: 100_000 }),
    });
    const holder = client.chat({ ...hi, model: "full" });
    await kernel.advance(1);
    expect((await kernel.run(client.chat(hi))).sourceName).toBe("s_2");
    expect(transport.sends.map((send) => send.source)).toEqual(["s_2", "s_1", "s_2"]);
    await kernel.run(holder);
  });

  it("dead sources cost no attempt: maxAttempts 2 outlives five dead keys and one server error", async () => {
    const { kernel, client } = simulate({
      sources: [{}, {}, {}, {}, {}, {}],
      options: { retry: { maxAttempts: 2 } },
      script: (_, n) =>
        n <= 2
          ? { afterMs: 1, error: deadKey() }
          : n === 3
            ? { afterMs: 1, error: serverError() }
            : n <= 5
              ? { afterMs: 1, error: deadKey() }
              : { afterMs: 1 },
    });
    expect((await kernel.run(client.chat(hi))).attempts).toBe(6);
  });

  it("a selector of the user orders the sources; the first with a free slot is taken, unknown names are ignored", async () => {
    const seen: string[][] = [];
    const { kernel, client, transport } = simulate({
      sources: [{}, { maxConcurrency: 1 }, {}],
      options: {
        selector: {
          order(names, snapshot) {
            seen.push(snapshot.sources.map((source) => `${source.name}:${source.inflight}`));
            return ["nobody", ...names].reverse();
          },
        },
      },
      script: () => ({ afterMs: 1_000 }),
    });
    const calls = [client.chat(hi)];
    await kernel.advance(0);
    calls.push(client.chat(hi));
    await kernel.run(Promise.all(calls));
    expect(transport.sends.map((send) => send.source)).toEqual(["s_3", "s_3"]);
    expect(seen).toEqual([
      ["s_1:0", "s_2:0", "s_3:0"],
      ["s_1:0", "s_2:0", "s_3:1"],
    ]);
  });

  it("a selector's favourite without a free slot is passed over for its second choice", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{}, { maxConcurrency: 1 }],
      options: { selector: { order: () => ["s_2", "s_1"] } },
      script: () => ({ afterMs: 1_000 }),
    });
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    expect(transport.sends.map((send) => send.source)).toEqual(["s_2", "s_1"]);
  });
});
