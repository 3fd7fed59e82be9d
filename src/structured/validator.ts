import { createRequire } from "node:module";
import { type AnswerIssue, issueAt, MAX_ISSUES } from "./issues.js";
import { isContainer } from "./strict-json.js";

/** JSON Schema, compiled once and asked as often as needed. Draft 4 to 2020-12 with local references. */

export type Path = readonly (string | number)[];

/** A place whose value has another type than every branch of the schema that was tried there. */
export interface TypeMismatch {
  readonly path: Path;
  readonly wanted: ReadonlySet<string>;
}

export interface Misfit {
  readonly issues: readonly AnswerIssue[];
  readonly mismatches: readonly TypeMismatch[];
}

export interface Validator {
  /** null = it fits. Never throws. */
  check(value: unknown): Misfit | null;
}

type Schema = Record<string, unknown>;
type Draft = "4" | "7" | "2019-09" | "2020-12";

interface SchemaError {
  readonly instanceLocation: string;
  readonly keyword: string;
  readonly keywordLocation: string;
  readonly error: string;
}

interface SchemaModule {
  dereference(schema: Schema | boolean): Record<string, Schema | boolean>;
  validate(
    value: unknown,
    schema: Schema | boolean,
    draft: Draft,
    lookup: Record<string, Schema | boolean>,
    shortCircuit: boolean,
  ): { valid: boolean; errors: SchemaError[] };
}

let loaded: SchemaModule | undefined;

function schemaModule(): SchemaModule {
  loaded ??= createRequire(import.meta.url)("@cfworker/json-schema") as SchemaModule;
  return loaded;
}

function draftOf(schema: Schema | boolean): Draft {
  const named = typeof schema === "object" ? String(schema.$schema ?? "") : "";
  if (/draft-0[3-4]/.test(named)) return "4";
  if (/draft-0[67]/.test(named)) return "7";
  return named.includes("2019-09") ? "2019-09" : "2020-12";
}

/** Comparing every item with every other is quadratic: beyond this many it is refused rather than done. */
const MAX_UNIQUE_ITEMS = 2_000;
/** What only says that something below is wrong. */
const FRAMES: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "additionalProperties",
  "unevaluatedProperties",
  "items",
  "prefixItems",
  "additionalItems",
  "unevaluatedItems",
  "$ref",
  "$recursiveRef",
  "allOf",
  "if",
  "propertyNames",
  "dependentSchemas",
]);
const UNIONS: ReadonlySet<string> = new Set(["anyOf", "oneOf"]);
const TYPE_NAMES = /Expected "(.*)"\.$/;

function typesIn(error: string): string[] {
  return TYPE_NAMES.exec(error)?.[1]?.split('", "') ?? [];
}

function segmentsOf(location: string, root: unknown): Path {
  if (location === "#") return [];
  let value = root;
  return location
    .slice(2)
    .split("/")
    .map((part) => {
      const key = decodeURI(part).replaceAll("~1", "/").replaceAll("~0", "~");
      const isIndex = Array.isArray(value);
      value = isContainer(value) && Object.hasOwn(value, key) ? (value as Schema)[key] : undefined;
      return isIndex ? Number(key) : key;
    });
}

const BOUNDS: readonly (readonly [keyword: string, pattern: RegExp, words: string])[] = [
  ["minLength", /< (\d+)/, "a text of at least # characters"],
  ["maxLength", /> (\d+)/, "a text of at most # characters"],
  ["minItems", /< (\d+)/, "a list of at least # items"],
  ["maxItems", /> (\d+)/, "a list of at most # items"],
  ["minProperties", /< (\d+)/, "an object with at least # keys"],
  ["maxProperties", /> (\d+)/, "an object with at most # keys"],
  ["minimum", /less than (\S+)\.$/, "a number of at least #"],
  ["maximum", /greater than (\S+)\.$/, "a number of at most #"],
  ["exclusiveMinimum", /less than (\S+)\.$/, "a number above #"],
  ["exclusiveMaximum", /equal to (\S+)\.$/, "a number below #"],
  ["multipleOf", /multiple of (\S+)\.$/, "a multiple of #"],
  ["format", /format "(.*)"\.$/, "a text in the format #"],
  ["enum", /any of (.*)\.$/s, "one of #"],
  ["const", /match (.*)\.$/s, "exactly #"],
];

