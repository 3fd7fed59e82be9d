import { CHAT_FIELDS, chatLine } from "./kinds/chat-line.js";
import { EMBEDDING_FIELDS, embeddingLine } from "./kinds/embedding-line.js";
import { type Fields, isFields } from "./kinds/fields.js";
import type { LineKind, LineRequest } from "./kinds/kinds.js";
import { OCR_FIELDS, ocrLine } from "./kinds/ocr-line.js";

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

const CHAT_PATH = /\/chat\/completions\/?$/;
const EMBEDDINGS_PATH = /\/embeddings\/?$/;
const OCR_PATH = /\/ocr\/(text|layout)\/?$/;

/** What a line without `body` holds besides its request; these names never reach the wire. */
const ENVELOPE = new Set(["custom_id", "id", "method", "url", "prompt"]);

/** What a line may ask with: one of them, since all others would silently go unheard. */
const REQUESTS = ["messages", "prompt", "input", "image"] as const;

/** Reads one line of IN (spec 08): OpenAI Batch, or `{id?, …}` with messages, prompt, input or image. Never throws. */
export function parseLine(raw: RawLine): BatchLine | BrokenLine {
  const line = readObject(raw);
  if ("problem" in line) return line;
  const request = readRequest(line.fields);
  if (typeof request === "string") return brokenLine(raw, request, line.id);
  return { kind: "line", number: raw.number, id: line.id, request, textLength: line.textLength };
}

export function brokenLine({ number }: RawLine, problem: string, id = `line-${number}`): BrokenLine {
  return { kind: "broken", number, id, problem };
}

export const PLAIN_TEXT = "not valid JSON, but plain text";

/** V8's words end in what was said already. */
const whyInvalid = (error: unknown): string => (error as Error).message.replace(/ is not valid JSON$/, "");

/** The object that a line of JSONL is, with its id: its own, or one by its number. */
export function readObject(
  raw: RawLine,
): { readonly id: string; readonly fields: Fields; readonly textLength: number } | BrokenLine {
  if ("problem" in raw) return brokenLine(raw, raw.problem);
  let value: unknown;
  try {
    value = JSON.parse(raw.text);
  } catch (error) {
    return brokenLine(raw, raw.text.startsWith("{") ? `not valid JSON: ${whyInvalid(error)}` : PLAIN_TEXT);
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

/** What the line asks for, or the reason why that can't be told. */
function readRequest(line: Fields): LineRequest | string {
  if (line.body !== undefined) return withNothingBeside(line, readEnvelope(line));
  const asked = REQUESTS.filter((name) => line[name] != null);
  if (asked.length > 1) return `has ${asked.join(" and ")}: only one of them can be asked for`;
  if (line.messages !== undefined) return chatLine(withoutEnvelope(line));
  if (typeof line.prompt === "string") {
    return chatLine({ ...withoutEnvelope(line), messages: [{ role: "user", content: line.prompt }] });
  }
  if (line.prompt !== undefined) return "prompt must be a text";
  if (line.input !== undefined) return embeddingLine(withoutEnvelope(line));
  if (line.image !== undefined) return ocrLine(withoutEnvelope(line));
  return "has neither body, messages, prompt, input nor image";
}

function withoutEnvelope(line: Fields): Fields {
  return Object.fromEntries(Object.entries(line).filter(([name]) => !ENVELOPE.has(name)));
}

const FIELDS: Readonly<Record<LineKind, ReadonlySet<string>>> = {
  chat: CHAT_FIELDS,
  embedding: EMBEDDING_FIELDS,
  ocr: OCR_FIELDS,
};

/** What stands beside `body` is the user's own, unless it looks like a part of it. */
function withNothingBeside(line: Fields, request: LineRequest | string): LineRequest | string {
  if (typeof request === "string") return request;
  const beside = Object.keys(line).find((name) => name !== "user" && FIELDS[request.kind].has(name));
  return beside === undefined
    ? request
    : `${JSON.stringify(beside)} stands beside body, where it is not heard: put it into body`;
}

function readEnvelope(line: Fields): LineRequest | string {
  const { body, method, url } = line;
  if (!isFields(body)) return "body must be an object";
  if (method !== undefined && method !== "POST") return `method ${JSON.stringify(method)} is not supported: use POST`;
  if (url === undefined) return readBody(body);
  if (typeof url === "string" && CHAT_PATH.test(url)) return chatBody(body);
  if (typeof url === "string" && EMBEDDINGS_PATH.test(url)) return embeddingLine(body);
  const ocr = typeof url === "string" ? OCR_PATH.exec(url)?.[1] : undefined;
  if (ocr !== undefined) {
    const layout = ocr === "layout";
    if (body.layout != null && body.layout !== layout) return `layout contradicts the url ${JSON.stringify(url)}`;
    return ocrLine({ ...body, layout });
  }
  return `url ${JSON.stringify(url)} is not supported: batch runs /v1/chat/completions, /v1/embeddings, /v1/ocr/text and /v1/ocr/layout`;
}

/** A body without an address says by itself what it is. */
function readBody(body: Fields): LineRequest | string {
  if (body.messages === undefined && body.input !== undefined) return embeddingLine(body);
  if (body.messages === undefined && body.image !== undefined) return ocrLine(body);
  return chatBody(body);
}

function chatBody(body: Fields): LineRequest | string {
  return body.messages === undefined ? "body has no messages" : chatLine(body);
}
