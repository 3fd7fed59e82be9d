/** JSON as RFC 8259 has it, with what a number or a depth can do wrong found out at once. */

export type Parsed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/** Deeper values are an attack on whoever walks them, not an answer. */
const MAX_DEPTH = 200;
const NO_JSON: Parsed = { ok: false, problem: "no JSON" };

interface Visit {
  readonly value: object;
  readonly depth: number;
}

/** What makes a value unfit whatever the schema says; undefined when nothing does. Never recursive. */
function problemOf(root: unknown): string | undefined {
  if (typeof root === "number" && !Number.isFinite(root)) return "a number too large to be one";
  if (typeof root !== "object" || root === null) return undefined;
  const open: Visit[] = [{ value: root, depth: 1 }];
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    if (visit.depth > MAX_DEPTH) return `values nested more than ${MAX_DEPTH} deep`;
    for (const inner of Object.values(visit.value)) {
      if (typeof inner === "number" && !Number.isFinite(inner)) return "a number too large to be one";
      if (typeof inner === "object" && inner !== null) open.push({ value: inner, depth: visit.depth + 1 });
    }
  }
  return undefined;
}

/** Never throws. Of a key that comes twice the last one counts, as everywhere. */
export function parseJson(text: string): Parsed {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return error instanceof RangeError ? { ok: false, problem: "values nested too deep" } : NO_JSON;
  }
  const problem = problemOf(value);
  return problem === undefined ? { ok: true, value } : { ok: false, problem };
}

export function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
