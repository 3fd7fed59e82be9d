import { createRequire } from "node:module";
import { stringEnd } from "./scan.js";
import { type Parsed, parseJson } from "./strict-json.js";

/**
 * Makes JSON of what is nearly JSON. Only for a text whose brackets are closed: what was cut is never completed.
 * Nothing may be left out or made up: an ellipsis or an empty place stands for missing values, NaN for no value at all.
 */

/** The repairer is slightly quadratic: 64 K characters of its worst take 0.3 s, twice as many four times that. */
const MAX_REPAIR_UNITS = 65_536;

export interface Repaired {
  readonly parsed: Parsed;
  /** NaN or Infinity was read as null. */
  readonly hadNaN: boolean;
}

/** Between texts: values left out (an ellipsis, nothing at all), and words that are no numbers. */
const OUTSIDE = /\.{3}|…|[:,[]\s*(?=,)|:\s*(?=[}\]])|[-+]?\b(?:NaN|Infinity)\b/g;
/** Escapes that JSON has, the quote of other languages, and backslashes that escape nothing. */
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\'|\\/g;
const CONTROL = /\p{Cc}/u;
const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (unit) => ESCAPES[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

type Repairer = (text: string) => string;
let repairer: Repairer | undefined;

function repairerOf(): Repairer {
  repairer ??= (createRequire(import.meta.url)("jsonrepair") as { jsonrepair: Repairer }).jsonrepair;
  return repairer;
}

/** A text with its control characters escaped; a backslash that escapes nothing stays one, as in a path or a formula. */
function cleanText(text: string): string {
  const escaped = text.includes("\\")
    ? text.replace(ESCAPE, (pair) => (pair.length > 1 ? (pair === "\\'" ? "'" : pair) : "\\\\"))
    : text;
  return CONTROL.test(escaped) ? escapeControls(escaped) : escaped;
}

interface Cleaned {
  readonly text: string;
  readonly hadNaN: boolean;
  readonly leavesOut: boolean;
}

/** Line breaks in texts are the most common fault of all, and this much is linear, whatever the text. */
function clean(text: string): Cleaned {
  const pieces: string[] = [];
  let hadNaN = false;
  let leavesOut = false;
  const outside = (part: string): string =>
    part.replace(OUTSIDE, (token) => {
      if (/[NI]/.test(token)) hadNaN = true;
      else leavesOut = true;
      return "null";
    });
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote === -1 ? -1 : stringEnd(text, quote);
    if (end === -1) {
      pieces.push(outside(text.slice(at)));
      break;
    }
    const inside = text.slice(quote, end);
    pieces.push(outside(text.slice(at, quote)), cleanText(inside));
    at = end;
  }
  return { text: pieces.join(""), hadNaN, leavesOut };
}

/** Never throws. */
export function repairJson(text: string): Repaired {
  const { text: cleaned, hadNaN, leavesOut } = clean(text);
  if (leavesOut) return { parsed: { ok: false, problem: "values left out" }, hadNaN };
  const parsed = parseJson(cleaned);
  // With quotes out of order the word may stand in a text, which must not be changed.
  if (parsed.ok || hadNaN || text.length > MAX_REPAIR_UNITS) return { parsed, hadNaN };
  try {
    return { parsed: parseJson(repairerOf()(cleaned)), hadNaN };
  } catch {
    return { parsed, hadNaN };
  }
}