function expectedBy({ keyword, error }: SchemaError): string {
  if (keyword === "type") return typesIn(error).join(" or ");
  if (keyword === "false") return "no such key";
  if (keyword === "pattern") return "a text that matches the pattern of the schema";
  if (keyword === "uniqueItems") return "a list without duplicates";
  const bound = BOUNDS.find(([name]) => name === keyword);
  const found = bound?.[1].exec(error)?.[1];
  return bound === undefined || found === undefined ? error.replace(/\.$/, "") : bound[2].replace("#", () => found);
}

const REQUIRED = /required property "(.*)"\.$/s;

function issueOf(error: SchemaError, root: unknown): AnswerIssue {
  const path = segmentsOf(error.instanceLocation, root);
  const missing = error.keyword === "required" ? REQUIRED.exec(error.error)?.[1] : undefined;
  if (missing !== undefined) return issueAt(root, [...path, missing], "a value, since the key is required");
  return issueAt(root, path, expectedBy(error));
}

/** Errors below a union: told from the one branch that comes closest, or as the types that would do. */
function unionIssues(union: SchemaError, below: readonly SchemaError[], root: unknown): AnswerIssue[] {
  const branches = new Map<string, SchemaError[]>();
  const from = union.keywordLocation.length + 1;
  for (const error of below) {
    const slash = error.keywordLocation.indexOf("/", from);
    const branch = error.keywordLocation.slice(from, slash === -1 ? undefined : slash);
    const errors = branches.get(branch);
    if (errors === undefined) branches.set(branch, [error]);
    else errors.push(error);
  }
  const isHere = ({ instanceLocation }: SchemaError): boolean => instanceLocation === union.instanceLocation;
  const kinds = new Set(
    below.filter((error) => isHere(error) && error.keyword === "type").flatMap((e) => typesIn(e.error)),
  );
  const close = [...branches.values()]
    .filter((errors) => !errors.some((error) => isHere(error) && ["type", "const", "enum"].includes(error.keyword)))
    .sort((a, b) => a.length - b.length)[0];
  if (close !== undefined) return collect(close, root);
  const path = segmentsOf(union.instanceLocation, root);
  const expected = kinds.size > 0 ? [...kinds].join(" or ") : "one of the alternatives of the schema";
  return [issueAt(root, path, expected)];
}

/** Leaf errors in the order they were found; each union counts once. */
function collect(errors: readonly SchemaError[], root: unknown): AnswerIssue[] {
  const issues: AnswerIssue[] = [];
  for (let at = 0; at < errors.length && issues.length < MAX_ISSUES; at += 1) {
    const error = errors[at]!;
    if (FRAMES.has(error.keyword)) continue;
    if (!UNIONS.has(error.keyword)) {
      issues.push(issueOf(error, root));
      continue;
    }
    const prefix = `${error.keywordLocation}/`;
    let end = at + 1;
    // A key that isn't allowed is located in the value, not in the schema.
    const isBelow = ({ keywordLocation, keyword }: SchemaError): boolean =>
      keywordLocation.startsWith(prefix) || (keyword === "false" && end > at + 1);
    while (end < errors.length && isBelow(errors[end]!)) end += 1;
    issues.push(...unionIssues(error, errors.slice(at + 1, end), root));
    at = end - 1;
  }
  return issues.slice(0, MAX_ISSUES);
}

/** More places than these are no slip of the model. */
const MAX_MISMATCHES = 1_000;

