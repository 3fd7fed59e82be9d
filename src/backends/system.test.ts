import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ModuleKind, ScriptTarget, transpileModule } from "typescript";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Secret } from "../domain/secret.js";
import { createSystemRuntime, formatLogLine } from "./system.js";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "polygateway-system-"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  translate("backends/system.ts");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("createSystemRuntime", () => {
  const runtime = createSystemRuntime();

  test("timers fire after their delay, by the runtime's own clock, and cancelled ones do not", async () => {
    const startMs = runtime.now();
    let cancelledFired = false;
    const cancel = runtime.setTimer(5, () => {
      cancelledFired = true;
    });
    cancel();
    const firedAtMs = await new Promise<number>((resolve) => runtime.setTimer(20, () => resolve(runtime.now())));
    expect(firedAtMs - startMs).toBeGreaterThanOrEqual(20);
    expect(cancelledFired).toBe(false);
  });

  test("many short timers are never early", async () => {
    const early: number[] = [];
    await Promise.all(
      Array.from({ length: 500 }, (_, index) => {
        const delayMs = (index % 40) + index / 1_000;
        const dueMs = runtime.now() + delayMs;
        return runtime.sleep(delayMs).then(() => {
          if (runtime.now() < dueMs) early.push(delayMs);
        });
      }),
    );
    expect(early).toEqual([]);
  });

  test("an aborted sleep rejects with the signal's own reason and leaves no listener", async () => {
    const reason = { why: "the caller left" };
    const controller = new AbortController();
    const sleeping = runtime.sleep(60_000, controller.signal);
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    await expect(runtime.sleep(60_000, controller.signal)).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("a finished sleep leaves no listener", async () => {
    const controller = new AbortController();
    await runtime.sleep(1, controller.signal);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("a failing callback surfaces as uncaught exception and does not stop the other timers", () => {
    const result = runScript(`
      process.on("uncaughtException", (error) => console.log("uncaught", error.message));
      runtime.setTimer(5, () => { throw new Error("first"); });
      runtime.setTimer(5, () => console.log("second"));
    `);
    expect(result.stdout.split("\n").filter(Boolean).sort()).toEqual(["second", "uncaught first"]);
    expect(result.status).toBe(0);
  });

  test("a waiting call keeps the process alive; cancelled timers let it end at once", () => {
    const result = runScript(`
      for (let index = 0; index < 100; index++) runtime.setTimer(600_000, () => {})();
      await new Promise((resolve) => runtime.setTimer(30, resolve));
      await runtime.sleep(30);
      console.log("answered");
    `);
    expect(result).toMatchObject({ stdout: "answered\n", status: 0 });
  });
});

describe("the default log", () => {
  test("writes warnings and errors to stderr, one line each, and drops the rest", () => {
    const result = runScript(`
      runtime.log("debug", "d"); runtime.log("info", "i");
      runtime.log("warn", "source a is cooling", { waitMs: 5 }); runtime.log("error", "two\\nlines");
    `);
    expect(result.stdout).toBe("");
    expect(result.stderr).toBe('polygateway: source a is cooling {"waitMs":5}\npolygateway: two lines\n');
  });

  test("fields are readable, never fail the caller and never show a secret", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    expect(formatLogLine("m", { key: new Secret("sk-abcdefghijklmnop"), error: new TypeError("t"), big: 1n })).toBe(
      'polygateway: m {"key":"sk-…mnop","error":{"name":"TypeError","message":"t"},"big":"1"}\n',
    );
    expect(formatLogLine("m", cyclic)).toBe("polygateway: m {fields that JSON cannot hold}\n");
    expect(formatLogLine("m", {})).toBe("polygateway: m\n");
  });
});

/** Runs the lines as a process of their own, with `runtime` defined. */
function runScript(lines: string): { stdout: string; stderr: string; status: number | null } {
  const script = join(folder, "script.mjs");
  writeFileSync(
    script,
    `import { createSystemRuntime } from "./backends/system.js";\nconst runtime = createSystemRuntime();\n${lines}`,
  );
  const { stdout, stderr, status } = spawnSync(process.execPath, [script], { encoding: "utf8", timeout: 30_000 });
  return { stdout, stderr, status };
}

/** Translates one source file and what it imports to JavaScript in `folder`: a plain Node process has no TypeScript. */
function translate(path: string, done = new Set<string>()): void {
  if (done.has(path)) return;
  done.add(path);
  const source = readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
  const { outputText } = transpileModule(source, {
    compilerOptions: { module: ModuleKind.ES2022, target: ScriptTarget.ES2022, verbatimModuleSyntax: true },
  });
  const output = join(folder, path.replace(/\.ts$/, ".js"));
  mkdirSync(dirname(output), { recursive: true });
  writeFileSync(output, outputText);
  for (const [, specifier] of outputText.matchAll(/from "(\.[^"]+)\.js"/g)) {
    translate(join(dirname(path), `${specifier}.ts`), done);
  }
}
