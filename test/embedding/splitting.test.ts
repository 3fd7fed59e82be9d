import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { RequestRejectedError, ResultInvalidError } from "../../src/index.js";
import { PricingTable } from "../../src/telemetry/pricing.js";
import { bench, embeddingBody, failureOf, inputOf, vectorOf } from "../support/embedding-server.js";
import { type SeenRequest, sendJson } from "../support/recording-server.js";

/** Batches that a source refuses for their size or for one of their texts: cut, sent again in parts, nothing lost. */

const numbered = (count: number, from = 0): string[] => Array.from({ length: count }, (_, at) => `text ${from + at}`);

const refusal = (message: string, more: object = {}): string =>
  JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null, ...more } });

type Judge = (texts: readonly string[]) => string | undefined;

/** A server that refuses what `judge` has words for, and embeds the rest. */
const refusing =
  (judge: Judge, status = 400) =>
  (response: ServerResponse, request: SeenRequest): void => {
    const texts = inputOf(request);
    const words = judge(texts);
    if (words === undefined) sendJson(response, 200, embeddingBody(texts));
    else sendJson(response, status, words.startsWith("{") ? words : refusal(words));
  };

const hates =
  (...bad: readonly string[]): Judge =>
  (texts) =>
    texts.some((text) => bad.includes(text)) ? "the input could not be processed" : undefined;

const sizesOf = (requests: readonly SeenRequest[]): number[] => requests.map((request) => inputOf(request).length);

describe("a text that the source refuses", () => {
  it.each([0, 1, 17, 31, 32, 63])(
    "number %i of 64 is named by the error, in at most 2·log2(n) further calls",
    async (index) => {
      await using at = await bench(refusing(hates(`text ${index}`)));
      const error = await failureOf(at.client.embed(numbered(64)));
      expect(error).toBeInstanceOf(RequestRejectedError);
      expect(error).toMatchObject({ code: "bad_request", statusCode: 400, sourceName: "e_1", operation: "embedding" });
      expect((error as RequestRejectedError).details).toEqual({ index });
      expect(at.server.seen.length - 1).toBeLessThanOrEqual(2 * Math.log2(64));
      expect(inputOf(at.server.seen.at(-1)!)).toEqual([`text ${index}`]);
      // Each of them is a call with a row of its own, and none of them a fault of the source.
      expect(at.recorder.rows.length).toBe(at.server.seen.length);
      expect(new Set(at.recorder.rows.map((row) => row.requestId)).size).toBe(at.server.seen.length);
      expect(at.recorder.rows.every((row) => row.final)).toBe(true);
      expect((await at.client.snapshot()).sources[0]).toMatchObject({ state: "closed", inflight: 0 });
    },
  );

  it("is named by its place in the whole list, and the batches after it are not begun", async () => {
    await using at = await bench(refusing(hates("text 21"), 422), { batchSize: 8 });
    const error = await failureOf(at.client.embed(numbered(64)));
    expect(error).toMatchObject({ statusCode: 422, details: { index: 21 } });
    expect(at.server.seen.every((request) => !inputOf(request).includes("text 30"))).toBe(true);
  });

  it("is the only one without a vector where bad ones are skipped", async () => {
    const bad = ["text 3", "text 40", "text 41"];
    await using at = await bench(refusing(hates(...bad)), { batchSize: 32, concurrency: 2 });
    const texts = numbered(64);
    const { vectors, failed, batches, dim } = await at.client.embed(texts, { onBadItem: "skip" });
    expect(vectors).toEqual(texts.map((text) => (bad.includes(text) ? null : vectorOf(text))));
    expect(failed?.map(({ index }) => index)).toEqual([3, 40, 41]);
    for (const { index, error } of failed!) {
      expect(error).toBeInstanceOf(RequestRejectedError);
      expect(error).toMatchObject({ details: { index }, upstreamMessage: "the input could not be processed" });
    }
    expect(dim).toBe(3);
    expect(batches.reduce((sum, { count }) => sum + count, 0)).toBe(61);
    for (const { from, count } of batches) expect(vectors.slice(from, from + count)).not.toContain(null);
    expect(at.server.seen.length - 2).toBeLessThanOrEqual(bad.length * 2 * Math.log2(32));
  });

  it("leaves a result without vectors when there is no other, and what was asked before is told", async () => {
    await using at = await bench(refusing(hates("text 0", "text 1", "text 2")));
    expect(await at.client.embed(numbered(3), { onBadItem: "skip" })).toMatchObject({
      vectors: [null, null, null],
      failed: [{ index: 0 }, { index: 1 }, { index: 2 }],
      dim: 0,
      batches: [],
    });
    expect(await at.client.embed([], { onBadItem: "skip" })).toMatchObject({ vectors: [], failed: [] });
  });

  it("may be refused before it is sent: the others stand for themselves", async () => {
    await using at = await bench(refusing(() => undefined));
    const texts = ["text 1", "", "text 2", "half \ud83d", "text 3"];
    const { vectors, failed } = await at.client.embed(texts, { onBadItem: "skip" });
    expect(vectors).toEqual([vectorOf("text 1"), null, vectorOf("text 2"), null, vectorOf("text 3")]);
    expect(failed).toMatchObject([
      { index: 1, error: { details: { index: 1 }, code: "bad_request" } },
      { index: 3, error: { details: { index: 3 } } },
    ]);
    expect(at.server.seen.flatMap(inputOf)).toEqual(["text 1", "text 2", "text 3"]);
    expect(await at.client.embed(["", ""], { onBadItem: "skip" })).toMatchObject({ vectors: [null, null] });
    expect(at.server.seen.length).toBe(3);
  });

  it("is not looked for where another text would change nothing", async () => {
    const says = (message: string, more: object) => refusing(() => refusal(message, more));
    await using width = await bench(says("dimensions is not supported by this model", { param: "dimensions" }));
    const error = await failureOf(width.client.embed(numbered(8), { onBadItem: "skip", dimensions: 3 }));
    expect(error).toMatchObject({ code: "unsupported_param", details: { param: "dimensions" } });
    expect(width.server.seen.length).toBe(1);
    await using user = await bench(says("user is wrong", { param: "user" }));
    expect((await failureOf(user.client.embed(numbered(8)))) as RequestRejectedError).not.toHaveProperty(
      "details.index",
    );
    expect(user.server.seen.length).toBe(1);
  });

  it("stops at once when the caller leaves", async () => {
    const controller = new AbortController();
    await using at = await bench((response, request) => {
      if (at.server.seen.length === 3) controller.abort(new Error("left"));
      else refusing(hates("text 5"))(response, request);
    });
    expect(await failureOf(at.client.embed(numbered(64), { signal: controller.signal }))).toBe(
      controller.signal.reason,
    );
    expect(at.server.seen.length).toBe(3);
  });
});

