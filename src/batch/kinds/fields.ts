import { didYouMean } from "../../domain/did-you-mean.js";

/** A JSON object of a line. */
export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is wrong with the first field that a line of this kind doesn't have; undefined = nothing. */
export function unknownFieldProblem(fields: Fields, known: ReadonlySet<string>, line: string): string | undefined {
  const unknown = Object.keys(fields).find((name) => !known.has(name));
  if (unknown === undefined) return undefined;
  const meant = didYouMean(unknown, known);
  const hint = meant === undefined ? "" : `; did you mean ${JSON.stringify(meant)}?`;
  return `${JSON.stringify(unknown)} is not supported in ${line}${hint} (known: ${[...known].join(", ")})`;
}
