import { fingerprint } from "./random.js";

/** What a provider says to one request. */
export interface Answer {
  readonly content: string;
  readonly thinking?: string;
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** Default: `stop`, `tool_calls` with tool calls, `length` when `max_tokens` cut the text. */
  readonly finishReason?: string;
}

/** A chat request as the provider understood it. */
export interface ReceivedRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  /** Text of the last user message. */
  readonly question: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** `max_completion_tokens` or `max_tokens`. */
  readonly maxTokens: number | undefined;
  readonly promptTokens: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Of a longer question the answer repeats this much: each of its tokens is an event to be written. */
const MAX_ECHO_UNITS = 65_536;

/**
 * The answer a provider gives when it is not told another one: it repeats the question under the question's fingerprint,
 * so that a test can tell whether the answer of this very question landed where it belongs. Deterministic.
 */
export function echoAnswer(question: string): string {
  const more = question.length - MAX_ECHO_UNITS;
  const told = more > 0 ? `${question.slice(0, MAX_ECHO_UNITS)}… (${more} more characters)` : question;
  return `Answer ${fingerprint(question)} to: ${told}`;
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: unknown) => (isRecord(part) && typeof part.text === "string" ? part.text : ""))
    .filter((text) => text !== "")
    .join("\n");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isMessage(value: unknown): value is { role: string; content: unknown } {
  return isRecord(value) && typeof value.role === "string";
}

function tokenLimit(body: Record<string, unknown>): number | undefined {
  const given = body.max_completion_tokens ?? body.max_tokens;
  return typeof given === "number" && given > 0 ? Math.floor(given) : undefined;
}

/** Reads a request body; a string says why it is refused with a 400. */
export function readChatRequest(body: Buffer, headers: Readonly<Record<string, string>>): ReceivedRequest | string {
  let json: unknown;
  try {
    json = JSON.parse(body.toString());
  } catch {
    return "The body is not valid JSON.";
  }
  if (!isRecord(json)) return "The body must be a JSON object.";
  const { messages, model } = json;
  if (typeof model !== "string" || model === "") return "'model' must be a non-empty string.";
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isMessage)) {
    return "'messages' must be a non-empty list of messages with a role.";
  }
  if (json.n !== undefined && json.n !== null && json.n !== 1) return "'n' must be 1: this provider has one choice.";
  let question = "";
  let promptTokens = 0;
  for (const { role, content } of messages) {
    const text = contentText(content);
    promptTokens += Math.ceil(text.length / 4) + 4;
    if (role === "user") question = text;
  }
  return {
    model,
    messages,
    question,
    stream: json.stream === true,
    includeUsage: isRecord(json.stream_options) && json.stream_options.include_usage === true,
    maxTokens: tokenLimit(json),
    promptTokens,
    headers,
    body: json,
  };
}

/** Cuts a text into pieces the size of a token; joined they are the text again. */
export function toTokens(text: string): string[] {
  return text.match(/\s*\S{1,12}|\s+$/gu) ?? [];
}

const FILLER = [" and", " so", " on", ",", " as", " asked", ";"];

/** Brings a tokenised text to exactly `count` tokens: cut at the end, or lengthened with filler words. */
export function resizeTokens(tokens: readonly string[], count: number): string[] {
  if (tokens.length >= count) return tokens.slice(0, count);
  const filler = Array.from({ length: count - tokens.length }, (_, i) => FILLER[i % FILLER.length] as string);
  return [...tokens, ...filler];
}
