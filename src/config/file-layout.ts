import { didYouMean } from "../domain/did-you-mean.js";
import type { ConfigProblem } from "../errors.js";
import { shownPath } from "./file-labels.js";
import type { MapTree, Tree } from "./file-tree.js";
import { printable } from "./values.js";

/** One scope as it stands in a file. */
export interface ScopePlace {
  readonly tree: Tree;
  /** What stands above its options: `scopes.LLM.`, or nothing. */
  readonly prefix: string;
}

/** What stands where at the top of a configuration file. */
export interface FileLayout {
  readonly scopes: ReadonlyMap<string, ScopePlace>;
  readonly process: Tree | undefined;
  readonly problems: readonly ConfigProblem[];
  /** Those that leave it open what the settings of the process are; absent = none. */
  readonly processProblems?: readonly ConfigProblem[];
}

const TOP_KEYS = ["scopes", "process"];
const DEFAULT_SCOPE = "LLM";

/**
 * `scopes:` with the options of each scope below its name. A file of one scope may also hold its options at the top,
 * as the constructor takes them. `process:` is read with both.
 */
export function layoutOf(file: string, tree: Tree): FileLayout {
  const where = (line: number, path: string): string => `${printable(file)}:${line}${path && ` ${shownPath(path)}`}`;
  if (tree.kind !== "map") {
    const remedy = "Write `scopes:` with the options of each scope below its name.";
    const problems = [{ key: where(tree.line, ""), problem: "is not a mapping", remedy }];
    return { scopes: new Map(), process: undefined, problems, processProblems: problems };
  }
  const process = tree.entries.get("process");
  const named = tree.entries.get("scopes");
  if (named === undefined && tree.entries.has("sources")) return { ...singleScope(tree), process, problems: [] };
  const problems = unknownKeys([...tree.entries], where);
  const likeProcess = [...tree.entries].filter(([key]) => didYouMean(key, TOP_KEYS) === "process");
  const processProblems = process === undefined ? unknownKeys(likeProcess, where) : [];
  if (named === undefined) {
    // A misspelt `scopes` is told once.
    if (problems.length > 0) return { scopes: new Map(), process, problems, processProblems };
    const remedy = "Write `scopes:` with the options of each scope below its name.";
    return {
      scopes: new Map(),
      process,
      processProblems,
      problems: [{ key: where(tree.line, "scopes"), problem: "is missing", remedy }],
    };
  }
  if (named.kind !== "map" || named.entries.size === 0) {
    const remedy = "Write the name of a scope below it, such as LLM, and its options below the name.";
    const problem = { key: where(named.line, "scopes"), problem: "has no scope", remedy };
    return { scopes: new Map(), process, processProblems, problems: [...problems, problem] };
  }
  const scopes = new Map([...named.entries].map(([name, each]) => [name, { tree: each, prefix: `scopes.${name}.` }]));
  return { scopes, process, problems, processProblems };
}

function singleScope(tree: MapTree): Pick<FileLayout, "scopes"> {
  const entries = new Map(tree.entries);
  entries.delete("process");
  const given = entries.get("scope");
  const name = given?.kind === "scalar" && typeof given.value === "string" ? given.value : DEFAULT_SCOPE;
  return { scopes: new Map([[name, { tree: { ...tree, entries }, prefix: "" }]]) };
}

function unknownKeys(
  entries: readonly (readonly [string, Tree])[],
  where: (line: number, path: string) => string,
): ConfigProblem[] {
  const unknown = entries.filter(([key]) => !TOP_KEYS.includes(key));
  return unknown.map(([key, { kind, line, ...value }]) => {
    const isScope = kind === "map" && "entries" in value && value.entries.has("sources");
    const meant = didYouMean(key, TOP_KEYS);
    const known = `At the top are ${TOP_KEYS.join(" and ")}; options of a scope stand below its name in scopes.`;
    const remedy = isScope
      ? `Put it below scopes, as scopes.${shownPath(key)}.`
      : meant
        ? `Did you mean ${meant}?`
        : known;
    return { key: where(line, key), problem: "is not a known key", remedy };
  });
}

/** What to do about a scope that the file doesn't have. */
export function missingScope(file: string, scope: string, { scopes }: FileLayout): ConfigProblem {
  const name = String(scope);
  const meant = didYouMean(name, scopes.keys());
  const found = `It has ${[...scopes.keys()].map(printable).join(", ")}.`;
  return {
    key: printable(file),
    problem: `has no scope ${printable(name)}`,
    remedy: meant === undefined ? found : `Did you mean ${printable(meant)}? ${found}`,
  };
}
