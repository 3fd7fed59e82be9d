import type { HttpHeaders } from "../headers.js";

/** Decides what a 2xx body is. A server may answer JSON to a stream request and a stream to a plain one. */

export type BodyKind = "json" | "sse" | "html" | "blank";

const OPENING_BRACE = 0x7b;
const DATA_FIELD = Buffer.from("data:");
const BLANK = /^[\s\ufeff]*/;
const SSE_FIELDS = ["data:", "event:", "id:", "retry:", ":"];
/** Enough to see the first field name; a longer look isn't needed. */
const LOOK_BYTES = 256;

/** First byte first, content type where it leaves a doubt. "blank": nothing but white space yet. */
export function bodyKind(chunk: Buffer, headers: HttpHeaders): BodyKind {
  if (chunk[0] === OPENING_BRACE) return "json";
  if (
    chunk.length >= DATA_FIELD.length &&
    chunk.compare(DATA_FIELD, 0, DATA_FIELD.length, 0, DATA_FIELD.length) === 0
  ) {
    return "sse";
  }
  const isEventStream = headers.get("content-type")?.toLowerCase().includes("event-stream") === true;
  const text = chunk.toString("utf8", 0, LOOK_BYTES).replace(BLANK, "");
  const first = text[0];
  if (first === "{" || first === "[") return "json";
  if (first === "<") return "html";
  if (first === undefined) return "blank";
  if (isEventStream) return "sse";
  return SSE_FIELDS.some((field) => text.startsWith(field) || field.startsWith(text)) ? "sse" : "json";
}
