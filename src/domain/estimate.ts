import type { ChatMessage, ContentPart, Sampling } from "./chat.js";

const TOKENS_PER_MESSAGE = 4;
/** An image, a sound or a file: its size in bytes says little about its tokens. */
export const TOKENS_PER_BINARY_PART = 1_000;
/** Reserved for an answer at most, and when no `maxTokens` is given; a longer one is corrected when it is settled. */
const ANSWER_TOKENS = 1_024;

const FIRST_NON_ASCII = 0x80;
/** From here on UTF-8 needs three bytes: CJK, Hangul, kana, full-width forms, and both halves of an emoji. */
const FIRST_WIDE = 0x800;

/**
 * Tokens of a text in quarters: 1 for an ASCII character, 3 for a wide one (ASCII/4 + CJK × 0.75), 2 between the two
 * (accented Latin, Greek, Cyrillic, Arabic). Linear and without a table; 5–10 % high on English and code, 1 % low on
 * Chinese (spec reference-performance §7). A tokenizer would take 20 times as long and some inputs make one hang.
 */
function quarterTokens(text: string): number {
  let quarters = text.length;
  // Nearly every text is all ASCII: as many bytes as characters, which the engine counts ten times as fast as a loop.
  if (Buffer.byteLength(text) === quarters) return quarters;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= FIRST_NON_ASCII) quarters += unit >= FIRST_WIDE ? 2 : 1;
  }
  return quarters;
}

/** Estimated tokens of a text; a whole number, 0 for an empty text. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(quarterTokens(text) / 4);
}

function estimatePartTokens(part: ContentPart): number {
  if (typeof part.text === "string") return estimateTextTokens(part.text);
  if (typeof part.refusal === "string") return estimateTextTokens(part.refusal);
  return TOKENS_PER_BINARY_PART;
}

function estimateJsonTokens(values: readonly unknown[] | undefined): number {
  return values === undefined || values.length === 0 ? 0 : estimateTextTokens(JSON.stringify(values));
}

function estimateMessageTokens({ content, tool_calls }: ChatMessage): number {
  let tokens = TOKENS_PER_MESSAGE + estimateJsonTokens(tool_calls);
  if (typeof content === "string") tokens += estimateTextTokens(content);
  else if (Array.isArray(content)) for (const part of content) tokens += estimatePartTokens(part);
  return tokens;
}

/** Estimated tokens of a prompt (spec 12, answer 4): texts, tool calls, the tools' JSON, 4 a message, 1,000 a binary part. */
export function estimatePromptTokens(messages: readonly ChatMessage[], tools?: readonly unknown[]): number {
  let tokens = estimateJsonTokens(tools);
  for (const message of messages) tokens += estimateMessageTokens(message);
  return tokens;
}

function positiveOr(value: number | undefined, fallback: number): number {
  return value !== undefined && value > 0 ? value : fallback;
}

/** What a call reserves: its prompt and n × min(maxTokens, 1024) for the answers. A finite whole number for any sampling. */
export function estimateReservation(promptTokens: number, sampling: Sampling | undefined): number {
  const answerTokens = Math.min(positiveOr(sampling?.maxTokens, ANSWER_TOKENS), ANSWER_TOKENS);
  const choices = Math.min(positiveOr(sampling?.n, 1), Number.MAX_SAFE_INTEGER / ANSWER_TOKENS / 2);
  return promptTokens + Math.ceil(choices * answerTokens);
}
