import { isAscii } from "node:buffer";

/**
 * JSON made to fill the memory: `{},` is 3 bytes on the wire and 64 in the heap. What a text would become is counted
 * before it is parsed, in one linear pass over those texts alone that are large enough to matter.
 */

/** Shorter texts can't become more than about 1.5 MiB, so nothing is counted. */
export const HARMLESS_UNITS = 65_536;
/** Heap that one parsed text may take: 6 MiB of log probabilities, 16 MiB of plain text. */
export const MAX_PARSED_BYTES = 32 * 1_024 * 1_024;
/** Deeper values can be parsed, but neither compared nor written again: `JSON.stringify` fails from about 5,000 levels on. */
export const MAX_JSON_DEPTH = 1_000;

/** Smaller bodies are no danger, whatever they hold. */
const HARMLESS_BYTES = 8 * 1_024 * 1_024;

/**
 * Bytes that the text of a large body would take in memory: one letter beyond ASCII doubles those of all the others.
 * Counted before it is decoded; the body's own length for small ones.
 */
export function textBytes(body: Buffer): number {
  if (body.length <= HARMLESS_BYTES || isAscii(body)) return body.length;
  let units = 0;
  for (const byte of body) units += byte < 0x80 || (byte >= 0xc0 && byte < 0xf0) ? 1 : byte >= 0xf0 ? 2 : 0;
  return 2 * units;
}

/** Bytes in V8's heap on 64 bits, measured on Node 20. */
const OBJECT = 56;
const LIST = 48;
const SLOT = 8;
const TEXT = 24;
const KEY = 16;
/** An object with many keys is kept as a hash table, and each of the keys for itself. */
const KEYS_PER_OBJECT = 64;
const TABLE_KEY = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Where the text that begins behind `from` ends: its closing quote, or the end of everything. */
function endOfText(json: string, from: number): number {
  let end = json.indexOf('"', from);
  while (end !== -1) {
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === BACKSLASH && end - 1 - slashes >= from) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = json.indexOf('"', end + 1);
  }
  return json.length;
}

/** About how many bytes of heap `JSON.parse(json)` would take; Infinity when it is nested too deeply. Linear, never throws. */
export function parsedBytes(json: string): number {
  let bytes = 0;
  let depth = 0;
  let keys = 0;
  let objects = 0;
  for (let at = 0; at < json.length; at += 1) {
    switch (json.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfText(json, at + 1);
        bytes += TEXT + end - at;
        at = end;
        break;
      }
      case 0x7b: // {
        objects += 1;
        bytes += OBJECT;
        depth += 1;
        if (depth > MAX_JSON_DEPTH) return Number.POSITIVE_INFINITY;
        break;
      case 0x5b: // [
        bytes += LIST;
        depth += 1;
        if (depth > MAX_JSON_DEPTH) return Number.POSITIVE_INFINITY;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth -= 1;
        break;
      case 0x3a: // :
        keys += 1;
        // The text before it was the key, which equal objects share.
        bytes += KEY - TEXT;
        break;
      case 0x2c: // ,
        bytes += 2 * SLOT;
        break;
    }
  }
  return bytes + Math.max(0, keys - KEYS_PER_OBJECT * objects) * TABLE_KEY;
}

/** Would parsing this text fill the memory? Costs nothing for texts of ordinary length. */
export function isTooHeavy(json: string): boolean {
  return json.length > HARMLESS_UNITS && parsedBytes(json) > MAX_PARSED_BYTES;
}

/** The value; undefined for what is no JSON, or would fill the memory. Never throws. */
export function parseJson(json: string): unknown {
  if (isTooHeavy(json)) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
