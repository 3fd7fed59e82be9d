import { describe, expect, it } from "vitest";
import { inspectEnv } from "../../src/config/env.js";
import {
  ConfigError,
  EmbeddingClient,
  type EmbeddingOptions,
  GatewayClient,
  type GatewayOptions,
  MemoryCache,
} from "../../src/index.js";
import { profileFor, profiles } from "../../src/transports/openai/profiles.js";
import { base64Of, bench, embeds } from "../support/embedding-server.js";

/** Options of an embedding client, from code and from the environment. */

const source = { name: "e_1", baseUrl: "http://127.0.0.1:9/v1", apiKey: "sk-not-shown-anywhere", model: "e-test" };
const good: EmbeddingOptions = { scope: "EMBED", sources: [source], batchSize: 8, proxyEnv: {} };

const problemsOf = (make: () => unknown): readonly { key: string; problem: string; value?: string }[] => {
  try {
    make();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

const envOf = (more: Record<string, string> = {}): Record<string, string> => ({
  EMBED__ACME__1__BASE_URL: "http://127.0.0.1:9/v1",
  EMBED__ACME__1__API_KEY: "none",
  EMBED__ACME__1__MODEL: "e-test",
  EMBED__BATCH_SIZE: "16",
  ...more,
});

describe("in code", () => {
  it("everything that is wrong is told at once", () => {
    const bad = { ...good, batchSize: 0, expectedDim: 1.5, normalize: "yes", concurrency: 0, bachSize: 3 };
    const problems = problemsOf(() => new EmbeddingClient(bad as unknown as EmbeddingOptions));
    expect(problems.map(({ key }) => key).sort()).toEqual(
      ["bachSize", "batchSize", "concurrency", "expectedDim", "normalize"].sort(),
    );
  });

  it("the batch size has no default", () => {
    const { batchSize: _, ...rest } = good;
    expect(problemsOf(() => new EmbeddingClient(rest as EmbeddingOptions))).toMatchObject([
      { key: "batchSize", problem: "is missing" },
    ]);
  });

  it.each([1.5, Number.NaN, -1, "8", null, 100_001])("%s is no batch size", (batchSize) => {
    expect(problemsOf(() => new EmbeddingClient({ ...good, batchSize } as EmbeddingOptions))).toMatchObject([
      { key: "batchSize" },
    ]);
  });

  it("a batch larger than the provider takes is warned of", () => {
    const qwen = { EMBED__ACME__1__PROFILE: "qwen" };
    const { notes } = inspectEnv("EMBED", envOf({ ...qwen, EMBED__BATCH_SIZE: "16" }), {
      client: "any",
      profiles,
      profileFor,
    });
    expect(notes.filter(({ key }) => key === "EMBED__BATCH_SIZE")).toEqual([
      {
        key: "EMBED__BATCH_SIZE",
        level: "warning",
        text: "16 is more than acme_1 takes in one request: 10 by its profile qwen",
      },
    ]);
    const fitting = inspectEnv("EMBED", envOf({ ...qwen, EMBED__BATCH_SIZE: "10" }), {
      client: "any",
      profiles,
      profileFor,
    });
    expect(fitting.notes.filter(({ key }) => key === "EMBED__BATCH_SIZE")).toEqual([]);
  });

  it("a cache of the process or of the scope is not its business", async () => {
    const env = envOf({ PGW_CACHE_BACKEND: "memory", EMBED__CACHE__TTL_S: "5" });
    await using client = EmbeddingClient.fromEnv("EMBED", { env });
    expect(client.scope).toBe("EMBED");
    const { notes } = inspectEnv("EMBED", env, { client: "any" });
    expect(notes.filter(({ key }) => key.includes("CACHE"))).toEqual([
      { key: "EMBED__CACHE__TTL_S", level: "note", text: expect.stringContaining("GatewayClient alone") },
    ]);
  });

  it("a cache or a chat transport is refused, an absent one is not", () => {
    const cached = { ...good, cache: new MemoryCache(), transport: { complete() {}, async close() {} } };
    expect(problemsOf(() => new EmbeddingClient(cached as unknown as EmbeddingOptions))).toMatchObject([
      { key: "cache" },
      { key: "transport" },
    ]);
    expect(problemsOf(() => new EmbeddingClient({ ...good, cache: undefined } as EmbeddingOptions))).toEqual([]);
  });

  it("a chat client doesn't know them", () => {
    expect(problemsOf(() => new GatewayClient(good as unknown as GatewayOptions))).toMatchObject([
      { key: "batchSize" },
    ]);
  });

  it("the rules of all clients hold", () => {
    const sources = [{ ...source, tpm: 10, estTokens: 20 }];
    expect(problemsOf(() => new EmbeddingClient({ ...good, sources }))).toMatchObject([
      { key: "sources[0].estTokens" },
    ]);
    const governor = new EmbeddingClient({ ...good, scope: "OTHER" }).governor;
    expect(problemsOf(() => new EmbeddingClient({ ...good, governor }))).toMatchObject([{ key: "governor" }]);
  });

  it("models, scope and `await using` are there as on every client", async () => {
    await using client = new EmbeddingClient({ ...good, sources: [source, { ...source, name: "e_2" }] });
    expect([client.scope, client.models]).toEqual(["EMBED", ["e-test"]]);
  });
});

describe("from the environment", () => {
  it("the four keys do what they say", async () => {
    const vectors: Record<string, number[]> = { a: [3, 4], b: [6, 8], c: [0, 1] };
    await using at = await bench(embeds({ vectorOf: (text) => base64Of(vectors[text]!) }));
    await using client = EmbeddingClient.fromEnv("EMBED", {
      env: envOf({
        EMBED__ACME__1__BASE_URL: at.server.baseUrl,
        EMBED__BATCH_SIZE: "2",
        EMBED__EXPECTED_DIM: "2",
        EMBED__NORMALIZE: "on",
        EMBED__CONCURRENCY: "2",
      }),
    });
    const { vectors: rows } = await client.embed(["a", "b", "c"], { vectors: "float32" });
    expect(rows).toEqual([Float32Array.from([0.6, 0.8]), Float32Array.from([0.6, 0.8]), Float32Array.from([0, 1])]);
    expect(at.server.seen.length).toBe(2);
    await using wide = EmbeddingClient.fromEnv("EMBED", {
      env: envOf({ EMBED__ACME__1__BASE_URL: at.server.baseUrl, EMBED__EXPECTED_DIM: "3" }),
      overrides: { batchSize: 3, retry: { maxAttempts: 1 } },
    });
    await expect(wide.embed(["a", "b", "c"])).rejects.toMatchObject({ code: "dimension_mismatch" });
  });

  it("every problem comes by its key, at once", () => {
    const { EMBED__BATCH_SIZE: _, ...without } = envOf({ EMBED__NORMALIZE: "perhaps", EMBED__EXPECTED_DIN: "3" });
    const problems = problemsOf(() => EmbeddingClient.fromEnv("EMBED", { env: without }));
    expect(problems.map(({ key, problem }) => [key, problem]).sort()).toEqual([
      ["EMBED__BATCH_SIZE", "is missing"],
      ["EMBED__EXPECTED_DIN", "is not a known key"],
      ["EMBED__NORMALIZE", "is neither on nor off"],
    ]);
    expect(
      problemsOf(() => EmbeddingClient.fromEnv("EMBED", { env: envOf({ EMBED__BATCH_SIZE: "0" }) })),
    ).toMatchObject([{ key: "EMBED__BATCH_SIZE", value: "0" }]);
  });

  it("overrides win, and are named by their path", () => {
    const overrides = { batchSize: -1 };
    expect(problemsOf(() => EmbeddingClient.fromEnv("EMBED", { env: envOf(), overrides }))).toMatchObject([
      { key: "batchSize" },
    ]);
  });

  it("a chat client may live on the same scope; what it doesn't read is said", async () => {
    await using client = GatewayClient.fromEnv("EMBED", { env: envOf({ EMBED__NORMALIZE: "on" }) });
    expect(client.models).toEqual(["e-test"]);
    const { notes, problems } = inspectEnv("EMBED", envOf({ EMBED__NORMALIZE: "on" }));
    expect(problems).toEqual([]);
    expect(notes).toEqual([
      { key: "EMBED__BATCH_SIZE, EMBED__NORMALIZE", level: "note", text: "is read by EmbeddingClient alone" },
    ]);
    const { EMBED__BATCH_SIZE: _, ...without } = envOf({ EMBED__CONCURRENCY: "4" });
    expect(inspectEnv("EMBED", without).notes).toMatchObject([{ key: "EMBED__CONCURRENCY", level: "warning" }]);
  });

  it("what embeddings ignore and what can't be compared is warned of", () => {
    const env = envOf({ EMBED__ACME__1__EXTRA_BODY: '{"user":"me"}' });
    const other = { EMBED__ACME__2__BASE_URL: "http://127.0.0.1:9/v1", EMBED__ACME__2__API_KEY: "none" };
    const { client, notes } = inspectEnv(
      "EMBED",
      { ...env, ...other, EMBED__ACME__2__MODEL: "e-other" },
      { client: "any" },
    );
    expect(client).toBe("embedding");
    expect(notes.map(({ key, level }) => [key, level])).toEqual([
      ["EMBED__ACME__1__EXTRA_BODY", "warning"],
      ["EMBED", "warning"],
    ]);
  });
});
