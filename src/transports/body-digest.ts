/**
 * The one digest of an answer's body for every transport (spec 02 "Body digest").
 * JSON errors carry the human text first and `code`/`request_id` last: both ends survive the cut.
 */

const MAX_UNITS = 2_048;
const HEAD_UNITS = 1_400;
const TAIL_UNITS = 600;

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Does a cut before `at` fall between the two halves of one character? */
function splitsPair(text: string, at: number): boolean {
  return isHighSurrogate(text.charCodeAt(at - 1)) && isLowSurrogate(text.charCodeAt(at));
}

/** At most 2,048 UTF-16 units, whitespace runs collapsed, head and tail kept. Idempotent, linear, never throws. */
export function bodyDigest(text: string): string {
  const collapsed = text.replace(/\s+/g, " ").trim();
  const { length } = collapsed;
  if (length <= MAX_UNITS) return collapsed;
  const headEnd = splitsPair(collapsed, HEAD_UNITS) ? HEAD_UNITS - 1 : HEAD_UNITS;
  const tailCut = length - TAIL_UNITS;
  const tailStart = splitsPair(collapsed, tailCut) ? tailCut + 1 : tailCut;
  const omitted = tailStart - headEnd;
  return `${collapsed.slice(0, headEnd)}…(${omitted} chars omitted)…${collapsed.slice(tailStart)}`;
}

/** What an error message calls the failure. No contract: codes are. */
export type FailureLabel =
  | "credential rejected or unpaid"
  | "quota exhausted"
  | "model or endpoint not found"
  | "model or endpoint not found (check BASE_URL)"
  | "model or endpoint not found (check BASE_URL, redirects are not followed)"
  | "rate limited"
  | "request rejected"
  | "transient failure"
  | "unusable result";

/** `digest` comes from `bodyDigest`, computed once for the message and for `bodyText`. */
export function composeMessage(source: string, label: FailureLabel, what: number | string, digest = ""): string {
  return `${source} ${label}: ${what}${digest === "" ? "" : ` | ${digest}`}`;
}
