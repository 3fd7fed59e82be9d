import { createRequire } from "node:module";
import type { ZodType } from "zod";

/**
 * The JSON Schema that a zod 4 schema takes as input, for schemas of releases that can't tell it themselves. zod is loaded
 * at the first use. Throws Error where the schema can't be written as JSON Schema.
 */
export function zodToJsonSchema(schema: unknown): Readonly<Record<string, unknown>> {
  const { z } = createRequire(import.meta.url)("zod") as typeof import("zod");
  return z.toJSONSchema(schema as ZodType, { io: "input" }) as Record<string, unknown>;
}
