import { MAX_PARSED_BYTES, parsedBytes, parseJson } from "../json-weight.js";
import type { Fields } from "../openai/message-fields.js";
import { isObject } from "./json-answer.js";

export interface FoundObjects {
  readonly objects: Fields[];
  /** What began as an object and is none: it was cut, or is no JSON. */
  readonly broken: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = 0x7b;
const CLOSING = 0x7d;
/** An answer that was cut has one or two; each costs an error of the parser's, with its stack. */
const MOST_BROKEN = 1_000;

/** Where the object that begins at `from` ends, behind its last brace; -1 = it doesn't. Linear. */
function endOfObject(text: string, from: number): number {
  let depth = 0;
  let inText = false;
  for (let at = from; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (inText) {
      if (unit === BACKSLASH) at += 1;
      else if (unit === QUOTE) inText = false;
    } else if (unit === QUOTE) inText = true;
    else if (unit === OPENING) depth += 1;
    else if (unit === CLOSING) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** The list that a JSON answer is, or holds as its only list; a single object is a list of one. */
function listIn(parsed: unknown): readonly unknown[] | undefined {
  if (Array.isArray(parsed)) return parsed;
  if (!isObject(parsed)) return undefined;
  const lists = Object.values(parsed).filter((value) => Array.isArray(value) && value.some(isObject));
  return lists.length === 1 ? (lists[0] as unknown[]) : [parsed];
}

/**
 * The objects of a list that a model wrote as JSON, perhaps inside a block of code. What is no JSON as a whole gives those
 * of its objects that are complete. null = it holds none and is no list, hardly any that can be read, or so many that they
 * would fill the memory: this is something else.
 */
export function objectsIn(text: string): FoundObjects | null {
  const list = listIn(parseJson(withoutFence(text)));
  if (list !== undefined) {
    const objects = list.filter(isObject);
    return { objects, broken: list.length - objects.length };
  }
  const objects: Fields[] = [];
  let broken = 0;
  let heapBytes = 0;
  for (let at = text.indexOf("{"); at !== -1; ) {
    const end = endOfObject(text, at);
    const piece = end === -1 ? "" : text.slice(at, end);
    const parsed = parseJson(piece);
    if (isObject(parsed)) {
      objects.push(parsed);
      heapBytes += parsedBytes(piece);
    } else broken += 1;
    if (broken > MOST_BROKEN || heapBytes > MAX_PARSED_BYTES) return null;
    at = end === -1 ? -1 : text.indexOf("{", end);
  }
  return objects.length === 0 ? null : { objects, broken };
}

function withoutFence(text: string): string {
  const trimmed = text.trim();
  const opening = /^```[a-z]{0,10}\s/i.exec(trimmed);
  return opening === null || !trimmed.endsWith("```") ? trimmed : trimmed.slice(opening[0].length, -3);
}
