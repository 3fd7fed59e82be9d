import type { Usage } from "../domain/usage.js";

const TOKENS_PER_PRICE = 1_000_000n;

/** Nano-units per million tokens. */
export interface Rates {
  readonly input: bigint;
  readonly output: bigint;
  readonly cachedInput: bigint;
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
}

const NO_TIERS: readonly RateTier[] = [];

export function flatRates(base: Rates): ModelRates {
  return { base, tiers: NO_TIERS };
}

/** Cost in whole nano-units, rounded half up once per call; null when the usage is no usable count. */
export function costOf({ base, tiers }: ModelRates, usage: Usage): bigint | null {
  const prompt = tokens(usage.promptTokens);
  const completion = tokens(usage.completionTokens);
  if (prompt === null || completion === null) return null;
  let rates = base;
  for (const tier of tiers) if (usage.promptTokens > tier.abovePromptTokens) rates = tier.rates;
  const cached = smaller(tokens(usage.cachedPromptTokens ?? 0) ?? 0n, prompt);
  const reasoning = smaller(tokens(usage.reasoningTokens ?? 0) ?? 0n, completion);
  const sum =
    (prompt - cached) * rates.input +
    cached * rates.cachedInput +
    (completion - reasoning) * rates.output +
    reasoning * rates.reasoning;
  return (sum + TOKENS_PER_PRICE / 2n) / TOKENS_PER_PRICE;
}

function tokens(count: number): bigint | null {
  return Number.isSafeInteger(count) && count >= 0 ? BigInt(count) : null;
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
