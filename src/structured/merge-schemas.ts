import { isFields, type Schema } from "./references.js";

/** Does this schema ask for an object and nothing else? */
export function isObjectSchema({ type, anyOf, $ref }: Schema): boolean {
  return type === "object" && anyOf === undefined && $ref === undefined;
}

function joinProperties(into: Schema, more: Schema): boolean {
  for (const [name, schema] of Object.entries(more)) {
    if (Object.hasOwn(into, name)) return false;
    Object.defineProperty(into, name, { value: schema, enumerable: true, configurable: true, writable: true });
  }
  return true;
}

/**
 * Several schemas that all hold, as one: undefined where that would change what they mean. What only one of them says is
 * taken over; objects are joined key by key unless one of them is closed.
 */
export function merged(parts: readonly Schema[]): Schema | undefined {
  const filled = parts.filter((part) => Object.keys(part).length > 0);
  if (filled.length <= 1) return filled[0] ?? {};
  if (filled.some((part) => part.additionalProperties !== undefined)) return undefined;
  const joined: Schema = {};
  const properties: Schema = {};
  const required = new Set<unknown>();
  for (const part of filled) {
    for (const [keyword, value] of Object.entries(part)) {
      if (keyword === "properties" && isFields(value)) {
        if (!joinProperties(properties, value)) return undefined;
        joined.properties = properties;
      } else if (keyword === "required" && Array.isArray(value)) {
        for (const name of value) required.add(name);
        joined.required = [...required];
      } else if (keyword === "title" || keyword === "description") joined[keyword] ??= value;
      else if (joined[keyword] === undefined) joined[keyword] = value;
      else if (JSON.stringify(joined[keyword]) !== JSON.stringify(value)) return undefined;
    }
  }
  return joined;
}
