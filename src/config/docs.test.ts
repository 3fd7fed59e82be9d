import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configurationPage, envExample } from "./docs.js";
import { parseDotEnv } from "./dotenv.js";
import { inspectEnv } from "./env.js";
import { inspectFile, openConfigFile } from "./file.js";
import { EMBEDDING_FIELDS, FLAT_NAMES, GROUPS, OCR_FIELDS, SCOPE_FIELDS } from "./schema.js";
import { PROCESS_LATER, SCOPE_LATER, SOURCE_LATER } from "./schema-later.js";
import { PROCESS_FIELDS } from "./schema-process.js";
import { SOURCE_FIELDS } from "./schema-source.js";

const ROOT = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(ROOT, "docs", "configuration.md"), "utf8");
const example = readFileSync(join(ROOT, ".env.example"), "utf8");

/** Every key as the schema has it, with the placeholders of the documentation. */
function schemaKeys(): string[] {
  const named = (prefix: string, fields: readonly { readonly env?: string }[]): string[] =>
    fields.flatMap(({ env }) => (env === undefined ? [] : [`${prefix}${env}`]));
  return [
    ...named("{SCOPE}__{PROVIDER}__{N}__", [
      ...Object.values(SOURCE_FIELDS),
      ...SOURCE_LATER.map(({ field }) => field),
    ]),
    ...named("{SCOPE}__", [
      ...Object.values(SCOPE_FIELDS),
      ...Object.values(EMBEDDING_FIELDS),
      ...Object.values(OCR_FIELDS),
    ]),
    ...Object.entries(GROUPS).flatMap(([group, { fields }]) => named(`{SCOPE}__${group}__`, Object.values(fields))),
    ...Object.entries(SCOPE_LATER).flatMap(([group, list]) =>
      named(
        `{SCOPE}__${group}__`,
        list.map(({ field }) => field),
      ),
    ),
    ...named("", [...Object.values(PROCESS_FIELDS), ...PROCESS_LATER.map(({ field }) => field)]),
  ];
}

test("docs/configuration.md and .env.example are what the schema says (npm run docs:generate)", () => {
  expect(page).toBe(configurationPage());
  expect(example).toBe(envExample());
});

test("the page and the example have every key of the schema once, and no other", () => {
  const keys = schemaKeys().sort();
  const documented = [...page.matchAll(/^\| `([^`]+)` \| (?:`|–)/gm)].map(([, key]) => key);
  expect(documented.sort()).toEqual(keys);
  const shown = [...example.matchAll(/^(?:# )?([A-Z][A-Za-z0-9_]+)=/gm)].map(([, key]) => key ?? "");
  const real = keys.map((key) => key.replace("{SCOPE}__{PROVIDER}__{N}", "LLM__QWEN__1").replace("{SCOPE}", "LLM"));
  expect(shown.sort()).toEqual(real.sort());
});

test("the page has every flat name", () => {
  for (const name of Object.keys(FLAT_NAMES)) expect(page).toContain(`\`{SCOPE}_${name}\``);
});

test("the example works as it is, and every default it shows is accepted", () => {
  expect(inspectEnv("LLM", parseDotEnv(example).values).problems).toEqual([]);
  const uncommented = example.replace(/^# ([A-Z][A-Za-z0-9_]+=.+)$/gm, "$1");
  expect(uncommented).not.toBe(example);
  expect(inspectEnv("LLM", parseDotEnv(uncommented).values).problems).toEqual([]);
});

test("the example of a file is good configuration, and says what the page says", () => {
  const folder = mkdtempSync(join(tmpdir(), "pgw-docs-"));
  try {
    mkdirSync(join(folder, "secrets"));
    writeFileSync(join(folder, "secrets", "glm.key"), "sk-0123456789abcdef\n");
    const path = join(folder, "polygateway.yaml");
    writeFileSync(path, /^```yaml\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? "");
    const env = { QWEN_API_KEY: "none", QWEN_API_KEY_2: "none" };
    const { problems, options, process } = inspectFile(openConfigFile(path), "LLM", env);
    expect(problems).toEqual([]);
    expect(options.sources.map(({ name, rpm }) => [name, rpm])).toEqual([
      ["qwen_1", 600],
      ["qwen_2", 600],
      ["glm_1", undefined],
    ]);
    expect(options.failover).toBe("off");
    expect(process.pricingPath).toBe(join(folder, "prices.json"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the page names every option of a file", () => {
  for (const option of Object.keys(PROCESS_FIELDS)) expect(page).toContain(`| \`process.${option}\` |`);
  for (const { option, fields } of Object.values(GROUPS)) {
    for (const name of Object.keys(fields)) expect(page).toContain(`| \`${option}.${name}\` |`);
  }
  for (const name of Object.keys(SCOPE_FIELDS)) expect(page).toContain(`| \`${name}\` |`);
});
