import type { BilledUsage } from "../domain/usage.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { NoRegularFile, readRegularFile } from "../regular-file.js";
import { nanosToNumber } from "./columns.js";
import { isLiteLlmEntry, readLiteLlmEntry } from "./litellm-prices.js";
import { priceKeys } from "./price-keys.js";
import type { ModelPrice, PriceList } from "./price-list.js";
import { costOf, type ModelRates } from "./rates.js";

export { nanosToNumber };

type PriceField = Exclude<keyof ModelPrice, "currency">;

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
  ["cacheWritePer1M", "cacheWritePer1M"],
  ["cache_write_per_1m", "cacheWritePer1M"],
  ["cache_write_per_1M", "cacheWritePer1M"],
  ["perImage", "perImage"],
  ["per_image", "perImage"],
  ["perPage", "perPage"],
  ["per_page", "perPage"],
  ["reasoning_per_1m", "reasoningPer1M"],
  ["reasoning_per_1M", "reasoningPer1M"],
]);
const REQUIRED: readonly PriceField[] = ["inputPer1M", "outputPer1M"];
const NANO_DIGITS = 9;
const MAX_PRICE = 1e9;

interface PriceBook {
  readonly rates: ReadonlyMap<string, ModelRates>;
  readonly skipped: number;
}

interface FoundPrice {
  readonly key: string;
  readonly rates: ModelRates;
}

/**
 * What tokens cost. There are no built-in prices, and one currency: that of the list. Sums are exact whole nano-units.
 * Two forms are read, also mixed in one list: prices per million tokens of your own, and LiteLLM's
 * `model_prices_and_context_window.json` as it is. A faulty table of your own is refused with a ConfigError that names
 * every problem; of LiteLLM's entries those without a usable price per token are skipped.
 */
export class PricingTable {
  readonly #book: PriceBook;
  readonly #found = new Map<string, FoundPrice | null>();
  readonly #unknown = new Set<string>();
  #onUnknownModel: (model: string) => void = () => {};

  /** `origin` = what error texts call the list. */
  constructor(prices: PriceList, origin = "pricing") {
    this.#book = readPrices(prices, origin);
  }

  /** Reads a JSON file of either form. */
  static fromFile(path: string): PricingTable {
    return new PricingTable(readPriceFile(path), path);
  }

  /** Models that have a price. */
  get size(): number {
    return this.#book.rates.size;
  }

  /** Entries of LiteLLM's without a usable price per token. */
  get skipped(): number {
    return this.#book.skipped;
  }

  /** Called once for each model that a cost was asked for and that has no price; replaces the listener before. */
  onUnknownModel(listener: (model: string) => void): void {
    this.#onUnknownModel = listener;
  }

  has(model: string, provider?: string): boolean {
    return this.#find(model, provider) !== null;
  }

  /** The entry that prices this model: its name with the provider, alone, or without path, tag and date. */
  keyFor(model: string, provider?: string): string | null {
    return this.#find(model, provider)?.key ?? null;
  }

  /** Cost in whole nano-units, rounded half up once per call; null when the usage or the model's price is unknown. Never throws. */
  costNanos(model: string, usage: BilledUsage | null, provider?: string): bigint | null {
    const found = this.#find(model, provider);
    if (found === null) {
      this.#noteUnknown(model);
      return null;
    }
    return usage === null ? null : costOf(found.rates, usage);
  }

