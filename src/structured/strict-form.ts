import { isFields, type Schema } from "./references.js";

/**
 * The form that a provider can enforce to the letter (`strict: true`): every key of an object required, no other key
 * allowed. Closing an object that says nothing of other keys only narrows what is asked for. A key that may be left out
 * can't be told in this form, and making it required would change its meaning: then there is none.
 */

/** Providers refuse deeper schemas in this form. */
const MAX_DEPTH = 10;

function isObject({ type, properties }: Schema): boolean {
  return type === "object" || properties !== undefined || (Array.isArray(type) && type.includes("object"));
}

function closedObject(schema: Schema, depth: number): Schema | undefined {
  const { properties, required, additionalProperties } = schema;
  if (additionalProperties !== undefined && additionalProperties !== false) return undefined;
  const names = isFields(properties) ? Object.keys(properties) : [];
  if (names.length === 0 && additionalProperties !== false) return undefined;
  const asked = new Set(Array.isArray(required) ? required : []);
  if (!names.every((name) => asked.has(name)) || asked.size !== names.length) return undefined;
  const inner: [string, Schema][] = [];
  for (const name of names) {
    const form = strictForm((properties as Schema)[name], depth + 1);
    if (form === undefined) return undefined;
    inner.push([name, form]);
  }
  return { ...schema, properties: Object.fromEntries(inner), additionalProperties: false };
}

function allStrict(schemas: readonly unknown[], depth: number): Schema[] | undefined {
  const forms: Schema[] = [];
  for (const schema of schemas) {
    const form = strictForm(schema, depth);
    if (form === undefined) return undefined;
    forms.push(form);
  }
  return forms;
}

function withDefinitions(schema: Schema): Schema | undefined {
  if (!isFields(schema.$defs)) return schema;
  const names = Object.keys(schema.$defs);
  const forms = allStrict(Object.values(schema.$defs), 1);
  return forms && { ...schema, $defs: Object.fromEntries(names.map((name, index) => [name, forms[index]])) };
}

/** undefined = this schema has no such form. */
export function strictForm(given: unknown, depth = 0): Schema | undefined {
  if (!isFields(given) || depth > MAX_DEPTH) return undefined;
  if (given.$ref !== undefined) return given;
  const says = ["type", "anyOf", "enum", "const"].some((keyword) => given[keyword] !== undefined);
  if (!says) return undefined;
  let schema: Schema | undefined = depth === 0 ? withDefinitions(given) : given;
  if (schema !== undefined && isObject(schema)) schema = closedObject(schema, depth);
  if (schema?.items !== undefined) {
    const items = strictForm(schema.items, depth + 1);
    schema = items && { ...schema, items };
  } else if (schema?.type === "array") return undefined;
  if (schema !== undefined && Array.isArray(schema.anyOf)) {
    const anyOf = allStrict(schema.anyOf, depth + 1);
    schema = anyOf && { ...schema, anyOf };
  }
  return schema;
}
