import { duration, type Field, optional } from "./field.js";

/** A known key whose feature is not in this version: refused, or accepted without effect and said so. */
export interface LaterField {
  readonly field: Field;
  readonly treatment: "refused" | "no_effect";
  /** What a person is told. */
  readonly today: string;
}

function without(today: string, ...fields: Field[]): readonly LaterField[] {
  return fields.map((field) => ({ field, treatment: "no_effect", today }));
}

export const SOURCE_LATER: readonly LaterField[] = [];

/** By group. */
export const SCOPE_LATER: Readonly<Record<string, readonly LaterField[]>> = {
  BREAKER: without(
    "is ignored: a probe ends with its lease",
    optional(duration("PROBE_TTL_S", 0, "Accepted for old configurations; ignored"), "–"),
  ),
};

export const PROCESS_LATER: readonly LaterField[] = [];
