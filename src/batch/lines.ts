import type { ChatMessage, ChatRequest, Sampling } from "../domain/chat.js";
import type { LineKind, LineRequest } from "./ask.js";
import { toEmbeddingRequest } from "./embedding-lines.js";

/** One physical line of IN, or why it could not be taken as text. */
export type RawLine =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly problem: string };

/** A line that can be sent. */
export interface BatchLine {
  readonly kind: "line";
  /** 1-based number of the physical line. */
  readonly number: number;
  readonly id: string;
  readonly request: LineRequest;
  /** Size of the text, for memory bounds. */
  readonly textLength: number;
}

/** A line that can't be sent, with the reason in plain words. */
export interface BrokenLine {
  readonly kind: "broken";
  readonly number: number;
  /** The line's own id where it could be read, else `line-<number>`. */
  readonly id: string;
  readonly problem: string;
}

type Fields = Readonly<Record<string, unknown>>;

const CHAT_PATH = /\/chat\/completions\/?$/;
const EMBEDDINGS_PATH = /\/embeddings\/?$/;

/** What a line without `body` holds besides its request; these names never reach the wire. */
const ENVELOPE = new Set(["custom_id", "id", "method", "url", "prompt", "image"]);
/** The engine decides how an answer travels; what the caller gets is always the whole. */
const IGNORED = new Set(["stream", "stream_options"]);

const isNumber = (value: unknown): boolean => typeof value === "number";
const isBoolean = (value: unknown): boolean => typeof value === "boolean";
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
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

/**
 * Reads one line of IN (spec 08): OpenAI Batch, `{id?, messages, …}`, `{id?, prompt, …}`, or `{id?, input, …}` for vectors.
 * A line of another kind than the batch's is broken. Never throws.
 */
export function parseLine(raw: RawLine, kind: LineKind = "chat"): BatchLine | BrokenLine {
  const line = readObject(raw);
  if ("problem" in line) return line;
  const { id, fields } = line;
  const body = kind === "chat" ? readBody(fields) : readEmbeddingBody(fields);
  if (typeof body === "string") return brokenLine(raw, body, id);
  const request = kind === "chat" ? toChatRequest(body) : toEmbeddingRequest(body);
  if (typeof request === "string") return brokenLine(raw, request, id);
  return { kind: "line", number: raw.number, id, request, textLength: line.textLength };
}

export function brokenLine({ number }: RawLine, problem: string, id = `line-${number}`): BrokenLine {
  return { kind: "broken", number, id, problem };
}

/** The object that a line of JSONL is, with its id: its own, or one by its number. */
export function readObject(
  raw: RawLine,
): { readonly id: string; readonly fields: Fields; readonly textLength: number } | BrokenLine {
  if ("problem" in raw) return brokenLine(raw, raw.problem);
  let value: unknown;
  try {
    value = JSON.parse(raw.text);
  } catch (error) {
    return brokenLine(raw, `not valid JSON: ${(error as Error).message}`);
  }
  if (!isFields(value)) return brokenLine(raw, "not a JSON object");
  const id = readId(value) ?? `line-${raw.number}`;
  if (typeof id !== "string") return brokenLine(raw, id.problem);
  return { id, fields: value, textLength: raw.text.length };
}

/** custom_id ?? id; undefined when neither is given. */
function readId(line: Fields): string | { problem: string } | undefined {
  const name = line.custom_id == null ? "id" : "custom_id";
  const value = line[name];
  if (value == null) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value === "string" && value !== "") return value;
  return { problem: `${name} must be a text that is not empty` };
}

/** The wire fields of the request with `messages` among them, or the reason why there is none. */
function readBody(line: Fields): Fields | string {
  if (line.body !== undefined) return readEnvelope(line);
  const other = otherKind(line);
  if (other !== undefined) return other;
  if (line.messages !== undefined) return withoutEnvelope(line);
  if (typeof line.prompt === "string") {
    return { ...withoutEnvelope(line), messages: [{ role: "user", content: line.prompt }] };
  }
  if (line.prompt !== undefined) return "prompt must be a text";
  return "has neither body, messages nor prompt";
}

