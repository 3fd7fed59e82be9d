import { getEventListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import {
  AllSourcesExhausted,
  EmbeddingClient,
  type EmbeddingTransport,
  GatewayClient,
  PricingTable,
  RequestRejectedError,
  ResultInvalidError,
} from "../../src/index.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { until } from "../support/calls.js";
import {
  answers,
  type Bench,
  bench,
  embeddingBody,
  embeds,
  failureOf,
  inputOf,
  vectorOf,
} from "../support/embedding-server.js";
import { type SeenRequest, sendJson } from "../support/recording-server.js";

/** Lists of texts: cut into batches, each a governed call of its own. */

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `text ${index}`);

async function expectNothingLeft(client: EmbeddingClient): Promise<void> {
  const { sources, waiting, leases } = await client.snapshot();
  expect(sources.map(({ inflight, probeInFlight }) => [inflight, probeInFlight])).toEqual(
    sources.map(() => [0, false]),
  );
  expect(waiting.count).toBe(0);
  expect(leases).toEqual({ live: 0, lost: 0 });
}

/** A server whose answers are let go by the test. */
function holding() {
  const held: { readonly request: SeenRequest; readonly response: ServerResponse }[] = [];
  return {
    held,
    respond: (response: ServerResponse, request: SeenRequest) => void held.push({ response, request }),
    release: (index: number) => {
      const { response, request } = held[index]!;
      embeds()(response, request);
    },
  };
}

describe("batches", () => {
  it("hold batchSize texts each, and the result has all vectors in the order of the texts", async () => {
    await using at = await bench(embeds(), { batchSize: 10 });
    const texts = numbered(25);
    const result = await at.client.embed(texts, { sessionId: "s", parentCallId: "p" });
    expect(result.vectors).toEqual(texts.map(vectorOf));
    expect(at.server.seen.map((request) => inputOf(request).length)).toEqual([10, 10, 5]);
    expect(at.server.seen.flatMap(inputOf)).toEqual(texts);
    expect(result).toMatchObject({ dim: 3, model: "e-test", provider: "e", sourceName: "e_1", promptTokens: 25 });
    const rows = at.recorder.rows;
    expect(rows.map((row) => [row.outcome, row.final, row.attempt, row.response])).toEqual([
      ["success", true, 1, "<vectors n=10 dim=3>"],
      ["success", true, 1, "<vectors n=10 dim=3>"],
      ["success", true, 1, "<vectors n=5 dim=3>"],
    ]);
    expect(new Set(rows.map((row) => row.requestId)).size).toBe(3);
    const common = { sourceName: "e_1", cost: null, attempts: 1 };
    const places = [
      { from: 0, count: 10, promptTokens: 10 },
      { from: 10, count: 10, promptTokens: 10 },
      { from: 20, count: 5, promptTokens: 5 },
    ];
    expect(result.batches).toEqual(rows.map(({ callId }, at) => ({ callId, ...common, ...places[at]! })));
    expect(result.callId).toBe(rows[0]?.callId);
    expect(rows.every((row) => row.sessionId === "s" && row.parentCallId === "p")).toBe(true);
    expect(result.latencyMs).toBeCloseTo(
      rows.reduce((sum, row) => sum + row.latencyMs!, 0),
      6,
    );
    await expectNothingLeft(at.client);
  });

  it("run side by side up to `concurrency`, whatever order they end in", async () => {
    const { held, respond, release } = holding();
    await using at = await bench(respond, { batchSize: 1, concurrency: 3 });
    const work = at.client.embed(numbered(5));
    await until(() => held.length === 3);
    expect((await at.client.snapshot()).sources[0]?.inflight).toBe(3);
    release(2);
    await until(() => held.length === 4);
    release(3);
    await until(() => held.length === 5);
    for (const index of [4, 1, 0]) release(index);
    expect((await work).vectors).toEqual(numbered(5).map(vectorOf));
    await expectNothingLeft(at.client);
  });

  it("go one by one by default", async () => {
    const { held, respond, release } = holding();
    await using at = await bench(respond, { batchSize: 1 });
    const work = at.client.embed(numbered(3));
    for (let index = 0; index < 3; index += 1) {
      await until(() => held.length === index + 1);
      expect(at.server.seen.length).toBe(index + 1);
      release(index);
    }
    expect((await work).vectors.length).toBe(3);
  });

  it("are counted by every limit: a request per minute each", async () => {
    await using at = await bench(embeds(), {
      batchSize: 1,
      source: { rpm: 3, limitRule: "window" },
      backpressure: { quotaFull: "fail_fast" },
    });
    const error = await failureOf(at.client.embed(numbered(5)));
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect(error).toMatchObject({ reason: "quota_exhausted" });
    expect(at.server.seen.length).toBe(3);
    expect((await at.client.snapshot()).sources[0]).toMatchObject({ requestsUsed: 3, inflight: 0 });
    await expectNothingLeft(at.client);
  });

  it("reserve the tokens of their texts and settle with what was used", async () => {
    const { held, respond, release } = holding();
    await using at = await bench(respond, { source: { tpm: 10_000, limitRule: "window" } });
    const work = at.client.embed(["x".repeat(4_000), "y".repeat(400)]);
    await until(() => held.length === 1);
    expect((await at.client.snapshot()).sources[0]?.tokensUsed).toBe(1_100);
    release(0);
    await work;
    expect((await at.client.snapshot()).sources[0]?.tokensUsed).toBe(2);
  });

  it("never exceed the source's own concurrency", async () => {
    let now = 0;
    let most = 0;
    await using at = await bench(
      (response, request) => {
        now += 1;
        most = Math.max(most, now);
        setTimeout(() => {
          now -= 1;
          embeds()(response, request);
        }, 5);
      },
      { batchSize: 1, concurrency: 8, source: { maxConcurrency: 2 } },
    );
    await at.client.embed(numbered(12));
    expect(most).toBe(2);
    await expectNothingLeft(at.client);
  });

  it("of another width than the first fail the call", async () => {
    await using at = await bench(embeds({ vectorOf: (text) => (text === "text 2" ? [1, 2] : [1]) }), { batchSize: 1 });
    const error = await failureOf(at.client.embed(numbered(4)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "dimension_mismatch", details: { dim: 2, expected: 1 } });
    expect(at.recorder.rows.map((row) => row.outcome)).toEqual(["success", "success", "invalid"]);
    expect(at.server.seen.length).toBe(3);
  });

  it("don't see what the caller does with the list meanwhile, and leave the list alone", async () => {
    let first = true;
    const texts = numbered(4);
    await using at = await bench(
      (response, request) => {
        texts[3] = "changed";
        texts.length = 4;
        if (first) sendJson(response, 500, "{}");
        else embeds()(response, request);
        first = false;
      },
      { batchSize: 2, retry: { maxAttempts: 3, backoffBaseMs: 1 } },
    );
    expect((await at.client.embed(texts)).vectors).toEqual(numbered(4).map(vectorOf));
    expect(at.server.seen[0]?.text).toBe(at.server.seen[1]?.text);
    const frozen = Object.freeze(numbered(3));
    expect((await at.client.embed(frozen)).vectors.length).toBe(3);
  });
});

