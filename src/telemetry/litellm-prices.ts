import type { ModelRates, Rates, RateTier } from "./rates.js";

/**
 * Entries of LiteLLM's `model_prices_and_context_window.json`, as the file is (reference-providers §3.1): US dollars per
 * single token, context tiers by suffix or as `tiered_pricing`. Prices of batches, priority and off-peak hours are not
 * read: a call is priced as an ordinary one.
 */

type Fields = Readonly<Record<string, unknown>>;

const PRICE_FIELD = /_cost_per_|_token_cost$/;
const TIER_FIELD = /^(.+)_above_(\d+)(k?)_tokens$/;
/** Dollars per token; a larger figure is a mistake in the unit. */
const MAX_PRICE_PER_TOKEN = 1_000;
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

/** null: the entry has no usable price per token (images, seconds, pages; texts where numbers belong). */
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
  const base = ratesOf(entry, null, takesNoOutput(entry)) ?? listed.shift()?.rates ?? null;
  if (base === null) return null;
  const tiers = [...tiersFromSuffixes(entry, base), ...listed];
  return { base, tiers: tiers.sort((a, b) => a.abovePromptTokens - b.abovePromptTokens) };
}

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

/** Nano-dollars per million tokens. */
function nanos(perToken: unknown): bigint | undefined {
  if (perToken === undefined || perToken === null) return undefined;
  if (typeof perToken !== "number" || !(perToken >= 0 && perToken <= MAX_PRICE_PER_TOKEN)) throw new UnusablePrice();
  const perMillion = Number((perToken * 1e6).toPrecision(SIGNIFICANT_DIGITS));
  return BigInt(perMillion.toFixed(NANO_DIGITS).replace(".", ""));
}
