// Redis keeps no function of a script: each run defines them all anew, so that a definition counts like the rules themselves.
// This makes plain blocks, in the order of their needs, of the compiler's modules behind a `require`, writes constants where
// they are used, and leaves out what nothing reaches. Readable, since a failing script names its lines.

import { inlineFunctions } from "./lua-inline.mjs";
import { withPeepholes } from "./lua-peepholes.mjs";

const MODULE = /^\["([^"]+)"\] = function\(\.\.\.\) \n([\s\S]*?)^ end,\n/gm;
/** A line at the margin that ends, or goes on with, what began above it. */
const GOES_ON = /^(?:end|else|elseif|until|[})])/;
const LIBRARY = "lualib_bundle";

function statementsOf(text) {
  const statements = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const isMore = statements.length > 0 && (/^\s/.test(line) || GOES_ON.test(line));
    if (isMore) statements[statements.length - 1] += `\n${line}`;
    else statements.push(line);
  }
  return statements;
}

/** What the compiler writes as `____exports.name` becomes a name like the module's others. */
function parsed(name, text) {
  const module = { name, exported: new Set(), imports: new Map(), statements: [], declared: new Set() };
  const required = new Map();
  for (const statement of statementsOf(text)) {
    const [, variable, from] = /^local (____\w+) = require\("([^"]+)"\)$/.exec(statement) ?? [];
    if (variable !== undefined) required.set(variable, from);
    const [, local, source, original] = /^local (\w+) = (____\w+)\.(\w+)$/.exec(statement) ?? [];
    const isImport = required.has(source);
    if (isImport) module.imports.set(local, { from: required.get(source), name: original });
    for (const [, own] of statement.matchAll(/____exports\.(\w+)/g)) module.exported.add(own);
    const isPlumbing = /^(?:local ____exports = \{\}|return ____exports|local (\w+) = ____exports\.\1)$/.test(
      statement,
    );
    if (variable === undefined && !isImport && !isPlumbing)
      module.statements.push(statement.replaceAll("____exports.", ""));
  }
  return module;
}

/** The compiler's own library gives its names away in a table at its end. */
function parsedLibrary(text) {
  const statements = statementsOf(text);
  const given = statements.pop();
  const exported = new Set([...given.matchAll(/^ +(\w+) = \1,?$/gm)].map(([, name]) => name));
  return { name: LIBRARY, exported, imports: new Map(), statements, declared: new Set() };
}

const WORD = /"(?:[^"\\]|\\.)*"|(?<![\w.:])[A-Za-z_]\w*/g;

const replaceWords = (text, values) => text.replace(WORD, (word) => values.get(word) ?? word);

const wordsOf = (text) => new Set(text.match(WORD));

const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:e-?\d+)?`;
const CONSTANT = new RegExp(
  `^(?:local )?([A-Z][A-Z0-9_]*) = (${NUMBER}|\\(?${NUMBER}\\)? [-+*/] ${NUMBER}|"[^"\\\\]*")$`,
);

/** A constant by its name would be captured by each function that reads it. `modules`: those that are needed come first. */
function inlineConstants(modules) {
  const known = new Map();
  for (const module of modules) {
    const values = new Map();
    known.set(module.name, values);
    for (const [local, { from, name }] of module.imports) {
      if (!known.get(from)?.has(name)) continue;
      values.set(local, known.get(from).get(name));
      module.imports.delete(local);
    }
    const others = [];
    for (const statement of module.statements) {
      const now = replaceWords(statement, values);
      const [, name, value] = CONSTANT.exec(now) ?? [];
      if (name === undefined) others.push(statement);
      else values.set(name, /[ -]/.test(value) && !value.startsWith('"') ? `(${value})` : value);
    }
    module.statements = others.map((statement) =>
      isDeclaration(statement) ? statement : replaceWords(statement, values),
    );
    for (const name of values.keys()) module.exported.delete(name);
  }
}

const isDeclaration = (statement) => /^local [\w, ]+$/.test(statement);

/** Names that functions use above the place where they are set. */
function collectDeclared(module) {
  module.statements = module.statements.filter((statement) => {
    if (!isDeclaration(statement)) return true;
    for (const name of statement.slice("local ".length).split(", ")) module.declared.add(name);
    return false;
  });
}

