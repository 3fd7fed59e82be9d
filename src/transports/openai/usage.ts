import type { Usage } from "../../domain/usage.js";

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** No answer has more tokens than this; a larger count is a fault of the provider and must not lock a token limit for ages. */
const MAX_PLAUSIBLE_TOKENS = 100_000_000;

/** A token count, numeric strings included; undefined for everything that can't be one. */
function count(value: unknown): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number !== "number" || !(number >= 0 && number <= MAX_PLAUSIBLE_TOKENS)) return undefined;
  return Math.round(number);
}

function firstCount(...values: unknown[]): number | undefined {
  for (const value of values) {
    const tokens = count(value);
    if (tokens !== undefined) return tokens;
  }
  return undefined;
}

function detail(usage: Fields, group: string, field: string): unknown {
  const details = usage[group];
  return isFields(details) ? details[field] : undefined;
}

function cachedTokens(usage: Fields): number | undefined {
  return firstCount(
    detail(usage, "prompt_tokens_details", "cached_tokens"),
    detail(usage, "input_tokens_details", "cached_tokens"),
    detail(usage, "prompt_token_details", "cached_tokens"),
    usage.cached_tokens,
    usage.num_cached_tokens,
    usage.prompt_cache_hit_tokens,
  );
}

function reasoningTokens(usage: Fields): number | undefined {
  return firstCount(
    detail(usage, "completion_tokens_details", "reasoning_tokens"),
    detail(usage, "output_tokens_details", "reasoning_tokens"),
    detail(usage, "output_tokens_details", "thinking_tokens"),
    usage.reasoning_tokens,
  );
}

/**
 * A provider's usage object in our terms (spec 03 "Usage"): aliases, numeric strings, the additive dialect that counts
 * reasoning beside the completion. null = nothing usable was said, so the client estimates; never NaN, never a silent 0.
 */
export function normaliseUsage(raw: unknown): Usage | null {
  if (!isFields(raw)) return null;
  const total = count(raw.total_tokens);
  let prompt = firstCount(raw.prompt_tokens, raw.input_tokens);
  let completion = firstCount(raw.completion_tokens, raw.output_tokens);
  if (total !== undefined) {
    if (prompt === undefined && completion !== undefined) prompt = Math.max(0, total - completion);
    else if (completion === undefined && prompt !== undefined) completion = Math.max(0, total - prompt);
  }
  if (prompt === undefined || completion === undefined || prompt + completion === 0) return null;
  const reasoning = reasoningTokens(raw);
  const cached = cachedTokens(raw);
  if (reasoning !== undefined && reasoning > 0) {
    // xAI: prompt + completion + reasoning = total; anywhere else reasoning is a part of completion.
    const additive = total !== undefined && prompt + completion !== total && prompt + completion + reasoning === total;
    if (additive || reasoning > completion) completion += reasoning;
  }
  if (cached !== undefined && cached > prompt) prompt += cached;
  return {
    promptTokens: prompt,
    completionTokens: completion,
    totalTokens: Math.max(total ?? 0, prompt + completion),
    reasoningTokens: reasoning ?? null,
    cachedPromptTokens: cached ?? null,
    source: "measured",
  };
}