describe("the first batch that fails", () => {
  it("fails the call, cancels the others at once and leaves nothing behind", async () => {
    const { held, respond } = holding();
    await using at = await bench(respond, { batchSize: 1, concurrency: 3 });
    const work = failureOf(at.client.embed(numbered(9)));
    await until(() => held.length === 3);
    sendJson(held[1]!.response, 400, '{"error":{"message":"no","type":"invalid_request_error"}}');
    expect(await work).toBeInstanceOf(RequestRejectedError);
    await expectNothingLeft(at.client);
    await until(() => held[0]!.response.closed && held[2]!.response.closed);
    expect(at.server.seen.length).toBe(3);
    expect(at.recorder.rows.map((row) => row.outcome).sort()).toEqual(["cancelled", "cancelled", "rejected"]);
    expect(at.recorder.rows.filter((row) => row.final).length).toBe(3);
  });

  it("takes those that wait in the queue with it", async () => {
    const { held, respond } = holding();
    await using at = await bench(respond, { batchSize: 1, concurrency: 4, source: { maxConcurrency: 1 } });
    const work = failureOf(at.client.embed(numbered(4)));
    await until(() => held.length === 1);
    expect((await at.client.snapshot()).waiting.count).toBe(3);
    sendJson(held[0]!.response, 400, '{"error":{"message":"no"}}');
    expect(await work).toBeInstanceOf(RequestRejectedError);
    await expectNothingLeft(at.client);
    expect(at.server.seen.length).toBe(1);
  });
});

