import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { checkArchitecture } from "./architecture-check.js";
import { LONG_FILES, STAR_EXPORTS } from "./architecture-rules.js";

const root = fileURLToPath(new URL("..", import.meta.url));

function readSources(): Map<string, string> {
  const paths = readdirSync(`${root}src`, { recursive: true, encoding: "utf8" })
    .map((path) => `src/${path.replaceAll("\\", "/")}`)
    .filter((path) => /\.[tj]s$/.test(path));
  return new Map(paths.sort().map((path) => [path, readFileSync(root + path, "utf8")]));
}

test("src keeps to the architecture", () => {
  const files = readSources();
  expect(files.size).toBeGreaterThan(20);
  expect(checkArchitecture(files)).toEqual([]);
});

test("every exception names a file that exists", () => {
  const files = readSources();
  for (const path of Object.keys({ ...LONG_FILES, ...STAR_EXPORTS })) expect(files.has(path), path).toBe(true);
});

describe("the check catches", () => {
  /** Checks `source` as the file `path`, beside a few files it may import. */
  function check(path: string, source: string): string[] {
    const neighbours = ["src/errors.ts", "src/domain/chat.ts", "src/ports/runtime.ts", "src/governance/govern.ts"];
    const others = [...neighbours, "src/backends/system.ts", "src/domain/gates/smooth.ts", "src/cli/main.ts"];
    const files = new Map(others.map((other) => [other, other === "src/errors.ts" ? "\n".repeat(301) : ""]));
    return checkArchitecture(files.set(path, source));
  }

  test.each([
    [
      "domain knows a port",
      "src/domain/x.ts",
      'import type { Runtime } from "../ports/runtime.js";',
      "domain must not know ports",
    ],
    [
      "a backend knows governance",
      "src/backends/x.ts",
      'import { govern } from "../governance/govern.js";',
      "must not know governance",
    ],
    [
      "governance knows a backend, deep and dynamically",
      "src/governance/a/x.ts",
      'await import("../../backends/system.js");',
      "must not know backends",
    ],
    [
      "an arrow in an import type",
      "src/domain/x.ts",
      'type R = import("../ports/runtime.js").Runtime;',
      "must not know ports",
    ],
    [
      "an arrow in a re-export",
      "src/ports/x.ts",
      'export { govern } from "../governance/govern.js";',
      "must not know governance",
    ],
    ["something knows the cli", "src/clients/x.ts", 'import "../cli/main.js";', "must not know cli"],
    ["an unknown layer", "src/helpers/x.ts", 'import "../errors.js";', "no known layer"],
    ["a missing ending", "src/ports/x.ts", 'import "../domain/chat";', "the ending .js is missing"],
    ["a file that is not there", "src/ports/x.ts", 'import "../domain/gone.js";', "is no file of src"],
    ["a file outside of src", "src/cli/x.ts", 'import "../../package.js";', "is no file of src"],
    [
      "input and output in a pure layer",
      "src/governance/x.ts",
      'import { readFileSync } from "node:fs";',
      "governance is free of it",
    ],
    [
      "a package outside its home",
      "src/clients/x.ts",
      'const { Pool } = await import("undici");',
      "only transports may know",
    ],
    ["a timer module", "src/batch/x.ts", 'import * as timers from "node:timers/promises";', "time comes from Runtime"],
    ["Date.now", "src/clients/x.ts", "const t = Date.now();", "uses Date.now, whose home is src/backends/system.ts"],
    ["new Date()", "src/clients/x.ts", "const t = new Date();", "uses Date.now"],
    ["Math.random", "src/clients/x.ts", 'const r = Math["random"]();', "uses Math.random"],
    ["performance.now taken apart", "src/clients/x.ts", "const { now } = performance;", "uses performance.now"],
    ["setTimeout", "src/clients/x.ts", "setTimeout(() => {}, 5);", "uses setTimeout"],
    ["setTimeout of globalThis", "src/clients/x.ts", "globalThis.setTimeout(() => {}, 5);", "uses setTimeout"],
    ["setTimeout handed on", "src/clients/x.ts", "start({ timer: setTimeout });", "uses setTimeout"],
    ["setTimeout in a short property", "src/clients/x.ts", "start({ setTimeout });", "uses setTimeout"],
    ["setInterval, even at home", "src/backends/system.ts", "setInterval(() => {}, 5);", "uses setInterval"],
    [
      "process.env",
      "src/clients/x.ts",
      "const { env } = process;",
      "uses process.env, whose home is src/config/env.ts or src/cli/",
    ],
    ["console", "src/clients/x.ts", 'console.log("x");', "uses console"],
    ["randomUUID", "src/clients/x.ts", 'import { randomUUID as id } from "node:crypto";', "uses randomUUID"],
    ["randomUUID of the global", "src/clients/x.ts", "crypto.randomUUID();", "uses randomUUID"],
    ["AbortSignal.any", "src/clients/x.ts", "AbortSignal.any([]);", "uses AbortSignal.any"],
    ["a default export", "src/clients/x.ts", "export default function chat() {}", "has a default export"],
    [
      "a default export of a value",
      "src/clients/x.ts",
      "const a = 1;\nexport default a;",
      "x.ts:2: has a default export",
    ],
    ["a barrel", "src/clients/x.ts", 'export * from "../errors.js";', "exports *"],
    ["a barrel of types", "src/clients/x.ts", 'export type * from "../errors.js";', "exports *"],
    ["an index file inside", "src/clients/index.ts", "", "is an index file inside"],
    ["a long file", "src/clients/x.ts", "\n".repeat(301), "has 301 lines"],
  ])("%s", (_name, path, source, expected) => {
    const problems = check(path, source);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });

  test("a cycle, with its way", () => {
    const files = new Map([
      ["src/domain/a.ts", 'import "./b.js";'],
      ["src/domain/b.ts", 'import type { C } from "./c.js";'],
      ["src/domain/c.ts", 'export { a } from "./a.js";'],
    ]);
    expect(checkArchitecture(files)).toEqual([
      "import cycle: src/domain/a.ts → src/domain/b.ts → src/domain/c.ts → src/domain/a.ts",
    ]);
  });

  test("a file on the list of long files that has become short", () => {
    expect(checkArchitecture(new Map([["src/errors.ts", ""]]))).toEqual([
      "src/errors.ts: is short again: take it off the list of long files",
    ]);
  });

  test("but not comments, texts, members and parameters of the same name, nor what is allowed", () => {
    const allowed: [string, string][] = [
      ["src/clients/x.ts", '// Date.now() and setTimeout\nconst text = "console.log(process.env) Math.random()";'],
      ["src/clients/x.ts", "runtime.setTimeout(5); const o = { setTimeout: 5, console: 1 }; o.console;"],
      ["src/clients/x.ts", "interface T { setTimeout(): void } function f(performance: { now(): number }) {}"],
      ["src/clients/x.ts", "const at = new Date(runtime.wallNow()); const { env } = options; runtime.now();"],
      ["src/clients/x.ts", 'import { govern } from "../governance/govern.js"; export const chat = govern;'],
      ["src/backends/system.ts", "Date.now(); Math.random(); performance.now(); setTimeout(() => {}, 1);"],
      ["src/cli/x.ts", "console.log(process.env.HOME);"],
      ["src/clients/x.test.ts", 'import "../cli/main.js"; setTimeout(() => {}, Date.now());'],
      ["src/transports/x.test-helper.ts", 'import "../backends/system.js"; setTimeout(() => {}, Date.now());'],
      ["src/telemetry/sqlite-worker.js", "setTimeout(() => {}, 5);"],
      ["src/governance/x.ts", 'import "../domain/gates/smooth.js"; import "../errors.js";'],
    ];
    for (const [path, source] of allowed) expect(check(path, source), source).toEqual([]);
  });
});
