import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Usage } from "../domain/usage.js";
import { ConfigError } from "../errors.js";
import { nanosToNumber, PricingTable } from "./pricing.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-pricing-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function usage(changes: Partial<Usage>): Usage {
  const counts = {
    promptTokens: 0,
    completionTokens: 0,
    totalTokens: 0,
    reasoningTokens: null,
    cachedPromptTokens: null,
  };
  return { ...counts, source: "measured", ...changes };
}

function file(text: string): string {
  const path = join(folder, "prices.json");
  writeFileSync(path, text);
  return path;
}

function problemsOf(make: () => unknown): string[] {
  try {
    make();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ key, problem }) => `${key} ${problem}`);
    throw error;
  }
  return [];
}

describe("PricingTable", () => {
  const table = new PricingTable({
    m: { inputPer1M: 0.15, outputPer1M: 0.6, cachedInputPer1M: 0.075, reasoningPer1M: 1.2 },
    plain: { input_per_1m: 3, output_per_1m: 15 },
  });

  test("cached and reasoning tokens are parts of prompt and completion with prices of their own", () => {
    const all = usage({ promptTokens: 1_000, cachedPromptTokens: 400, completionTokens: 500, reasoningTokens: 100 });
    expect(table.costNanos("m", all)).toBe(600n * 150n + 400n * 75n + 400n * 600n + 100n * 1_200n);
    expect(table.costNanos("plain", all)).toBe(1_000n * 3_000n + 500n * 15_000n);
  });

  test("a reported part larger than its whole counts as the whole", () => {
    const odd = usage({ promptTokens: 10, cachedPromptTokens: 50, completionTokens: 10, reasoningTokens: 99 });
    expect(table.costNanos("m", odd)).toBe(10n * 75n + 10n * 1_200n);
  });

  test("unknown usage, impossible usage and unknown models have no cost; an unknown model is told once", () => {
    const told: string[] = [];
    table.onUnknownModel((model) => told.push(model));
    expect(table.costNanos("m", null)).toBeNull();
    expect(table.costNanos("m", usage({ promptTokens: Number.NaN }))).toBeNull();
    for (let times = 0; times < 3; times++) expect(table.costNanos("other", usage({}))).toBeNull();
    expect(table.costNanos("__proto__", usage({}))).toBeNull();
    expect(told).toEqual(["other", "__proto__"]);
  });

  test("the cost is the exact decimal sum, rounded half up once (property)", () => {
    const price = fc.integer({ min: 0, max: 1_000_000_000 });
    const count = fc.integer({ min: 0, max: 10_000_000 });
    fc.assert(
      fc.property(price, price, count, count, (inputNanos, outputNanos, promptTokens, completionTokens) => {
        const made = new PricingTable({ x: { inputPer1M: inputNanos / 1e9, outputPer1M: outputNanos / 1e9 } });
        const sum = BigInt(inputNanos) * BigInt(promptTokens) + BigInt(outputNanos) * BigInt(completionTokens);
        expect(made.costNanos("x", usage({ promptTokens, completionTokens }))).toBe(
          (2n * sum + 1_000_000n) / 2_000_000n,
        );
      }),
    );
  });

  test("nano-units become a number", () => {
    expect(nanosToNumber(123_456_789_012n)).toBe(123.456789012);
  });

  test("a file is read, with its BOM", () => {
    const read = PricingTable.fromFile(file('\uFEFF{"m": {"inputPer1M": 1, "outputPer1M": 2}}'));
    expect(read.costNanos("m", usage({ promptTokens: 1, completionTokens: 1 }))).toBe(3_000n);
  });

  test("a broken file refuses to start with every problem", () => {
    const path = file('{"a": {"inputPer1M": -1, "outputPer1M": "2"}, "b": {"inputPer1M": 1, "typo": 3}, "c": 7}');
    expect(problemsOf(() => PricingTable.fromFile(path))).toEqual([
      `${path}.a.inputPer1M is no price`,
      `${path}.a.outputPer1M is no price`,
      `${path}.b.typo is an unknown field`,
      `${path}.b.outputPer1M is missing`,
      `${path}.c is no price`,
    ]);
    expect(problemsOf(() => PricingTable.fromFile(file("{")))[0]).toContain("is no JSON");
    expect(problemsOf(() => PricingTable.fromFile(file("[]")))[0]).toContain("is no table of models");
    expect(problemsOf(() => PricingTable.fromFile(join(folder, "missing.json")))[0]).toContain(
      "can't be read (ENOENT)",
    );
  });
});

