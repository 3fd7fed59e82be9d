import { isAscii } from "node:buffer";
import { parseJson } from "../json-weight.js";

/**
 * A large answer of vectors in base64 is nearly all of it a few long texts. They are taken out of the bytes, so that
 * neither a text of the whole answer nor its parsed copy is made: that takes as long as all the rest together.
 *
 * Only what looks exactly as expected is read so. Whatever is unusual, and every problem, is left to the plain way, which
 * reads the same bytes as JSON.
 */

/** Below this the plain way is as fast. */
const LEAST_BYTES = 32_768;
/** A shorter text may be anything; no vector is that short. */
const LEAST_LETTERS = 64;

const KEY = Buffer.from('"embedding"');
const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = "\\";
const MARK = "#";

export interface Spans {
  /** The JSON with a mark in place of each long text. */
  readonly value: unknown;
  /** The vector in whose place `mark` stands; each is given once. */
  vectorOf(mark: unknown): Float32Array | undefined;
  /** How many were taken out. */
  readonly count: number;
}

/**
 * undefined = to be read the plain way. `decode` is called at once: a text that waits for the others would outlive the
 * young heap. It gives a string for what is no vector.
 */
export function takeSpans(bytes: Buffer, decode: (text: string) => Float32Array | string): Spans | undefined {
  if (bytes.length < LEAST_BYTES || !isAscii(bytes)) return undefined;
  const vectors = new Map<unknown, Float32Array>();
  let skeleton = "";
  let from = 0;
  let key = bytes.indexOf(KEY);
  while (key !== -1) {
    const colon = afterSpace(bytes, key + KEY.length);
    // `"object": "embedding"` is no key.
    if (bytes[colon] === COLON) {
      const quote = afterSpace(bytes, colon + 1);
      const end = bytes[quote] === QUOTE ? bytes.indexOf(QUOTE, quote + 1) : -1;
      if (end - quote <= LEAST_LETTERS) return undefined;
      const vector = decode(bytes.toString("latin1", quote + 1, end));
      if (typeof vector === "string") return undefined;
      const mark = `${MARK}${vectors.size}`;
      vectors.set(mark, vector);
      skeleton += bytes.toString("latin1", from, quote + 1) + mark;
      from = end;
    }
    key = bytes.indexOf(KEY, Math.max(from, key + KEY.length));
  }
  skeleton += bytes.toString("latin1", from);
  // An escape could make a key or a mark of something else.
  if (vectors.size === 0 || skeleton.includes(BACKSLASH)) return undefined;
  const value = parseJson(skeleton);
  if (value === undefined) return undefined;
  return {
    value,
    count: vectors.size,
    vectorOf(mark) {
      const vector = vectors.get(mark);
      // Who names one twice has more keys than it seems.
      vectors.delete(mark);
      return vector;
    },
  };
}

function afterSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}
