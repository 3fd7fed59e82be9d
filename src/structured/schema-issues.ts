import { type AnswerIssue, issueAt, MAX_ISSUES } from "./issues.js";
import { isContainer } from "./strict-json.js";

/** What a validator reports, as few words about few places. */

export type Path = readonly (string | number)[];

/** A place whose value has another type than every branch of the schema that was tried there. */
export interface TypeMismatch {
  readonly path: Path;
  readonly wanted: ReadonlySet<string>;
}

export interface SchemaError {
  readonly instanceLocation: string;
  readonly keyword: string;
  readonly keywordLocation: string;
  readonly error: string;
}

type Fields = Record<string, unknown>;

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
      value = isContainer(value) && Object.hasOwn(value, key) ? (value as Fields)[key] : undefined;
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
  if (close !== undefined) return collectIssues(close, root);
  const path = segmentsOf(union.instanceLocation, root);
  const expected = kinds.size > 0 ? [...kinds].join(" or ") : "one of the alternatives of the schema";
  return [issueAt(root, path, expected)];
}

/** Leaf errors in the order they were found; each union counts once. */
export function collectIssues(errors: readonly SchemaError[], root: unknown): AnswerIssue[] {
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

export function mismatchesOf(errors: readonly SchemaError[], root: unknown): TypeMismatch[] {
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
