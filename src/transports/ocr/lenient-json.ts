import { HARMLESS_UNITS, parsedBytes } from "../json-weight.js";

/** Heap that one layout may take: about 1,000 pages as MinerU writes them. */
export const MAX_LAYOUT_HEAP_BYTES = 512 * 1_024 * 1_024;

const BYTE_ORDER_MARK = 0xfeff;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const CAPITAL_I = 0x49;
const CAPITAL_N = 0x4e;

/** Where the text that begins behind `from` ends: behind its closing quote, or at the end of everything. */
function endOfText(json: string, from: number): number {
  for (let at = from; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    if (unit === BACKSLASH) at += 1;
    else if (unit === QUOTE) return at + 1;
  }
  return json.length;
}

/** How long a number that JSON hasn't got is here, without its sign; 0 = there is none. */
function notFiniteLength(json: string, at: number): number {
  if (json.startsWith("NaN", at)) return "NaN".length;
  return json.startsWith("Infinity", at) ? "Infinity".length : 0;
}

/** Python writes numbers that JSON hasn't got; outside of texts they become null. One pass, copied only where one stands. */
function withoutNotFinite(json: string): string {
  const parts: string[] = [];
  let copied = 0;
  for (let at = 0; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) at = endOfText(json, at + 1) - 1;
    else if (unit === CAPITAL_N || unit === CAPITAL_I) {
      const length = notFiniteLength(json, at);
      if (length === 0) continue;
      parts.push(json.slice(copied, json.charCodeAt(at - 1) === MINUS ? at - 1 : at), "null");
      at += length - 1;
      copied = at + 1;
    }
  }
  parts.push(json.slice(copied));
  return parts.join("");
}

/** The JSON of a layout, with NaN and Infinity as null; undefined = it is none, or would fill the memory. Never throws. */
export function parseLayoutJson(text: string): unknown {
  const json = text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
  if (json.length > HARMLESS_UNITS && parsedBytes(json) > MAX_LAYOUT_HEAP_BYTES) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return parseMended(json);
  }
}

function parseMended(json: string): unknown {
  if (!json.includes("NaN") && !json.includes("Infinity")) return undefined;
  try {
    return JSON.parse(withoutNotFinite(json));
  } catch {
    return undefined;
  }
}
