import { isFields, type Schema } from "./references.js";
import { checkKeywords, partsOf } from "./schema-keywords.js";
import { boundPatterns } from "./schema-pattern.js";
import { createSizeCheck } from "./schema-size.js";

/** Makes a compiled schema safe to use, or says why it can't be: what would else be found out in the middle of a call. */

export type Draft = "4" | "7" | "2019-09" | "2020-12";
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

interface Checks {
  readonly lookup: Lookup;
  readonly isDraft4: boolean;
  readonly done: Set<Schema>;
}

function targetIn(lookup: Lookup, schema: Schema): Schema | boolean {
  const target = lookup[(schema as { __absolute_ref__?: string }).__absolute_ref__ ?? ""];
  if (target !== undefined) return target;
  throw new Error(`$ref ${JSON.stringify(schema.$ref)} leads nowhere; only references within the schema are followed`);
}

function checkSchema(checks: Checks, schema: unknown, place: string): void {
  if (!isFields(schema) || checks.done.has(schema)) return;
  checks.done.add(schema);
  checkKeywords(schema, place, checks.isDraft4);
  for (const part of partsOf(schema)) {
    checkSchema(checks, part.schema, [place, part.keyword, part.key].filter((step) => step !== "").join("/"));
  }
  boundPatterns(schema, place);
  if (schema.$ref !== undefined) checkSchema(checks, targetIn(checks.lookup, schema), String(schema.$ref));
}

/** Throws Error. What no reference leads to and no keyword holds is a note of the author's, whatever it looks like. */
export function checkSchemas(root: Schema | boolean, lookup: Lookup, draft: Draft): void {
  const targetOf = (schema: Schema): Schema | boolean => targetIn(lookup, schema);
  const checkSize = createSizeCheck(targetOf, draft === "4" || draft === "7");
  const done = new Set<Schema>();
  checkSchema({ lookup, isDraft4: draft === "4", done }, root, "#");
  for (const schema of done) checkSize(schema);
}