describe("a batch whose texts together are too much", () => {
  const heavy: Judge = (texts) => (texts.length > 9 ? "please reduce the length of the input" : undefined);

  it("is embedded in parts, and no text is blamed", async () => {
    await using at = await bench(refusing(heavy, 413));
    expect((await at.client.embed(numbered(32))).vectors).toEqual(numbered(32).map(vectorOf));
    expect(at.client.batchLimits()).toEqual({});
  });

  it("larger than a minute's tokens is cut before anything is sent", async () => {
    await using at = await bench(
      refusing(() => undefined),
      { source: { tpm: 100_000, burstTokensS: 60, strict: false } },
    );
    const texts = Array.from({ length: 4 }, (_, index) => `${index} ${"word ".repeat(30_000)}`);
    expect((await at.client.embed(texts)).vectors.length).toBe(4);
    expect(Math.max(...sizesOf(at.server.seen))).toBeLessThan(4);
  });
});

describe("a batch that is larger than the source takes", () => {
  const takes =
    (max: number, words: string): Judge =>
    (texts) =>
      texts.length > max ? words : undefined;

  it.each([
    ["batch size is invalid, it should not be larger than 10", 10],
    ["Too many inputs in one request: at most 10 texts", 10],
    ["maximum allowed batch size 10", 10],
    ["input array too long, expected an array with maximum length 10", 10],
    ["'input' must hold no more than 10 items", 10],
  ])("by the number of %j is cut to it, and so is every later one", async (words, max) => {
    await using at = await bench(refusing(takes(max, words)), { batchSize: 25 });
    expect((await at.client.embed(numbered(25))).vectors).toEqual(numbered(25).map(vectorOf));
    expect(sizesOf(at.server.seen)).toEqual([25, 10, 10, 5]);
    expect(at.client.batchLimits()).toEqual({ e_1: 10 });
    expect((await at.client.embed(numbered(25))).vectors).toEqual(numbered(25).map(vectorOf));
    expect(sizesOf(at.server.seen).slice(4)).toEqual([10, 10, 5]);
    expect(at.recorder.rows.map((row) => row.outcome)).toEqual(["rejected", ...Array(6).fill("success")]);
  });

  it("costs none of the retry budget, and tells once what to set", async () => {
    const said: string[] = [];
    const { createSystemRuntime } = await import("../../src/index.js");
    const runtime = createSystemRuntime({ log: (_level, message) => void said.push(message) });
    let failures = 0;
    await using at = await bench(
      (response, request) => {
        // Every part fails as often as a call may, less one.
        if (inputOf(request).length <= 10 && ++failures % 2 === 1) sendJson(response, 500, "{}");
        else refusing(takes(10, "batch size must be at most 10"))(response, request);
      },
      { batchSize: 40, runtime, retry: { maxAttempts: 2, backoffBaseMs: 1, backoffMaxMs: 1 } },
    );
    expect((await at.client.embed(numbered(40))).vectors.length).toBe(40);
    expect(said.filter((text) => text.includes("at most 10 texts a request"))).toHaveLength(1);
    expect(said.join()).toContain("BATCH_SIZE 10");
  });

  it("without a number is cut to what the profile says, else halved until it is taken", async () => {
    const judge = takes(10, "batch is too large");
    await using known = await bench(refusing(judge), { batchSize: 25, source: { profile: "dashscope" } });
    expect((await known.client.embed(numbered(25))).vectors.length).toBe(25);
    expect(sizesOf(known.server.seen)).toEqual([25, 10, 10, 5]);
    await using halved = await bench(refusing(judge), { batchSize: 32 });
    expect((await halved.client.embed(numbered(32))).vectors).toEqual(numbered(32).map(vectorOf));
    expect(halved.client.batchLimits()).toEqual({ e_1: 8 });
    const before = halved.server.seen.length;
    await halved.client.embed(numbered(32));
    expect(sizesOf(halved.server.seen).slice(before)).toEqual([8, 8, 8, 8]);
  });

  it("is remembered for the batches of the same call that are not cut yet", async () => {
    await using at = await bench(refusing(takes(10, "batch size must be at most 10")), { batchSize: 20 });
    expect((await at.client.embed(numbered(60))).vectors).toEqual(numbered(60).map(vectorOf));
    expect(sizesOf(at.server.seen)).toEqual([20, 10, 10, 10, 10, 10, 10]);
  });

  it("by a server that takes no batch at all ends with its refusal", async () => {
    await using at = await bench(refusing(() => "batch size is invalid, it should not be larger than 10"));
    const error = await failureOf(at.client.embed(numbered(25)));
    expect(error).toMatchObject({ code: "batch_too_large", details: { limit: 10, index: 0 } });
    expect(at.server.seen.length).toBeLessThanOrEqual(1 + 2 * Math.ceil(Math.log2(25)));
  });

  it("isn't found in words about a text", async () => {
    const judge: Judge = (texts) =>
      texts.includes("text 7") ? "the input text exceeds the maximum of 8192 characters" : undefined;
    await using at = await bench(refusing(judge), { batchSize: 16 });
    const { failed } = await at.client.embed(numbered(16), { onBadItem: "skip" });
    expect(failed?.map(({ index }) => index)).toEqual([7]);
    expect(at.client.batchLimits()).toEqual({});
  });
});

