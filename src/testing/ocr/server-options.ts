import { ConfigError, type ConfigProblem } from "../../errors.js";
import { checkNames, type OptionNames } from "../provider/option-names.js";
import { checkNumbers, number, type Range, whole } from "../provider/option-numbers.js";

/** What the options of simulated OCR servers may be: names, numbers, words, and faults that exclude each other. */

export const UPLOAD_OPTION_NAMES = {
  host: true,
  port: true,
  seed: true,
  pages: true,
  apiKeys: true,
  latencyMs: true,
  clock: true,
} as const;

export const UPLOAD_FAULT_NAMES = {
  failureRate: true,
  hangAt: true,
  overloaded: true,
  cut: true,
  times: true,
} as const;

/** Of servers that take JSON. A request meets one of the first five. */
export const JSON_FAULT_NAMES = {
  status: true,
  hang: true,
  cut: true,
  reset: true,
  html: true,
  times: true,
} as const;
export const JSON_EXCLUSIVE_FAULTS = ["status", "hang", "cut", "reset", "html"] as const;

export const UPLOAD_RANGES: readonly (readonly [string, Range])[] = [
  ["seed", whole(0)],
  ["pages", whole(1, 10_000)],
  ["faults.failureRate", number(0, 1)],
];
export const JSON_RANGES: readonly (readonly [string, Range])[] = [["faults.status", whole(400, 599)]];

/** Of every server. */
const RANGES: readonly (readonly [string, Range])[] = [
  ["port", whole(0, 65_535)],
  ["latencyMs", whole(0)],
  ["faults.times", whole(1)],
];

export interface ServerOptionRules {
  readonly names: OptionNames;
  /** Whose options they are, for errors. */
  readonly owner: string;
  /** Faults that are one of these words. */
  readonly choices?: Readonly<Record<string, readonly string[]>>;
  /** Faults of which one at a time is possible. */
  readonly exclusive?: readonly string[];
  readonly ranges?: readonly (readonly [string, Range])[];
}

/** @throws ConfigError with every bad option. */
export function assertServerOptions(options: unknown, rules: ServerOptionRules): void {
  const { names, owner, choices = {}, exclusive = [], ranges = [] } = rules;
  const problems = checkNames(options, names, owner);
  if (!problems.some(({ problem }) => problem.includes("no object"))) {
    const { faults = {} } = options as { faults?: Readonly<Record<string, unknown>> };
    problems.push(
      ...checkNumbers(options, [...RANGES, ...ranges]),
      ...Object.entries(choices).flatMap(([name, words]) => checkChoice(name, faults[name], words)),
      ...checkHangs(faults.hangAt),
      ...checkExclusive(faults, exclusive),
    );
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

function checkChoice(name: string, value: unknown, words: readonly string[]): ConfigProblem[] {
  if (value === undefined || words.includes(value as string)) return [];
  return [
    { key: `faults.${name}`, value: String(value), problem: "unknown value", remedy: `Use ${words.join(" or ")}` },
  ];
}

function checkHangs(value: unknown): ConfigProblem[] {
  const isList = Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 1);
  if (value === undefined || isList) return [];
  return [{ key: "faults.hangAt", problem: "is no list of whole numbers from 1", remedy: "Give a list like [1, 4]" }];
}

function checkExclusive(faults: Readonly<Record<string, unknown>>, exclusive: readonly string[]): ConfigProblem[] {
  const chosen = exclusive.filter((name) => faults[name] !== undefined && faults[name] !== false);
  if (chosen.length < 2) return [];
  const key = chosen.map((name) => `faults.${name}`).join(" + ");
  return [{ key, problem: "exclude each other", remedy: "A request meets one fault: choose one of them" }];
}
