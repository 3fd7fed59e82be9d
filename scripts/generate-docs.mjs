// Writes docs/configuration.md and .env.example from the tables in src/config/schema.ts, and docs/providers.md from the
// profiles in src/transports/openai and the fields in src/config/profile-shape.ts and src/domain/profile.ts.
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
    const source = (...path) => join(ROOT, "src", ...path);
    const entry = {
      docs: source("config", "docs.ts"),
      "provider-docs": source("config", "provider-docs.ts"),
      profiles: source("transports", "openai", "profiles.ts"),
    };
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
    const modules = Object.keys(entry).map((name) => import(pathToFileURL(join(outDir, `${name}.mjs`)).href));
    return Object.assign({}, ...(await Promise.all(modules)));
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

const { configurationPage, envExample, profiles, providersPage } = await loadGenerator();
const files = {
  "docs/configuration.md": configurationPage(),
  ".env.example": envExample(),
  "docs/providers.md": providersPage(profiles, readFileSync(join(ROOT, "src", "domain", "profile.ts"), "utf8")),
};
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
