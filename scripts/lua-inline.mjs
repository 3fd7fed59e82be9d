// A call takes as long as some ten of what it calls, and the rules are many small functions. Where such a function gives one
// expression of its parameters, and a call of it names all its arguments plainly, the expression stands in the call's place.

/** Reading it twice is no other value than reading it once. */
const PLAIN = String.raw`-?\d+(?:\.\d+)?|"[^"\\]*"|true|false|nil|[A-Za-z_]\w*(?:\.\w+|\[\w+(?: \+ 1)?\])*`;
const PLAIN_LIST = `(?:${PLAIN})(?:, (?:${PLAIN}))*`;
const WORD = /"(?:[^"\\]|\\.)*"|(?<![\w.:])[A-Za-z_]\w*/g;
const RESERVED = new Set("and or not nil true false math string type unpack pairs ipairs tostring tonumber".split(" "));
/** What is written out more than twice as long as its call is no gain. */
const LONGEST = 120;

/** { parameters, expression, free } of a function that only gives one expression; null of any other. */
function onlyExpression(statement) {
  const match = /^(?:local )?function (\w+)\(([\w, ]*)\)\n((?: {4}.*\n)*) {4}return (.+)\nend$/.exec(statement);
  if (match === null) return null;
  const [, name, list, head, result] = match;
  const parameters = list === "" ? [] : list.split(", ");
  const expression = withoutLocals(head, result);
  if (expression === null || expression.length > LONGEST || /[{]|\bfunction\b|\.\.\./.test(expression)) return null;
  const words = (expression.match(WORD) ?? []).filter((word) => !word.startsWith('"') && !RESERVED.has(word));
  return { name, parameters, expression, free: new Set(words.filter((word) => !parameters.includes(word))) };
}

/** A local that only stands for a field is read where it is used. */
function withoutLocals(head, result) {
  const paths = new Map();
  for (const line of head.split("\n").filter((text) => text !== "")) {
    const [, name, path] = /^ {4}(?:local )?(\w+) = (\w+(?:\.\w+)*)$/.exec(line) ?? [];
    if (name === undefined && /^ {4}local \w+$/.test(line)) continue;
    if (name === undefined || paths.has(name)) return null;
    const [first, ...rest] = path.split(".");
    paths.set(name, [paths.get(first) ?? first, ...rest].join("."));
  }
  return result.replace(WORD, (word) => paths.get(word) ?? word);
}

function putInPlace(text, { name, parameters, expression }) {
  // A call that stands alone is there for what it does.
  const calls = new RegExp(`(?<![\\w.:]|function )${name}\\((${PLAIN_LIST})?\\)(?!\\n? *\\()`, "g");
  return text.replace(calls, (call, list, at) => {
    const values = list === undefined ? [] : list.match(new RegExp(PLAIN, "g"));
    if (values.length !== parameters.length || isStatement(text, at, call)) return call;
    const isBusy = /\w\(/.test(expression);
    if (isBusy && values.some((value) => /[.[]/.test(value))) return call;
    const byName = new Map(parameters.map((parameter, n) => [parameter, values[n]]));
    return `(${expression.replace(WORD, (word) => byName.get(word) ?? word)})`;
  });
}

function isStatement(text, at, call) {
  const from = text.lastIndexOf("\n", at) + 1;
  return text.slice(from, at).trim() === "" && (text[at + call.length] ?? "\n") === "\n" && !isContinued(text, from);
}

/** The line before ends within an expression. */
const isContinued = (text, from) => /(?:[(,{=]|\b(?:and|or|return))\s*$/.test(text.slice(0, from));

/** Would a free name of the expression mean something else there? */
function isShadowed(text, free) {
  for (const name of free) {
    const own = new RegExp(
      `local (?:[\\w, ]+, )?${name}\\b|function[^(\\n]*\\([^)\\n]*\\b${name}\\b|for [\\w, ]*\\b${name}\\b`,
    );
    if (own.test(text)) return true;
  }
  return false;
}

/** `modules`: those that are needed come first, so that what is put in place has its own calls replaced already. */
export function inlineFunctions(modules) {
  const found = new Map();
  for (const module of modules) {
    const usable = new Map();
    found.set(module.name, { usable, module });
    for (const [local, { from, name }] of [...module.imports]) {
      const source = found.get(from);
      const inline = source?.usable.get(name);
      if (inline !== undefined && takeAlong(module, source.module, inline))
        usable.set(local, { ...inline, name: local });
    }
    // Twice, since a function may call one that stands below it.
    for (let round = 0; round < 2; round += 1) {
      for (const statement of module.statements) {
        const inline = onlyExpression(statement);
        if (inline !== null && !inline.free.has(inline.name)) usable.set(inline.name, inline);
      }
      module.statements = module.statements.map((statement) => {
        let text = statement;
        for (const inline of usable.values()) {
          if (inline.name !== /^(?:local )?function (\w+)\(/.exec(text)?.[1] && !isShadowed(text, inline.free))
            text = putInPlace(text, inline);
        }
        return text;
      });
    }
  }
}

/** Imports what the expression names; false where that can't be. */
function takeAlong(module, source, { free }) {
  const needed = new Map();
  for (const name of free) {
    const origin = source.imports.get(name) ?? (source.exported.has(name) ? { from: source.name, name } : undefined);
    if (origin === undefined) return false;
    const own = module.imports.get(name);
    const isSame = own !== undefined && own.from === origin.from && own.name === origin.name;
    const isTaken = module.statements.some((text) => new RegExp(`(?<![\\w.:])${name}(?!\\w)`).test(text));
    if (!isSame && (own !== undefined || isTaken)) return false;
    needed.set(name, origin);
  }
  for (const [name, origin] of needed) module.imports.set(name, origin);
  return true;
}
