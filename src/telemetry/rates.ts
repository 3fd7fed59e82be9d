import type { BilledUsage } from "../domain/usage.js";

const TOKENS_PER_PRICE = 1_000_000n;

/** Nano-units per million tokens. */
export interface Rates {
  readonly input: bigint;
  readonly output: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
  readonly reasoning: bigint;
}

/** Rates that hold for the whole call, its answer too, once the prompt is longer than this. */
export interface RateTier {
  readonly abovePromptTokens: number;
  readonly rates: Rates;
}

export interface ModelRates {
  readonly base: Rates;
  /** By rising threshold. */
  readonly tiers: readonly RateTier[];
  /** Nano-units for an image of the request; null = images cost no more than their tokens. */
  readonly perImage: bigint | null;
  /** Nano-units for a page read; null = not paid by the page. */
  readonly perPage: bigint | null;
}

/** Cost in whole nano-units, rounded half up once per call; null when the usage is no usable count. */
export function costOf({ base, tiers, perImage, perPage }: ModelRates, usage: BilledUsage): bigint | null {
  const prompt = count(usage.promptTokens);
  const completion = count(usage.completionTokens);
  const images = count(usage.images ?? 0);
  // Who is paid by the page and not told the pages is owed an unknown sum.
  const pages = count(usage.pages ?? (perPage === null ? 0 : Number.NaN));
  if (prompt === null || completion === null || images === null || pages === null) return null;
  let rates = base;
  for (const tier of tiers) if (usage.promptTokens > tier.abovePromptTokens) rates = tier.rates;
  const cached = smaller(count(usage.cachedPromptTokens ?? 0) ?? 0n, prompt);
  const written = smaller(count(usage.cacheWriteTokens ?? 0) ?? 0n, prompt - cached);
  const reasoning = smaller(count(usage.reasoningTokens ?? 0) ?? 0n, completion);
  const tokens =
    (prompt - cached - written) * rates.input +
    cached * rates.cachedInput +
    written * rates.cacheWrite +
    (completion - reasoning) * rates.output +
    reasoning * rates.reasoning;
  return (tokens + TOKENS_PER_PRICE / 2n) / TOKENS_PER_PRICE + images * (perImage ?? 0n) + pages * (perPage ?? 0n);
}

function count(value: number): bigint | null {
  return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : null;
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
