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
      `${path}.a.inputPer1M is no price per million tokens`,
      `${path}.a.outputPer1M is no price per million tokens`,
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

  test("LiteLLM's file is recognised and refused with what to do", () => {
    const path = file('{"gpt-4o": {"input_cost_per_token": 2.5e-06, "litellm_provider": "openai"}}');
    expect(problemsOf(() => PricingTable.fromFile(path))).toEqual([
      `${path} looks like LiteLLM's model_prices_and_context_window.json, which this version can't read yet`,
    ]);
  });
});
