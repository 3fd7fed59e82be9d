import type { StandardSchema } from "../domain/standard-schema.js";
import { adjusted } from "./adjust.js";
import { expectedIn } from "./expected.js";
import { type AnswerIssue, issueAt, MAX_ISSUES } from "./issues.js";
import type { Path } from "./schema-issues.js";
import { isContainer } from "./strict-json.js";
import type { Misfit, Validator } from "./validator.js";

/** What an answer must be, and how far it may be bent to be it. */

export type Fit =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly AnswerIssue[] };

export interface AnswerSchema {
  /** Never rejects. */
  fit(value: unknown): Promise<Fit>;
}

export interface AnswerSchemaOptions {
  /** Any JSON will do where there is none. */
  readonly validator: Validator | null;
  /** Has the last word where there is one, and may transform the value. */
  readonly standard: StandardSchema | null;
  readonly coerce: boolean;
  /** The value was, or may have been, asked for inside `{ value }`, since the root of a schema must be an object. */
  readonly wrapping: "none" | "possible" | "asked";
  /** Without a schema: the root must be an object. */
  readonly objectRoot: boolean;
}

function segmentsOf(path: readonly unknown[] | undefined): Path {
  return (path ?? []).map((segment) => {
    const key = typeof segment === "object" && segment !== null ? (segment as { key?: unknown }).key : segment;
    return typeof key === "number" ? key : String(key);
  });
}

function standardIssues(issues: readonly unknown[], root: unknown): AnswerIssue[] {
  return issues.slice(0, MAX_ISSUES).map((issue) => {
    const { message, path } = (issue ?? {}) as { message?: unknown; path?: readonly unknown[] };
    return issueAt(root, segmentsOf(path), expectedIn(typeof message === "string" ? message : ""));
  });
}

async function standardFit(schema: StandardSchema, value: unknown): Promise<Fit> {
  try {
    const result = await schema["~standard"].validate(value);
    if (result.issues === undefined) return { ok: true, value: (result as { value: unknown }).value };
    return { ok: false, issues: standardIssues(result.issues, value) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { ok: false, issues: [issueAt(value, [], `an answer that the schema can check (it threw: ${why})`)] };
  }
}

/** The answer itself, out of the object it was asked for in; the object too, for a model that left that out. */
function unwrappings(value: unknown, wrapping: AnswerSchemaOptions["wrapping"]): unknown[] {
  if (wrapping === "none" || !isContainer(value) || Array.isArray(value)) return [value];
  const keys = Object.keys(value);
  if (keys.length !== 1 || keys[0] !== "value") return [value];
  const { value: inner } = value as { value: unknown };
  return wrapping === "asked" ? [inner, value] : [value, inner];
}

const OBJECT_WANTED = [{ path: [], wanted: new Set(["object"]) }];

/** Any JSON, or any object: where a text holds one, that. */
function anyJson(value: unknown, objectRoot: boolean): Fit {
  if (!objectRoot || (isContainer(value) && !Array.isArray(value))) return { ok: true, value };
  const inside = adjusted(value, OBJECT_WANTED, false);
  return inside === undefined ? { ok: false, issues: [issueAt(value, [], "an object")] } : { ok: true, value: inside };
}

export function createAnswerSchema(options: AnswerSchemaOptions): AnswerSchema {
  const { validator, standard, coerce, wrapping, objectRoot } = options;

  async function judge(value: unknown, misfit: Misfit | null): Promise<Fit> {
    if (standard !== null) return standardFit(standard, value);
    return misfit === null ? { ok: true, value } : { ok: false, issues: misfit.issues };
  }

  async function fitOne(value: unknown): Promise<Fit> {
    if (validator === null) return anyJson(value, objectRoot);
    const misfit = validator.check(value);
    const given = await judge(value, misfit);
    if (given.ok || misfit === null) return given;
    const better = adjusted(value, misfit.mismatches, coerce);
    if (better === undefined) return given;
    const bent = await judge(better, validator.check(better));
    // What is wrong inside a text says more than that it is a text.
    return bent.ok || typeof value === "string" ? bent : given;
  }

  return {
    async fit(value) {
      let first: Fit | undefined;
      for (const candidate of unwrappings(value, wrapping)) {
        const fit = await fitOne(candidate);
        if (fit.ok) return fit;
        first ??= fit;
      }
      // A text that holds the whole wrapped answer.
      if (wrapping === "none" || typeof value !== "string") return first!;
      const inside = adjusted(value, OBJECT_WANTED, false);
      return inside === undefined ? first! : this.fit(inside);
    },
  };
}
