import { parseJson } from "../json-weight.js";

/**
 * Reads what the other side said about a failure, whatever shape it chose (reference-providers §2.0). Works on the
 * parsed, unabridged body; never throws; looks one level into wrapped errors. Texts are not cut here: that comes after
 * the redaction, since half a key at an edge would no longer be recognised.
 */

type Fields = Record<string, unknown>;

export interface Fault {
  /** `code`, `type` and `status` words, lower case, the innermost error's first. */
  readonly codes: readonly string[];
  /** First human text, unabridged and unredacted; "" when there is none. */
  readonly message: string;
  readonly param?: string;
  /** false: JSON, but not an error of a chat API (a web framework's "Not Found"). */
  readonly isApiError: boolean;
}

/** Some servers wrap their one error in a list. More than this is no wrapping. */
const MAX_WRAPPING_LISTS = 4;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function codeWord(value: unknown): string[] {
  if (typeof value === "number") return [String(value)];
  return typeof value === "string" && value !== "" && value.length <= 200 ? [value.toLowerCase()] : [];
}

function codesOf(node: Fields): string[] {
  return [node.code, node.type, node.status, node.error_code, node.errorCode].flatMap(codeWord);
}

/** The first element of a list in a list…; undefined for an empty one, and for one that is nested without end. */
function unlisted(body: unknown): unknown {
  let inner = body;
  for (let lists = 0; Array.isArray(inner); lists += 1) {
    if (lists === MAX_WRAPPING_LISTS) return undefined;
    inner = inner[0];
  }
  return inner;
}

/** One entry of a validation list: "body.messages: Field required". */
function entryText(entry: unknown): string {
  if (typeof entry === "string") return entry;
  if (!isFields(entry)) return "";
  const text = [entry.msg, entry.message, entry.detail].find((value) => typeof value === "string") ?? "";
  const place = Array.isArray(entry.loc) ? entry.loc.filter((part) => typeof part !== "object").join(".") : "";
  return place === "" ? String(text) : `${place}: ${text}`;
}

/** Human text of a string, a list of entries, or an object with a message. */
function humanText(value: unknown): string {
  if (typeof value === "string") return value.trim();
  if (Array.isArray(value)) return value.slice(0, 20).map(entryText).filter(Boolean).join("; ");
  return isFields(value) ? entryText(value) : "";
}

const MESSAGE_FIELDS = [
  "message",
  "msg",
  "error_msg",
  "errorMsg",
  "status_msg",
  "detail",
  "errors",
  "title",
  "error_description",
];

function messageOf(node: Fields): string {
  for (const field of MESSAGE_FIELDS) {
    const text = humanText(node[field]);
    if (text !== "") return text;
  }
  return "";
}

function paramOf(node: Fields): string | undefined {
  return typeof node.param === "string" && node.param !== "" ? node.param : undefined;
}

/** An error inside this one, as JSON text or object: an aggregator's `metadata.raw`, or a message that is JSON itself. */
function wrapped(node: Fields): unknown {
  const raw = isFields(node.metadata) ? node.metadata.raw : undefined;
  if (isFields(raw)) return raw;
  for (const text of [raw, node.message]) {
    if (typeof text === "string" && /^\s*[{[]/.test(text)) return parseJson(text);
  }
  return undefined;
}

function readNode(node: Fields, outer: Fields, depth: number): Fault {
  const inner = depth > 0 ? readFault(wrapped(node), depth - 1) : undefined;
  const own = messageOf(node);
  const outerCodes = outer === node ? [] : codesOf(outer).filter((code) => code !== "error");
  const param = inner?.param ?? paramOf(node);
  return {
    codes: [...(inner?.codes ?? []), ...codesOf(node), ...outerCodes],
    message: inner?.message || own,
    ...(param === undefined ? {} : { param }),
    isApiError: true,
  };
}

/** A MiniMax-style envelope: `base_resp.status_code` other than 0. */
function baseResponse(body: Fields): Fields | undefined {
  const response = body.base_resp;
  if (!isFields(response)) return undefined;
  const status = Number(response.status_code ?? 0);
  return Number.isFinite(status) && status !== 0 ? { ...response, code: status } : undefined;
}

/** The error object of a body that carries one, in any of the known shapes. */
function errorNode(body: Fields): Fields | string | undefined {
  const { error } = body;
  if (typeof error === "string" && error !== "") return error;
  if (isFields(error) && Object.keys(error).length > 0) return error;
  if (Array.isArray(error) && error.length > 0) return { message: humanText(error) };
  if (body.object === "error") return body;
  const envelope = baseResponse(body);
  if (envelope !== undefined) return envelope;
  const groq = body.x_groq;
  if (isFields(groq) && groq.error) return isFields(groq.error) ? groq.error : String(groq.error);
  return undefined;
}

/** The fault of an answer whose status already says that it failed; undefined when the body isn't JSON. */
export function readFault(listed: unknown, depth = 1): Fault | undefined {
  const body = unlisted(listed);
  if (typeof body === "string") return { codes: [], message: body.trim(), isApiError: false };
  if (!isFields(body)) return undefined;
  const node = errorNode(body);
  if (typeof node === "string") return { codes: codesOf(body), message: node, isApiError: true };
  if (node !== undefined) return readNode(node, body, depth);
  const codes = codesOf(body);
  const message = messageOf(body);
  const isApiError = message !== "" && typeof body.detail === "undefined" && codes.length > 0;
  const param = paramOf(body);
  return { codes, message, ...(param === undefined ? {} : { param }), isApiError };
}

function choiceError(body: Fields): Fault | undefined {
  if (!Array.isArray(body.choices)) return undefined;
  for (const choice of body.choices) {
    if (!isFields(choice)) continue;
    const { error } = choice;
    if (typeof error === "string" && error !== "") return { codes: [], message: error, isApiError: true };
    if (isFields(error) && Object.keys(error).length > 0) return readNode(error, error, 1);
  }
  return undefined;
}

/** A code that says "this worked": new-api and SiliconFlow wrap even good answers. */
const GOOD_CODES = new Set(["0", "200", "20000", "success", "ok"]);

/** Fields beside an absent answer that look like a refusal: `{code, message}`, `{detail}`, `{success: false, errors}`. */
function flatFault(body: Fields): Fault | undefined {
  if (body.choices !== undefined && body.choices !== null) return undefined;
  const fault = readFault(body);
  if (fault === undefined || fault.message === "") return undefined;
  const refuses =
    body.success === false || body.detail !== undefined || fault.codes.some((code) => !GOOD_CODES.has(code));
  return refuses && body.usage === undefined && body.id === undefined ? { ...fault, isApiError: true } : undefined;
}

/** The error that hides in a 200 body or in one stream frame; undefined for an ordinary one. Cheap for ordinary frames. */
export function findEmbeddedFault(body: unknown): Fault | undefined {
  const inner = Array.isArray(body) && body.length === 1 ? unlisted(body) : body;
  if (!isFields(inner)) return undefined;
  const node = errorNode(inner);
  if (typeof node === "string") return { codes: codesOf(inner), message: node, isApiError: true };
  if (node !== undefined) return readNode(node, inner, 1);
  return choiceError(inner) ?? flatFault(inner);
}

/** An event named "error" is one, also when its data has none of the usual shapes. */
export function namedFault(frame: unknown): Fault {
  if (!isFields(frame)) return { codes: [], message: humanText(frame), isApiError: true };
  return { codes: codesOf(frame), message: messageOf(frame), isApiError: true };
}
