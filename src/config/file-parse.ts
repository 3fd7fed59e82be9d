import { createRequire } from "node:module";
import type { Document, LineCounter, ParsedNode, YAMLError } from "yaml";
import { showWord } from "../domain/secret.js";
import type { ConfigProblem } from "../errors.js";
import { shownPath } from "./file-labels.js";
import { jsonFault, yamlWords } from "./file-syntax.js";
import { below, type MapTree, type ScalarTree, type Tree } from "./file-tree.js";
import { printable } from "./values.js";

/** Deeper than any configuration, and far from where a recursive parser ends the process. */
const MAX_DEPTH = 100;
/** Aliases can make a short file mean billions of values. */
const MAX_VALUES = 100_000;
const MAX_SYNTAX_PROBLEMS = 10;
const CORE_TAGS = new Set(
  ["str", "int", "float", "bool", "null", "map", "seq"].map((tag) => `tag:yaml.org,2002:${tag}`),
);

export interface ParsedFile {
  /** undefined = there are problems. */
  readonly tree: Tree | undefined;
  readonly problems: readonly ConfigProblem[];
}

type Yaml = typeof import("yaml");

/** Loaded at the first configuration file: a program that configures itself in code never pays for it. */
let loaded: Yaml | undefined;

/** Reads YAML 1.2, or strict JSON when `path` ends in `.json`. `path` is only for the texts. Never throws. */
export function parseConfigText(path: string, text: string): ParsedFile {
  loaded ??= createRequire(import.meta.url)("yaml") as Yaml;
  const where = (line: number | undefined): string =>
    line === undefined ? printable(path) : `${printable(path)}:${line}`;
  const json = /\.json$/i.test(path) ? jsonFault(text) : undefined;
  if (json !== undefined) {
    const remedy = "Look for a missing or superfluous comma, quote or bracket; JSON has no comments.";
    return { tree: undefined, problems: [{ key: where(json.line), problem: "is not valid JSON", remedy }] };
  }
  const lines = new loaded.LineCounter();
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  const document = compose(loaded, text, lines);
  if (typeof document === "number") {
    const remedy = `Nest at most ${MAX_DEPTH} levels.`;
    return { tree: undefined, problems: [{ key: where(lineAt(document)), problem: "is nested too deeply", remedy }] };
  }
  const syntax = syntaxProblems(document, text, lineAt, where);
  return syntax.length > 0 ? { tree: undefined, problems: syntax } : walk(loaded, document, lineAt, where);
}

/** The document, or the offset where it gets too deep: composing and walking are recursive. */
function compose({ Composer, Lexer, Parser }: Yaml, text: string, lines: LineCounter): Document.Parsed | number {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const composer = new Composer({ uniqueKeys: false, prettyErrors: false, logLevel: "silent" });
  const documents: Document.Parsed[] = [];
  const tokens = [];
  // Both ends of a level stand on the parser's stack.
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > 2 * MAX_DEPTH) return parser.offset;
  }
  tokens.push(...parser.end());
  for (const document of composer.compose(tokens, true, text.length) as Iterable<Document.Parsed>) {
    documents.push(document);
    if (documents.length > 1) break;
  }
  const [first, second] = documents as [Document.Parsed, ...Document.Parsed[]];
  if (second !== undefined) first.errors.push(multipleDocuments(second));
  return first;
}

function multipleDocuments(second: Document.Parsed): Document.Parsed["errors"][number] {
  const { YAMLParseError } = loaded as Yaml;
  return new YAMLParseError(second.range.slice(0, 2) as [number, number], "MULTIPLE_DOCS", "");
}

function syntaxProblems(
  { errors, warnings, directives }: Document.Parsed,
  text: string,
  lineAt: (offset: number) => number,
  where: (line: number) => string,
): ConfigProblem[] {
  const lines = text.split("\n");
  const byLine = new Map<number, ConfigProblem>();
  for (const { code, pos } of [...errors, ...warnings] as YAMLError[]) {
    const line = lineAt(pos[0]);
    if (byLine.has(line) || byLine.size >= MAX_SYNTAX_PROBLEMS) continue;
    // The one thing that looks right and is not: { apiKey: ${NAME} }.
    const inFlow = code === "UNEXPECTED_TOKEN" && lines[line - 1]?.includes("${") === true;
    const tag = code === "TAG_RESOLVE_FAILED";
    const [problem, remedy] = tag
      ? ["has a ! tag that is not supported", "Remove the tag, or put the value in quotes."]
      : yamlWords(code);
    byLine.set(line, {
      key: where(line),
      problem,
      remedy: inFlow ? `Inside { } and [ ] put "\${NAME}" in quotes.` : remedy,
    });
  }
  const version = directives.yaml;
  if (version.explicit && version.version !== "1.2") {
    const remedy = "Remove the %YAML line: files are read as YAML 1.2.";
    byLine.set(0, { key: where(1), problem: `says it is YAML ${version.version}`, remedy });
  }
  return [...byLine.values()];
}

interface Walk {
  readonly yaml: Yaml;
  readonly problems: ConfigProblem[];
  readonly anchors: Map<string, ParsedNode>;
  /** Nodes whose content is being walked: an alias to one of them never ends. */
  readonly open: Set<ParsedNode>;
  readonly lineAt: (offset: number) => number;
  readonly where: (line: number) => string;
  values: number;
}

/** Ends a walk that would not end by itself. */
class TooMuch extends Error {}

