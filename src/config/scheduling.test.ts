import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { SCHEDULING_DEFAULTS, SCHEDULING_OFF, type SchedulingConfig } from "../domain/scope.js";
import { GatewayClient } from "../gateway.js";
import { PricingTable } from "../telemetry/pricing.js";
import { inspectEnv } from "./env.js";
import { inspectFile, openConfigFile } from "./file.js";
import type { EmbeddingOptions, GatewayOptions, PricingSource, SchedulingOptions, SourceOptions } from "./options.js";
import { inspectScope, type ScopeInspection } from "./resolve.js";
import { SCHEDULING_FIELDS } from "./schema-scheduling.js";
import { pricesOf } from "./source-prices.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-scheduling-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SOURCE: SourceOptions = { name: "qwen_1", baseUrl: "http://h/v1", apiKey: "none", model: "m" };
const SOURCE_ENV = {
  LLM__QWEN__1__BASE_URL: "http://h/v1",
  LLM__QWEN__1__API_KEY: "none",
  LLM__QWEN__1__MODEL: "m",
};

/** Every rule another than its default. */
const TURNED: SchedulingConfig = {
  prefetchMs: 250,
  pacer: false,
  headers: false,
  evidence: false,
  overdue: false,
  evacuate: false,
  ramp: false,
  sizeMatching: false,
  fairness: false,
  retryBudget: false,
  hedge: true,
  deadlineRefusal: false,
  learnTokens: false,
  affinity: true,
  priceWeight: 0.5,
};
const TURNED_ENV = {
  PREFETCH_S: "0.25",
  PACER: "off",
  HEADERS: "off",
  EVIDENCE: "off",
  OVERDUE: "off",
  EVACUATE: "off",
  RAMP: "off",
  SIZE_MATCHING: "off",
  FAIRNESS: "off",
  RETRY_BUDGET: "off",
  HEDGE: "on",
  DEADLINE_REFUSAL: "off",
  LEARN_TOKENS: "off",
  AFFINITY: "on",
  PRICE_WEIGHT: "0.5",
};

function fromCode(scheduling: unknown): ScopeInspection {
  return inspectScope({ scope: "LLM", sources: [SOURCE], scheduling: scheduling as SchedulingOptions });
}

function envOf(rules: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(rules).map(([name, value]) => [`LLM__SCHEDULING__${name}`, value]));
}

function fromEnv(rules: Record<string, string>, overrides?: Partial<GatewayOptions>) {
  return inspectEnv("LLM", { ...SOURCE_ENV, ...envOf(rules) }, { ...(overrides && { overrides }) });
}

function fromYaml(scheduling: unknown, more: Record<string, unknown> = {}) {
  const path = join(folder, "polygateway.yaml");
  writeFileSync(path, stringify({ scopes: { LLM: { sources: [SOURCE], scheduling } }, ...more }));
  return inspectFile(openConfigFile(path), "LLM", {});
}

describe("every rule can be said in all three ways", () => {
  test("in code, for each kind of client", () => {
    expect(fromCode(TURNED)).toMatchObject({ problems: [], config: { scheduling: TURNED } });
    const options: EmbeddingOptions = { scope: "EMBED", sources: [SOURCE], batchSize: 8, scheduling: TURNED };
    expect(inspectScope(options, { client: "embedding" }).config.scheduling).toEqual(TURNED);
  });

  test("in the environment, and as overrides of it rule by rule", () => {
    const { problems, options } = fromEnv(TURNED_ENV);
    expect(problems).toEqual([]);
    expect(inspectScope(options).config.scheduling).toEqual(TURNED);
    const overridden = fromEnv(TURNED_ENV, { scheduling: { pacer: true } });
    expect(inspectScope(overridden.options).config.scheduling).toEqual({ ...TURNED, pacer: true });
  });

  test("in a file", () => {
    const { problems, options } = fromYaml(TURNED);
    expect(problems).toEqual([]);
    expect(inspectScope(options).config.scheduling).toEqual(TURNED);
  });

  test("nothing said is the default; the names are those of the rules", () => {
    expect(fromCode(undefined).config.scheduling).toEqual(SCHEDULING_DEFAULTS);
    expect(fromCode({ pacer: false }).config.scheduling).toEqual({ ...SCHEDULING_DEFAULTS, pacer: false });
    const names = Object.keys(SCHEDULING_DEFAULTS).sort();
    expect([Object.keys(SCHEDULING_FIELDS), Object.keys(SCHEDULING_OFF)].map((list) => list.sort())).toEqual([
      names,
      names,
    ]);
  });
});

