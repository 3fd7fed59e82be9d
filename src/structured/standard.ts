import type { JsonSchema, StandardSchema } from "../domain/standard-schema.js";

/** The JSON Schema of a Standard Schema, from whoever can tell it. */

/** Converts a zod 4 schema that can't do it itself. */
export type ZodConverter = (schema: unknown) => JsonSchema;

interface Convertible {
  toJSONSchema?: (options: object) => JsonSchema;
  toJsonSchema?: () => JsonSchema;
  _zod?: unknown;
}

const TARGETS = ["draft-2020-12", "draft-07"] as const;

function byStandard(schema: StandardSchema): JsonSchema | undefined {
  const convert = schema["~standard"].jsonSchema?.input;
  if (convert === undefined) return undefined;
  let first: unknown;
  for (const target of TARGETS) {
    try {
      return convert({ target });
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

function byVendor(schema: Convertible, zod: ZodConverter): JsonSchema | undefined {
  if (typeof schema.toJSONSchema === "function") return schema.toJSONSchema({ io: "input" });
  if (typeof schema.toJsonSchema === "function") return schema.toJsonSchema();
  return schema._zod === undefined ? undefined : zod(schema);
}

/** Throws Error with what to do where there is none. */
export function jsonSchemaOf(schema: StandardSchema, zod: ZodConverter): JsonSchema {
  const { vendor } = schema["~standard"];
  let why = `schemas of ${vendor} don't tell their JSON Schema`;
  try {
    const found = byStandard(schema) ?? byVendor(schema as Convertible, zod);
    if (found !== undefined) return found;
  } catch (error) {
    why = `${vendor} can't write this schema as JSON Schema (${error instanceof Error ? error.message : String(error)})`;
  }
  throw new Error(`${why}; give it as the option jsonSchema`);
}
