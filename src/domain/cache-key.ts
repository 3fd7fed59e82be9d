import { createHash } from "node:crypto";
import { digestBinaryParts } from "./binary-digest.js";
import { canonicalJson } from "./canonical-json.js";
import type { ChatRequest, FinishReason } from "./chat.js";
import type { SourceConfig } from "./source.js";

/** Changes whenever the same request would have to be answered anew. */
const KEY_VERSION = 1;

/** Fields that name the caller or the way of delivery, but can't change the answer (spec 04 "Cache"). */
const NOT_OF_THE_ANSWER: ReadonlySet<string> = new Set([
  "stream",
  "stream_options",
  "user",
  "metadata",
  "safety_identifier",
  "prompt_cache_key",
  "request_id",
]);

export interface CacheKeyInput {
  readonly request: Pick<
    ChatRequest,
    "tools" | "toolChoice" | "sampling" | "thinking" | "thinkingFallback" | "responseFormat" | "extraBody"
  >;
  readonly messagesJson: string;
  /** The sources able to do the call: the cache is asked before one of them is chosen. */
  readonly sources: readonly SourceConfig[];
  readonly namespace: string;
  readonly salt: string;
}

/**
 * SHA-256 over everything that can change the answer, whatever the order of the fields. Binary parts are hashed whole.
 * null = the request can't be put into canonical form and is therefore not cached.
 */
export function cacheKey({ request, messagesJson, sources, namespace, salt }: CacheKeyInput): string | null {
  const { tools, toolChoice, sampling, thinking, thinkingFallback, responseFormat, extraBody } = request;
  try {
    const canonical = canonicalJson({
      version: KEY_VERSION,
      namespace,
      salt,
      pool: poolFingerprint(sources),
      messages: JSON.parse(digestBinaryParts(messagesJson)) as unknown,
      tools: tools === undefined || tools.length === 0 ? undefined : tools,
      toolChoice,
      sampling: isEmpty(sampling) ? undefined : sampling,
      thinking,
      thinkingFallback: thinking === undefined ? undefined : thinkingFallback,
      responseFormat,
      extraBody: ofTheAnswer(extraBody),
    });
    return createHash("sha256").update(canonical).digest("hex");
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Same models in the same dialect with the same standing fields give the same kind of answer, whatever they are called. */
function poolFingerprint(sources: readonly SourceConfig[]): string[] {
  return [...new Set(sources.map(memberOf))].sort();
}

/** A profile is large and a source never changes: rendered once. */
const members = new WeakMap<SourceConfig, string>();

function memberOf(source: SourceConfig): string {
  let member = members.get(source);
  if (member === undefined) {
    const { model, profile, thinking, extraBody } = source;
    member = canonicalJson({ model, profile, thinking, extraBody: ofTheAnswer(extraBody) });
    members.set(source, member);
  }
  return member;
}

function ofTheAnswer(fields: Readonly<Record<string, unknown>> | undefined): Record<string, unknown> | undefined {
  const kept = Object.entries(fields ?? {}).filter(([name]) => !NOT_OF_THE_ANSWER.has(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/**
 * May this call get the answer of one that is in flight? Not when it asks for chance: a temperature above 0 without a
 * seed (spec 04 "In-flight sharing"), whoever sets them.
 */
export function isShareable(
  { sampling, extraBody }: Pick<ChatRequest, "sampling" | "extraBody">,
  sources: readonly SourceConfig[],
): boolean {
  return sources.every((source) => {
    const temperature = extraBody?.temperature ?? sampling?.temperature ?? source.extraBody.temperature;
    if (!(Number(temperature) > 0)) return true;
    const own = sampling?.seed ?? extraBody?.seed ?? extraBody?.random_seed;
    return typeof (own ?? source.extraBody.seed ?? source.extraBody.random_seed) === "number";
  });
}

function isEmpty(fields: object | undefined): boolean {
  return fields === undefined || Object.values(fields).every((value) => value === undefined);
}

interface EndedChoice {
  readonly content: string;
  readonly toolCalls: readonly unknown[];
  readonly finishReason: FinishReason;
}

export interface EndedAnswer extends EndedChoice {
  readonly refusal?: string;
  /** Only when more than one was answered. */
  readonly choices?: readonly EndedChoice[];
}

const WHOLE: ReadonlySet<FinishReason> = new Set(["stop", "tool_calls"]);

/** Only what is complete, said something and wasn't refused is worth answering with again (spec 04). `asked` = choices. */
export function isCacheable(answer: EndedAnswer, asked = 1): boolean {
  if (answer.refusal !== undefined && answer.refusal !== "") return false;
  const choices = answer.choices ?? [answer];
  return choices.length >= asked && choices.every(isWholeChoice);
}

function isWholeChoice({ content, toolCalls, finishReason }: EndedChoice): boolean {
  return WHOLE.has(finishReason) && (content.trim() !== "" || toolCalls.length > 0);
}
