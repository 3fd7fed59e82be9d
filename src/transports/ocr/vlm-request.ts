import { incapability } from "../../domain/capability.js";
import type { ChatMessage, ChatRequest, Sampling } from "../../domain/chat.js";
import type { OcrImage } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import { planThinking } from "../../domain/thinking.js";
import { namesThinking } from "../../domain/vendor-thinking.js";
import type { VlmQuestion, VlmReader } from "./vlm-reader.js";

/** What of a request is ours, and what this source has refused of it so far. */
export interface VlmChoices {
  /** Wire names of the fields that a refusal may name. */
  readonly ownFields: readonly string[];
  readonly limitsOutput: boolean;
  readonly switchesThinking: boolean;
}

export interface VlmRequest {
  readonly request: ChatRequest;
  readonly choices: VlmChoices;
}

/** Names in `dropped` that stand for no single field. */
export const THINKING = "thinking";
export const OUTPUT_LIMIT = "max_tokens";

const WIRE_NAMES: Readonly<Partial<Record<keyof Sampling, string>>> = {
  temperature: "temperature",
  topP: "top_p",
  maxTokens: OUTPUT_LIMIT,
};
/** What the output's length goes by in EXTRA_BODY. */
const LIMIT_NAMES = [OUTPUT_LIMIT, "max_completion_tokens"];

/** The chat request of one question: what the source's EXTRA_BODY says, and what it has refused, is left to it. */
export function vlmRequest(
  source: SourceConfig,
  reader: VlmReader,
  question: VlmQuestion,
  image: OcrImage,
  dropped: ReadonlySet<string>,
): VlmRequest {
  const isFree = (name: string) => !dropped.has(name) && !Object.hasOwn(source.extraBody, name);
  const mayLimit = LIMIT_NAMES.every(isFree);
  const sampling: Record<string, unknown> = {};
  const ownFields: string[] = [];
  for (const [name, value] of Object.entries(question.sampling ?? {})) {
    const wireName = WIRE_NAMES[name as keyof Sampling] ?? name;
    if (!(wireName === OUTPUT_LIMIT ? mayLimit : isFree(wireName))) continue;
    sampling[name] = value;
    if (wireName !== OUTPUT_LIMIT) ownFields.push(wireName);
  }
  const fields = Object.entries(question.fields ?? {}).filter(([name]) => isFree(name));
  ownFields.push(...fields.map(([name]) => name));
  const switchesThinking = reader.mayThink === true && !dropped.has(THINKING) && canBeKeptFromThinking(source);
  return {
    request: {
      messages: [messageOf(question, image)],
      sampling,
      ...(fields.length === 0 ? {} : { extraBody: Object.fromEntries(fields) }),
      ...(switchesThinking ? { thinking: false } : {}),
    },
    choices: { ownFields, limitsOutput: Object.hasOwn(sampling, "maxTokens"), switchesThinking },
  };
}

/** Only where nobody has said what this source shall do. */
function canBeKeptFromThinking(source: SourceConfig): boolean {
  const isSaid = source.thinking !== undefined || namesThinking(source.extraBody);
  return !isSaid && "fields" in planThinking(source, { thinking: false });
}

/** The question in the user's own words, where there are any: the marks come before them unless they are there. */
export function inWords(question: VlmQuestion, words: string | undefined): VlmQuestion {
  if (words === undefined) return question;
  const first = question.marks?.[0]?.trim();
  const isWhole = first !== undefined && words.includes(first);
  return { ...question, prompt: words, ...(isWhole ? { marks: [] } : {}) };
}

function messageOf({ prompt, marks = [], promptFirst = false }: VlmQuestion, image: OcrImage): ChatMessage {
  const { bytes, mediaType } = image;
  const text = { type: "text", text: `${marks.join("")}${prompt}` };
  const picture = { type: "image_url", image_url: { url: `data:${mediaType};base64,${bytes.toString("base64")}` } };
  return { role: "user", content: promptFirst ? [text, picture] : [picture, text] };
}

/** Why this source's profile takes no picture, or can't think as its configuration wants; undefined = it can. */
export function vlmTrouble(source: SourceConfig, { messages, sampling }: ChatRequest) {
  return incapability(source, { messages, ...(sampling === undefined ? {} : { sampling }) }) ?? undefined;
}
