/** Makes a compiled schema safe to use, or says why it can't be: what would else be found out in the middle of a call. */

export type Schema = Record<string, unknown>;
export type Lookup = Record<string, Schema | boolean>;

/** A whole number that JSON.parse can't hold exactly has become another one. */
export function boundIntegers(schemas: readonly (Schema | boolean)[]): void {
  for (const schema of schemas) {
    if (typeof schema !== "object" || schema === null) continue;
    const types = Array.isArray(schema.type) ? (schema.type as unknown[]) : [schema.type];
    if (!types.includes("integer") || types.includes("number")) continue;
    if (typeof schema.minimum !== "number" || schema.minimum < Number.MIN_SAFE_INTEGER) {
      schema.minimum = Number.MIN_SAFE_INTEGER;
    }
    if (typeof schema.maximum !== "number" || schema.maximum > Number.MAX_SAFE_INTEGER) {
      schema.maximum = Number.MAX_SAFE_INTEGER;
    }
  }
}

/** Escapes of characters that need none, as other languages write them; with the flag `u` they are errors. */
const NEEDLESS_ESCAPE = /\\([\s\S])/g;
const NEEDS_NO_ESCAPE = /[!"#%&',:;<=>@_`~ ]/;

/** A pattern as the validator can use it. Throws SyntaxError when it is none. */
function usablePattern(pattern: string): string {
  try {
    new RegExp(pattern, "u");
    return pattern;
  } catch {
    const plain = pattern.replace(NEEDLESS_ESCAPE, (pair, unit: string) => (NEEDS_NO_ESCAPE.test(unit) ? unit : pair));
    new RegExp(plain, "u");
    return plain;
  }
}

/** Throws Error. */
const TYPES: ReadonlySet<unknown> = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);

/** A misspelt type would fit nothing, which only shows when the answers have been paid. */
function checkType(type: unknown): void {
  if (type === undefined) return;
  const unknown = [type].flat().find((name) => !TYPES.has(name));
  if (unknown === undefined) return;
  throw new Error(`${JSON.stringify(unknown)} is no type of JSON Schema; there are ${[...TYPES].join(", ")}`);
}

export function checkSchemas(lookup: Lookup): void {
  for (const schema of Object.values(lookup)) {
    if (typeof schema !== "object" || schema === null) continue;
    const reference = (schema as { __absolute_ref__?: string }).__absolute_ref__;
    if (reference !== undefined && lookup[reference] === undefined) {
      throw new Error(
        `$ref ${JSON.stringify(schema.$ref)} leads nowhere; only references within the schema are followed`,
      );
    }
    checkType(schema.type);
    if (typeof schema.pattern === "string") schema.pattern = usablePattern(schema.pattern);
    for (const pattern of Object.keys(schema.patternProperties ?? {})) new RegExp(pattern, "u");
  }
}