describe("the caller's signal", () => {
  it("ends every batch at once with its own reason: sockets closed, permits back, listeners gone", async () => {
    const { held, respond } = holding();
    await using at = await bench(respond, { batchSize: 2, concurrency: 2 });
    const controller = new AbortController();
    const work = failureOf(at.client.embed(numbered(8), { signal: controller.signal }));
    await until(() => held.length === 2);
    const reason = new Error("left");
    controller.abort(reason);
    expect(await work).toBe(reason);
    await expectNothingLeft(at.client);
    await until(() => at.server.sockets.open === 0);
    expect(at.server.seen.length).toBe(2);
    expect(at.recorder.rows).toMatchObject([
      { outcome: "cancelled", final: true, usageSource: "estimated", completionTokens: 0, promptTokens: 4 },
      { outcome: "cancelled", final: true },
    ]);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("that has fired already sends nothing and leaves the row of one cancelled call", async () => {
    await using at = await bench(embeds(), { batchSize: 2 });
    const signal = AbortSignal.abort(new Error("before"));
    expect(await failureOf(at.client.embed(numbered(8), { signal }))).toBe(signal.reason);
    expect(await failureOf(at.client.embed([], { signal }))).toBe(signal.reason);
    expect(at.server.seen.length).toBe(0);
    expect(at.recorder.rows).toMatchObject([{ outcome: "cancelled", final: true, attempt: null }]);
  });

  it("gets its listeners back when all goes well", async () => {
    await using at = await bench(embeds(), { batchSize: 1, concurrency: 3 });
    const { signal } = new AbortController();
    await at.client.embed(numbered(7), { signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("a deadline", () => {
  it("is one for all batches together", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const completion = { vectors: [[1]], dim: 1, usage: null, modelReported: null, statusCode: 200 };
    const sentAtMs: number[] = [];
    const transport: EmbeddingTransport = {
      embed: ({ context }) =>
        new Promise((resolve, reject) => {
          context.markSent();
          sentAtMs.push(runtime.now() - startedMs);
          const cancel = runtime.setTimer(100, () => resolve({ ...completion, latencyMs: 100 }));
          context.onAbort((reason) => {
            cancel();
            reject(reason);
          });
        }),
      close: async () => {},
    };
    const sources = [{ name: "e_1", baseUrl: "http://127.0.0.1:9/v1", apiKey: "none", model: "e" }];
    const client = new EmbeddingClient({ scope: "EMBED", sources, batchSize: 1, runtime, transport });
    const startedMs = runtime.now();
    const error = await kernel.run(failureOf(client.embed(numbered(9), { deadlineMs: 250 })));
    expect(error).toMatchObject({ reason: "deadline_exceeded", message: expect.stringContaining("of 250 ms") });
    expect(sentAtMs).toEqual([0, 100, 200]);
    expect(runtime.now() - startedMs).toBe(250);
    expect((await kernel.run(client.embed(numbered(2), { deadlineMs: 250 }))).vectors.length).toBe(2);
    expect(kernel.pendingTimers()).toBe(0);
  });

  it("comes from the scope when the call names none", async () => {
    await using at = await bench(() => {}, { batchSize: 1, deadlineMs: 40 });
    expect(await failureOf(at.client.embed(numbered(3)))).toMatchObject({ reason: "deadline_exceeded" });
    expect(at.server.seen.length).toBeLessThanOrEqual(1);
  });
});

describe("no texts", () => {
  it("are answered at once, without a request and without a row", async () => {
    await using at = await bench();
    expect(await at.client.embed([])).toEqual({
      vectors: [],
      dim: 0,
      promptTokens: 0,
      cost: 0,
      batches: [],
      callId: "",
      usageSource: "measured",
    });
    expect([at.server.seen.length, at.recorder.rows.length]).toEqual([0, 0]);
  });
});

describe("what can't be sent is refused before anything is", () => {
  it.each([
    [["a", ""], { index: 1 }],
    [["a", "b", 3], { index: 2 }],
    [[null], { index: 0 }],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what this is about
    [[, "a"], { index: 0 }],
    [[["a"]], { index: 0 }],
    [["ok", "half \ud83d of it"], { index: 1 }],
    ["just a text", undefined],
    [{ length: 1, 0: "a" }, undefined],
    [undefined, undefined],
  ])("%j", async (texts, details) => {
    await using at = await bench();
    const error = await failureOf(at.client.embed(texts as string[]));
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "bad_request", operation: "embedding" });
    expect((error as RequestRejectedError).details).toEqual(details);
    if (details !== undefined) expect((error as Error).message).toContain(`texts[${details.index}]`);
    expect([at.server.seen.length, at.recorder.rows.length]).toEqual([0, 0]);
  });

  it.each([{}, { onBadItem: "skip" }] as const)("a list that nobody could hold, at once: %j", async (options) => {
    await using at = await bench();
    const error = await failureOf(at.client.embed(new Array(4_000_000_000), options));
    expect(error).toMatchObject({
      code: "bad_request",
      message: expect.stringMatching(/4000000000 .*at most 1000000/),
    });
    expect(at.server.seen).toHaveLength(0);
  });

  it("a width that contradicts the client's, or dimensions", async () => {
    await using at = await bench(embeds(), { expectedDim: 3 });
    expect(await failureOf(at.client.embed(["a"], { expectedDim: 4 }))).toMatchObject({ code: "bad_request" });
    await using free = await bench();
    expect(await failureOf(free.client.embed(["a"], { expectedDim: 4, dimensions: 3 }))).toMatchObject({
      code: "bad_request",
      message: "dimensions 3 contradicts expectedDim 4 of this call",
    });
    expect([at.server.seen.length, free.server.seen.length]).toEqual([0, 0]);
    expect((await free.client.embed(["a"], { expectedDim: 3 })).dim).toBe(3);
    expect(await failureOf(free.client.embed(["a"], { expectedDim: 4 }))).toMatchObject({ code: "dimension_mismatch" });
  });

  it.each([
    [{ dimensions: 0 }],
    [{ expectedDim: -1 }],
    [{ dimensions: 1.5 }],
    [{ dimensions: "256" }],
    [{ vectors: "base64" }],
    [{ sessionId: 7 }],
    [{ parentCallId: {} }],
    [{ signal: {} }],
    [{ priority: Number.NaN }],
    [{ deadlineMs: -1 }],
    [{ failover: "maybe" }],
    [{ dimension: 256 }],
    ["s1"],
  ])("options %j", async (options) => {
    await using at = await bench();
    expect(await failureOf(at.client.embed(["a"], options as object))).toBeInstanceOf(RequestRejectedError);
    expect(at.server.seen.length).toBe(0);
  });

  it("a width that the client could only call invalid", async () => {
    await using at = await bench(embeds(), { expectedDim: 3 });
    expect(await failureOf(at.client.embed(["a"], { dimensions: 4 }))).toBeInstanceOf(RequestRejectedError);
    expect((await at.client.embed(["a"], { dimensions: 3 })).dim).toBe(3);
  });
});

describe("the form of the vectors", () => {
  it("is normalised where asked, and nothing is divided by zero", async () => {
    const vectors: Record<string, number[]> = { a: [3, 4], b: [0, 0], c: [1e200, 0], d: [-1e-20, 0] };
    await using at = await bench(embeds({ vectorOf: (text) => vectors[text] }), { normalize: true });
    const { vectors: rows } = await at.client.embed(["a", "b", "c", "d"]);
    expect(rows[0]).toEqual([0.6, 0.8]);
    expect(rows[1]).toEqual([0, 0]);
    expect(rows[2]).toEqual([1, 0]);
    expect(rows[3]![0]).toBeCloseTo(-1e-8, 20);
    const typed = (await at.client.embed(["a"], { vectors: "float32" })).vectors;
    expect(typed).toEqual([Float32Array.from([0.6, 0.8])]);
  });

  it("is float32 where asked, and a number too large for it is invalid instead of Infinity", async () => {
    await using at = await bench(embeds({ vectorOf: (text) => (text === "big" ? [1e39] : [0.1]) }));
    const { vectors } = await at.client.embed(["a"], { vectors: "float32" });
    expect(vectors).toStrictEqual([Float32Array.from([0.1])]);
    const error = await failureOf(at.client.embed(["a", "big"], { vectors: "float32" }));
    expect(error).toMatchObject({ code: "bad_vector", details: { index: 1 } });
    expect(at.recorder.rows.at(-1)?.outcome).toBe("invalid");
  });
});

describe("cost", () => {
  const priced = { pricing: new PricingTable({ "e-test": { inputPer1M: 2, outputPer1M: 0 } }) };

  it("is summed over the batches", async () => {
    await using at = await bench(embeds({ usage: { prompt_tokens: 1_000, total_tokens: 1_000 } }), {
      batchSize: 1,
      ...priced,
    });
    const result = await at.client.embed(["a", "b", "c"]);
    expect(result.cost).toBe(0.006);
    expect(result.batches.map(({ cost }) => cost)).toEqual([0.002, 0.002, 0.002]);
    expect(at.recorder.rows.map((row) => row.costNanos)).toEqual([2_000_000n, 2_000_000n, 2_000_000n]);
  });

  it("is unknown as a whole when that of one batch is", async () => {
    let turn = 0;
    const pricing = { costNanos: () => (++turn === 2 ? null : 5n) };
    await using at = await bench(embeds(), { batchSize: 1, pricing });
    const result = await at.client.embed(["a", "b", "c"]);
    expect(result.cost).toBeNull();
    expect(result.batches.map(({ cost }) => cost)).toEqual([5e-9, null, 5e-9]);
  });

  it("is reported as estimated when the usage of one batch is", async () => {
    await using at = await bench(
      (response, request) =>
        sendJson(response, 200, embeddingBody(inputOf(request), inputOf(request)[0] === "b" ? { usage: null } : {})),
      { batchSize: 1 },
    );
    expect(await at.client.embed(["a", "b"])).toMatchObject({ usageSource: "estimated", promptTokens: 2 });
    expect(at.recorder.rows.map((row) => row.usageSource)).toEqual(["measured", "estimated"]);
  });
});

describe("rows", () => {
  it("never hold a text, only its digest", async () => {
    await using at = await bench(embeds(), { batchSize: 2, source: { extraBody: { secretKnob: 1 } } });
    await at.client.embed(["the secret plan", "ü"]);
    const [row] = at.recorder.rows;
    expect(row).toMatchObject({
      operation: "embedding",
      sampling: null,
      thinking: null,
      ttftMs: null,
      finishReason: null,
    });
    expect(row).toMatchObject({ scope: "EMBED", model: "e-test", modelReported: "e-reported", statusCode: 200 });
    expect(JSON.parse(row!.messages!)).toEqual([
      expect.stringMatching(/^sha256:[0-9a-f]{64} text\/plain 15$/),
      expect.stringMatching(/^sha256:[0-9a-f]{64} text\/plain 2$/),
    ]);
    expect(JSON.stringify(row, (_key, value) => (typeof value === "bigint" ? 0 : value))).not.toContain("secret plan");
    expect(at.server.seen[0]?.body).not.toHaveProperty("secretKnob");
  });
});

describe("the client", () => {
  it("waits for calls in flight when it is closed, and refuses new ones", async () => {
    const { held, respond, release } = holding();
    await using at = await bench(respond, { batchSize: 1 });
    const work = at.client.embed(numbered(2));
    await until(() => held.length === 1);
    let isClosed = false;
    const closing = at.client.close().then(() => (isClosed = true));
    expect(await failureOf(at.client.embed(["late"]))).toMatchObject({ code: "config" });
    release(0);
    await until(() => held.length === 2);
    expect(isClosed).toBe(false);
    release(1);
    expect((await work).vectors.length).toBe(2);
    await closing;
  });

  it("shares limits and queue with a chat client of the same scope", async () => {
    const { held, respond, release } = holding();
    await using at: Bench = await bench(respond, { source: { maxConcurrency: 1 } });
    const source = { name: "e_1", baseUrl: at.server.baseUrl, apiKey: "none", model: "e-test", maxConcurrency: 1 };
    await using chat = new GatewayClient({
      scope: "EMBED",
      sources: [source],
      governor: at.client.governor,
      proxyEnv: {},
    });
    const work = at.client.embed(["a"]);
    await until(() => held.length === 1);
    const reply = failureOf(chat.chat({ messages: [{ role: "user", content: "hi" }], deadlineMs: 30 }));
    expect(await reply).toMatchObject({ reason: "deadline_exceeded" });
    release(0);
    await work;
    expect(at.server.seen.length).toBe(1);
  });

  it("tries a stale socket again without counting it", async () => {
    await using at = await bench((response, request) => {
      if (at.server.seen.length === 2) response.socket?.resetAndDestroy();
      else embeds()(response, request);
    });
    await at.client.embed(["a"]);
    // The socket is free again only when its answer has been taken apart.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await at.client.embed(["b 2"])).vectors).toEqual([vectorOf("b 2")]);
    expect(at.recorder.rows.map((row) => row.outcome)).toEqual(["success", "stale_socket", "success"]);
  });

  it("takes a transport of the user's own, and checks what it gives", async () => {
    const completion = { dim: 1, usage: null, modelReported: null, statusCode: 200, latencyMs: 1 };
    const transport = {
      embed: async ({ count }: { count: number }) => ({ ...completion, vectors: Array(Math.min(count, 2)).fill([1]) }),
      close: async () => {},
    };
    await using at = await bench(answers("{}"), { transport });
    expect((await at.client.embed(["a", "b"])).vectors).toEqual([[1], [1]]);
    expect(await failureOf(at.client.embed(["a", "b", "c"]))).toMatchObject({ code: "count_mismatch" });
  });
});
