import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  AllSourcesExhausted,
  EmbeddingClient,
  RequestRejectedError,
  ResultInvalidError,
  TransientError,
} from "../../src/index.js";
import {
  answers,
  base64Of,
  bench,
  embeddingBody,
  embeds,
  failureOf,
  inputOf,
  vectorOf,
} from "../support/embedding-server.js";
import { sendJson } from "../support/recording-server.js";

/** What an answer may hold, and what becomes of everything else. */

const item = (index: unknown, embedding: unknown) => ({ object: "embedding", index, embedding });
const list = (...data: unknown[]) =>
  JSON.stringify({ object: "list", data, usage: { prompt_tokens: 7, total_tokens: 7 } });

describe("a good answer", () => {
  it("in any order of its items gives the order of the texts", async () => {
    let order: readonly number[] = [];
    await using at = await bench(embeds({ order: (items) => items.map((_, position) => items[order[position]!]) }));
    const permutation = fc
      .integer({ min: 1, max: 12 })
      .chain((n) => fc.shuffledSubarray([...Array(n).keys()], { minLength: n, maxLength: n }));
    await fc.assert(
      fc.asyncProperty(permutation, async (positions) => {
        order = positions;
        const texts = positions.map((_, index) => `text ${index}`);
        expect((await at.client.embed(texts)).vectors).toEqual(texts.map(vectorOf));
      }),
      { numRuns: 60 },
    );
  });

  it("in base64 is read bit by bit", async () => {
    let vector: number[] = [];
    await using at = await bench(embeds({ vectorOf: () => base64Of(vector) }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 40 }),
        async (numbers) => {
          vector = numbers;
          const { vectors, dim } = await at.client.embed(["a"]);
          expect(vectors).toStrictEqual([numbers]);
          expect(dim).toBe(numbers.length);
          const rows = (await at.client.embed(["a"], { vectors: "float32" })).vectors;
          expect(rows).toStrictEqual([Float32Array.from(numbers)]);
        },
      ),
      { numRuns: 60 },
    );
    expect(at.server.seen[0]?.body).toEqual({ model: "e-test", input: ["a"], encoding_format: "base64" });
  });

  it("of floats, asked for as base64, keeps its numbers exactly", async () => {
    await using at = await bench(embeds({ vectorOf: () => [0.1, -1e-300, 1e300, 0] }));
    expect((await at.client.embed(["a"])).vectors).toEqual([[0.1, -1e-300, 1e300, 0]]);
  });

  it("may mix both forms and write its indexes as texts", async () => {
    await using at = await bench(answers(list(item("1", [3, 4]), item("0", base64Of([1, 2])))));
    expect((await at.client.embed(["a", "b"])).vectors).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it("may come compressed, without having been asked to", async () => {
    await using at = await bench((response, request) => {
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(gzipSync(embeddingBody(inputOf(request))));
    });
    expect((await at.client.embed(["a 1"])).vectors).toEqual([vectorOf("a 1")]);
    expect(at.server.seen[0]?.headers["accept-encoding"]).toBe("identity");
  });

  it("may be larger than a chat answer, up to 64 MiB", async () => {
    const wide = base64Of(new Array<number>(4_500_000).fill(0.25));
    await using at = await bench(embeds({ vectorOf: () => wide }));
    const { dim, vectors } = await at.client.embed(["a"], { vectors: "float32" });
    expect([dim, vectors[0]?.at(-1)]).toEqual([4_500_000, 0.25]);
  });
});

