import { didYouMean } from "../domain/did-you-mean.js";
import type { OperationKind } from "../domain/record.js";
import type { JsonSchema, StandardSchema } from "../domain/standard-schema.js";
import { RequestRejectedError } from "../errors.js";
import { type AnswerSchema, createAnswerSchema } from "../structured/answer-schema.js";
import { FormatLadder, type FormatMemory, type FormatWay } from "../structured/format-ladder.js";
import { JSON_OBJECT_PROMPT, schemaPrompt } from "../structured/prompt.js";
import { jsonSchemaOf, type ZodConverter } from "../structured/standard.js";
import { compileSchema, type Validator } from "../structured/validator.js";
import { prepareSchema, type WireSchema } from "../structured/wire-schema.js";

/** What is asked of an answer, and how each source is asked for it. One per call. */
export interface AnswerFormat {
  readonly schema: AnswerSchema;
  readonly ladder: FormatLadder;
  /** Tool calls and refusals are no answer. */
  readonly mustAnswer: boolean;
  /** What stands for the format in the key of the cache; undefined = the request's own `responseFormat`. */
  readonly cacheAs: unknown;
}

/** A schema as it is checked and as providers are told it. */
export interface ReadySchema {
  readonly validator: Validator;
  readonly wire: WireSchema;
}

/** What a client keeps from call to call. */
export interface FormatShelf {
  readonly memory: FormatMemory;
  /** Throws Error when the schema is unusable. */
  ready(schema: JsonSchema): ReadySchema;
  /** The JSON Schema of a Standard Schema, which never changes. Throws Error where there is none. */
  jsonSchemaOf(schema: StandardSchema): JsonSchema;
}

const MAX_READY = 64;

export function createFormatShelf(zod: ZodConverter): FormatShelf {
  const converted = new WeakMap<StandardSchema, JsonSchema>();
  const known = new Map<string, ReadySchema>();
  return {
    memory: new WeakMap(),
    ready(schema) {
      // By its text: whoever made the object may change it.
      const text = JSON.stringify(schema);
      let ready = known.get(text);
      if (ready === undefined) {
        ready = { validator: compileSchema(schema), wire: prepareSchema(schema) };
        if (known.size >= MAX_READY) known.delete(known.keys().next().value!);
        known.set(text, ready);
      }
      return ready;
    },
    jsonSchemaOf(schema) {
      let found = converted.get(schema);
      if (found === undefined) {
        found = jsonSchemaOf(schema, zod);
        converted.set(schema, found);
      }
      return found;
    },
  };
}

interface ResponseFormat {
  readonly type: "json_schema" | "json_object";
  readonly schema: unknown;
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Refuse = (problem: string) => never;

/** null = nothing that we read: a format of the provider's own, or `validate: false`. */
export function formatIn(responseFormat: unknown, refuse: Refuse): ResponseFormat | null {
  if (responseFormat === null) return null;
  if (!isFields(responseFormat)) refuse(`responseFormat must be an object, such as ${EXAMPLE}`);
  const { type, validate, json_schema: described } = responseFormat as Record<string, unknown>;
  if (type !== "json_schema" && type !== "json_object") {
    refuseMistake(type, refuse);
    return null;
  }
  if (validate !== undefined && typeof validate !== "boolean") refuse("responseFormat.validate must be true or false");
  if (validate === false) return null;
  if (type === "json_object") return { type, schema: undefined };
  const { schema } = isFields(described) ? described : (responseFormat as Record<string, unknown>);
  if (schema === undefined) refuse(`responseFormat json_schema has no schema; it is written ${SCHEMA_EXAMPLE}`);
  return { type, schema };
}

const EXAMPLE = '{ type: "json_object" }';
const SCHEMA_EXAMPLE = '{ type: "json_schema", json_schema: { name: "answer", schema: { … } } }';
const OF_OPENAI = ["json_schema", "json_object", "text"];
const OF_JSON_SCHEMA: ReadonlySet<unknown> = new Set(["object", "array", "string", "number", "integer", "boolean"]);

/** Providers have formats of their own; what is nearly one of OpenAI's, or a schema alone, was meant to be checked. */
function refuseMistake(type: unknown, refuse: Refuse): void {
  if (typeof type !== "string") refuse(`responseFormat.type must be a text, such as ${EXAMPLE}`);
  if (OF_JSON_SCHEMA.has(type)) refuse(`responseFormat is a JSON Schema alone; it is written ${SCHEMA_EXAMPLE}`);
  if (OF_OPENAI.includes(type as string)) return;
  const meant = didYouMean(type as string, OF_OPENAI);
  if (meant !== undefined) refuse(`responseFormat.type ${JSON.stringify(type)} is not known; did you mean ${meant}?`);
}

export const OBJECT_FORMAT = { type: "json_object" } as const;

export function promptWay(instruction: string): FormatWay {
  return { step: "prompt", responseFormat: undefined, instruction, isOurs: true };
}

export function objectWay(instruction: string): FormatWay {
  return { step: "json_object", responseFormat: OBJECT_FORMAT, instruction, isOurs: true };
}

/** The caller's format goes out as it is where the source has it; elsewhere the same is asked for by weaker means. */
function plainWays(own: unknown, type: ResponseFormat["type"], ready: ReadySchema | null): FormatWay[] {
  const given: FormatWay = { step: type, responseFormat: own, instruction: "", isOurs: false };
  const instruction = ready === null ? JSON_OBJECT_PROMPT : schemaPrompt(ready.wire);
  if (type === "json_object") return [given, promptWay(instruction)];
  return [given, objectWay(instruction), promptWay(instruction)];
}

/** What a plain call with a `responseFormat` gets: the reader without re-asks. Throws RequestRejectedError. */
export function plainFormat(
  responseFormat: unknown,
  shelf: FormatShelf,
  operation: OperationKind,
): AnswerFormat | null {
  const refuse: Refuse = (problem) => {
    throw new RequestRejectedError(problem, { code: "bad_request", operation, details: { param: "responseFormat" } });
  };
  const asked = formatIn(responseFormat, refuse);
  if (asked === null) return null;
  const { type, schema } = asked;
  if (schema !== undefined && !isFields(schema)) refuse("responseFormat.json_schema.schema must be an object");
  const ready = readyOr(refuse, () => (schema === undefined ? null : shelf.ready(schema as JsonSchema)));
  return {
    schema: createAnswerSchema({
      validator: ready?.validator ?? null,
      standard: null,
      coerce: false,
      wrapping: ready?.wire.wrapped === true ? "possible" : "none",
      objectRoot: type === "json_object",
    }),
    ladder: new FormatLadder(plainWays(responseFormat, type, ready), shelf.memory),
    mustAnswer: false,
    cacheAs: undefined,
  };
}

function readyOr<T>(refuse: Refuse, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refuse(`the schema in responseFormat can't be used: ${why}. { validate: false } sends it as it is`);
  }
}