describe("an answer that can't be used", () => {
  const spoiled = (text: string) => (text === "text 5" ? null : vectorOf(text));
  const answering = (response: ServerResponse, request: SeenRequest): void =>
    sendJson(response, 200, embeddingBody(inputOf(request), { vectorOf: spoiled }));

  it("is paid for, so a call that fails is not sent again", async () => {
    await using at = await bench(answering);
    const error = await failureOf(at.client.embed(numbered(16)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "bad_vector", details: { index: 5 } });
    expect(at.server.seen.length).toBe(1);
  });

  it("costs only its own text where bad ones are skipped", async () => {
    await using at = await bench(answering);
    const { vectors, failed } = await at.client.embed(numbered(16), { onBadItem: "skip" });
    expect(vectors).toEqual(numbered(16).map(spoiled));
    expect(failed).toMatchObject([{ index: 5, error: { code: "bad_vector" } }]);
    expect(sizesOf(at.server.seen)).toEqual([16, 5, 1, 10]);
  });

  it("with a vector too few is healed by smaller batches", async () => {
    await using at = await bench((response, request) => {
      const texts = inputOf(request);
      sendJson(response, 200, embeddingBody(texts.length > 4 ? texts.slice(1) : texts));
    });
    const { vectors, failed } = await at.client.embed(numbered(16), { onBadItem: "skip" });
    expect([vectors, failed]).toEqual([numbered(16).map(vectorOf), []]);
    expect(sizesOf(at.server.seen)).toEqual([16, 8, 4, 4, 8, 4, 4]);
  });

  it("of another width fails the call all the same", async () => {
    await using at = await bench(undefined, { expectedDim: 7 });
    expect(await failureOf(at.client.embed(numbered(8), { onBadItem: "skip" }))).toMatchObject({
      code: "dimension_mismatch",
    });
    expect(at.server.seen.length).toBe(1);
  });
});

describe("what the parts cost", () => {
  it("is summed over the calls that answered, and each call tells its texts", async () => {
    const pricing = new PricingTable({ "e-test": { inputPer1M: 1_000_000, outputPer1M: 0 } });
    await using at = await bench(refusing(hates("text 2")), { pricing });
    const { batches, cost, promptTokens } = await at.client.embed(numbered(4), { onBadItem: "skip" });
    expect(batches).toMatchObject([
      { from: 0, count: 2, cost: 2, promptTokens: 2, attempts: 1, sourceName: "e_1" },
      { from: 3, count: 1, cost: 1, promptTokens: 1, attempts: 1, sourceName: "e_1" },
    ]);
    expect([cost, promptTokens]).toEqual([3, 3]);
  });
});