/** The name that a statement does nothing but set, to a function or to what was imported; null = it must stay. */
function nameSetBy(statement) {
  const [, name] =
    /^(?:local )?function (\w+)\(/.exec(statement) ?? /^(?:local )?(\w+) = (?:\{|\w+$|[-\d"])/.exec(statement) ?? [];
  return name ?? null;
}

/** Leaves what `main` reaches. Within a module first, else nothing would ever be unreachable. */
function shake(modules, roots) {
  const byName = new Map(modules.map((module) => [module.name, module]));
  const wanted = new Map(modules.map(({ name }) => [name, new Set()]));
  const kept = new Set();
  const queue = roots.map(({ module, name }) => ({ module: byName.get(module), name }));
  const reach = (module, statement) => {
    if (kept.has(statement)) return;
    kept.add(statement);
    for (const word of wordsOf(statement.text)) queue.push({ module, name: word });
  };
  for (const module of modules) module.statements = module.statements.map((text) => ({ text, sets: nameSetBy(text) }));
  while (queue.length > 0) {
    const { module, name } = queue.pop();
    if (wanted.get(module.name).has(name)) continue;
    wanted.get(module.name).add(name);
    const imported = module.imports.get(name);
    if (imported !== undefined) queue.push({ module: byName.get(imported.from), name: imported.name });
    const isReached = module.isReached === true;
    module.isReached = true;
    // What sets no name, such as the members of a class, belongs to the module as a whole.
    for (const statement of module.statements) {
      if (statement.sets === name || (!isReached && statement.sets === null)) reach(module, statement);
    }
  }
  for (const module of modules) {
    const names = wanted.get(module.name);
    module.statements = module.statements.filter((statement) => kept.has(statement)).map(({ text }) => text);
    for (const local of [...module.imports.keys()]) if (!names.has(local)) module.imports.delete(local);
    for (const name of [...module.exported]) if (!names.has(name)) module.exported.delete(name);
    for (const name of [...module.declared]) if (!names.has(name)) module.declared.delete(name);
  }
  return modules.filter(({ isReached }) => isReached === true);
}

/** Those a module needs stand before it. */
function inOrder(modules) {
  const byName = new Map(modules.map((module) => [module.name, module]));
  const ordered = new Set();
  const place = (module) => {
    if (ordered.has(module)) return;
    for (const { from } of module.imports.values()) place(byName.get(from));
    ordered.add(module);
  };
  for (const module of modules) place(module);
  return [...ordered];
}

function reachableFrom(entry, modules, later) {
  const byName = new Map(modules.map((module) => [module.name, module]));
  const found = new Set();
  const visit = (name) => {
    if (found.has(name) || later.has(name)) return;
    found.add(name);
    for (const { from } of byName.get(name).imports.values()) visit(from);
  };
  visit(entry);
  return found;
}

/** What of a module others use. */
function givenBy(module, modules) {
  const given = new Set();
  for (const { imports } of modules) {
    for (const { from, name } of imports.values()) if (from === module.name) given.add(name);
  }
  return [...given].map((name) => `${name} = ${name}`).join(", ");
}

function importsOf(module, isNow) {
  const lines = [];
  for (const from of new Set([...module.imports.values()].map((one) => one.from))) {
    const names = [...module.imports].filter(([, one]) => one.from === from);
    if (isNow.has(module.name) && !isNow.has(from)) {
      // Called so rarely that it is defined then.
      for (const [local, { name }] of names)
        lines.push(`local function ${local}(...) return ____need("${from}").${name}(...) end`);
      continue;
    }
    lines.push(`local ____from = ${isNow.has(module.name) ? `____loaded["${from}"]` : `____need("${from}")`}`);
    for (const [local, { name }] of names) lines.push(`local ${local} = ____from.${name}`);
  }
  return lines;
}

function bodyOf(module, isNow) {
  const statements = module.statements;
  const forward = [...new Set([...module.declared, ...module.exported])].filter(
    (name) => !statements.some((text) => new RegExp(`^local (?:function )?${name}\\b`).test(text)),
  );
  const declaration = forward.length === 0 ? [] : [`local ${forward.join(", ")}`];
  return [...declaration, ...importsOf(module, isNow), ...statements];
}

/** `later`: modules that nearly no run needs, defined where one of their functions is called. `result`: main's value. */
export function bundled(lua, { later, result }) {
  const all = [...lua.matchAll(MODULE)].map(([, name, text]) =>
    name === LIBRARY ? parsedLibrary(text) : parsed(name, text),
  );
  for (const name of later) {
    if (!all.some((module) => module.name === name)) throw new Error(`nothing is named "${name}" any more`);
  }
  const ordered = inOrder(all);
  for (const module of ordered) collectDeclared(module);
  inlineConstants(ordered);
  for (const module of ordered) module.statements = module.statements.map(withPeepholes);
  inlineFunctions(ordered);
  const modules = shake(ordered, [{ module: "main", name: result }]);
  const isNow = reachableFrom("main", modules, later);
  const definedLater = modules.filter(({ name }) => !isNow.has(name));
  const blocks = modules.filter(({ name }) => isNow.has(name));
  const lines = [
    "local ____loaded, ____later = {}, {}",
    "local function ____need(name)",
    "    if ____loaded[name] == nil then ____loaded[name] = ____later[name]() end",
    "    return ____loaded[name]",
    "end",
  ];
  for (const module of definedLater) {
    lines.push(`____later["${module.name}"] = function()`, ...bodyOf(module, isNow));
    lines.push(`return {${givenBy(module, modules)}}`, "end");
  }
  for (const module of blocks) {
    lines.push("do", ...bodyOf(module, isNow));
    if (module.name === "main") lines.push(`return ${result}`);
    else lines.push(`____loaded["${module.name}"] = {${givenBy(module, modules)}}`);
    lines.push("end");
  }
  return `${lines.join("\n")}\n`;
}