describe("what is paid for beside plain tokens", () => {
  const table = new PricingTable({
    m: { inputPer1M: 3, outputPer1M: 15, cachedInputPer1M: 0.3, cacheWritePer1M: 3.75, perImage: 0.002 },
    ocr: { input_per_1m: 0, output_per_1m: 0, per_page: 0.004 },
    plain: { inputPer1M: 3, outputPer1M: 15 },
  });
  const counts = { promptTokens: 1_000, cachedPromptTokens: 400, cacheWriteTokens: 500, completionTokens: 0 };

  test("tokens written into the cache have a price of their own, else that of input", () => {
    expect(table.costNanos("m", usage(counts))).toBe(100n * 3_000n + 400n * 300n + 500n * 3_750n);
    expect(table.costNanos("plain", usage(counts))).toBe(1_000n * 3_000n);
    const odd = usage({ ...counts, cacheWriteTokens: 5_000 });
    expect(table.costNanos("m", odd)).toBe(400n * 300n + 600n * 3_750n);
  });

  test("images are paid on top of tokens, pages only where they are counted", () => {
    expect(table.costNanos("m", { ...usage({}), images: 3 })).toBe(6_000_000n);
    expect(table.costNanos("plain", { ...usage({}), images: 3 })).toBe(0n);
    expect(table.costNanos("ocr", { ...usage({}), pages: 2 })).toBe(8_000_000n);
    expect(table.costNanos("ocr", usage({}))).toBeNull();
    expect(table.costNanos("m", { ...usage({}), images: -1 })).toBeNull();
  });

  test("one list has one currency", () => {
    const price = { inputPer1M: 1, outputPer1M: 2 };
    expect(
      new PricingTable({ a: { ...price, currency: "CNY" }, b: price, c: { ...price, currency: "cny" } }).size,
    ).toBe(3);
    const mixed = problemsOf(
      () => new PricingTable({ a: { ...price, currency: "CNY" }, b: { ...price, currency: "USD" } }),
    );
    expect(mixed).toEqual(["pricing.b.currency differs from CNY of other entries"]);
    const foreign = { litellm_provider: "x", input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 };
    expect(problemsOf(() => new PricingTable({ x: foreign, a: { ...price, currency: "CNY" } }))).toEqual([
      "pricing.a.currency differs from USD of other entries",
    ]);
    expect(problemsOf(() => new PricingTable({ a: { ...price, currency: 7 } } as never))).toEqual([
      "pricing.a.currency is no name of a currency",
    ]);
  });
});

