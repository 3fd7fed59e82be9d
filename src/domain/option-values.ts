import type { ConfigProblem } from "../errors.js";
import { givenValue } from "./given-value.js";

/** What is wrong with options of an adapter that plain JavaScript may have given; empty = nothing. `key` names the option. */

/** A whole number from 1 to `highest`; `unit` in the plural, where it has one. */
export function countProblems(key: string, value: unknown, highest: number, unit = ""): ConfigProblem[] {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= highest) return [];
  const remedy = `Use a whole number${unit === "" ? "" : ` of ${unit}`} from 1 to ${highest}`;
  return [{ key, value: givenValue(value), problem: "is out of range", remedy }];
}

/** `example`: a name that would do. */
export function pathProblems(key: string, value: unknown, example: string): ConfigProblem[] {
  if (typeof value === "string" && value.trim() !== "") return [];
  return [{ key, value: givenValue(value), problem: "is no file path", remedy: `Give one, for example "${example}"` }];
}

/** An object of the user's that is used by these methods. */
export function methodProblems(
  key: string,
  value: unknown,
  methods: readonly string[],
  remedy: string,
): ConfigProblem[] {
  const given = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const missing = methods.find((method) => typeof given[method] !== "function");
  if (missing === undefined) return [];
  if (value === undefined) return [{ key, problem: "is missing", remedy }];
  return [{ key, value: givenValue(value), problem: `has no ${missing}()`, remedy }];
}

export const RUNTIME_REMEDY = "Give createSystemRuntime(), or one of your own for tests";

/** An option that is given as undefined is not given. */
export function definedOf<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