describe("an answer that isn't one good vector per text", () => {
  const broken: [title: string, body: string, code: string, details: object][] = [
    ["too few", list(item(0, [1])), "count_mismatch", { expected: 2, received: 1 }],
    ["too many", list(item(0, [1]), item(1, [1]), item(2, [1])), "count_mismatch", { received: 3 }],
    ["none", list(), "count_mismatch", { received: 0 }],
    ["an index twice", list(item(1, [1]), item(1, [1])), "bad_index", {}],
    ["counted from 1", list(item(1, [1]), item(2, [1])), "bad_index", {}],
    ["a negative index", list(item(-1, [1]), item(0, [1])), "bad_index", {}],
    ["half an index", list(item(0.5, [1]), item(0, [1])), "bad_index", {}],
    ["no index", list({ embedding: [1] }, { embedding: [1] }), "bad_index", {}],
    ["a null index", list(item(null, [1]), item(1, [1])), "bad_index", {}],
    ["an index of words", list(item("0x0", [1]), item("1", [1])), "bad_index", {}],
    ["an item that is null", list(null, item(1, [1])), "bad_index", {}],
    ["no vector", list(item(0, [1]), item(1, undefined)), "bad_vector", { index: 1 }],
    ["an empty vector", list(item(0, []), item(1, [])), "bad_vector", { index: 0 }],
    ["texts for numbers", list(item(0, ["0.1"]), item(1, [1])), "bad_vector", { index: 0 }],
    ["null for a number", list(item(0, [1, null]), item(1, [1, 2])), "bad_vector", { index: 0 }],
    ["a vector in a vector", list(item(0, [[1]]), item(1, [1])), "bad_vector", { index: 0 }],
    ["an object", list(item(0, { 0: 1 }), item(1, [1])), "bad_vector", { index: 0 }],
    ["Infinity by overflow", list(item(0, [1]), item(1, [2])).replace("[2]", "[1e999]"), "bad_vector", { index: 1 }],
    ["NaN, which is no JSON", list(item(0, [1]), item(1, [2])).replace("[2]", "[ NaN ]"), "bad_vector", { index: 1 }],
    ["-Infinity", list(item(0, [1]), item(1, [2, 3])).replace("[2,", "[-Infinity,"), "bad_vector", { index: 1 }],
    ["no base64", list(item(0, "!!!!"), item(1, [1])), "bad_vector", { index: 0 }],
    [
      "a letter that is none of base64",
      list(item(0, base64Of([1, 2, 3]).replace("A", "!")), item(1, [1])),
      "bad_vector",
      { index: 0 },
    ],
    [
      "a gap within base64",
      list(item(0, base64Of([1, 2, 3]).replace("A", " ")), item(1, [1])),
      "bad_vector",
      { index: 0 },
    ],
    [
      "padding within base64",
      list(item(0, base64Of([1, 2, 3]).replace("AA", "==")), item(1, [1])),
      "bad_vector",
      { index: 0 },
    ],
    ["base64url", list(item(0, base64Of([1, 2, 3]).replace("A", "_")), item(1, [1])), "bad_vector", { index: 0 }],
    [
      "letters beyond ASCII",
      list(item(0, base64Of([1, 2, 3]).replace("A", "é")), item(1, [1])),
      "bad_vector",
      { index: 0 },
    ],
    ["base64 that is cut", list(item(0, base64Of([1, 2]).slice(0, -1)), item(1, [1])), "bad_vector", { index: 0 }],
    ["half a float", list(item(0, Buffer.from([1, 2]).toString("base64")), item(1, [1])), "bad_vector", { index: 0 }],
    ["empty base64", list(item(0, ""), item(1, [1])), "bad_vector", { index: 0 }],
    ["NaN in base64", list(item(0, base64Of([Number.NaN])), item(1, [1])), "bad_vector", { index: 0 }],
    ["Infinity in base64", list(item(0, [1]), item(1, base64Of([Infinity]))), "bad_vector", { index: 1 }],
    ["two widths", list(item(0, [1]), item(1, [1, 2])), "dimension_mismatch", { index: 1, dim: 2, expected: 1 }],
  ];

  it.each(broken)("%s", async (_title, body, code, details) => {
    await using at = await bench(answers(body), { retry: { maxAttempts: 4 } });
    const error = await failureOf(at.client.embed(["a", "b"]));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code, sourceName: "e_1", statusCode: 200, operation: "embedding" });
    expect((error as ResultInvalidError).details).toMatchObject(details);
    // Never asked again, the source stays in good standing, and what it reported is booked.
    expect(at.server.seen.length).toBe(1);
    expect(at.recorder.rows).toMatchObject([
      {
        outcome: "invalid",
        final: true,
        response: null,
        promptTokens: 7,
        completionTokens: 0,
        usageSource: "measured",
      },
    ]);
    const { sources } = await at.client.snapshot();
    expect(sources[0]).toMatchObject({ state: "closed", inflight: 0 });
  });

  it("doesn't trip the breaker, however often it comes", async () => {
    await using at = await bench(answers(list()));
    for (let turn = 0; turn < 30; turn += 1) await failureOf(at.client.embed(["a"]));
    expect(at.server.seen.length).toBe(30);
  });

  it("has another width than was asked for or configured", async () => {
    await using asked = await bench();
    expect(await failureOf(asked.client.embed(["a"], { dimensions: 4 }))).toMatchObject({
      code: "dimension_mismatch",
      details: { dim: 3, expected: 4 },
    });
    expect(asked.server.seen[0]?.body.dimensions).toBe(4);
    await using configured = await bench(embeds(), { expectedDim: 1024 });
    const error = await failureOf(configured.client.embed(["a"]));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "dimension_mismatch", details: { dim: 3, expected: 1024 } });
    expect(configured.recorder.rows).toMatchObject([{ outcome: "invalid", final: true }]);
  });

  it("names the text by its place in the whole list, not in its batch", async () => {
    await using at = await bench(embeds({ vectorOf: (text) => (text === "bad" ? null : [1]) }), { batchSize: 2 });
    const error = await failureOf(at.client.embed(["a", "b", "c", "bad"]));
    expect(error).toMatchObject({ code: "bad_vector", details: { index: 3 } });
    expect((error as Error).message).toContain("texts[3]");
  });
});

