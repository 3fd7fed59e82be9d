import { posix } from "node:path";
import ts from "typescript";
import {
  ALLOWED_IMPORTS,
  FORBIDDEN_MODULES,
  HOMES,
  INDEX_FILES,
  INNER_LAYERS,
  LONG_FILES,
  MAX_LINES,
  PACKAGE_HOMES,
  PURE_LAYERS,
  STAR_EXPORTS,
} from "./architecture-rules.js";

/** Path from the repository root (`src/domain/chat.ts`) → source text. */
export type SourceFiles = ReadonlyMap<string, string>;

interface Found {
  readonly path: string;
  readonly node: ts.Node;
}

/** Tests and what they share; published neither as code nor as a layer. */
function isTest(path: string): boolean {
  return /\.test(-helper)?\.ts$/.test(path);
}

/** Test bodies and worker threads have no runtime injected. */
function isExempt(path: string): boolean {
  return isTest(path) || path.endsWith("-worker.js") || path.startsWith("src/testing/contracts/");
}

/** `src/domain/gates/smooth.ts` → `domain`; `src/errors.ts` → `errors`. */
export function layerOf(path: string): string {
  for (const [folder, layer] of Object.entries(INNER_LAYERS)) if (path.startsWith(folder)) return layer;
  const [, first = ""] = path.split("/");
  return first.replace(/\.(ts|js)$/, "");
}

function lineOf({ node }: Found): number {
  const file = node.getSourceFile();
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
}

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

/** The module text of an import, an export, a dynamic import, an import type or a require call. */
function moduleOf(node: ts.Node): ts.StringLiteralLike | undefined {
  let specifier: ts.Node | undefined;
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) specifier = node.moduleSpecifier;
  else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) specifier = node.argument.literal;
  else if (ts.isCallExpression(node)) {
    const isRequire = ts.isIdentifier(node.expression) && node.expression.text === "require";
    if (isRequire || node.expression.kind === ts.SyntaxKind.ImportKeyword) specifier = node.arguments[0];
  }
  return specifier !== undefined && ts.isStringLiteralLike(specifier) ? specifier : undefined;
}

/** The file a relative import means, or undefined when there is none. */
function resolveImport(files: SourceFiles, from: string, specifier: string): string | undefined {
  const path = posix.join(posix.dirname(from), specifier);
  return [path.replace(/\.js$/, ".ts"), path].find((candidate) => files.has(candidate));
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function judgePackage(path: string, specifier: string): string | undefined {
  const layer = layerOf(path);
  if (FORBIDDEN_MODULES.includes(specifier) && !isExempt(path)) return `imports ${specifier}: time comes from Runtime`;
  const pure = PURE_LAYERS[layer];
  if (pure !== undefined && !pure.includes(specifier)) return `imports ${specifier}, but ${layer} is free of it`;
  const home = PACKAGE_HOMES[packageOf(specifier)];
  if (home !== undefined && home !== layer) return `imports ${specifier}, which only ${home} may know`;
  return undefined;
}

function judgeArrow(files: SourceFiles, path: string, specifier: string): string | undefined {
  if (!specifier.endsWith(".js")) return `imports "${specifier}": the ending .js is missing`;
  const imported = resolveImport(files, path, specifier);
  if (imported === undefined) return `imports "${specifier}", which is no file of src`;
  const [from, to] = [layerOf(path), layerOf(imported)];
  if (from === to) return undefined;
  const allowed = ALLOWED_IMPORTS[from];
  if (allowed === undefined) return `is in no known layer: add ${from} to test/architecture-rules.ts`;
  return allowed.includes(to) ? undefined : `imports ${imported}: ${from} must not know ${to}`;
}

/** The guarded name a node reads: a bare identifier, a member, or a member taken by destructuring. */
function guardedName(node: ts.Node): string | undefined {
  const name = readName(node);
  return name !== undefined && Object.hasOwn(HOMES, name) ? name : undefined;
}

function readName(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node)) return memberName(node.expression, node.name.text);
  if (ts.isElementAccessExpression(node) && ts.isStringLiteralLike(node.argumentExpression)) {
    return memberName(node.expression, node.argumentExpression.text);
  }
  if (ts.isBindingElement(node)) return destructuredName(node);
  if (ts.isImportSpecifier(node)) return (node.propertyName ?? node.name).text;
  if (ts.isIdentifier(node) && isFreeName(node)) return node.text;
  if (ts.isNewExpression(node) && isNamed(node.expression, "Date") && !node.arguments?.length) return "Date.now";
  return undefined;
}

function isNamed(node: ts.Node, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name;
}

