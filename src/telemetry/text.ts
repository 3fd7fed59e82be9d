import { givenKind } from "../domain/given-value.js";

/** Most bytes of text one column keeps (spec 05). */
export const MAX_COLUMN_BYTES = 64 * 1024;

/** UTF-16 units kept from the end of an over-long text: errors and JSON carry what matters last. */
const TAIL_UNITS = 4_096;
const MARKER_BYTES = 64;
const MAX_BYTES_PER_UNIT = 3;

interface WellFormedString {
  isWellFormed(): boolean;
  toWellFormed(): string;
}

/** Up to here looking at every unit costs less than two calls into the engine: ids, names, codes. */
const SHORT_UNITS = 64;
const FIRST_SURROGATE = 0xd800;

function isPlainAndShort(text: string): boolean {
  if (text.length > SHORT_UNITS) return false;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit === 0 || unit >= FIRST_SURROGATE) return false;
  }
  return true;
}

/** Replaces NUL and lone surrogates, which stores refuse or store wrongly, by U+FFFD. Throws TypeError for what is no text. */
export function cleanText(text: string): string {
  if (typeof text !== "string") throw new TypeError(`what should be a text is ${givenKind(text)}`);
  if (isPlainAndShort(text)) return text;
  const wellFormed = text as string & WellFormedString;
  const safe = wellFormed.isWellFormed() ? text : wellFormed.toWellFormed();
  return safe.includes("\0") ? safe.replaceAll("\0", "\uFFFD") : safe;
}

const encoder = new TextEncoder();
const scratch = new Uint8Array(MAX_COLUMN_BYTES);

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/**
 * Keeps head and tail of a text over 64 KiB of UTF-8, with a marker that counts what is missing.
 * `alreadyOmitted` = units the caller cut out of the middle before.
 */
export function limitText(text: string, alreadyOmitted = 0): string {
  if (fits(text)) return text;
  let tailStart = text.length - TAIL_UNITS;
  if (isLowSurrogate(text.charCodeAt(tailStart))) tailStart += 1;
  const tail = text.slice(tailStart);
  const headBytes = MAX_COLUMN_BYTES - Buffer.byteLength(tail) - MARKER_BYTES;
  const { read } = encoder.encodeInto(text.slice(0, MAX_COLUMN_BYTES), scratch.subarray(0, headBytes));
  return `${text.slice(0, read)}…(${tailStart - read + alreadyOmitted} chars omitted)…${tail}`;
}

function fits(text: string): boolean {
  if (text.length * MAX_BYTES_PER_UNIT <= MAX_COLUMN_BYTES) return true;
  return text.length <= MAX_COLUMN_BYTES && Buffer.byteLength(text) <= MAX_COLUMN_BYTES;
}

/** Longer than any secret: one that crosses a cut is still found whole. */
const SECRET_MARGIN = 8_192;

/** Applies a redactor, then the limit, without scanning more of a huge text than the column can keep. */
export function redactText(text: string, redact: (text: string) => string): string {
  const headUnits = MAX_COLUMN_BYTES + SECRET_MARGIN;
  const tailUnits = TAIL_UNITS + SECRET_MARGIN;
  if (text.length <= headUnits + tailUnits) return limitText(redact(text));
  const middle = text.length - headUnits - tailUnits;
  const head = redact(text.slice(0, headUnits));
  const tail = redact(text.slice(text.length - tailUnits));
  return limitText(head + tail, middle);
}
