const LONGEST_SHOWN = 40;

/** What was given where something else is meant, for people: plain JavaScript may give anything. No place for a secret. */
export function givenValue(value: unknown): string {
  if (typeof value !== "string") return givenKind(value);
  return value.length <= LONGEST_SHOWN ? JSON.stringify(value) : `(a text of ${value.length} characters)`;
}

/** The same of what is no text. */
export function givenKind(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number" || typeof value === "boolean") {
    return String(value);
  }
  if (Array.isArray(value)) return "(a list)";
  return typeof value === "object" ? "(an object)" : `(a ${typeof value})`;
}