function walk(
  yaml: Yaml,
  document: Document.Parsed,
  lineAt: (offset: number) => number,
  where: (line: number | undefined) => string,
): ParsedFile {
  const state: Walk = { yaml, problems: [], anchors: new Map(), open: new Set(), lineAt, where, values: 0 };
  const { contents } = document;
  const isEmpty = contents === null || (yaml.isScalar(contents) && contents.value === null);
  if (isEmpty) {
    const remedy = "Write `scopes:` with at least one scope in it; `polygateway init --format yaml` makes a first one.";
    return { tree: undefined, problems: [{ key: where(undefined), problem: "is empty", remedy }] };
  }
  try {
    const tree = treeOf(state, contents, lineAt(contents.range[0]), "", 0);
    return state.problems.length > 0 ? { tree: undefined, problems: state.problems } : { tree, problems: [] };
  } catch (error) {
    if (!(error instanceof TooMuch)) throw error;
    const remedy = "Write the values out instead of repeating them by aliases.";
    const problem = { key: where(undefined), problem: error.message, remedy };
    return { tree: undefined, problems: [...state.problems, problem] };
  }
}

function treeOf(state: Walk, node: ParsedNode | null, line: number, path: string, depth: number): Tree {
  state.values += 1;
  if (state.values > MAX_VALUES) throw new TooMuch(`means more than ${MAX_VALUES} values`);
  if (depth > MAX_DEPTH) throw new TooMuch("is nested too deeply");
  const { isAlias, isMap, isSeq } = state.yaml;
  if (node === null) return nothing(line);
  if (isAlias(node)) return aliasTree(state, node.source, line, path, depth);
  if (node.anchor !== undefined) state.anchors.set(node.anchor, node);
  if (node.tag !== undefined && !CORE_TAGS.has(node.tag)) {
    report(state, line, path, "has a ! tag that is not supported", "Remove the tag, or put the value in quotes.");
    return nothing(line);
  }
  if (!isMap(node) && !isSeq(node)) return scalarTree(node as ParsedNode & { value: unknown; type?: string }, line);
  state.open.add(node);
  const tree = isMap(node)
    ? mapTree(state, node.items as MapItems, line, path, depth)
    : {
        kind: "list" as const,
        line,
        items: node.items.map((item, index) => {
          const child = item as ParsedNode | null;
          const at = child === null ? line : state.lineAt(child.range[0]);
          return treeOf(state, child, at, `${path}[${index}]`, depth + 1);
        }),
      };
  state.open.delete(node);
  return tree;
}

function nothing(line: number): ScalarTree {
  return { kind: "scalar", line, value: null, quoted: false };
}

function scalarTree({ value, type }: { value: unknown; type?: string }, line: number): ScalarTree {
  return { kind: "scalar", line, value: value as ScalarTree["value"], quoted: type !== "PLAIN" };
}

function aliasTree(state: Walk, anchor: string, line: number, path: string, depth: number): Tree {
  const target = state.anchors.get(anchor);
  if (target === undefined) {
    const name = showWord(anchor);
    report(state, line, path, `uses *${name}, which no &${name} above defines`, "Define it first.");
    return nothing(line);
  }
  if (state.open.has(target)) {
    report(state, line, path, `uses *${showWord(anchor)} inside itself`, "Write the value out.");
    return nothing(line);
  }
  return treeOf(state, target, line, path, depth + 1);
}

type MapItems = readonly { readonly key: ParsedNode | null; readonly value: ParsedNode | null }[];

function mapTree(state: Walk, items: MapItems, line: number, path: string, depth: number): MapTree {
  const own = new Map<string, Tree>();
  const merged: MapTree[] = [];
  for (const { key, value } of items) {
    const at = key === null ? line : state.lineAt(key.range[0]);
    const name = keyOf(state, key, at, path);
    if (key === null || name === undefined) continue;
    const earlier = own.get(name);
    if (name === "<<" && "type" in key && key.type === "PLAIN") {
      merged.push(...mergedMaps(state, treeOf(state, value, at, path, depth + 1), path));
    } else if (earlier !== undefined) {
      report(state, at, below(path, name), `is given twice, first in line ${earlier.line}`, "Keep one of the two.");
    } else own.set(name, treeOf(state, value, at, below(path, name), depth + 1));
  }
  // What a mapping says itself wins over what it merges, and an earlier merge over a later one.
  for (const { entries } of merged) {
    for (const [name, tree] of entries) if (!own.has(name)) own.set(name, tree);
  }
  return { kind: "map", line, entries: own };
}

function mergedMaps(state: Walk, tree: Tree, path: string): MapTree[] {
  const list = tree.kind === "list" ? tree.items : [tree];
  return list.flatMap((each) => {
    if (each.kind === "map") return [each];
    report(state, tree.line, below(path, "<<"), "merges something that is no mapping", "Give an alias of a mapping.");
    return [];
  });
}

function keyOf(state: Walk, key: ParsedNode | null, line: number, path: string): string | undefined {
  if (!state.yaml.isScalar(key) || (key.type === "PLAIN" && key.source === "")) {
    report(state, line, path, "has a key that is not a plain word", "Write `key: value`.");
    return undefined;
  }
  const name = key.type === "PLAIN" ? (key.source ?? String(key.value)) : String(key.value);
  if (name !== "__proto__") return name;
  report(state, line, below(path, name), "is a name that is refused", "Remove it.");
  return undefined;
}

function report(state: Walk, line: number, path: string, problem: string, remedy: string): void {
  const key = path === "" ? state.where(line) : `${state.where(line)} ${shownPath(path)}`;
  state.problems.push({ key, problem, remedy });
}
