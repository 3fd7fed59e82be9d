import { countOf } from "../domain/count-of.js";

/** What broke, in few words: for the re-ask and for the error. */

/** One thing that is wrong with an answer. */
export interface AnswerIssue {
  /** Where: `items[2].price`; empty = the answer as a whole. */
  readonly path: string;
  readonly expected: string;
  /** What stands there, shortened. */
  readonly got: string;
}

/** More than these say nothing new. */
export const MAX_ISSUES = 20;
const MAX_TEXT_UNITS = 60;
const MAX_EXPECTED_UNITS = 200;
const MAX_PATH_UNITS = 200;

export function clip(text: string, units: number): string {
  if (text.length <= units) return text;
  const last = text.charCodeAt(units - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? units - 1 : units;
  return `${text.slice(0, end)}…`;
}

/** A value in at most some 80 characters, without walking it. */
export function preview(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") {
    const shown = JSON.stringify(clip(value, MAX_TEXT_UNITS));
    return value.length > MAX_TEXT_UNITS ? `${shown} (a text of ${countOf(value.length, "character")})` : shown;
  }
  if (Array.isArray(value)) return `a list of ${countOf(value.length, "item")}`;
  if (typeof value !== "object" || value === null) return String(value);
  const keys: string[] = [];
  for (const key in value) {
    if (keys.length === 3) return `an object with ${keys.join(", ")}, …`;
    keys.push(JSON.stringify(clip(key, 20)));
  }
  return keys.length === 0 ? "an empty object" : `an object with ${keys.join(", ")}`;
}

export function pathText(segments: readonly (string | number)[]): string {
  let path = "";
  for (const segment of segments) {
    if (path.length > MAX_PATH_UNITS) return `${path}…`;
    const isIndex = typeof segment === "number";
    const isWord = !isIndex && /^[\p{L}_$][\p{L}\d_$-]{0,60}$/u.test(segment);
    if (isWord) path += path === "" ? segment : `.${segment}`;
    else path += `[${isIndex ? segment : JSON.stringify(clip(segment, MAX_TEXT_UNITS))}]`;
  }
  return path;
}

/** The value at a path; only own properties count. */
export function valueAt(root: unknown, segments: readonly (string | number)[]): unknown {
  let value = root;
  for (const segment of segments) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, segment)) return undefined;
    value = (value as Record<string | number, unknown>)[segment];
  }
  return value;
}

export function issueAt(root: unknown, segments: readonly (string | number)[], expected: string): AnswerIssue {
  return {
    path: pathText(segments),
    expected: clip(expected, MAX_EXPECTED_UNITS),
    got: preview(valueAt(root, segments)),
  };
}

/** One line per issue. */
export function issueLines(issues: readonly AnswerIssue[]): string {
  return issues
    .map(({ path, expected, got }) => `- ${path === "" ? "the whole answer" : path}: expected ${expected}, got ${got}`)
    .join("\n");
}