describe("LiteLLM's price file as it is", () => {
  const acme = {
    litellm_provider: "acme",
    mode: "chat",
    max_input_tokens: 200_000,
    input_cost_per_token: 3e-6,
    output_cost_per_token: 1.5e-5,
    cache_read_input_token_cost: 3e-7,
    cache_creation_input_token_cost: 3.75e-6,
    input_cost_per_token_above_200k_tokens: 6e-6,
    output_cost_per_token_above_200k_tokens: 2.25e-5,
    cache_read_input_token_cost_above_200k_tokens: 6e-7,
    input_cost_per_token_batches: 1.5e-6,
    supports_vision: true,
  };
  const tiered = {
    litellm_provider: "dashscope",
    tiered_pricing: [
      { range: [256_000, 1_000_000], input_cost_per_token: 2.5e-7, output_cost_per_token: 2e-6 },
      {
        range: [0, 256_000],
        input_cost_per_token: 5e-8,
        output_cost_per_token: 4e-7,
        output_cost_per_reasoning_token: 1e-6,
      },
    ],
  };
  const path = () =>
    file(
      JSON.stringify({
        sample_spec: { max_tokens: "LEGACY parameter", input_cost_per_token: 0 },
        fallback_generalizations: { anything: 1 },
        "gpt-4o": { litellm_provider: "openai", input_cost_per_token: 2.5e-6, output_cost_per_token: 1e-5 },
        "deepseek/deepseek-chat": {
          litellm_provider: "deepseek",
          input_cost_per_token: 2.8e-7,
          output_cost_per_token: 4.2e-7,
          input_cost_per_token_cache_hit: 2.8e-8,
        },
        "acme/think-1": acme,
        "dashscope/tier": tiered,
        "xai/grok": {
          litellm_provider: "xai",
          input_cost_per_token: 1e-6,
          output_cost_per_token: 2e-6,
          input_cost_per_token_above_128k_tokens: 2e-6,
        },
        embed: { litellm_provider: "openai", mode: "embedding", input_cost_per_token: 2e-8 },
        free: { litellm_provider: "acme", input_cost_per_token: 0, output_cost_per_token: 0 },
        "mistral/mistral-ocr": { litellm_provider: "mistral", mode: "ocr", ocr_cost_per_page: 0.004 },
        seer: {
          litellm_provider: "g",
          input_cost_per_token: 1e-6,
          output_cost_per_token: 1e-6,
          input_cost_per_image: 0.0025,
        },
        "dall-e": { litellm_provider: "openai", mode: "image_generation", output_cost_per_image: 0.04 },
        broken: { litellm_provider: "x", input_cost_per_token: "1e-6", output_cost_per_token: 1e-6 },
        negative: { litellm_provider: "x", input_cost_per_token: 1e-6, output_cost_per_token: -1 },
        "not-an-entry": 7,
        mine: { inputPer1M: 1, outputPer1M: 2 },
      }),
    );
  const cost = (table: PricingTable, model: string, counts: Partial<Usage>, provider?: string) =>
    table.costNanos(model, usage(counts), provider);
  const million = { promptTokens: 1_000_000, completionTokens: 1_000_000 };

  test("dollars per token become exact nano-units, cached tokens have their own price", () => {
    const table = PricingTable.fromFile(path());
    expect(cost(table, "gpt-4o", million)).toBe(12_500_000_000n);
    expect(cost(table, "deepseek-chat", million, "deepseek")).toBe(700_000_000n);
    expect(cost(table, "deepseek-chat", { ...million, cachedPromptTokens: 1_000_000 }, "deepseek")).toBe(448_000_000n);
    expect(cost(table, "embed", { promptTokens: 1_000_000 })).toBe(20_000_000n);
    expect(cost(table, "mine", million)).toBe(3_000_000_000n);
  });

  test("pages, images and tokens written into a cache have their prices", () => {
    const table = PricingTable.fromFile(path());
    expect(table.costNanos("mistral-ocr", { ...usage({}), pages: 3 }, "mistral")).toBe(12_000_000n);
    expect(cost(table, "mistral-ocr", million, "mistral")).toBeNull();
    expect(table.costNanos("seer", { ...usage({ promptTokens: 1_000 }), images: 2 })).toBe(6_000_000n);
    const written = { promptTokens: 1_000_000, cacheWriteTokens: 1_000_000 };
    expect(cost(table, "acme/think-1", { ...written, promptTokens: 100_000, cacheWriteTokens: 100_000 })).toBe(
      375_000_000n,
    );
    expect(cost(table, "acme/think-1", written)).toBe(6_000_000_000n);
    expect(cost(table, "gpt-4o", written)).toBe(2_500_000_000n);
  });

  test("free is a price, and unknown is none; what can't be read is skipped and counted", () => {
    const table = PricingTable.fromFile(path());
    expect(cost(table, "free", million)).toBe(0n);
    for (const model of ["dall-e", "broken", "negative", "not-an-entry", "sample_spec", "fallback_generalizations"]) {
      expect(cost(table, model, million), model).toBeNull();
    }
    expect([table.size, table.skipped]).toEqual([10, 4]);
  });

  test("above a threshold the whole call has the higher rates, the answer too; xAI's begin at it", () => {
    const table = PricingTable.fromFile(path());
    const at = (model: string, promptTokens: number, more: Partial<Usage> = {}) =>
      cost(table, model, { promptTokens, completionTokens: 1_000, ...more });
    expect(at("think-1", 200_000)).toBeNull();
    expect(at("acme/think-1", 200_000)).toBe(600_000_000n + 15_000_000n);
    expect(at("acme/think-1", 200_001)).toBe(1_200_006_000n + 22_500_000n);
    expect(at("acme/think-1", 200_001, { cachedPromptTokens: 200_001 })).toBe(120_000_600n + 22_500_000n);
    expect(at("xai/grok", 127_999)).toBe(127_999_000n + 2_000_000n);
    expect(at("xai/grok", 128_000)).toBe(256_000_000n + 2_000_000n);
  });

  test("tiers in a list, in any order, with no base price beside them", () => {
    const table = PricingTable.fromFile(path());
    const low = { promptTokens: 256_000, completionTokens: 1_000, reasoningTokens: 500 };
    expect(cost(table, "tier", low, "qwen")).toBe(12_800_000n + 200_000n + 500_000n);
    expect(cost(table, "tier", { ...low, promptTokens: 256_001 }, "dashscope")).toBe(64_000_250n + 2_000_000n);
  });

  test("your own entries stay strict in a mixed file", () => {
    const text = JSON.stringify({ "gpt-4o": acme, mine: { inputPer1M: 1, typo: 2 } });
    expect(problemsOf(() => PricingTable.fromFile(file(text)))).toEqual([
      expect.stringContaining("mine.typo is an unknown field"),
      expect.stringContaining("mine.outputPer1M is missing"),
    ]);
  });
});

