import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { maxHeaderSize } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { starterEnv } from "../src/cli/init-files.js";
import { STARTER_PROVIDERS } from "../src/cli/init-providers.js";
import { PURPOSES } from "../src/cli/init-purposes.js";
import { parseDotEnv } from "../src/config/dotenv.js";
import { inspectEnv } from "../src/config/env.js";
import { inspectFile, openConfigFile } from "../src/config/file.js";
import { resolveScope } from "../src/config/resolve.js";
import { ERROR_BODY_MS, MAX_ERROR_BODY_BYTES } from "../src/transports/body-buffer.js";
import { MAX_CODINGS } from "../src/transports/inflate.js";
import { HARMLESS_UNITS, MAX_JSON_DEPTH, MAX_PARSED_BYTES } from "../src/transports/json-weight.js";
import {
  DELTA_WEIGHT,
  EVENT_WEIGHT,
  MAX_ANSWER_BYTES,
  MAX_CHOICES,
  MAX_TOOL_CALLS,
} from "../src/transports/openai/answer-limits.js";
import { profileFor, profiles } from "../src/transports/openai/profiles.js";
import { MAX_EVENT_UNITS } from "../src/transports/sse.js";
import { IDLE_STRETCH } from "../src/transports/watchdog.js";

/** Configurations and numbers of the guide, held against the code. */

const read = (page: string): string => readFileSync(join(import.meta.dirname, "..", "docs", "guide", page), "utf8");
const KNOWN = { profiles, profileFor };

function blockOf(page: string, language: string): string {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(read(page))?.[1];
  if (block === undefined) throw new Error(`${page} has no block of ${language}`);
  return block;
}

test("the corrections of a profile for the environment work as they are", () => {
  const { values, suspicious } = parseDotEnv(blockOf("providers.md", "sh"));
  expect(suspicious).toEqual([]);
  const sources = Object.keys(values).map((key) => key.replace(/PROFILE$/, ""));
  expect(sources).toHaveLength(4);
  const common = (prefix: string) => ({
    [`${prefix}BASE_URL`]: prefix.includes("AZ") ? profiles.azure?.address : "http://127.0.0.1:9/v1",
    [`${prefix}API_KEY`]: "none",
    [`${prefix}MODEL`]: "m",
  });
  const { problems, options } = inspectEnv("LLM", Object.assign({}, values, ...sources.map(common)), KNOWN);
  expect(problems).toEqual([]);
  const byName = new Map(resolveScope(options, KNOWN).config.sources.map(({ name, profile }) => [name, profile]));
  const [glm, other, own, azure] = ["glm_1", "glm_2", "own_1", "az_1"].map((name) => byName.get(name));
  expect(glm).toEqual({
    ...profiles.glm,
    errorCodes: { ...profiles.glm?.errorCodes, 1399: "overloaded" },
    parameters: [],
  });
  expect([other?.thinking, other?.unconfirmed]).toEqual([[{ off: { thinking: { type: "disabled" } }, on: {} }], []]);
  // What a correction states is no longer unconfirmed.
  const thinking = [{ off: { think: false }, on: { think: true } }];
  expect(own).toEqual({ ...profiles.vllm, thinking, unconfirmed: [] });
  expect(azure).toEqual({ ...profiles.azure, query: { "api-version": "2024-10-21" } });
});

test("the correction of a profile in a file works as it is", () => {
  const folder = mkdtempSync(join(tmpdir(), "pgw-docs-"));
  try {
    const path = join(folder, "polygateway.yaml");
    writeFileSync(path, blockOf("providers.md", "yaml"));
    const { problems, options } = inspectFile(openConfigFile(path), "LLM", {}, KNOWN);
    expect(problems).toEqual([]);
    const profile = resolveScope(options, KNOWN).config.sources[0]?.profile;
    expect(profile).toMatchObject({ name: "vllm", structuredOutput: ["json_object"], unconfirmed: [] });
    expect(profile?.thinking.map(({ levels }) => Object.keys(levels ?? {}))).toEqual([["high"]]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the limits on a hostile answer are those of the code", () => {
  const kib = (bytes: number): string => `${bytes / 1_024} KiB`;
  const mib = (bytes: number): string => `${bytes / 1_024 ** 2} MiB`;
  const words = (number: number): string => number.toLocaleString("en-US");
  const rows = [...read("hostile-providers.md").matchAll(/^\| ([^|]+) \| ([^|]+) \|/gm)]
    .map(([, limit = "", value = ""]) => [limit.trim(), value.trim()] as const)
    .filter(([, value]) => /\d/.test(value));
  expect(Object.fromEntries(rows)).toEqual({
    "decoded bytes of an answer, and its text": `${mib(MAX_ANSWER_BYTES)} (${DELTA_WEIGHT} more per delta, ${EVENT_WEIGHT} per part of a tool call)`,
    "one event, one line of a stream": mib(MAX_EVENT_UNITS),
    "heap that one JSON text would take, log probabilities of one answer": `${mib(MAX_PARSED_BYTES)} (counted before it is parsed)`,
    [`nesting of a JSON text over ${kib(HARMLESS_UNITS)}`]: `${words(MAX_JSON_DEPTH)} levels`,
    "tool calls, choices": `${words(MAX_TOOL_CALLS)}, ${words(MAX_CHOICES)}`,
    "content codings on top of each other": String(MAX_CODINGS),
    headers: kib(maxHeaderSize),
    "error body that is read": `${kib(MAX_ERROR_BODY_BYTES)} within ${ERROR_BODY_MS / 1_000} s`,
    "comments and empty frames without a token": `${IDLE_STRETCH} × INTER_TOKEN_TIMEOUT_S`,
  });
});

test("README's .env is what init writes for the simulated provider, with limits in force", () => {
  const readme = readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8");
  const shown = parseDotEnv(/^```sh\n(LLM__.*?)^```$/ms.exec(readme)?.[1] ?? "").values;
  const provider = STARTER_PROVIDERS.find(({ name }) => name === "mock");
  const written = starterEnv({
    purpose: PURPOSES.chat,
    scope: "LLM",
    providers: provider === undefined ? [] : [provider],
  });
  const { values } = parseDotEnv(written);
  expect(Object.keys(values)).toHaveLength(3);
  expect(shown).toMatchObject(values);
  expect(inspectEnv("LLM", shown).problems).toEqual([]);
});
