import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { ConfigProblem } from "../errors.js";
import { inspectEnv } from "./env.js";
import { inspectFile, openConfigFile } from "./file.js";
import type { GatewayOptions } from "./options.js";
import { inspectScope } from "./resolve.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-headers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Given {
  readonly headers?: Record<string, string>;
  readonly profile?: unknown;
}

const ADDRESS = { baseUrl: "http://127.0.0.1:8080/v1", apiKey: "sk-canary-5f1e0c9a77d3", model: "m" };

/** The same source in the three places where one can be configured. */
const PLACES: Readonly<Record<string, (given: Given) => readonly ConfigProblem[]>> = {
  code: (given) => {
    const source = { name: "a_1", ...ADDRESS, ...given } as GatewayOptions["sources"][number];
    return inspectScope({ scope: "LLM", sources: [source] }).problems;
  },
  environment: (given) => {
    const named = Object.entries(given).map(([option, value]) => [
      `LLM__A__1__${option.toUpperCase()}`,
      JSON.stringify(value),
    ]);
    return inspectEnv("LLM", {
      LLM__A__1__BASE_URL: ADDRESS.baseUrl,
      LLM__A__1__API_KEY: ADDRESS.apiKey,
      LLM__A__1__MODEL: ADDRESS.model,
      ...Object.fromEntries(named),
    }).problems;
  },
  file: (given) => {
    const path = join(folder, "c.json");
    const source = { name: "a_1", ...ADDRESS, ...given };
    writeFileSync(path, JSON.stringify({ scopes: { LLM: { sources: [source] } } }));
    return inspectFile(openConfigFile(path), "LLM", {}).problems;
  },
};

const FRAMING = ["content-length", "Transfer-Encoding", "keep-alive", "upgrade", "EXPECT"];

describe.each(Object.entries(PLACES))("headers in the %s", (_, problemsOf) => {
  test.each([...FRAMING, "connection", "host", "te", "trailer", "content-type"])("%s can't carry the key", (header) => {
    const [problem, ...others] = problemsOf({ profile: { extends: "openai", auth: { header } } });
    expect(others).toEqual([]);
    expect(problem?.key).toMatch(/profile(?:\.auth\.header)?$/i);
    expect(problem?.problem).toContain(`"${header}"`);
    expect(problem?.problem).toContain("auth.header");
  });

  test.each(FRAMING)("%s can't be given for a source", (header) => {
    const [problem, ...others] = problemsOf({ headers: { "x-team": "search", [header]: "5" } });
    expect(others).toEqual([]);
    expect(problem?.key).toMatch(/headers$/i);
    expect(problem?.problem).toContain(`"${header}"`);
  });

  test("what can be sent is taken", () => {
    for (const header of ["authorization", "api-key", "x-content-length"]) {
      expect(problemsOf({ profile: { extends: "openai", auth: { header } } })).toEqual([]);
    }
    const headers = { host: "h.example", connection: "close", te: "trailers", "content-type": "application/json" };
    expect(problemsOf({ headers })).toEqual([]);
  });
});
