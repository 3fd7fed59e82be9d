import type { ConfigProblem } from "../../errors.js";

/** What is accepted, in words, and the rule itself. */
export interface Range {
  readonly words: string;
  accepts(value: number): boolean;
}

export function number(min: number, max = Number.POSITIVE_INFINITY): Range {
  const words = Number.isFinite(max) ? `a number from ${min} to ${max}` : `a number of at least ${min}`;
  return { words, accepts: (value) => Number.isFinite(value) && value >= min && value <= max };
}

export function whole(min: number, max = Number.MAX_SAFE_INTEGER): Range {
  const words =
    max < Number.MAX_SAFE_INTEGER ? `a whole number from ${min} to ${max}` : `a whole number of at least ${min}`;
  return { words, accepts: (value) => Number.isSafeInteger(value) && value >= min && value <= max };
}

/** The value of `limits.rpm` and the like. */
export function valueAt(options: unknown, path: string): unknown {
  let value = options;
  for (const name of path.split(".")) value = (value as Record<string, unknown> | undefined)?.[name];
  return value;
}

/** The numbers that are given and not accepted. */
export function checkNumbers(options: unknown, ranges: readonly (readonly [path: string, range: Range])[]) {
  return ranges.flatMap(([path, range]): ConfigProblem[] => {
    const value = valueAt(options, path);
    if (value === undefined || (typeof value === "number" && range.accepts(value))) return [];
    return [{ key: path, value: String(value), problem: "not accepted", remedy: `Give ${range.words}` }];
  });
}
