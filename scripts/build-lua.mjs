#!/usr/bin/env node
// Makes the script of the governor on Redis from the rules themselves (src/domain), so that there is one spelling of each.
//   node scripts/build-lua.mjs          writes src/backends/redis/tick-script.ts
//   node scripts/build-lua.mjs --check  exit 1 when that file is not what the rules give
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import * as tstl from "typescript-to-lua";
import { bundled } from "./lua-bundle.mjs";
import { truthinessFaults } from "./lua-truthiness.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "src/backends/redis/script");
const target = join(root, "src/backends/redis/tick-script.ts");

function pathOf(identifier, from) {
  return join(dirname(from), `${identifier.slice(0, -3)}.ts`);
}

/** What is left when types are gone: the files a value is imported from. */
function filesAtRunTime(program, entry, found = new Set()) {
  if (found.has(entry)) return found;
  found.add(entry);
  for (const statement of program.getSourceFile(entry).statements) {
    if (!ts.isImportDeclaration(statement) || statement.importClause === undefined) continue;
    const { phaseModifier, namedBindings } = statement.importClause;
    const areTypes =
      namedBindings !== undefined &&
      ts.isNamedImports(namedBindings) &&
      namedBindings.elements.every((name) => name.isTypeOnly);
    if (phaseModifier === ts.SyntaxKind.TypeKeyword || areTypes) continue;
    filesAtRunTime(program, pathOf(statement.moduleSpecifier.text, entry), found);
  }
  return found;
}

/** The sources import each other as the files will be called once they are JavaScript. */
const resolveTypeScript = {
  moduleResolution: (identifier, requiringFile) =>
    identifier.endsWith(".js") ? pathOf(identifier, requiringFile) : undefined,
};

function fail(messages) {
  for (const message of messages) console.error(message);
  process.exit(1);
}

function compile() {
  const config = tstl.parseConfigFileWithSystem(join(folder, "tsconfig.json"));
  if (config.errors.length > 0)
    fail(config.errors.map((error) => ts.flattenDiagnosticMessageText(error.messageText, "\n")));
  const program = ts.createProgram(config.fileNames, config.options);
  const files = filesAtRunTime(program, join(folder, "main.ts"));
  const faults = truthinessFaults(program, (file) => files.has(file));
  if (faults.length > 0) fail(faults);
  const written = new Map();
  const sourceFiles = [...files].map((file) => program.getSourceFile(file));
  const { diagnostics } = new tstl.Transpiler().emit({
    program,
    plugins: [resolveTypeScript],
    sourceFiles,
    writeFile: (name, text) => written.set(name, text),
  });
  const all = [...sourceFiles.flatMap((file) => [...program.getSemanticDiagnostics(file)]), ...diagnostics];
  if (all.length > 0) {
    fail(
      all.map(({ file, start, messageText }) => {
        const at =
          file === undefined ? "" : `${file.fileName}:${file.getLineAndCharacterOfPosition(start ?? 0).line + 1}: `;
        return at + ts.flattenDiagnosticMessageText(messageText, "\n");
      }),
    );
  }
  return [...written.values()][0];
}

/** What nearly no tick needs: defined where it is called, since every run of the script defines anew what it can do. */
const DEFINED_LATER = new Set(["domain.description", "repair"]);

function asModule(lua) {
  // Indentation is a third of it; no text of the rules begins a line.
  const text = lua.replace(/^ +/gm, "").replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${");
  return `// Made by scripts/build-lua.mjs from src/backends/redis/script and src/domain; not to be edited.\n\nexport const TICK_SCRIPT = \`${text}\`;\n`;
}

const made = asModule(bundled(compile(), { later: DEFINED_LATER, result: "answer" }));
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== made)
    fail(["tick-script.ts is not what the rules give: run `node scripts/build-lua.mjs`"]);
} else {
  writeFileSync(target, made);
}
