import type { ChatRequest } from "../domain/chat.js";
import { isStandardSchema, type JsonSchema } from "../domain/standard-schema.js";
import type { StructuredOptions } from "../domain/structured.js";
import { RequestRejectedError } from "../errors.js";
import { createAnswerSchema } from "../structured/answer-schema.js";
import { FormatLadder, type FormatWay } from "../structured/format-ladder.js";
import { rulesPrompt, schemaPrompt } from "../structured/prompt.js";
import { type AnswerFormat, type FormatShelf, objectWay, promptWay, type ReadySchema } from "./answer-format.js";

/** What a `structured()` call asks for, checked before anything is sent. */
export interface StructuredPlan {
  readonly strategy: "auto" | "native" | "prompt";
  readonly maxReasks: number;
  readonly wrapped: boolean;
  readonly format: AnswerFormat;
}

const OPTIONS: ReadonlySet<string> = new Set<keyof StructuredOptions>([
  "strategy",
  "maxReasks",
  "coerce",
  "name",
  "jsonSchema",
]);
const STRATEGIES: ReadonlySet<unknown> = new Set(["auto", "native", "prompt"]);
const MAX_REASKS = 100;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function refuse(problem: string, param: string, cause?: unknown): never {
  throw new RequestRejectedError(problem, {
    code: "bad_request",
    operation: "chat",
    details: { param },
    ...(cause === undefined ? {} : { cause }),
  });
}

function checkOptions(options: StructuredOptions): Required<Omit<StructuredOptions, "jsonSchema">> {
  const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined) {
    refuse(`unknown option ${JSON.stringify(unknown)} of structured(); known: ${[...OPTIONS].join(", ")}`, unknown);
  }
  const { strategy = "auto", maxReasks = 2, coerce = false, name = "answer" } = options;
  if (!STRATEGIES.has(strategy)) refuse("strategy must be auto, native or prompt", "strategy");
  if (!Number.isInteger(maxReasks) || maxReasks < 0 || maxReasks > MAX_REASKS) {
    refuse(`maxReasks must be a whole number from 0 to ${MAX_REASKS}`, "maxReasks");
  }
  if (typeof coerce !== "boolean") refuse("coerce must be true or false", "coerce");
  if (typeof name !== "string" || !NAME.test(name)) {
    refuse("name must be 1 to 64 letters, digits, _ or -", "name");
  }
  return { strategy, maxReasks, coerce, name };
}

/** What `structured()` sets itself, or has no meaning for it. */
export function checkStructuredRequest({ responseFormat, extraBody, sampling }: ChatRequest): void {
  if (responseFormat !== undefined || extraBody?.response_format !== undefined) {
    refuse("structured() sets the response format itself; leave it out, or use chat()", "responseFormat");
  }
  if ((sampling?.n ?? 1) > 1) refuse("structured() answers one value; use chat() for n > 1", "n");
}

const isFields = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function ways(strategy: StructuredPlan["strategy"], { wire }: ReadySchema, name: string): FormatWay[] {
  const inPrompt = schemaPrompt(wire);
  if (strategy === "prompt") return [promptWay(inPrompt)];
  const described = { name, schema: wire.schema, strict: wire.strict };
  const native: FormatWay = {
    step: "json_schema",
    responseFormat: { type: "json_schema", json_schema: described },
    instruction: rulesPrompt(wire),
    isOurs: strategy === "auto",
  };
  return strategy === "native" ? [native] : [native, objectWay(inPrompt), promptWay(inPrompt)];
}

/** Throws RequestRejectedError that names the option or says why the schema is unusable. */
export function planStructured(schema: unknown, options: StructuredOptions, shelf: FormatShelf): StructuredPlan {
  if (!isFields(options)) refuse("the options of structured() must be an object", "options");
  const { strategy, maxReasks, coerce, name } = checkOptions(options);
  const standard = isStandardSchema(schema) ? schema : null;
  if (standard === null && !isFields(schema)) {
    refuse("schema must be a Standard Schema (zod, valibot, arktype, …) or a JSON Schema object", "schema");
  }
  if (options.jsonSchema !== undefined && !isFields(options.jsonSchema)) {
    refuse("jsonSchema must be a JSON Schema object", "jsonSchema");
  }
  let jsonSchema: JsonSchema;
  let ready: ReadySchema;
  try {
    jsonSchema = options.jsonSchema ?? (standard === null ? (schema as JsonSchema) : shelf.jsonSchemaOf(standard));
    ready = shelf.ready(jsonSchema);
  } catch (error) {
    return refuse(
      `the schema can't be used: ${error instanceof Error ? error.message : String(error)}`,
      "schema",
      error,
    );
  }
  const { wrapped } = ready.wire;
  return {
    strategy,
    maxReasks,
    wrapped,
    format: {
      schema: createAnswerSchema({
        validator: ready.validator,
        standard,
        coerce,
        wrapping: wrapped ? "asked" : "none",
        objectRoot: false,
      }),
      ladder: new FormatLadder(ways(strategy, ready, name), shelf.memory),
      mustAnswer: true,
      cacheAs: { type: "structured", strategy, name, schema: JSON.parse(JSON.stringify(jsonSchema)) },
    },
  };
}
