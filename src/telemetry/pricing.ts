import { readFileSync } from "node:fs";
import type { Usage } from "../domain/usage.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { nanosToNumber } from "./columns.js";

export { nanosToNumber };

/** Prices per million tokens in your currency; the snake_case spelling is read too. */
export interface ModelPrice {
  readonly inputPer1M: number;
  readonly outputPer1M: number;
  /** Prompt tokens the provider had cached. Default: as `inputPer1M`. */
  readonly cachedInputPer1M?: number;
  /** Completion tokens spent on thinking. Default: as `outputPer1M`. */
  readonly reasoningPer1M?: number;
}

interface SnakeCasePrice {
  readonly input_per_1m: number;
  readonly output_per_1m: number;
  readonly cached_input_per_1m?: number;
  readonly reasoning_per_1m?: number;
}

export type PriceList = Readonly<Record<string, ModelPrice | SnakeCasePrice>>;

type PriceField = keyof ModelPrice;

/** Every accepted spelling. */
const FIELDS: ReadonlyMap<string, PriceField> = new Map([
  ["inputPer1M", "inputPer1M"],
  ["outputPer1M", "outputPer1M"],
  ["cachedInputPer1M", "cachedInputPer1M"],
  ["reasoningPer1M", "reasoningPer1M"],
  ["input_per_1m", "inputPer1M"],
  ["input_per_1M", "inputPer1M"],
  ["output_per_1m", "outputPer1M"],
  ["output_per_1M", "outputPer1M"],
  ["cached_input_per_1m", "cachedInputPer1M"],
  ["cached_input_per_1M", "cachedInputPer1M"],
  ["reasoning_per_1m", "reasoningPer1M"],
  ["reasoning_per_1M", "reasoningPer1M"],
]);
const REQUIRED: readonly PriceField[] = ["inputPer1M", "outputPer1M"];
const TOKENS_PER_PRICE = 1_000_000n;
const NANO_DIGITS = 9;
const MAX_PRICE = 1e9;

/** Nano-units per million tokens. */
interface NanoPrice {
  readonly input: bigint;
  readonly output: bigint;
  readonly cachedInput: bigint;
  readonly reasoning: bigint;
}

/**
 * What tokens cost. There are no built-in prices, and one currency: yours. Sums are exact whole nano-units.
 * A faulty table is refused with a ConfigError that names every problem.
 */
export class PricingTable {
  readonly #prices: ReadonlyMap<string, NanoPrice>;
  readonly #unknown = new Set<string>();
  #onUnknownModel: (model: string) => void = () => {};

  /** `origin` = what error texts call the list. */
  constructor(prices: PriceList, origin = "pricing") {
    this.#prices = readPrices(prices, origin);
  }

  /** Reads a JSON file `{model: {inputPer1M, outputPer1M, cachedInputPer1M?, reasoningPer1M?}}`. */
  static fromFile(path: string): PricingTable {
    return new PricingTable(readPriceFile(path), path);
  }

  /** Called once for each model that a cost was asked for and that has no price; replaces the listener before. */
  onUnknownModel(listener: (model: string) => void): void {
    this.#onUnknownModel = listener;
  }

  has(model: string): boolean {
    return this.#prices.has(model);
  }

  /** Cost in whole nano-units, rounded half up once per call; null when the usage or the model's price is unknown. Never throws. */
  costNanos(model: string, usage: Usage | null): bigint | null {
    const price = this.#prices.get(model);
    if (price === undefined) {
      this.#noteUnknown(model);
      return null;
    }
    return usage === null ? null : costOf(price, usage);
  }

  #noteUnknown(model: string): void {
    if (this.#unknown.has(model)) return;
    this.#unknown.add(model);
    this.#onUnknownModel(model);
  }
}

