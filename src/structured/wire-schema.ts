import type { JsonSchema } from "../domain/standard-schema.js";
import { clip } from "./issues.js";
import { isObjectSchema, merged } from "./merge-schemas.js";
import { createReferences, isFields, type Schema } from "./references.js";
import { strictForm } from "./strict-form.js";

/** A JSON Schema made fit for providers: they enforce a part of the language only, each a different one (spec 04). */

export interface WireSchema {
  /** Its root is an object. References stand alone and have names of letters; what isn't recursive is written out. */
  readonly schema: JsonSchema;
  /** The answer is asked for as `{ value }`, since the given root is no object. */
  readonly wrapped: boolean;
  /** Every key is required and nothing else allowed, so that a provider may enforce it to the letter. */
  readonly strict: boolean;
  /** What the provider isn't told in the schema, one line each, for the prompt. */
  readonly rules: readonly string[];
}

const MAX_RULES = 100;
const MAX_RULE_UNITS = 300;
/** Beyond this size a repeated part is referred to instead of written out again. */
const MAX_NODES = 5_000;

/** Keywords that providers take as they are. */
const PLAIN: ReadonlySet<string> = new Set([
  ...["type", "required", "enum", "const", "title", "description", "pattern", "format"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"],
]);
const SINGLE: ReadonlySet<string> = new Set(["items", "additionalProperties"]);
/** Names and notes that say nothing of the answer. */
const SILENT: ReadonlySet<string> = new Set([
  ...["$schema", "$id", "id", "$anchor", "$comment", "$vocabulary", "$defs", "definitions", "$ref"],
  ...["deprecated", "readOnly", "writeOnly"],
]);
/** Beside a reference these only describe. */
const NOTES: ReadonlySet<string> = new Set(["title", "description", "default", "examples"]);

interface Work {
  readonly references: ReturnType<typeof createReferences>;
  /** Pointers that are being written out right now. */
  readonly open: Set<string>;
  readonly recursive: Map<string, string>;
  readonly rules: string[];
  nodes: number;
}

function rule(work: Work, path: string, keyword: string, value: unknown): void {
  if (work.rules.length >= MAX_RULES) return;
  const text = clip(JSON.stringify({ [keyword]: value }), MAX_RULE_UNITS);
  work.rules.push(`${path === "" ? "the whole answer" : path}: ${text}`);
}

/** A name of safe letters for a definition, whatever it is called in the schema. */
function nameFor(work: Work, pointer: string): string {
  const known = work.recursive.get(pointer);
  if (known !== undefined) return known;
  const last = pointer === "#" ? "root" : (pointer.split("/").at(-1) ?? "");
  const plain = last.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 40) || "part";
  const taken = new Set(work.recursive.values());
  let name = plain;
  for (let number = 2; taken.has(name); number += 1) name = `${plain}_${number}`;
  work.recursive.set(pointer, name);
  return name;
}

function expandReference(work: Work, schema: Schema, path: string): Schema | boolean {
  const { target, pointer } = work.references.resolve(String(schema.$ref));
  const { $ref: _ref, ...beside } = schema;
  const mustRefer = work.open.has(pointer) || work.recursive.has(pointer) || work.nodes > MAX_NODES;
  if (mustRefer) {
    for (const [keyword, value] of Object.entries(beside)) {
      if (!SILENT.has(keyword)) rule(work, path, keyword, value);
    }
    return { $ref: `#/$defs/${nameFor(work, pointer)}` };
  }
  work.open.add(pointer);
  const body = expand(work, target, path);
  work.open.delete(pointer);
  if (typeof body === "boolean" || body.$ref !== undefined) return body;
  const { notes, constraints } = split(beside);
  const own = expand(work, constraints, path) as Schema;
  const joined = merged([body, own]);
  if (joined === undefined)
    for (const [keyword, value] of Object.entries(constraints)) rule(work, path, keyword, value);
  return { ...(joined ?? body), ...(expand(work, notes, path) as Schema) };
}

