import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { makeFolder, sourceEnv, startCli } from "./cli-harness.js";

/** The built command as its own process: what only a process shows (signals, exit codes, what is loaded, what is left). */

let folder: ReturnType<typeof makeFolder>;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = makeFolder();
  provider = await startSimulatedProvider({ latency: { ttftMedianMs: 300 } });
});

afterEach(async () => {
  await provider.stop();
  folder.remove();
});

function writeQuestions(count: number): void {
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({ id: `q${index + 1}`, prompt: `question ${index + 1}` }),
  );
  writeFileSync(join(folder.path, "in.jsonl"), `${lines.join("\n")}\n`);
}

function idsInOut(): string[] {
  const text = readFileSync(join(folder.path, "out.jsonl"), "utf8").trimEnd();
  return text === "" ? [] : text.split("\n").map((line) => JSON.parse(line).custom_id);
}

const BATCH = ["batch", "in.jsonl", "-o", "out.jsonl"];

describe("the built command", () => {
  it("says its version, and exits 1 with a suggestion for an unknown command", async () => {
    const version = await startCli(["--version"], { folder: folder.path }).finished;
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    const unknown = await startCli(["bach"], { folder: folder.path }).finished;
    expect(unknown.code).toBe(1);
    expect(unknown.stderr).toContain("Did you mean batch?");
  });

  it("answers `| head` without an error", async () => {
    const cli = join(process.cwd(), "dist", "cli.js");
    const output = execFileSync(
      "bash",
      ["-c", `"${process.execPath}" "${cli}" completion zsh | head -1; echo "\${PIPESTATUS[0]}"`],
      {
        encoding: "utf8",
      },
    );
    expect(output).toBe("#compdef polygateway pgw\n0\n");
  });

  it("chats from a pipe", async () => {
    const run = startCli(["chat"], { folder: folder.path, env: sourceEnv(provider.baseUrl), input: "hello" });
    const { code, stdout, stderr } = await run.finished;
    expect(stdout).toContain("to: hello");
    expect(stderr).toContain("sim_1");
    expect(code).toBe(0);
  });
});

describe("batch and Ctrl-C", () => {
  it("drains on the first, exits 3, and the same command finishes the rest: every line once", async () => {
    writeQuestions(40);
    const env = sourceEnv(provider.baseUrl, { MAX_CONCURRENCY: "2" });
    const first = startCli(BATCH, { folder: folder.path, env });
    while (provider.ledger().length < 5) await new Promise((resolve) => setTimeout(resolve, 20));
    first.child.kill("SIGINT");
    await first.said("Press Ctrl-C again");
    const stopped = await first.finished;
    expect(stopped.code).toBe(3);
    const half = idsInOut();
    // Draining: what had been sent was answered and written.
    expect(half.length).toBe(provider.ledger().length);
    expect(half.length).toBeLessThan(40);
    provider.change({ latency: {} });
    const second = await startCli(BATCH, { folder: folder.path, env }).finished;
    expect(second.code).toBe(0);
    expect(idsInOut().sort()).toEqual(Array.from({ length: 40 }, (_, index) => `q${index + 1}`).sort());
    expect(provider.ledger()).toHaveLength(40);
  });

  it("stops at once on the second, and still loses nothing", async () => {
    writeQuestions(6);
    provider.change({ latency: { ttftMedianMs: 50_000 } });
    const env = sourceEnv(provider.baseUrl, { MAX_CONCURRENCY: "2" });
    const first = startCli(BATCH, { folder: folder.path, env });
    while (provider.ledger().length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    first.child.kill("SIGINT");
    await first.said("Press Ctrl-C again");
    first.child.kill("SIGINT");
    expect((await first.finished).code).toBe(3);
    expect(idsInOut()).toEqual([]);
    provider.change({ latency: {} });
    expect((await startCli(BATCH, { folder: folder.path, env }).finished).code).toBe(0);
    expect(idsInOut().sort()).toEqual(["q1", "q2", "q3", "q4", "q5", "q6"]);
  });

  it("goes on after SIGKILL; reconcile explains every attempt", async () => {
    writeQuestions(30);
    const env = sourceEnv(provider.baseUrl, { MAX_CONCURRENCY: "4" });
    const first = startCli(BATCH, { folder: folder.path, env });
    while (provider.ledger().length < 9) await new Promise((resolve) => setTimeout(resolve, 20));
    first.child.kill("SIGKILL");
    await first.finished;
    provider.change({ latency: {} });
    const second = await startCli(BATCH, { folder: folder.path, env }).finished;
    expect(second.code).toBe(0);
    expect(idsInOut().sort()).toEqual(Array.from({ length: 30 }, (_, index) => `q${index + 1}`).sort());
    const books = await startCli(["reconcile"], { folder: folder.path, env }).finished;
    expect(books).toMatchObject({ code: 0 });
  });
});

describe("demo", () => {
  it("runs green without keys or servers, and leaves nothing behind", { timeout: 150_000 }, async () => {
    const { code, stdout, stderr } = await startCli(["demo"], { folder: folder.path }).finished;
    expect(stdout + stderr).toContain("200 questions");
    expect(stdout).not.toContain("✗");
    expect(stdout).toContain("✓ every question answered exactly once");
    expect(stdout).toContain("✓ no provider saw more requests than its limit");
    expect(stdout).toContain("✓ one row for every request");
    expect(stdout).toContain("✓ the books balance");
    expect(code).toBe(0);
    expect(readdirSync(folder.path)).toEqual([]);
    expect(existsSync(join(folder.path, "polygateway.db"))).toBe(false);
  });
});