describe("an answer that is none", () => {
  const attemptErrorOf = async (work: Promise<unknown>) => {
    const error = await failureOf(work);
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    return (error as AllSourcesExhausted).cause;
  };

  it.each([
    ["no list", '{"object":"list","usage":{}}', "malformed"],
    ["a bare list", "[[1,2]]", "malformed"],
    ["no JSON", "upstream says hi", "malformed"],
    ["cut JSON", '{"object":"list","data":[{"index":0,"embedding":[1,2', "truncated"],
    ["nothing", "", "empty"],
    ["an overload inside a 200", '{"error":{"message":"overloaded","type":"overloaded_error"}}', "overloaded"],
    ["an overload in a stream", 'data: {"error":{"message":"overloaded","code":503}}\n\n', "overloaded"],
  ])("%s", async (_title, body, code) => {
    await using at = await bench(answers(body));
    const cause = await attemptErrorOf(at.client.embed(["a"]));
    expect(cause).toBeInstanceOf(TransientError);
    expect(cause).toMatchObject({ code });
  });

  it("a web page says that the address is wrong", async () => {
    await using at = await bench(answers("<html><title>Login</title></html>"));
    expect(await attemptErrorOf(at.client.embed(["a"]))).toMatchObject({ code: "endpoint_not_found" });
  });

  it("more than 64 MiB end the attempt, also when they come compressed", async () => {
    const zeros = gzipSync(Buffer.concat([Buffer.from('{"data":["'), Buffer.alloc(65 * 1_024 * 1_024, "A")]));
    await using at = await bench((response) => {
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(zeros);
    });
    expect(await attemptErrorOf(at.client.embed(["a"]))).toMatchObject({ code: "malformed" });
  });

  it("a connection that breaks in the middle is another's turn", async () => {
    await using at = await bench(
      (response, request) => {
        if (at.server.seen.length > 1) return embeds()(response, request);
        response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
        response.write('{"data":[');
        setTimeout(() => response.destroy(), 20);
      },
      { retry: { maxAttempts: 2, backoffBaseMs: 1 } },
    );
    expect((await at.client.embed(["a 5"])).vectors).toEqual([vectorOf("a 5")]);
    expect(at.recorder.rows.map((row) => row.outcome)).toEqual(["transient", "success"]);
  });

  it("a source that stays silent ends by its total timer", async () => {
    await using at = await bench(() => {}, { source: { timeoutMs: 60 } });
    expect(await attemptErrorOf(at.client.embed(["a"]))).toMatchObject({ code: "timeout" });
    expect(at.recorder.rows[0]).toMatchObject({ outcome: "transient", errorCode: "timeout" });
  });
});