function costOf(price: NanoPrice, usage: Usage): bigint | null {
  const prompt = tokens(usage.promptTokens);
  const completion = tokens(usage.completionTokens);
  if (prompt === null || completion === null) return null;
  const cached = smaller(tokens(usage.cachedPromptTokens ?? 0) ?? 0n, prompt);
  const reasoning = smaller(tokens(usage.reasoningTokens ?? 0) ?? 0n, completion);
  const sum =
    (prompt - cached) * price.input +
    cached * price.cachedInput +
    (completion - reasoning) * price.output +
    reasoning * price.reasoning;
  return (sum + TOKENS_PER_PRICE / 2n) / TOKENS_PER_PRICE;
}

function tokens(count: number): bigint | null {
  return Number.isSafeInteger(count) && count >= 0 ? BigInt(count) : null;
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}

function readPriceFile(path: string): PriceList {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const problem = `can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`;
    throw new ConfigError([{ key: path, problem, remedy: "Give the path of a readable JSON file with prices" }]);
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    const problem = `is no JSON: ${error instanceof Error ? error.message : String(error)}`;
    throw new ConfigError([{ key: path, problem, remedy: FORM }]);
  }
}

const FORM =
  'Write {"model": {"inputPer1M": 0.15, "outputPer1M": 0.6}}, optionally cachedInputPer1M and reasoningPer1M';
const LITELLM_FIELDS = ["input_cost_per_token", "output_cost_per_token", "litellm_provider"];

function readPrices(list: unknown, key: string): ReadonlyMap<string, NanoPrice> {
  if (!isPlainObject(list)) throw new ConfigError([{ key, problem: "is no table of models", remedy: FORM }]);
  if (looksLikeLiteLlm(list)) {
    const problem = "looks like LiteLLM's model_prices_and_context_window.json, which this version can't read yet";
    throw new ConfigError([{ key, problem, remedy: `${FORM} (its prices per token times 1,000,000)` }]);
  }
  const problems: ConfigProblem[] = [];
  const prices = new Map<string, NanoPrice>();
  for (const [model, entry] of Object.entries(list)) {
    const price = readPrice(entry, `${key}.${model}`, problems);
    if (price !== null) prices.set(model, price);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return prices;
}

function looksLikeLiteLlm(list: Record<string, unknown>): boolean {
  if (Object.hasOwn(list, "sample_spec")) return true;
  return Object.values(list).some((entry) => isPlainObject(entry) && LITELLM_FIELDS.some((name) => name in entry));
}

function readPrice(entry: unknown, key: string, problems: ConfigProblem[]): NanoPrice | null {
  if (!isPlainObject(entry)) {
    problems.push({ key, value: shown(entry), problem: "is no price", remedy: FORM });
    return null;
  }
  const before = problems.length;
  const nanos = new Map<PriceField, bigint>();
  for (const [name, value] of Object.entries(entry)) {
    const field = FIELDS.get(name);
    const fieldKey = `${key}.${name}`;
    if (field === undefined) {
      problems.push({ key: fieldKey, problem: "is an unknown field", remedy: FORM });
    } else if (nanos.has(field)) {
      problems.push({ key: fieldKey, problem: "is given twice, in two spellings", remedy: "Leave one of them out" });
    } else {
      nanos.set(field, readNanos(value, fieldKey, problems));
    }
  }
  for (const field of REQUIRED) {
    if (!nanos.has(field)) problems.push({ key: `${key}.${field}`, problem: "is missing", remedy: FORM });
  }
  if (problems.length > before) return null;
  const input = nanos.get("inputPer1M") ?? 0n;
  const output = nanos.get("outputPer1M") ?? 0n;
  return {
    input,
    output,
    cachedInput: nanos.get("cachedInputPer1M") ?? input,
    reasoning: nanos.get("reasoningPer1M") ?? output,
  };
}

function readNanos(value: unknown, key: string, problems: ConfigProblem[]): bigint {
  if (typeof value === "number" && value >= 0 && value <= MAX_PRICE) {
    // Fixed digits instead of a product: 0.15 has no exact double, its decimal digits are exact.
    return BigInt(value.toFixed(NANO_DIGITS).replace(".", ""));
  }
  const remedy = `Use a number from 0 to ${MAX_PRICE}, without quotes`;
  problems.push({ key, value: shown(value), problem: "is no price per million tokens", remedy });
  return 0n;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 60);
}
