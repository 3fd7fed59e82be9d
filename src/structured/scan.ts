/**
 * Where JSON may stand in a text that a model wrote: the outermost bracketed regions and fenced scalars. One pass; every
 * character is looked at a bounded number of times, whatever the text.
 */

export interface Region {
  readonly start: number;
  readonly end: number;
  /** It is what a code fence holds. */
  readonly fenced: boolean;
}

export interface Scan {
  readonly regions: readonly Region[];
  /** The text ends inside a document: nothing in it may be taken for the answer. */
  readonly cut: boolean;
}

const MARK = /[{[]|`{3,}|~{3,}/g;
const FENCE_HEADER = /[ \t]*[\w.+#-]{0,32}\s*/y;
/** A value without brackets must be all that its fence holds. */
const FENCED_SCALAR = /(?:-?\d[\d.eE+-]*|true|false|null)(?=\s*(?:`{3}|~{3}|$))/y;
const FENCE_END = /\s*(?:`{3}|~{3}|$)/y;
/** What may follow an opening bracket of JSON, or of what a repair makes JSON: else it is prose or code. */
const OBJECT_START = /\{\s*(?:["'“‘}]|\\"|\/[/*]|$|[\p{L}_$][\w$-]{0,64}\s{0,8}:(?!\/\/)|\d{1,20}\s{0,8}:)/uy;
const ARRAY_START =
  /\[\s*(?:["'“‘[{\]]|\\"|\/[/*]|$|[-+]?\.?\d|true\b|false\b|null\b|True\b|False\b|None\b|NaN\b|-?Infinity\b)/uy;

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const SLASH = 0x2f;
const STAR = 0x2a;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;

function matchesAt(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

const isOpening = (unit: number): boolean => unit === 0x7b || unit === 0x5b;
const isClosing = (unit: number): boolean => unit === 0x7d || unit === 0x5d;
const isBlank = (unit: number): boolean => unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
/** An apostrophe opens a text only where a value or a key may begin. */
const mayBegin = (unit: number): boolean => isOpening(unit) || unit === 0x2c || unit === 0x3a;

/** Index behind the closing quote; -1 = the text ends before it. */
export function stringEnd(text: string, start: number): number {
  const quote = text.charCodeAt(start);
  for (let at = start + 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === BACKSLASH) at += 1;
    else if (unit === quote) return at + 1;
  }
  return -1;
}

/** Index behind a comment that begins here; the start itself when none does, -1 when it doesn't end. */
function commentEnd(text: string, start: number): number {
  const next = text.charCodeAt(start + 1);
  if (next !== SLASH && next !== STAR) return start;
  const end = next === SLASH ? text.indexOf("\n", start) : text.indexOf("*/", start + 2);
  if (end === -1) return -1;
  return next === SLASH ? end : end + 2;
}

/** Index behind the bracket that closes the one at `start`; -1 = the text ends before it. */
export function regionEnd(text: string, start: number): number {
  let depth = 0;
  let previous = 0;
  for (let at = start; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE || (unit === APOSTROPHE && mayBegin(previous))) {
      const end = stringEnd(text, at);
      if (end === -1) return -1;
      at = end - 1;
    } else if (unit === SLASH) {
      const end = commentEnd(text, at);
      if (end === -1) return -1;
      if (end > at) at = end - 1;
    } else if (unit === BACKSLASH) at += 1;
    else if (isOpening(unit)) depth += 1;
    else if (isClosing(unit)) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
    if (!isBlank(unit)) previous = unit;
  }
  return -1;
}

function looksLikeJson(text: string, at: number): boolean {
  return matchesAt(text.charCodeAt(at) === BRACE ? OBJECT_START : ARRAY_START, text, at);
}

/** A text, number or word that fills its fence; null = none, -1 = a text that doesn't end. */
function fencedScalar(text: string, at: number): number | null {
  if (text.charCodeAt(at) !== QUOTE) return matchesAt(FENCED_SCALAR, text, at) ? FENCED_SCALAR.lastIndex : null;
  const end = stringEnd(text, at);
  if (end === -1) return -1;
  return matchesAt(FENCE_END, text, end) ? end : null;
}

export function scanText(text: string): Scan {
  const regions: Region[] = [];
  // A document in a JSON text that never ends is cut like any other.
  if (text.charCodeAt(0) === QUOTE && stringEnd(text, 0) === -1) return { regions, cut: true };
  let inFence = false;
  let fencedAt = -1;
  MARK.lastIndex = 0;
  for (let mark = MARK.exec(text); mark !== null; mark = MARK.exec(text)) {
    const at = mark.index;
    if (!isOpening(text.charCodeAt(at))) {
      inFence = !inFence;
      if (!inFence) continue;
      FENCE_HEADER.lastIndex = MARK.lastIndex;
      FENCE_HEADER.test(text);
      fencedAt = FENCE_HEADER.lastIndex;
      const end = fencedScalar(text, fencedAt);
      if (end === -1) return { regions, cut: true };
      if (end !== null) regions.push({ start: fencedAt, end, fenced: true });
      MARK.lastIndex = end ?? fencedAt;
      continue;
    }
    if (!looksLikeJson(text, at)) continue;
    const end = regionEnd(text, at);
    if (end === -1) return { regions, cut: true };
    regions.push({ start: at, end, fenced: at === fencedAt });
    MARK.lastIndex = end;
  }
  return { regions, cut: false };
}
