import { HARMLESS_UNITS, parsedBytes } from "../json-weight.js";

/** Heap that one layout may take: about 1,000 pages as MinerU writes them. */
export const MAX_LAYOUT_HEAP_BYTES = 512 * 1_024 * 1_024;

const BYTE_ORDER_MARK = 0xfeff;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NOT_FINITE = /-?(?:NaN|Infinity)/g;

/** Where the text that begins behind `from` ends: behind its closing quote, or at the end of everything. */
function endOfText(json: string, from: number): number {
  for (let at = from; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    if (unit === BACKSLASH) at += 1;
    else if (unit === QUOTE) return at + 1;
  }
  return json.length;
}

/** Python writes numbers that JSON hasn't got; outside of texts they become null. Linear. */
function withoutNotFinite(json: string): string {
  const parts: string[] = [];
  let from = 0;
  while (from < json.length) {
    const quote = json.indexOf('"', from);
    const textAt = quote === -1 ? json.length : quote;
    parts.push(json.slice(from, textAt).replace(NOT_FINITE, "null"));
    from = quote === -1 ? json.length : endOfText(json, textAt + 1);
    parts.push(json.slice(textAt, from));
  }
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
  const mended = withoutNotFinite(json);
  if (mended === json) return undefined;
  try {
    return JSON.parse(mended);
  } catch {
    return undefined;
  }
}
