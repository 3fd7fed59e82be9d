import type { ModelRates, Rates, RateTier } from "./rates.js";

/**
 * Entries of LiteLLM's `model_prices_and_context_window.json`, as the file is (reference-providers §3.1): US dollars per
 * single token, image or page, context tiers by suffix or as `tiered_pricing`. Prices of batches, priority and off-peak hours are not
 * read: a call is priced as an ordinary one.
 */

type Fields = Readonly<Record<string, unknown>>;

const PRICE_FIELD = /_cost_per_|_token_cost$/;
const TIER_FIELD = /^(.+)_above_(\d+)(k?)_tokens$/;
/** Dollars for a token, an image or a page; a larger figure is a mistake in the unit. */
const MAX_PRICE = 1_000;
/** A product of two decimals has no exact double; its first 12 digits are exact. */
const SIGNIFICANT_DIGITS = 12;
const NANO_DIGITS = 9;
/** xAI's higher rates begin at the threshold, everybody else's above it. */
const INCLUSIVE_PROVIDER = "xai";

/** A price that is there and can't be used: the entry as a whole is then worth nothing. */
class UnusablePrice extends Error {}

export function isLiteLlmEntry(entry: Fields): boolean {
  if ("litellm_provider" in entry || "tiered_pricing" in entry) return true;
  return Object.keys(entry).some((field) => PRICE_FIELD.test(field));
}

/** null: the entry has no usable price per token or page (seconds, pictures to be made; texts where numbers belong). */
export function readLiteLlmEntry(entry: Fields): ModelRates | null {
  try {
    return readEntry(entry);
  } catch (error) {
    if (error instanceof UnusablePrice) return null;
    throw error;
  }
}

function readEntry(entry: Fields): ModelRates | null {
  const listed = tiersFromList(entry);
  const perPage = nanos(entry.ocr_cost_per_page, 1) ?? null;
  const perImage = nanos(entry.input_cost_per_image, 1) ?? null;
  const base =
    ratesOf(entry, null, takesNoOutput(entry)) ?? listed.shift()?.rates ?? (perPage === null ? null : NO_TOKEN_PRICE);
  if (base === null) return null;
  const tiers = [...tiersFromSuffixes(entry, base), ...listed];
  return { base, tiers: tiers.sort((a, b) => a.abovePromptTokens - b.abovePromptTokens), perImage, perPage };
}

/** What is paid by the page has no price per token. */
const NO_TOKEN_PRICE: Rates = { input: 0n, output: 0n, cachedInput: 0n, cacheWrite: 0n, reasoning: 0n };

/** Embeddings and the like have no completion to pay for. */
function takesNoOutput({ mode }: Fields): boolean {
  return mode === "embedding" || mode === "rerank";
}

/** What is missing: of a tier its base rate, cached tokens as input, reasoning as output. */
function ratesOf(fields: Fields, base: Rates | null, noOutput: boolean): Rates | null {
  const input = nanos(fields.input_cost_per_token) ?? base?.input;
  const output = nanos(fields.output_cost_per_token) ?? base?.output ?? (noOutput ? 0n : undefined);
  if (input === undefined || output === undefined) return null;
  const cached = nanos(fields.cache_read_input_token_cost) ?? nanos(fields.input_cost_per_token_cache_hit);
  return {
    input,
    output,
    cachedInput: cached ?? input,
    cacheWrite: nanos(fields.cache_creation_input_token_cost) ?? input,
    reasoning: nanos(fields.output_cost_per_reasoning_token) ?? output,
  };
}

function tiersFromSuffixes(entry: Fields, base: Rates): RateTier[] {
  const byThreshold = new Map<number, Record<string, unknown>>();
  for (const [field, value] of Object.entries(entry)) {
    const match = TIER_FIELD.exec(field);
    if (match === null) continue;
    const threshold = Number(match[2]) * (match[3] === "k" ? 1_000 : 1);
    const fields = byThreshold.get(threshold) ?? {};
    fields[match[1]!] = value;
    byThreshold.set(threshold, fields);
  }
  const inclusive = entry.litellm_provider === INCLUSIVE_PROVIDER;
  return [...byThreshold].flatMap(([threshold, fields]) => {
    const rates = ratesOf(fields, base, false);
    return rates === null ? [] : [{ abovePromptTokens: inclusive ? threshold - 1 : threshold, rates }];
  });
}

/** By rising threshold; the first of a model without a base price is its base. */
function tiersFromList({ tiered_pricing: list }: Fields): RateTier[] {
  if (!Array.isArray(list)) return [];
  const tiers = list.flatMap((tier: unknown): RateTier[] => {
    if (typeof tier !== "object" || tier === null) return [];
    const from = (tier as { range?: unknown }).range;
    const abovePromptTokens: unknown = Array.isArray(from) ? from[0] : undefined;
    const rates = ratesOf(tier as Fields, null, false);
    if (typeof abovePromptTokens !== "number" || !(abovePromptTokens >= 0) || rates === null) return [];
    return [{ abovePromptTokens, rates }];
  });
  return tiers.sort((a, b) => a.abovePromptTokens - b.abovePromptTokens);
}

/** Nano-dollars for `pieces` of what is priced: tokens are priced one by one and kept per million. */
function nanos(price: unknown, pieces = 1e6): bigint | undefined {
  if (price === undefined || price === null) return undefined;
  if (typeof price !== "number" || !(price >= 0 && price <= MAX_PRICE)) throw new UnusablePrice();
  const dollars = Number((price * pieces).toPrecision(SIGNIFICANT_DIGITS));
  return BigInt(dollars.toFixed(NANO_DIGITS).replace(".", ""));
}
