import type { Sampling } from "../../domain/chat.js";
import type { ErrorCode } from "../../errors.js";

/** One provider's dialect of the chat-completions wire, as data. */
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
}

const REASONING_TAGS = [
  ["<think>", "</think>"],
  ["<thought>", "</thought>"],
  ["<mm:think>", "</mm:think>"],
  ["◁think▷", "◁/think▷"],
] as const;

const openai: ProviderProfile = {
  name: "openai",
  hosts: ["api.openai.com"],
  parameterNames: {},
  streamOptions: true,
  doneIsProof: true,
  reasoningTags: REASONING_TAGS,
  errorCodes: {},
};

const relay: ProviderProfile = { ...openai, name: "relay", hosts: [], doneIsProof: false };

/** The built-in profiles. `openai` is the fallback for every host that no profile claims. */
export const profiles: Readonly<Record<string, ProviderProfile>> = Object.freeze({ openai, relay });

export const FALLBACK_PROFILE = "openai";

function claims(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/** Name of the profile for a base URL: by its host, else the fallback. Never throws. */
export function profileNameFor(baseUrl: string): string {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname.toLowerCase() : "";
  const match = Object.values(profiles).find((profile) => profile.hosts.some((pattern) => claims(pattern, host)));
  return match?.name ?? FALLBACK_PROFILE;
}
