import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Terminal } from "../src/cli/terminal.js";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const CLI = join(ROOT, "dist", "cli.js");

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves once stderr holds the text. */
  said(text: string): Promise<void>;
}

/** A folder of its own, so that no `.env` and no database of the repository is touched. */
export function makeFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "polygateway-cli-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Starts the built command in `folder` with nothing of this environment but what a program needs. */
export function startCli(
  args: readonly string[],
  options: { readonly folder: string; readonly env?: Record<string, string>; readonly input?: string },
): Running {
  if (!existsSync(CLI)) throw new Error("dist/cli.js is missing: `npm test` builds it, and so does `npm run build`");
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: options.folder,
    env: { PATH: process.env.PATH, HOME: options.folder, TMPDIR: options.folder, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  const waiters = new Set<() => void>();
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    for (const wake of waiters) wake();
  });
  child.stdin.on("error", () => {});
  child.stdin.end(options.input ?? "");
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
  return {
    child,
    finished,
    said: (text) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (!stderr.includes(text)) return;
          waiters.delete(check);
          resolve();
        };
        waiters.add(check);
        check();
        void finished.then(() => reject(new Error(`it ended without saying ${JSON.stringify(text)}:\n${stderr}`)));
      }),
  };
}

export interface FakeTerminal extends Terminal {
  readonly out: () => string;
  readonly err: () => string;
  interrupt(): void;
}

/** A terminal inside the test; pass it to `runCli`. */
export function fakeTerminal(
  options: { readonly env?: Record<string, string>; readonly input?: string; readonly isTTY?: boolean } = {},
): FakeTerminal {
  let stdout = "";
  let stderr = "";
  const listeners = new Set<() => void>();
  const isTTY = options.isTTY === true;
  return {
    stdout: { write: (text: string) => (stdout += text), isTTY, columns: 200 },
    stderr: { write: (text: string) => (stderr += text), isTTY, columns: 200 },
    stdin: Readable.from(options.input === undefined ? [] : [options.input]),
    env: options.env ?? {},
    onInterrupt(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    out: () => stdout,
    err: () => stderr,
    interrupt: () => {
      for (const listener of [...listeners]) listener();
    },
  };
}

/** The keys of one source, as a user writes them. */
export function sourceEnv(baseUrl: string, more: Record<string, string> = {}): Record<string, string> {
  const env: Record<string, string> = {
    BASE_URL: baseUrl,
    API_KEY: "sk-test-0123456789abcdef",
    MODEL: "sim-model",
    ...more,
  };
  return Object.fromEntries(Object.entries(env).map(([field, value]) => [`LLM__SIM__1__${field}`, value]));
}
