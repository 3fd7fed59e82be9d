import { didYouMean } from "../../domain/did-you-mean.js";
import type { ConfigProblem } from "../../errors.js";

/** Names of options; those of a group stand below its name. */
export interface OptionNames {
  readonly [name: string]: true | Readonly<Record<string, true>>;
}

/** The names as paths: `seed`, `limits.rpm`. */
export function optionPaths(names: OptionNames): string[] {
  return Object.entries(names).flatMap(([name, below]) =>
    below === true ? [name] : Object.keys(below).map((option) => `${name}.${option}`),
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Unknown options, and groups that are no objects. `owner` = whose options they are. */
export function checkNames(options: unknown, names: OptionNames, owner = "the simulated provider"): ConfigProblem[] {
  if (!isObject(options)) return [{ key: "options", problem: "are no object", remedy: "Give an object with options" }];
  return Object.entries(options).flatMap(([name, value]): ConfigProblem[] => {
    const below = Object.hasOwn(names, name) ? names[name] : undefined;
    if (below === undefined) return [unknownName(name, names, "", names, owner)];
    if (below === true || value === undefined) return [];
    if (!isObject(value)) {
      return [{ key: name, problem: "is no object", remedy: `Give an object with ${Object.keys(below).join(", ")}` }];
    }
    const unknown = Object.keys(value).filter((option) => !Object.hasOwn(below, option));
    return unknown.map((option) => unknownName(option, below, `${name}.`, names, owner));
  });
}

/** Its value is not shown: it may be a key. */
function unknownName(name: string, here: OptionNames, group: string, all: OptionNames, owner: string): ConfigProblem {
  const near = didYouMean(name, Object.keys(here));
  const paths = optionPaths(all);
  // It may be an option of another group, under its own name.
  const byLeaf = new Map(paths.map((each) => [each.split(".").at(-1) ?? each, each]));
  const meant = near === undefined ? byLeaf.get(didYouMean(name, byLeaf.keys()) ?? "") : `${group}${near}`;
  const remedy = meant === undefined ? `Known are ${paths.join(", ")}` : `Did you mean ${meant}?`;
  return { key: `${group}${name}`, problem: `is no option of ${owner}`, remedy };
}
