import type { ScopeConfig } from "../domain/scope.js";
import type { SourceConfig } from "../domain/source.js";
import type { BilledUsage } from "../domain/usage.js";
import type { PricingSource } from "./options.js";

const PROMPT_TOKENS = 1_000;
const ANSWER_TOKENS = 350;

/** What sources are compared by: the median call of the simulations. */
const TYPICAL_CALL: BilledUsage = {
  promptTokens: PROMPT_TOKENS,
  completionTokens: ANSWER_TOKENS,
  totalTokens: PROMPT_TOKENS + ANSWER_TOKENS,
  reasoningTokens: null,
  cachedPromptTokens: null,
  source: "estimated",
};

/**
 * What a typical call costs at each source, for `scheduling.priceWeight`; undefined where prices don't count. A source
 * whose price nobody knows is left out, and the governor takes it for as dear as the dearest known one: money should
 * not be saved on a guess.
 */
export function pricesOf(
  { sources, scheduling }: ScopeConfig,
  pricing: PricingSource | undefined,
): Readonly<Record<string, number>> | undefined {
  if (pricing === undefined || scheduling.priceWeight === 0) return undefined;
  const prices: Record<string, number> = {};
  for (const source of sources) {
    const price = priceOf(source, pricing);
    if (price !== null) prices[source.name] = price;
  }
  return prices;
}

function priceOf({ model, provider }: SourceConfig, pricing: PricingSource): number | null {
  let nanos: bigint | null;
  try {
    nanos = pricing.costNanos(model, TYPICAL_CALL, provider);
  } catch {
    // A table of the user's own that fails says so with the first call; here it only means "unknown".
    return null;
  }
  const price = nanos === null ? Number.NaN : Number(nanos);
  return price >= 0 ? price : null;
}
