import type { UsageDialect } from "../../domain/profile.js";
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

const NO_DETAILS: Fields = {};

function details(group: unknown): Fields {
  return isFields(group) ? group : NO_DETAILS;
}

/** The number at the first of the profile's own places that has one. */
function own(usage: Fields, paths: readonly string[] | undefined): number | undefined {
  if (paths === undefined) return undefined;
  for (const path of paths) {
    let value: unknown = usage;
    for (const step of path.split(".")) value = isFields(value) && Object.hasOwn(value, step) ? value[step] : undefined;
    const number = count(value);
    if (number !== undefined) return number;
  }
  return undefined;
}

function cachedTokens(usage: Fields, paths?: readonly string[]): number | undefined {
  return (
    own(usage, paths) ??
    count(details(usage.prompt_tokens_details).cached_tokens) ??
    count(details(usage.input_tokens_details).cached_tokens) ??
    count(details(usage.prompt_token_details).cached_tokens) ??
    count(usage.cached_tokens) ??
    count(usage.num_cached_tokens) ??
    count(usage.prompt_cache_hit_tokens) ??
    count(usage.cache_read_input_tokens)
  );
}

function cacheWriteTokens(usage: Fields): number | undefined {
  const prompt = details(usage.prompt_tokens_details);
  return (
    count(prompt.cache_write_tokens) ??
    count(prompt.cache_creation_input_tokens) ??
    count(usage.cache_creation_input_tokens)
  );
}

function reasoningTokens(usage: Fields, paths: readonly string[] | undefined): number | undefined {
  const output = details(usage.output_tokens_details);
  return (
    own(usage, paths) ??
    count(details(usage.completion_tokens_details).reasoning_tokens) ??
    count(output.reasoning_tokens) ??
    count(output.thinking_tokens) ??
    count(usage.reasoning_tokens)
  );
}

/** Tokens of Anthropic's prompt cache that the prompt doesn't count: its own name of the prompt says so, or the profile. */
function besidePrompt(usage: Fields, dialect: UsageDialect["cache"]): number {
  const read = count(usage.cache_read_input_tokens);
  const native = read !== undefined && usage.prompt_tokens === undefined;
  if (dialect === "inside" && !native) return 0;
  return (read ?? 0) + (count(usage.cache_creation_input_tokens) ?? 0);
}

/** How many reasoning tokens the completion doesn't count. */
function besideCompletion(
  dialect: UsageDialect["reasoning"],
  {
    prompt,
    completion,
    total,
    reasoning,
  }: { prompt: number; completion: number; total: number | undefined; reasoning: number },
): number {
  if (dialect === "only_in_total") return Math.max(0, (total ?? 0) - prompt - completion);
  if (reasoning === 0) return 0;
  // xAI: prompt + completion + reasoning = total; anywhere else reasoning is a part of completion.
  const inTotal = total !== undefined && prompt + completion !== total && prompt + completion + reasoning === total;
  const beside = dialect === "beside" && (total === undefined || prompt + completion < total);
  return inTotal || beside || reasoning > completion ? reasoning : 0;
}

const USUAL: UsageDialect = { reasoning: "inside", cache: "inside", fields: {} };

/**
 * A provider's usage object in our terms (spec 03 "Usage"): aliases, numeric strings, the additive dialect that counts
 * reasoning beside the completion. null = nothing usable was said, so the client estimates; never NaN, never a silent 0.
 */
export function normaliseUsage(raw: unknown, { reasoning: place, cache, fields }: UsageDialect = USUAL): Usage | null {
  if (!isFields(raw)) return null;
  const total = count(raw.total_tokens);
  let prompt = own(raw, fields.prompt) ?? count(raw.prompt_tokens) ?? count(raw.input_tokens);
  let completion = own(raw, fields.completion) ?? count(raw.completion_tokens) ?? count(raw.output_tokens);
  if (total !== undefined) {
    if (prompt === undefined && completion !== undefined) prompt = Math.max(0, total - completion);
    else if (completion === undefined && prompt !== undefined) completion = Math.max(0, total - prompt);
  }
  if (prompt === undefined || completion === undefined || prompt + completion === 0) return null;
  let reasoning = reasoningTokens(raw, fields.reasoning);
  const cached = cachedTokens(raw, fields.cached);
  const hidden = besideCompletion(place, { prompt, completion, total, reasoning: reasoning ?? 0 });
  completion += hidden;
  if (place === "only_in_total" && hidden > 0) reasoning ??= hidden;
  prompt += besidePrompt(raw, cache);
  if (cached !== undefined && cached > prompt) prompt += cached;
  const written = cacheWriteTokens(raw);
  if (written !== undefined && written > prompt) prompt += written;
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } = {
    promptTokens: prompt,
    completionTokens: completion,
    totalTokens: Math.max(total ?? 0, prompt + completion),
    reasoningTokens: reasoning ?? null,
    cachedPromptTokens: cached ?? null,
    source: "measured",
  };
  if (written !== undefined && written > 0) usage.cacheWriteTokens = written;
  return usage;
}

/**
 * The usage of a call that has no answer text: every token is one of the input, whichever name it is reported under.
 * null = nothing usable was said.
 */
export function normaliseInputUsage(raw: unknown): Usage | null {
  if (!isFields(raw)) return null;
  const total = count(raw.total_tokens) ?? 0;
  const prompt = count(raw.prompt_tokens) || count(raw.input_tokens) || total;
  if (prompt === 0) return null;
  const cached = cachedTokens(raw);
  return {
    promptTokens: prompt,
    completionTokens: 0,
    totalTokens: Math.max(total, prompt),
    reasoningTokens: null,
    cachedPromptTokens: cached === undefined ? null : Math.min(cached, prompt),
    source: "measured",
  };
}