function mismatchesOf(errors: readonly SchemaError[], root: unknown): TypeMismatch[] {
  const byPlace = new Map<string, Set<string>>();
  for (const error of errors) {
    if (error.keyword !== "type") continue;
    const wanted = byPlace.get(error.instanceLocation);
    if (wanted === undefined && byPlace.size === MAX_MISMATCHES) break;
    const types = wanted ?? new Set<string>();
    for (const type of typesIn(error.error)) types.add(type);
    byPlace.set(error.instanceLocation, types);
  }
  return [...byPlace].map(([location, wanted]) => ({ path: segmentsOf(location, root), wanted }));
}

/** Collecting every error costs microseconds each: of an answer with more values than this the first ones are told. */
const MAX_COLLECTED_NODES = 50_000;

/** Does some list hold more than `longest` items, or the whole more than `most` values? Ends as soon as it is known. */
function exceeds(root: unknown, longest: number, most: number): boolean {
  const open: unknown[] = [root];
  let nodes = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (!isContainer(value)) continue;
    if (Array.isArray(value) && value.length > longest) return true;
    const inner = Object.values(value);
    nodes += inner.length;
    if (nodes > most) return true;
    for (const one of inner) if (isContainer(one)) open.push(one);
  }
  return false;
}

/** A whole number that JSON.parse can't hold exactly has become another one. */
function boundIntegers(schemas: readonly (Schema | boolean)[]): void {
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

/** What would only be found out in the middle of a call. Throws Error. */
function checkSchemas(lookup: Record<string, Schema | boolean>): void {
  for (const schema of Object.values(lookup)) {
    if (typeof schema !== "object" || schema === null) continue;
    const reference = (schema as { __absolute_ref__?: string }).__absolute_ref__;
    if (reference !== undefined && lookup[reference] === undefined) {
      throw new Error(
        `$ref ${JSON.stringify(schema.$ref)} leads nowhere; only references within the schema are followed`,
      );
    }
    if (typeof schema.pattern === "string") schema.pattern = usablePattern(schema.pattern);
    for (const pattern of Object.keys(schema.patternProperties ?? {})) new RegExp(pattern, "u");
  }
}

/** Throws Error when the schema itself is unusable. The given object is not touched. */
export function compileSchema(given: unknown): Validator {
  const { dereference, validate } = schemaModule();
  const text = JSON.stringify(given);
  const schema = JSON.parse(text) as Schema | boolean;
  if (typeof schema !== "boolean" && (typeof schema !== "object" || schema === null || Array.isArray(schema))) {
    throw new Error("a JSON Schema is an object");
  }
  const draft = draftOf(schema);
  const lookup = dereference(schema);
  checkSchemas(lookup);
  boundIntegers(Object.values(lookup));
  const comparesItems = text.includes('"uniqueItems":true');

  function misfit(value: unknown, first: SchemaError[]): Misfit {
    let errors = first;
    if (!exceeds(value, MAX_COLLECTED_NODES, MAX_COLLECTED_NODES)) {
      errors = validate(value, schema, draft, lookup, false).errors;
    }
    const issues = collect(errors, value);
    return {
      issues: issues.length > 0 ? issues : [issueAt(value, [], "an answer that fits the schema")],
      mismatches: mismatchesOf(errors, value),
    };
  }

  return {
    check(value) {
      if (comparesItems && exceeds(value, MAX_UNIQUE_ITEMS, Infinity)) {
        const expected = `lists of at most ${MAX_UNIQUE_ITEMS} items where duplicates are forbidden`;
        return { issues: [issueAt(value, [], expected)], mismatches: [] };
      }
      try {
        const { valid, errors } = validate(value, schema, draft, lookup, true);
        return valid ? null : misfit(value, errors);
      } catch (error) {
        const why = error instanceof RangeError ? "it is nested too deep" : (error as Error).message;
        return { issues: [issueAt(value, [], `an answer that can be checked (${why})`)], mismatches: [] };
      }
    },
  };
}
