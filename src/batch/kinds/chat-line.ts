import type { ChatMessage, Sampling } from "../../domain/chat.js";
import { type Fields, isFields } from "./fields.js";
import type { ChatLine } from "./kinds.js";

/** The engine decides how an answer travels; what the caller gets is always the whole. */
const IGNORED = new Set(["stream", "stream_options"]);

const isNumber = (value: unknown): boolean => typeof value === "number";
const isBoolean = (value: unknown): boolean => typeof value === "boolean";
const isStop = (value: unknown): boolean =>
  typeof value === "string" || (Array.isArray(value) && value.every((item) => typeof item === "string"));

/** Wire name → our name. A value of another type goes through as an extra field, so that the provider judges it. */
const SAMPLING: Readonly<Record<string, readonly [keyof Sampling, (value: unknown) => boolean]>> = {
  temperature: ["temperature", isNumber],
  top_p: ["topP", isNumber],
  top_k: ["topK", isNumber],
  min_p: ["minP", isNumber],
  max_tokens: ["maxTokens", isNumber],
  max_completion_tokens: ["maxTokens", isNumber],
  stop: ["stop", isStop],
  seed: ["seed", isNumber],
  presence_penalty: ["presencePenalty", isNumber],
  frequency_penalty: ["frequencyPenalty", isNumber],
  logit_bias: ["logitBias", isFields],
  logprobs: ["logprobs", isBoolean],
  top_logprobs: ["topLogprobs", isNumber],
  n: ["n", isNumber],
};

/** The wire fields of a chat request as our own, or the reason why they are none. */
export function chatLine(body: Fields): ChatLine | string {
  const problem = messagesProblem(body.messages);
  if (problem !== undefined) return problem;
  const { model } = body;
  if (model != null && typeof model !== "string") return "model must be a text";
  const { sampling, extra } = sortFields(body);
  const request = {
    messages: body.messages as readonly ChatMessage[],
    ...(model == null || model === "" ? {} : { model }),
    ...(sampling === undefined ? {} : { sampling }),
    ...(Array.isArray(body.tools) ? { tools: body.tools } : {}),
    ...(body.tool_choice == null ? {} : { toolChoice: body.tool_choice }),
    ...(body.response_format == null ? {} : { responseFormat: body.response_format }),
    ...(extra === undefined ? {} : { extraBody: extra }),
  };
  return { kind: "chat", request };
}

function messagesProblem(messages: unknown): string | undefined {
  if (!Array.isArray(messages)) return "messages must be a list";
  if (messages.length === 0) return "messages is empty";
  const wrong = messages.findIndex((message) => !isFields(message) || typeof message.role !== "string");
  return wrong < 0 ? undefined : `messages[${wrong}] must be an object with a role`;
}

const NAMED = new Set(["model", "messages", "tool_choice", "response_format"]);

/** Others are the provider's own, and go through to it. */
export const CHAT_FIELDS: ReadonlySet<string> = new Set([...NAMED, "tools", ...Object.keys(SAMPLING)]);

function sortFields(body: Fields): { sampling: Sampling | undefined; extra: Fields | undefined } {
  const sampling: Record<string, unknown> = {};
  const extra: [string, unknown][] = [];
  for (const [name, value] of Object.entries(body)) {
    if (NAMED.has(name) || IGNORED.has(name) || (name === "tools" && Array.isArray(value))) continue;
    const known = Object.hasOwn(SAMPLING, name) ? SAMPLING[name] : undefined;
    if (known === undefined || !known[1](value)) extra.push([name, value]);
    else if (name !== "max_tokens" || !isNumber(body.max_completion_tokens)) sampling[known[0]] = value;
  }
  return {
    sampling: Object.keys(sampling).length === 0 ? undefined : sampling,
    // fromEntries defines own properties, so that a field named __proto__ stays a field.
    extra: extra.length === 0 ? undefined : Object.fromEntries(extra),
  };
}