/** The fields of a request for vectors, or the reason why there is none. */
function readEmbeddingBody(line: Fields): Fields | string {
  const { body, method, url } = line;
  if (url !== undefined && (typeof url !== "string" || !EMBEDDINGS_PATH.test(url))) {
    return typeof url === "string" && CHAT_PATH.test(url)
      ? CHAT_REFUSED
      : `url ${JSON.stringify(url)} is not supported: this scope runs /v1/embeddings`;
  }
  if (method !== undefined && method !== "POST") return `method ${JSON.stringify(method)} is not supported: use POST`;
  const fields = body === undefined ? withoutEnvelope(line) : body;
  if (!isFields(fields)) return "body must be an object";
  if (fields.input !== undefined) return fields;
  if (fields.messages !== undefined || line.prompt !== undefined) return CHAT_REFUSED;
  return body === undefined ? "has neither body nor input" : "body has no input";
}

const CHAT_REFUSED = "is a chat line, and the scope is one for embeddings: choose one without BATCH_SIZE by --scope";

function withoutEnvelope(line: Fields): Fields {
  return Object.fromEntries(Object.entries(line).filter(([name]) => !ENVELOPE.has(name)));
}

function readEnvelope(line: Fields): Fields | string {
  const { body, method, url } = line;
  if (!isFields(body)) return "body must be an object";
  if (typeof url === "string" && EMBEDDINGS_PATH.test(url)) return EMBEDDING_REFUSED;
  if (url !== undefined && (typeof url !== "string" || !CHAT_PATH.test(url))) {
    return `url ${JSON.stringify(url)} is not supported: batch runs /v1/chat/completions`;
  }
  if (method !== undefined && method !== "POST") return `method ${JSON.stringify(method)} is not supported: use POST`;
  return otherKind(body) ?? (body.messages === undefined ? "body has no messages" : body);
}

const EMBEDDING_REFUSED = "is an embedding line, and the scope is one for chat: choose one with BATCH_SIZE by --scope";

function otherKind(fields: Fields): string | undefined {
  if (fields.messages !== undefined) return undefined;
  if (typeof fields.url === "string" && EMBEDDINGS_PATH.test(fields.url)) return EMBEDDING_REFUSED;
  if (fields.input !== undefined) return EMBEDDING_REFUSED;
  if (fields.image !== undefined) return "OCR lines are not supported: batch runs chat lines only";
  return undefined;
}

function toChatRequest(body: Fields): ChatRequest | string {
  const problem = messagesProblem(body.messages);
  if (problem !== undefined) return problem;
  const { model } = body;
  if (model != null && typeof model !== "string") return "model must be a text";
  const { sampling, extra } = sortFields(body);
  return {
    messages: body.messages as readonly ChatMessage[],
    ...(model == null || model === "" ? {} : { model }),
    ...(sampling === undefined ? {} : { sampling }),
    ...(Array.isArray(body.tools) ? { tools: body.tools } : {}),
    ...(body.tool_choice == null ? {} : { toolChoice: body.tool_choice }),
    ...(body.response_format == null ? {} : { responseFormat: body.response_format }),
    ...(extra === undefined ? {} : { extraBody: extra }),
  };
}

function messagesProblem(messages: unknown): string | undefined {
  if (!Array.isArray(messages)) return "messages must be a list";
  if (messages.length === 0) return "messages is empty";
  const wrong = messages.findIndex((message) => !isFields(message) || typeof message.role !== "string");
  return wrong < 0 ? undefined : `messages[${wrong}] must be an object with a role`;
}

const NAMED = new Set(["model", "messages", "tool_choice", "response_format"]);

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
