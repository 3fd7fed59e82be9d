import type { Path, TypeMismatch } from "./schema-issues.js";
import { isContainer, parseJson } from "./strict-json.js";

/** Values of the wrong type that say the right thing: JSON inside a text, and with `coerce` a number in quotes. */

const NUMBER = /^-?(?:0|[1-9]\d{0,20})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?$/;

/** JSON in a text is unwrapped where an object or a list is wanted. */
function unwrapped(value: string, wanted: ReadonlySet<string>): unknown {
  if (!wanted.has("object") && !wanted.has("array")) return undefined;
  const parsed = parseJson(value.trim());
  if (!parsed.ok || !isContainer(parsed.value)) return undefined;
  return wanted.has(Array.isArray(parsed.value) ? "array" : "object") ? parsed.value : undefined;
}

/** Only what loses nothing. */
function coerced(value: unknown, wanted: ReadonlySet<string>): unknown {
  if (typeof value === "number" && wanted.has("string")) {
    const text = String(value);
    const isExact = Number.isInteger(value) ? Number.isSafeInteger(value) : !text.includes("e");
    return isExact ? text : undefined;
  }
  if (typeof value !== "string") return undefined;
  if (wanted.has("boolean") && (value === "true" || value === "false")) return value === "true";
  if (!wanted.has("number") && !wanted.has("integer")) return undefined;
  const number = NUMBER.test(value) ? Number(value) : Number.NaN;
  if (!Number.isFinite(number) || (Number.isInteger(number) && !Number.isSafeInteger(number))) return undefined;
  return wanted.has("number") || Number.isInteger(number) ? number : undefined;
}

/** Copies the containers on the way, each once, so that the original stays what the model said. */
function replaced(root: unknown, path: Path, value: unknown, copies: Set<object>): unknown {
  if (path.length === 0) return value;
  let own = root as Record<string | number, unknown>;
  if (!copies.has(own)) {
    own = (Array.isArray(root) ? [...root] : { ...(root as object) }) as typeof own;
    copies.add(own);
  }
  const head = path[0]!;
  const inner = replaced(own[head], path.slice(1), value, copies);
  Object.defineProperty(own, head, { value: inner, enumerable: true, configurable: true, writable: true });
  return own;
}

function valueAtPath(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<string | number, unknown>)[key], root);
}

/** The value with every mismatch put right that can be; undefined when there is none. */
export function adjusted(root: unknown, mismatches: readonly TypeMismatch[], coerce: boolean): unknown {
  let value = root;
  let changed = false;
  const copies = new Set<object>();
  for (const { path, wanted } of mismatches) {
    const given = valueAtPath(root, path);
    let better = typeof given === "string" ? unwrapped(given, wanted) : undefined;
    if (better === undefined && coerce) better = coerced(given, wanted);
    if (better === undefined) continue;
    value = replaced(value, path, better, copies);
    changed = true;
  }
  return changed ? value : undefined;
}
