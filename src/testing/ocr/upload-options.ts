import { ConfigError, type ConfigProblem } from "../../errors.js";
import { checkNames, type OptionNames } from "../provider/option-names.js";
import { checkNumbers, number, type Range, whole } from "../provider/option-numbers.js";

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

const RANGES: readonly (readonly [string, Range])[] = [
  ["port", whole(0, 65_535)],
  ["seed", whole(0)],
  ["pages", whole(1, 10_000)],
  ["latencyMs", whole(0)],
  ["faults.failureRate", number(0, 1)],
  ["faults.times", whole(1)],
];

export interface UploadOptionRules {
  readonly names: OptionNames;
  /** Whose options they are, for errors. */
  readonly owner: string;
  /** Faults that are one of these words. */
  readonly choices?: Readonly<Record<string, readonly string[]>>;
  readonly ranges?: readonly (readonly [string, Range])[];
}

/** @throws ConfigError with every bad option. */
export function assertUploadOptions(options: unknown, rules: UploadOptionRules): void {
  const { names, owner, choices = {}, ranges = [] } = rules;
  const problems = checkNames(options, names, owner);
  if (!problems.some(({ problem }) => problem.includes("no object"))) {
    const { faults = {} } = options as { faults?: Readonly<Record<string, unknown>> };
    problems.push(
      ...checkNumbers(options, [...RANGES, ...ranges]),
      ...Object.entries(choices).flatMap(([name, words]) => checkChoice(name, faults[name], words)),
      ...checkHangs(faults.hangAt),
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
