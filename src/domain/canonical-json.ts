/** Deeper than any real request; also what ends a cycle. */
const MAX_DEPTH = 200;

function hasToJson(value: object): value is { toJSON(): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function writeArray(values: readonly unknown[], depth: number): string {
  return `[${values.map((value) => write(value, depth + 1) ?? "null").join(",")}]`;
}

/** Text is written at once, no object is built: a key named `__proto__` is a key like any other. */
function writeObject(value: object, depth: number): string {
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const text = write((value as Record<string, unknown>)[key], depth + 1);
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join(",")}}`;
}

function write(value: unknown, depth: number): string | undefined {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (depth > MAX_DEPTH)
    throw new RangeError(`The value is nested deeper than ${MAX_DEPTH} levels, or refers to itself.`);
  if (hasToJson(value)) return write(value.toJSON(), depth + 1);
  if (Array.isArray(value)) return writeArray(value, depth);
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return JSON.stringify(value);
  return writeObject(value, depth);
}

/**
 * JSON whose text depends on the content alone: keys sorted by UTF-16 code units, no spaces, numbers and strings as
 * `JSON.stringify` writes them (as RFC 8785 demands). What JSON leaves out (undefined, functions) is left out here too;
 * a value that is nothing else becomes `null`.
 *
 * @throws RangeError when nested deeper than 200 levels or cyclic, TypeError for a bigint
 */
export function canonicalJson(value: unknown): string {
  return write(value, 1) ?? "null";
}
