import { createHash } from "node:crypto";

/** Only a list of parts can hold binary; as JSON text this cannot occur inside a string. */
const LIST_OF_PARTS = '"content":[';
/** What the parts must contain then; a text may contain it too. */
const MAYBE_BINARY = /"data:|"input_audio"|"file_data"|"base64"/i;
const DATA_URL = /^data:([^,;]*)[^,]*,/i;
const ALREADY_DIGESTED = /^sha256:[0-9a-f]{64} /;
/** Binary parts lie two to four levels deep; more is only walked to a bound that no stack minds. */
const MAX_DEPTH = 64;

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What stands in telemetry for something binary: `sha256:<hash> <mime> <number of bytes>`. */
export function describeBytes(bytes: Uint8Array, mime: string): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")} ${mime} ${bytes.length}`;
}

function decodePercent(text: string): Uint8Array {
  try {
    return Buffer.from(decodeURIComponent(text), "utf8");
  } catch {
    return Buffer.from(text, "utf8");
  }
}

/** The digest of a `data:` URL, or undefined when the text is none. */
function digestDataUrl(text: string): string | undefined {
  const header = DATA_URL.exec(text);
  if (header === null) return undefined;
  const body = text.slice(header[0].length);
  const isBase64 = /;\s*base64,$/i.test(header[0]);
  return describeBytes(isBase64 ? Buffer.from(body, "base64") : decodePercent(body), header[1] || "text/plain");
}

/** The MIME type of bare base64 in a field, by what stands beside it; undefined = the field holds no bare base64. */
function bareBase64Mime(field: string, owner: Fields, ownerName: string): string | undefined {
  if (field === "file_data") return "application/octet-stream";
  if (field !== "data") return undefined;
  if (ownerName === "input_audio") return typeof owner.format === "string" ? `audio/${owner.format}` : "audio/*";
  if (owner.type !== "base64") return undefined;
  return typeof owner.media_type === "string" ? owner.media_type : "application/octet-stream";
}

function digestString(text: string, field: string, owner: Fields, ownerName: string): string | undefined {
  const fromUrl = digestDataUrl(text);
  if (fromUrl !== undefined) return fromUrl;
  const mime = bareBase64Mime(field, owner, ownerName);
  if (mime === undefined || ALREADY_DIGESTED.test(text)) return undefined;
  return describeBytes(Buffer.from(text, "base64"), mime);
}

/** Replaces binary strings inside a freshly parsed content part; says whether there was one. */
function digestFields(owner: Fields, ownerName: string, depth: number): boolean {
  let changed = false;
  for (const [field, value] of Object.entries(owner)) {
    if (typeof value === "string") {
      const digested = field === "text" ? undefined : digestString(value, field, owner, ownerName);
      if (digested === undefined) continue;
      owner[field] = digested;
      changed = true;
    } else if (digestNested(value, field, depth + 1)) changed = true;
  }
  return changed;
}

function digestNested(value: unknown, name: string, depth: number): boolean {
  if (depth > MAX_DEPTH) return false;
  if (isFields(value)) return digestFields(value, name, depth);
  if (!Array.isArray(value)) return false;
  let changed = false;
  for (const element of value) if (digestNested(element, name, depth + 1)) changed = true;
  return changed;
}

function digestMessage(message: unknown): boolean {
  return isFields(message) && Array.isArray(message.content) && digestNested(message.content, "content", 0);
}

/**
 * The messages' JSON with every binary part replaced by `sha256:<hash of its bytes> <mime> <number of bytes>`: `data:` URLs
 * in content parts, `input_audio.data`, `file.file_data` and base64 sources. Texts are kept, also those that only look
 * like a `data:` URL. Telemetry and the cache key share this one function (spec 05, column 9).
 *
 * @param messagesJson exactly `JSON.stringify(messages)`; when nothing is binary the very same string is returned
 */
export function digestBinaryParts(messagesJson: string): string {
  if (!messagesJson.includes(LIST_OF_PARTS) || !MAYBE_BINARY.test(messagesJson)) return messagesJson;
  const messages: unknown = JSON.parse(messagesJson);
  if (!Array.isArray(messages)) return messagesJson;
  let changed = false;
  for (const message of messages) if (digestMessage(message)) changed = true;
  return changed ? JSON.stringify(messages) : messagesJson;
}