/** `Date.now`; a member of anything else than a known global (`globalThis.setTimeout`, `crypto.randomUUID`) by itself. */
function memberName(object: ts.Node, member: string): string | undefined {
  if (ts.isIdentifier(object) && Object.hasOwn(HOMES, `${object.text}.${member}`)) return `${object.text}.${member}`;
  const isGlobal = ["globalThis", "global", "crypto", "webcrypto"].some((name) => isNamed(object, name));
  return isGlobal ? member : undefined;
}

function destructuredName(node: ts.BindingElement): string | undefined {
  const declaration = node.parent.parent;
  const property = node.propertyName ?? node.name;
  if (!ts.isVariableDeclaration(declaration) || declaration.initializer === undefined) return undefined;
  return ts.isIdentifier(property) ? memberName(declaration.initializer, property.text) : undefined;
}

/** Neither a member's name, nor a key, nor a declaration of the same name. */
function isFreeName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isTypeQueryNode(parent) || ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent)) return false;
  return !(ts.isBindingElement(parent) && parent.propertyName === node) && !isDeclaredName(parent, node);
}

function isDeclaredName(parent: ts.Node, node: ts.Identifier): boolean {
  return (parent as Partial<ts.NamedDeclaration>).name === node && !ts.isShorthandPropertyAssignment(parent);
}

function judgeName(path: string, node: ts.Node): string | undefined {
  if (isExempt(path)) return undefined;
  const name = guardedName(node);
  if (name === undefined || HOMES[name]!.some((home) => path.startsWith(home))) return undefined;
  const homes = HOMES[name]!.join(" or ");
  return `uses ${name}${homes === "" ? ", which has no home here" : `, whose home is ${homes}`}`;
}

function judgeExport(path: string, node: ts.Node): string | undefined {
  if (ts.isExportAssignment(node)) return "has a default export";
  const modifiers = ts.canHaveModifiers(node) ? ts.getModifiers(node) : undefined;
  if (modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)) return "has a default export";
  if (!ts.isExportDeclaration(node)) return undefined;
  const isStar = node.exportClause === undefined;
  return isStar && !(node.isTypeOnly && Object.hasOwn(STAR_EXPORTS, path))
    ? "exports * : name what is exported"
    : undefined;
}

function judgeNode(files: SourceFiles, found: Found): string | undefined {
  const { path, node } = found;
  const specifier = moduleOf(node)?.text;
  if (specifier !== undefined && !isTest(path)) {
    const isRelative = specifier.startsWith(".");
    const problem = isRelative ? judgeArrow(files, path, specifier) : judgePackage(path, specifier);
    if (problem !== undefined) return problem;
  }
  return judgeExport(path, node) ?? judgeName(path, node);
}

function judgeFile(path: string, text: string): string[] {
  const problems: string[] = [];
  const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  const isListed = Object.hasOwn(LONG_FILES, path);
  if (lines > MAX_LINES && !isListed && !isExempt(path))
    problems.push(`${path}: has ${lines} lines, more than ${MAX_LINES}`);
  if (lines <= MAX_LINES && isListed) problems.push(`${path}: is short again: take it off the list of long files`);
  if (/\/index\.[tj]s$/.test(path) && !INDEX_FILES.includes(path)) problems.push(`${path}: is an index file inside`);
  return problems;
}

/** Every import cycle's first finding, as `a → b → a`. */
function findCycles(imports: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const cycles: string[] = [];
  const state = new Map<string, "open" | "done">();
  function walk(path: string, trail: readonly string[]): void {
    if (state.get(path) === "done") return;
    if (state.get(path) === "open") {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(" → "));
      return;
    }
    state.set(path, "open");
    for (const imported of imports.get(path) ?? []) walk(imported, [...trail, path]);
    state.set(path, "done");
  }
  for (const path of imports.keys()) walk(path, []);
  return cycles.map((cycle) => `import cycle: ${cycle}`);
}

/** All breaches of the architecture, one line each with file and line number; none = the empty list. */
export function checkArchitecture(files: SourceFiles): string[] {
  const problems: string[] = [];
  const imports = new Map<string, Set<string>>();
  for (const [path, text] of files) {
    problems.push(...judgeFile(path, text));
    const imported = new Set<string>();
    imports.set(path, imported);
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
    visit(source, (node) => {
      const found = { path, node };
      const problem = judgeNode(files, found);
      if (problem !== undefined) problems.push(`${path}:${lineOf(found)}: ${problem}`);
      const specifier = moduleOf(node)?.text;
      const resolved = specifier?.startsWith(".") ? resolveImport(files, path, specifier) : undefined;
      if (resolved !== undefined) imported.add(resolved);
    });
  }
  return [...problems, ...findCycles(imports)];
}
