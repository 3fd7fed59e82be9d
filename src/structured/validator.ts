import { createRequire } from "node:module";
import { type AnswerIssue, issueAt } from "./issues.js";
import type { Schema } from "./references.js";
import { boundIntegers, checkSchemas, type Draft, type Lookup } from "./schema-check.js";
import { collectIssues, mismatchesOf, type SchemaError, type TypeMismatch } from "./schema-issues.js";
import { isContainer } from "./strict-json.js";

/** JSON Schema, compiled once and asked as often as needed. Draft 4 to 2020-12 with local references. */

export interface Misfit {
  readonly issues: readonly AnswerIssue[];
  readonly mismatches: readonly TypeMismatch[];
}

export interface Validator {
  /** null = it fits. Never throws. */
  check(value: unknown): Misfit | null;
}

interface SchemaModule {
  dereference(schema: Schema | boolean): Lookup;
  validate(
    value: unknown,
    schema: Schema | boolean,
    draft: Draft,
    lookup: Lookup,
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
/** Collecting every error costs microseconds each: of an answer with more values than this the first ones are told. */
const MAX_COLLECTED_NODES = 20_000;

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

/** References that are followed for one answer, however small, and for each value in it. */
const MIN_STEPS = 100_000;
const STEPS_PER_NODE = 100;

class TooManySteps extends Error {}

function nodesIn(root: unknown): number {
  const open: unknown[] = [root];
  let nodes = 1;
  while (open.length > 0) {
    const inner = Object.values(open.pop() as object);
    nodes += inner.length;
    for (const one of inner) if (isContainer(one)) open.push(one);
  }
  return nodes;
}

/**
 * Counts the references that a validation follows: a part that refers to itself several times doubles the work with each
 * level of an answer, and only references can make it more than schema times answer.
 */
function countingLookup(lookup: Lookup) {
  let steps = 0;
  let most = MIN_STEPS;
  let checked: unknown;
  const counting = new Proxy(lookup, {
    get(target, uri: string) {
      steps += 1;
      if (steps > most) {
        most = Math.max(MIN_STEPS, STEPS_PER_NODE * (isContainer(checked) ? nodesIn(checked) : 1));
        if (steps > most) throw new TooManySteps("its parts refer to each other too often");
      }
      return target[uri];
    },
  });
  return {
    lookup: counting,
    begin(value: unknown): void {
      steps = 0;
      most = MIN_STEPS;
      checked = value;
    },
  };
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
  checkSchemas(schema, lookup, draft);
  boundIntegers(Object.values(lookup));
  const counter = countingLookup(lookup);
  const comparesItems = text.includes('"uniqueItems":true');

  function misfit(value: unknown, first: SchemaError[]): Misfit {
    let errors = first;
    if (!exceeds(value, MAX_COLLECTED_NODES, MAX_COLLECTED_NODES)) {
      try {
        counter.begin(value);
        errors = validate(value, schema, draft, counter.lookup, false).errors;
      } catch {
        // More errors than can be joined: the first ones will do.
      }
    }
    const issues = collectIssues(errors, value);
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
        counter.begin(value);
        const { valid, errors } = validate(value, schema, draft, counter.lookup, true);
        return valid ? null : misfit(value, errors);
      } catch (error) {
        const why = error instanceof RangeError ? "it is nested too deep" : (error as Error).message;
        return { issues: [issueAt(value, [], `an answer that can be checked (${why})`)], mismatches: [] };
      }
    },
  };
}
