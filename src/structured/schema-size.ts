import { isFields, type Schema } from "./references.js";
import { partsOf } from "./schema-keywords.js";

/** How often a single value is looked at: what refers to the same part again and again doubles at every step. */

/** Keywords whose schemas are about the same value, not about one inside it. */
const SAME_VALUE: ReadonlySet<string> = new Set([
  ...["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"],
]);
const MAX_CHECKS = 100_000;

type Target = (schema: Schema) => unknown;

/** Throws Error where a reference leads back to itself without going deeper, or one value would take too many checks. */
export function createSizeCheck(targetOf: Target, refAlone: boolean): (schema: Schema) => void {
  const known = new Map<Schema, number>();
  const open = new Set<Schema>();

  function sizeOf(schema: unknown): number {
    if (!isFields(schema)) return 1;
    const size = known.get(schema);
    if (size !== undefined) return size;
    if (open.has(schema)) {
      throw new Error("a reference leads back to itself without going deeper into the answer, so it never ends");
    }
    open.add(schema);
    let sum = 1;
    if (schema.$ref !== undefined) sum += sizeOf(targetOf(schema));
    if (schema.$ref === undefined || !refAlone) {
      for (const part of partsOf(schema)) if (SAME_VALUE.has(part.keyword)) sum += sizeOf(part.schema);
    }
    open.delete(schema);
    if (sum > MAX_CHECKS) {
      throw new Error(
        `its references and alternatives multiply: one value would take more than ${MAX_CHECKS} checks; ` +
          "refer to each part once",
      );
    }
    known.set(schema, sum);
    return sum;
  }

  return sizeOf;
}
