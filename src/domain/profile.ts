import type { ErrorCode } from "../errors.js";
import type { Sampling } from "./chat.js";

/** What a provider enforces by itself: an answer of a given schema, or any JSON object. */
export type StructuredOutputMode = "json_schema" | "json_object";

/**
 * One provider's dialect of the OpenAI wire, as data (spec 03 "Profile"): plain JSON values only, so that a file or the
 * environment can say the same as code.
 */
export interface ProviderProfile {
  readonly name: string;
  /** Hosts that select this profile by themselves: an exact host name, or `*.example.com` for all below it. */
  readonly hosts: readonly string[];
  /** Wire names that differ from OpenAI's snake_case, e.g. `{ maxTokens: "max_completion_tokens" }`. */
  readonly parameterNames: Readonly<Partial<Record<keyof Sampling, string>>>;
  /** Ask for usage in streams with `stream_options.include_usage`. */
  readonly streamOptions: boolean;
  /** `[DONE]` without any finish_reason proves that the answer is whole. Relays append it to cut streams. */
  readonly doneIsProof: boolean;
  /** Opening and closing tags of reasoning at the start of a message. */
  readonly reasoningTags: readonly (readonly [open: string, close: string])[];
  /** Error codes of this provider (lower case) → our code; they win over the built-in table. */
  readonly errorCodes: Readonly<Record<string, ErrorCode>>;
  /** Kinds of `response_format` the provider enforces; what is missing is asked for in the prompt. */
  readonly structuredOutput: readonly StructuredOutputMode[];
  /** Embeddings may be asked for as base64, which is a quarter of the JSON. */
  readonly embeddingBase64: boolean;
}

const REASONING_TAGS = [
  ["<think>", "</think>"],
  ["<thought>", "</thought>"],
  ["<mm:think>", "</mm:think>"],
  ["◁think▷", "◁/think▷"],
] as const;

/** OpenAI's own dialect; the fallback for every host that no profile claims. */
export const OPENAI_PROFILE: ProviderProfile = {
  name: "openai",
  hosts: ["api.openai.com"],
  parameterNames: {},
  streamOptions: true,
  doneIsProof: true,
  reasoningTags: REASONING_TAGS,
  errorCodes: {},
  structuredOutput: ["json_schema", "json_object"],
  embeddingBase64: true,
};
