import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { ConfigProblem } from "../errors.js";
import { inspectEnv } from "./env.js";
import { inspectFile, openConfigFile } from "./file.js";
import type { GatewayOptions } from "./options.js";
import { inspectScope } from "./resolve.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-known-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const KEY = "sk-SECRETcanary123";
const UPPER = KEY.toUpperCase();
const LONG = `sk-${"canary5f1e".repeat(9)}`;
/** No prefix by which it can be told from a word. */
const BARE = "Hk29canaryQw";

function fromCode(more: Record<string, unknown>, apiKey = KEY): readonly ConfigProblem[] {
  const source = { name: "a_1", baseUrl: "http://127.0.0.1:8080/v1", apiKey, model: "m", ...more };
  return inspectScope({ scope: "LLM", sources: [source as GatewayOptions["sources"][number]] }).problems;
}

function fromFile(lines: string, env: Record<string, string>, key = "${K}"): readonly ConfigProblem[] {
  const path = join(folder, "c.yaml");
  const source = ["name: a_1", "baseUrl: http://127.0.0.1:8080/v1", `apiKey: ${key}`, "model: m", lines];
  writeFileSync(path, `scopes:\n  LLM:\n    sources:\n      - ${source.join("\n        ")}\n`);
  return inspectFile(openConfigFile(path), "LLM", env).problems;
}

function expectHidden(problems: readonly ConfigProblem[], secret: string): void {
  expect(problems.length).toBeGreaterThan(0);
  const text = JSON.stringify(problems).toLowerCase();
  // Nor a good part of it, where a text was cut.
  expect(text).not.toContain(secret.slice(0, 10).toLowerCase());
}

describe("a key under the name of another option is not told", () => {
  test.each([KEY, UPPER, LONG, BARE])("in code: %s", (key) => {
    const lower = key.toLowerCase();
    const wrong = [
      { profile: key },
      { profile: ` ${key} ` },
      { profile: { extends: key } },
      { profile: { extends: `${key} x y` } },
      { profile: { [key]: true } },
      { profile: { extends: "openai", auth: { header: key, [key]: 1 } } },
      { thinking: key },
      { thinking: lower },
      { thinking: { [key]: 1 } },
      { tpmCharge: key },
      { transient400: key },
      { name: `${key}/` },
    ];
    for (const options of wrong) expectHidden(fromCode(options, key), key);
  });

  test("in code, one that looks like a key, of no source", () => {
    for (const options of [{ profile: KEY }, { profile: { extends: KEY } }, { thinking: KEY.toLowerCase() }]) {
      expectHidden(fromCode(options, "none"), KEY);
    }
  });

  test.each([KEY, UPPER, LONG, BARE])("in a file, from a variable: %s", (key) => {
    for (const line of [
      "profile: ${K}",
      "profile: {extends: '${K}'}",
      "profile: {extends: '${K}x y'}",
      "thinking: ${K}",
      "limitRule: ${K}",
      "transient400: /${K}(/",
      "rpm: ${K}",
    ]) {
      expectHidden(fromFile(line, { K: key }), key);
    }
  });

  test("in a file, by the name of the variable alone or behind a default", () => {
    expectHidden(fromFile("profile: {extends: '${MY_TOKEN}'}", { MY_TOKEN: BARE }, "none"), BARE);
    expectHidden(fromFile(`profile: {extends: '${BARE}'}`, {}, `\${K:-${BARE}}`), BARE);
    expectHidden(fromFile("profile: {extends: '${K}'}", { K: BARE }, "pre-${K}"), BARE);
  });

  test("in a file, as an alias that nothing defines", () => {
    const problems = fromFile(`extraBody: *${KEY}`, { K: KEY });
    expectHidden(problems, KEY);
    expect(problems[0]?.problem).toContain("uses *…, which no &… above defines");
    expect(fromFile("extraBody: *base", { K: KEY })[0]?.problem).toContain("*base");
  });

  test.each([KEY, UPPER, LONG, BARE])("in the environment, in another case: %s", (key) => {
    for (const name of ["PROFILE", "THINKING", "TPM_CHARGE"]) {
      for (const given of [key, key.toLowerCase(), key.toUpperCase()]) {
        const { problems } = inspectEnv("LLM", {
          LLM__A__1__BASE_URL: "http://127.0.0.1:8080/v1",
          LLM__A__1__API_KEY: key,
          LLM__A__1__MODEL: "m",
          [`LLM__A__1__${name}`]: given,
        });
        expectHidden(problems, key);
      }
    }
  });
});

test("words that are no secrets are told", () => {
  expect(fromCode({ profile: "opneai" })[0]).toMatchObject({ value: '"opneai"' });
  expect(fromCode({ profile: "Opneai" })[0]?.problem).toContain('("Opneai")');
  expect(fromCode({ thinking: "huge" })[0]?.problem).toContain("thinking");
  expect(JSON.stringify(fromFile("rpm: ${K_TOKENS}x", { K: KEY, K_TOKENS: "100000" }))).toContain("is not a number");
  expect(fromCode({ name: "ollama 1" }, "ollama")[0]).toMatchObject({ value: '"ollama 1"' });
});
