import { isFields, type Schema } from "./references.js";

/** The keywords of JSON Schema, draft 4 to 2020-12, and what each of them holds. Others say nothing and pass. */

type Kind =
  | "schema"
  | "schemas"
  | "some schemas"
  | "named schemas"
  | "items"
  | "dependencies"
  | "named texts"
  | "count"
  | "number"
  | "divisor"
  | "bound"
  | "flag"
  | "text"
  | "texts"
  | "values"
  | "type";

function keywords(kind: Kind, names: string): [string, Kind][] {
  return names.split(" ").map((name) => [name, kind]);
}

const KINDS: ReadonlyMap<string, Kind> = new Map([
  ...keywords("schema", "additionalProperties unevaluatedProperties propertyNames additionalItems unevaluatedItems"),
  ...keywords("schema", "contains not if then else"),
  ...keywords("schemas", "allOf prefixItems"),
  ...keywords("some schemas", "anyOf oneOf"),
  ...keywords("named schemas", "properties patternProperties dependentSchemas $defs definitions"),
  ...keywords("items", "items"),
  ...keywords("dependencies", "dependencies"),
  ...keywords("named texts", "dependentRequired"),
  ...keywords("count", "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains"),
  ...keywords("number", "minimum maximum"),
  ...keywords("divisor", "multipleOf"),
  ...keywords("bound", "exclusiveMinimum exclusiveMaximum"),
  ...keywords("flag", "uniqueItems"),
  ...keywords("text", "pattern format $ref $id $anchor $schema"),
  ...keywords("texts", "required"),
  ...keywords("values", "enum"),
  ...keywords("type", "type"),
]);

const TYPES: ReadonlySet<unknown> = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
const WORDS: Readonly<Record<Kind, string>> = {
  schema: "a schema (an object, true or false)",
  schemas: "a list of schemas",
  "some schemas": "a list of at least one schema",
  "named schemas": "an object whose values are schemas",
  items: "a schema or a list of schemas",
  dependencies: "an object whose values are schemas or lists of texts",
  "named texts": "an object whose values are lists of texts",
  count: "a whole number of at least 0",
  number: "a number",
  divisor: "a number above 0",
  bound: 'a number (true and false belong to draft 4, which must be named in "$schema")',
  flag: "true or false",
  text: "a text that is not empty",
  texts: "a list of texts",
  values: "a list of at least one value",
  type: `one of ${[...TYPES].join(", ")}, or a list of them`,
};

const isSchema = (value: unknown): boolean => isFields(value) || typeof value === "boolean";
const isListOf = (value: unknown, fits: (one: unknown) => boolean): value is unknown[] =>
  Array.isArray(value) && value.every(fits);
const isNamed = (value: unknown, fits: (one: unknown) => boolean): boolean =>
  isFields(value) && Object.values(value).every(fits);
const isText = (value: unknown): boolean => typeof value === "string";
const isTexts = (value: unknown): boolean => isListOf(value, isText);

const FITS: Readonly<Record<Kind, (value: unknown, isDraft4: boolean) => boolean>> = {
  schema: isSchema,
  schemas: (value) => isListOf(value, isSchema),
  "some schemas": (value) => isListOf(value, isSchema) && value.length > 0,
  "named schemas": (value) => isNamed(value, isSchema),
  items: (value) => isSchema(value) || isListOf(value, isSchema),
  dependencies: (value) => isNamed(value, (one) => isSchema(one) || isTexts(one)),
  "named texts": (value) => isNamed(value, isTexts),
  count: (value) => Number.isInteger(value) && (value as number) >= 0,
  number: (value) => typeof value === "number",
  divisor: (value) => typeof value === "number" && value > 0,
  bound: (value, isDraft4) => typeof value === (isDraft4 ? "boolean" : "number"),
  flag: (value) => typeof value === "boolean",
  text: (value) => typeof value === "string" && value !== "",
  texts: isTexts,
  values: (value) => Array.isArray(value) && value.length > 0,
  type: (value) => (Array.isArray(value) ? value.length > 0 && value.every((one) => TYPES.has(one)) : TYPES.has(value)),
};

/** What would be followed by no validator here, and so not be enforced. */
const NOT_ENFORCED = ["$dynamicRef", "$recursiveRef"];

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

const OF_SCHEMAS: ReadonlySet<Kind> = new Set(["schemas", "some schemas", "named schemas"]);

/** The one among several that is no schema. */
function wrongSchema(kind: Kind, value: unknown): [key?: string, wrong?: unknown] {
  const isSeveral = OF_SCHEMAS.has(kind) && Array.isArray(value) === (kind !== "named schemas");
  if (!isSeveral || typeof value !== "object") return [];
  return Object.entries(value ?? {}).find(([, one]) => !isSchema(one)) ?? [];
}

/** Throws Error that names the place and what must stand there. */
export function checkKeywords(schema: Schema, place: string, isDraft4: boolean): void {
  const unenforced = NOT_ENFORCED.find((keyword) => schema[keyword] !== undefined);
  if (unenforced !== undefined) {
    throw new Error(`${place} uses ${unenforced}, which would not be enforced; refer to the part by $ref instead`);
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const kind = KINDS.get(keyword);
    if (kind === undefined || FITS[kind](value, isDraft4)) continue;
    if (kind === "type") {
      const unknown = [value].flat().find((name) => !TYPES.has(name));
      throw new Error(`${place}/type: ${shown(unknown ?? value)} is no type of JSON Schema; it must be ${WORDS.type}`);
    }
    const [key, wrong] = wrongSchema(kind, value);
    if (key !== undefined) throw new Error(`${place}/${keyword}/${key} must be ${WORDS.schema}, not ${shown(wrong)}`);
    throw new Error(`${place}/${keyword} must be ${WORDS[kind]}, not ${shown(value)}`);
  }
}

const SINGLE: ReadonlySet<Kind> = new Set(["schema", "items"]);
const LISTS: ReadonlySet<Kind> = new Set(["schemas", "some schemas", "items"]);
const NAMED: ReadonlySet<Kind> = new Set(["named schemas", "dependencies"]);

export interface Part {
  readonly keyword: string;
  /** Name or index within the keyword; empty = the keyword itself. */
  readonly key: string;
  readonly schema: unknown;
}

/** Schemas that stand in a schema whose keywords have been checked. */
export function* partsOf(schema: Schema): Generator<Part> {
  for (const [keyword, value] of Object.entries(schema)) {
    const kind = KINDS.get(keyword);
    if (kind === undefined) continue;
    if (LISTS.has(kind) && Array.isArray(value)) {
      for (const [index, one] of value.entries()) yield { keyword, key: String(index), schema: one };
    } else if (NAMED.has(kind)) {
      for (const [key, one] of Object.entries(value as Schema)) yield { keyword, key, schema: one };
    } else if (SINGLE.has(kind)) yield { keyword, key: "", schema: value };
  }
}