  #find(model: string, provider: string | undefined): FoundPrice | null {
    const asked = `${provider ?? ""}\n${model}`;
    const known = this.#found.get(asked);
    if (known !== undefined) return known;
    const key = priceKeys(model, provider).find((candidate) => this.#book.rates.has(candidate));
    const found = key === undefined ? null : { key, rates: this.#book.rates.get(key)! };
    this.#found.set(asked, found);
    return found;
  }

  #noteUnknown(model: string): void {
    if (this.#unknown.has(model)) return;
    this.#unknown.add(model);
    this.#onUnknownModel(model);
  }
}

function readPriceFile(path: string): PriceList {
  let text: string;
  try {
    text = readRegularFile(path);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    const problem = error instanceof NoRegularFile ? error.problem : `can't be read (${reason})`;
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
  'Write {"model": {"inputPer1M": 0.15, "outputPer1M": 0.6}}, optionally cachedInputPer1M, cacheWritePer1M, reasoningPer1M, perImage, perPage and currency; what is paid by the page alone needs perPage only';
/** Entries of LiteLLM's file that are no models. */
const NO_MODELS: ReadonlySet<string> = new Set(["sample_spec", "fallback_generalizations"]);

function readPrices(list: unknown, key: string): PriceBook {
  if (!isPlainObject(list)) throw new ConfigError([{ key, problem: "is no table of models", remedy: FORM }]);
  const entries = Object.entries(list).filter(([model]) => !NO_MODELS.has(model));
  // Others keep that file: what is odd in it is theirs, and must not stop anybody.
  const isLenient = Object.hasOwn(list, "sample_spec") || entries.some(([, entry]) => isLiteLlm(entry));
  const problems: ConfigProblem[] = [];
  const rates = new Map<string, ModelRates>();
  let skipped = 0;
  for (const [model, entry] of entries) {
    const isForeign = isLiteLlm(entry) || (isLenient && !isOwnEntry(entry));
    const price = isForeign ? foreignRates(entry) : readPrice(entry, `${key}.${model}`, problems);
    if (price !== null) rates.set(model, price);
    else if (isForeign) skipped += 1;
  }
  checkCurrencies(entries, key, problems);
  if (problems.length > 0) throw new ConfigError(firstOf(problems, key));
  return { rates, skipped };
}

/** Sums are of one currency; LiteLLM's prices are in US dollars. Entries that name none go with any. */
function checkCurrencies(
  entries: readonly (readonly [string, unknown])[],
  key: string,
  problems: ConfigProblem[],
): void {
  let first: string | undefined = entries.some(([, entry]) => isLiteLlm(entry)) ? "USD" : undefined;
  for (const [model, entry] of entries) {
    const currency = isOwnEntry(entry) ? (entry as { currency?: unknown }).currency : undefined;
    if (currency === undefined) continue;
    const name = typeof currency === "string" ? currency.trim().toUpperCase() : "";
    if (name !== "" && (first === undefined || first === name)) {
      first = name;
      continue;
    }
    const problem = name === "" ? "is no name of a currency" : `differs from ${first} of other entries`;
    const remedy = "Write all prices of a list in one currency; nothing is converted";
    problems.push({ key: `${key}.${model}.currency`, value: shown(currency), problem, remedy });
  }
}

/** Thousands of faulty entries are one mistake, and nobody reads them all. */
const MOST_PROBLEMS = 20;

function firstOf(problems: readonly ConfigProblem[], key: string): readonly ConfigProblem[] {
  const more = problems.length - MOST_PROBLEMS;
  if (more <= 1) return problems;
  const rest = { key, problem: `… and ${more} more problems of this kind`, remedy: FORM };
  return [...problems.slice(0, MOST_PROBLEMS), rest];
}

function isLiteLlm(entry: unknown): boolean {
  return isPlainObject(entry) && !isOwnEntry(entry) && isLiteLlmEntry(entry);
}

function isOwnEntry(entry: unknown): boolean {
  return isPlainObject(entry) && Object.keys(entry).some((field) => FIELDS.has(field));
}

function foreignRates(entry: unknown): ModelRates | null {
  return isPlainObject(entry) ? readLiteLlmEntry(entry) : null;
}

function readPrice(entry: unknown, key: string, problems: ConfigProblem[]): ModelRates | null {
  if (!isPlainObject(entry)) {
    problems.push({ key, value: shown(entry), problem: "is no price", remedy: FORM });
    return null;
  }
  const before = problems.length;
  const nanos = new Map<PriceField, bigint>();
  for (const [name, value] of Object.entries(entry)) {
    const field = FIELDS.get(name);
    const fieldKey = `${key}.${name}`;
    if (name === "currency") continue;
    if (field === undefined) {
      problems.push({ key: fieldKey, problem: "is an unknown field", remedy: FORM });
    } else if (nanos.has(field)) {
      problems.push({ key: fieldKey, problem: "is given twice, in two spellings", remedy: "Leave one of them out" });
    } else {
      nanos.set(field, readNanos(value, fieldKey, problems));
    }
  }
  // What is paid by the page may cost nothing besides.
  const isByPage = nanos.has("perPage") && !REQUIRED.some((field) => nanos.has(field));
  for (const field of isByPage ? [] : REQUIRED) {
    if (!nanos.has(field)) problems.push({ key: `${key}.${field}`, problem: "is missing", remedy: FORM });
  }
  if (problems.length > before) return null;
  const input = nanos.get("inputPer1M") ?? 0n;
  const output = nanos.get("outputPer1M") ?? 0n;
  const base = {
    input,
    output,
    cachedInput: nanos.get("cachedInputPer1M") ?? input,
    cacheWrite: nanos.get("cacheWritePer1M") ?? input,
    reasoning: nanos.get("reasoningPer1M") ?? output,
  };
  return { base, tiers: [], perImage: nanos.get("perImage") ?? null, perPage: nanos.get("perPage") ?? null };
}

function readNanos(value: unknown, key: string, problems: ConfigProblem[]): bigint {
  if (typeof value === "number" && value >= 0 && value <= MAX_PRICE) {
    // Fixed digits instead of a product: 0.15 has no exact double, its decimal digits are exact.
    return BigInt(value.toFixed(NANO_DIGITS).replace(".", ""));
  }
  const remedy = `Use a number from 0 to ${MAX_PRICE}, without quotes`;
  problems.push({ key, value: shown(value), problem: "is no price", remedy });
  return 0n;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 60);
}