describe("refusals", () => {
  const refuse = (message: string, more: object = {}) => JSON.stringify({ error: { message, ...more } });

  it.each([
    ["batch size is invalid, it should not be larger than 10", 400, 10],
    ["Too many inputs for model None. The max number of inputs is 1.", 400, 1],
    ["Invalid 'input': array too long. Expected an array with maximum length 2048, but got 3000 instead.", 400, 2048],
    ["invalid request: total number of texts must be at most 96 - received 100", 400, 96],
    ["batch size 64 > maximum allowed batch size 32", 413, 32],
    ["The request has 1001 inputs, but the max batch size is 1000", 400, 1000],
    ["BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch", 400, 100],
    ["input数组最大不得超过64条", 400, 64],
  ])("too many texts: %s", async (message, status, limit) => {
    await using at = await bench(answers(refuse(message), status));
    const error = await failureOf(at.client.embed(["a"]));
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "batch_too_large", statusCode: status, details: { limit } });
    expect(at.server.seen.length).toBe(1);
  });

  it.each([
    "This model does not support specifying dimensions.",
    'Model "e5" does not support matryoshka representation, changing output dimensions will lead to poor results.',
    "Unknown parameter: dimensions",
  ])("the caller's width is never left out: %s", async (message) => {
    await using at = await bench(answers(refuse(message, { type: "invalid_request_error" }), 400));
    const error = await failureOf(at.client.embed(["a"], { dimensions: 256 }));
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "unsupported_param", details: { param: "dimensions" } });
    expect(at.server.seen.map(({ body }) => body.dimensions)).toEqual([256]);
  });

  it.each([
    refuse("Unknown parameter: 'encoding_format'", { param: "encoding_format" }),
    refuse("base64 is not supported"),
    '{"detail":[{"loc":["body","encoding_format"],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]}',
  ])("of base64 are remembered, and the batch is sent again without it: %s", async (body) => {
    await using at = await bench((response, request) => {
      if (request.body.encoding_format !== undefined) sendJson(response, 400, body);
      else embeds()(response, request);
    });
    expect((await at.client.embed(["a 1"], { dimensions: 3 })).vectors).toEqual([vectorOf("a 1")]);
    expect((await at.client.embed(["a 2"])).vectors).toEqual([vectorOf("a 2")]);
    expect(at.server.seen.map(({ body: { encoding_format } }) => encoding_format)).toEqual([
      "base64",
      undefined,
      undefined,
    ]);
    expect(at.server.seen[1]?.body.dimensions).toBe(3);
    expect(at.recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["rejected", false],
      ["success", true],
      ["success", true],
    ]);
  });

  it("of base64 count inside a 200 too", async () => {
    await using at = await bench((response, request) => {
      const isRefused = request.body.encoding_format !== undefined;
      const body = '{"error":{"message":"encoding_format is not supported","code":400}}';
      if (isRefused) sendJson(response, 200, body);
      else embeds()(response, request);
    });
    expect((await at.client.embed(["a 1"])).vectors).toEqual([vectorOf("a 1")]);
    expect(at.server.seen.length).toBe(2);
  });

  it("never show the key that the other side echoes", async () => {
    const key = "sk-canary-embedding-77aa";
    await using at = await bench(answers(refuse(`no such thing for ${key}`), 400));
    const error = (await failureOf(at.client.embed(["a"]))) as RequestRejectedError;
    const shown = JSON.stringify([error, error.message, error.bodyText, at.recorder.rows.map((row) => row.error)]);
    expect(shown).toContain("[redacted]");
    expect(shown).not.toContain(key);
  });

  it("with a status of the service's own go to the next source", async () => {
    await using healthy = await bench();
    const source = { apiKey: "none", model: "e-test" };
    await using at = await bench(answers(refuse("oops"), 500), { retry: { maxAttempts: 2, backoffBaseMs: 1 } });
    await using client = new EmbeddingClient({
      scope: "EMBED",
      batchSize: 5,
      proxyEnv: {},
      sources: [
        { ...source, name: "broken", baseUrl: at.server.baseUrl },
        { ...source, name: "healthy", baseUrl: healthy.server.baseUrl, priority: 1 },
      ],
      retry: { maxAttempts: 3, backoffBaseMs: 1, backoffMaxMs: 1 },
      breaker: { failThreshold: 1 },
    });
    expect(await client.embed(["a"])).toMatchObject({ sourceName: "healthy", dim: 3 });
    expect(at.server.seen.length).toBe(1);
  });
});

describe("usage", () => {
  it.each([
    [{ prompt_tokens: 9, total_tokens: 9 }, 9, "measured"],
    [{ prompt_tokens: "9" }, 9, "measured"],
    [{ input_tokens: 8 }, 8, "measured"],
    [{ total_tokens: 6 }, 6, "measured"],
    [{ prompt_tokens: 0, total_tokens: 5 }, 5, "measured"],
    [undefined, 3, "estimated"],
    [null, 3, "estimated"],
    [{ prompt_tokens: 0, total_tokens: 0 }, 3, "estimated"],
    [{ prompt_tokens: -4 }, 3, "estimated"],
  ])("%j is %d tokens, %s", async (usage, promptTokens, usageSource) => {
    await using at = await bench(embeds({ usage }));
    expect(await at.client.embed(["twelve chars"])).toMatchObject({ promptTokens, usageSource });
    expect(at.recorder.rows[0]).toMatchObject({ promptTokens, completionTokens: 0, usageSource });
  });
});