describe("the entry that prices a model", () => {
  const table = new PricingTable(
    Object.fromEntries(
      ["openai/gpt-x", "gpt-x", "zai/glm-9", "qwen-max", "claude-s-4", "llama"].map((key) => [
        key,
        { inputPer1M: 1, outputPer1M: 1 },
      ]),
    ),
  );

  test.each([
    ["gpt-x", "openai", "openai/gpt-x"],
    ["gpt-x", "OpenAI", "openai/gpt-x"],
    ["gpt-x", "relay", "gpt-x"],
    ["gpt-x", undefined, "gpt-x"],
    ["glm-9", "zhipu", "zai/glm-9"],
    ["glm-9", "zai", "zai/glm-9"],
    ["glm-9", undefined, null],
    ["vendor/sub/qwen-max", "openrouter", "qwen-max"],
    ["vendor/qwen-max:free", "openrouter", "qwen-max"],
    ["qwen-max-latest", undefined, "qwen-max"],
    ["claude-s-4-20250929", undefined, "claude-s-4"],
    ["claude-s-4-2025-09-29", undefined, "claude-s-4"],
    ["claude-s-4-0929", undefined, "claude-s-4"],
    ["llama:8b", "ollama", "llama"],
    ["llama-3", undefined, null],
    ["__proto__", undefined, null],
    ["", "", null],
  ])("%s of %s is priced by %s", (model, provider, key) => {
    expect(table.keyFor(model, provider)).toBe(key);
    expect(table.has(model, provider)).toBe(key !== null);
  });
});
