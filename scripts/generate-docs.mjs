// Writes docs/configuration.md and .env.example from the tables in src/config/schema.ts.
//   npm run docs:generate             write the files
//   npm run docs:generate -- --check  only say which of them are out of date, and fail if any is
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "tsdown";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const onlyCheck = process.argv.includes("--check");

/** The generator is TypeScript and no part of the package: it is bundled aside and loaded from there. */
async function loadGenerator() {
  const outDir = mkdtempSync(join(ROOT, "node_modules", ".docs-"));
  try {
    const entry = { docs: join(ROOT, "src", "config", "docs.ts") };
    await build({
      config: false,
      entry,
      outDir,
      format: "esm",
      platform: "node",
      dts: false,
      fixedExtension: true,
      logLevel: "silent",
    });
    return await import(pathToFileURL(join(outDir, "docs.mjs")).href);
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
}

function current(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

const { configurationPage, envExample } = await loadGenerator();
const files = { "docs/configuration.md": configurationPage(), ".env.example": envExample() };
for (const [name, text] of Object.entries(files)) {
  const path = join(ROOT, name);
  if (current(path) === text) {
    console.log(`${name}: up to date`);
    continue;
  }
  if (onlyCheck) process.exitCode = 1;
  else writeFileSync(path, text);
  console.log(`${name}: ${onlyCheck ? "out of date; run `npm run docs:generate`" : "written"}`);
}