function split(fields: Schema): { notes: Schema; constraints: Schema } {
  const entries = Object.entries(fields);
  return {
    notes: Object.fromEntries(entries.filter(([key]) => NOTES.has(key))),
    constraints: Object.fromEntries(entries.filter(([key]) => !NOTES.has(key))),
  };
}

function expandProperties(work: Work, properties: Schema, path: string): Schema {
  const below = path === "" ? "" : `${path}.`;
  return Object.fromEntries(
    Object.entries(properties).map(([name, inner]) => [name, expand(work, inner, `${below}${clip(name, 60)}`)]),
  );
}

function expandAll(work: Work, parts: readonly unknown[], path: string): (Schema | boolean)[] {
  return parts.map((part) => expand(work, part, path));
}

function expandKeyword(work: Work, out: Schema, keyword: string, value: unknown, path: string): void {
  if (SILENT.has(keyword)) return;
  if (PLAIN.has(keyword)) out[keyword] = value;
  else if (keyword === "properties" && isFields(value)) out.properties = expandProperties(work, value, path);
  else if (SINGLE.has(keyword) && (isFields(value) || typeof value === "boolean")) {
    out[keyword] = expand(work, value, keyword === "items" ? `${path}[]` : path);
  } else if (keyword === "anyOf" && Array.isArray(value)) out.anyOf = expandAll(work, value, path);
  // Providers know "any of"; that only one fits is checked here.
  else if (keyword === "oneOf" && Array.isArray(value) && out.anyOf === undefined)
    out.anyOf = expandAll(work, value, path);
  else rule(work, path, keyword, value);
}

function expand(work: Work, given: unknown, path: string): Schema | boolean {
  if (!isFields(given)) return given !== false;
  work.nodes += 1;
  if (given.$ref !== undefined) return expandReference(work, given, path);
  const { allOf, ...rest } = given;
  const out: Schema = {};
  for (const [keyword, value] of Object.entries(rest)) expandKeyword(work, out, keyword, value, path);
  if (!Array.isArray(allOf)) return out;
  const parts = expandAll(work, allOf, path).filter((part): part is Schema => typeof part !== "boolean");
  const joined = parts.some((part) => part.$ref !== undefined) ? undefined : merged([out, ...parts]);
  if (joined === undefined) rule(work, path, "allOf", allOf);
  return joined ?? out;
}

/** Bodies of what is recursive; writing one out may find another. */
function definitions(work: Work): Schema {
  const bodies: [string, Schema | boolean][] = [];
  const done = new Set<string>();
  for (let left = true; left; ) {
    left = false;
    for (const [pointer, name] of [...work.recursive]) {
      if (done.has(pointer)) continue;
      done.add(pointer);
      left = true;
      work.open.add(pointer);
      bodies.push([name, expand(work, work.references.target(pointer), name)]);
      work.open.delete(pointer);
    }
  }
  return Object.fromEntries(bodies);
}

function wrap(schema: Schema | boolean): Schema {
  return { type: "object", properties: { value: schema }, required: ["value"], additionalProperties: false };
}

/** Throws Error on a reference that leads nowhere. The given object is not touched. */
export function prepareSchema(given: JsonSchema): WireSchema {
  const root = JSON.parse(JSON.stringify(given)) as Schema;
  const references = createReferences(root);
  const work: Work = { references, open: new Set(["#"]), recursive: new Map(), rules: [], nodes: 0 };
  const body = expand(work, root, "");
  const wrapped = typeof body === "boolean" || !isObjectSchema(body);
  const $defs = definitions(work);
  const outer = wrapped ? wrap(body) : body;
  const schema = Object.keys($defs).length === 0 ? outer : { ...outer, $defs };
  const closed = strictForm(schema);
  return { schema: closed ?? schema, wrapped, strict: closed !== undefined, rules: [...new Set(work.rules)] };
}