describe("what is wrong is told by its key, with what is accepted", () => {
  test("in code", () => {
    const { problems } = fromCode({ pacer: "on", prefetchMs: 10_001, priceWeight: -1, hegde: true });
    expect(problems.map(({ key, remedy }) => [key, remedy])).toEqual([
      ["scheduling.hegde", "Did you mean scheduling.hedge?"],
      ["scheduling.pacer", "Accepted: true or false."],
      ["scheduling.priceWeight", "Accepted: a number from 0 to 1000."],
      ["scheduling.prefetchMs", "Accepted: milliseconds from 0 to 10000."],
    ]);
    expect(fromCode("off").problems).toMatchObject([{ key: "scheduling", value: '"off"' }]);
  });

  test("in the environment", () => {
    const { problems } = fromEnv({ PACER: "fast", PREFETCH_S: "11", HEGDE: "on", PRICE_WEIGHT: "much" });
    expect(problems.map(({ key, remedy }) => [key, remedy])).toEqual([
      ["LLM__SCHEDULING__HEGDE", "Did you mean LLM__SCHEDULING__HEDGE?"],
      ["LLM__SCHEDULING__PACER", "Accepted: on or off (also true, false, 1, 0)."],
      ["LLM__SCHEDULING__PREFETCH_S", "Accepted: seconds from 0 to 10, without a unit."],
      ["LLM__SCHEDULING__PRICE_WEIGHT", "Accepted: a number from 0 to 1000."],
    ]);
  });

  test("in a file, by its line", () => {
    const { problems } = fromYaml({ pacer: "fast", hegde: true });
    expect(problems.map(({ key }) => key.replace(/^.*yaml:\d+ /, ""))).toEqual([
      "scopes.LLM.scheduling.pacer",
      "scopes.LLM.scheduling.hegde",
    ]);
    expect(problems[1]?.remedy).toBe("Did you mean scheduling.hedge?");
  });
});

test("a price weight without a price table gets a warning, in all three ways", () => {
  const warned = [fromCode({ priceWeight: 1 }), fromEnv({ PRICE_WEIGHT: "1" }), fromYaml({ priceWeight: 1 })];
  expect(warned.map(({ notes }) => notes.map(({ key, level }) => [key.replace(/^.*yaml:\d+ /, ""), level]))).toEqual([
    [["scheduling.priceWeight", "warning"]],
    [["LLM__SCHEDULING__PRICE_WEIGHT", "warning"]],
    [["scopes.LLM.scheduling.priceWeight", "warning"]],
  ]);
  const pricing = new PricingTable({ m: { inputPer1M: 1, outputPer1M: 1 } });
  const priced = { scope: "LLM", sources: [SOURCE], scheduling: { priceWeight: 1 }, pricing };
  const quiet = [
    inspectScope(priced),
    inspectEnv("LLM", { ...SOURCE_ENV, LLM__SCHEDULING__PRICE_WEIGHT: "1", PGW_PRICING_PATH: "prices.json" }),
    fromYaml({ priceWeight: 1 }, { process: { pricingPath: "prices.json" } }),
    fromCode({ priceWeight: 0 }),
  ];
  expect(quiet.map(({ notes }) => notes)).toEqual([[], [], [], []]);
});

test("a client asks its price table once for each source, and only when prices count", async () => {
  const asked: string[] = [];
  const pricing: PricingSource = {
    costNanos(model, { promptTokens, completionTokens }) {
      asked.push(`${model}: ${promptTokens} + ${completionTokens}`);
      return 1n;
    },
  };
  for (const priceWeight of [0, 1]) {
    const client = new GatewayClient({ scope: "LLM", sources: [SOURCE], scheduling: { priceWeight }, pricing });
    await client.close();
  }
  expect(asked).toEqual(["m: 1000 + 350"]);
});

describe("prices of sources", () => {
  const sources = [
    { ...SOURCE, name: "cheap_1", model: "cheap" },
    { ...SOURCE, name: "dear_1", model: "dear" },
    { ...SOURCE, name: "free_1", model: "free" },
    { ...SOURCE, name: "new_1", model: "nobody-knows" },
  ];
  const config = (priceWeight: number) => inspectScope({ scope: "LLM", sources, scheduling: { priceWeight } }).config;
  const table = new PricingTable({
    cheap: { inputPer1M: 1, outputPer1M: 2 },
    dear: { inputPer1M: 10, outputPer1M: 40 },
    free: { inputPer1M: 0, outputPer1M: 0 },
  });

  test("are those of 1,000 prompt and 350 answer tokens; an unknown one is left out", () => {
    const prices = pricesOf(config(1), table) ?? {};
    expect(Object.keys(prices)).toEqual(["cheap_1", "dear_1", "free_1"]);
    expect((prices.dear_1 ?? 0) / (prices.cheap_1 ?? 0)).toBeCloseTo((1_000 * 10 + 350 * 40) / (1_000 + 350 * 2), 9);
    expect(prices.free_1).toBe(0);
  });

  test("are not asked for where they don't count, and a table that fails knows nothing", () => {
    const asked: string[] = [];
    const failing: PricingSource = {
      costNanos(model) {
        asked.push(model);
        if (model === "dear") throw new Error("no answer");
        return model === "cheap" ? 5n : -1n;
      },
    };
    expect(pricesOf(config(0), failing)).toBeUndefined();
    expect(pricesOf(config(1), undefined)).toBeUndefined();
    expect(asked).toEqual([]);
    expect(pricesOf(config(1), failing)).toEqual({ cheap_1: 5 });
    expect(asked).toHaveLength(sources.length);
  });
});
