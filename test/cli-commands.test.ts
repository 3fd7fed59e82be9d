import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runDemo } from "../src/cli/demo-run.js";
import { runCli } from "../src/cli/program.js";
import { type SimulatedProvider, startSimulatedProvider, type UpstreamScript } from "../src/testing/provider/server.js";
import { fakeTerminal, makeFolder, sourceEnv } from "./cli-harness.js";

const COMMANDS = ["demo", "init", "check", "chat", "batch", "report", "reconcile", "mock", "completion"];

let folder: ReturnType<typeof makeFolder>;
let home: string;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = makeFolder();
  home = process.cwd();
  process.chdir(folder.path);
  provider = await startSimulatedProvider({ answer: ({ question }) => `You said: ${question}` });
});

afterEach(async () => {
  await provider.stop();
  process.chdir(home);
  folder.remove();
});

function refusal(message: string): UpstreamScript {
  const body = JSON.stringify({ error: { message, code: "invalid" } });
  return { status: 400, headers: { "content-type": "application/json" }, chunks: [{ utf8: body }], end: "close" };
}

function lines(path: string): { custom_id: string; error: { code: string; class: string } | null }[] {
  const text = readFileSync(path, "utf8").trimEnd();
  return text === "" ? [] : text.split("\n").map((line) => JSON.parse(line));
}

describe("usage", () => {
  it("shows every command in the help, and each command's own help has an example", async () => {
    const terminal = fakeTerminal();
    expect(await runCli(["--help"], terminal)).toBe(0);
    for (const name of COMMANDS) expect(terminal.out()).toMatch(new RegExp(`^  ${name}\\b`, "m"));
    for (const name of COMMANDS) {
      const own = fakeTerminal();
      expect(await runCli([name, "--help"], own)).toBe(0);
      expect(own.out(), name).toMatch(/example/i);
      expect(own.out(), name).toContain(`polygateway ${name}`);
    }
  });

  it("prints the version of package.json, and the help when nothing is asked", async () => {
    const version = fakeTerminal();
    expect(await runCli(["--version"], version)).toBe(0);
    expect(version.out().trim()).toBe(JSON.parse(readFileSync(join(home, "package.json"), "utf8")).version);
    const nothing = fakeTerminal();
    expect(await runCli([], nothing)).toBe(0);
    expect(nothing.out()).toContain("Examples:");
  });

  it.each([
    [["chta"], "Did you mean chat?"],
    [["batch", "in.jsonl"], "--out"],
    [["batch", "in.jsonl", "-o", "out.jsonl", "--concurrency", "many"], "whole number of at least 1"],
    [["batch", "in.jsonl", "-o", "out.jsonl", "--give-up-after", "soon"], "90s, 15m or 2h"],
    [["batch", "in.jsonl", "-o", "out.jsonl", "--give-up-after", "3"], "Give the unit too"],
    [["reconcile", "--stale-after", "3"], "Give the unit too"],
    [["batch", "in.jsonl", "-o", "out.jsonl", "--workers", "4"], "Redis"],
    [["chat", "hi", "--temprature", "1"], "Did you mean --temperature?"],
    [["chat", "hi", "--temperature", "hot"], "such as 0.7"],
    [["chat", "hi", "--max-tokens", "0"], "at least 1"],
    [["chat", "hi", "--thinking", "HIGH!"], "a level such as low"],
    [["chat", "hi", "--thinking", '{"budget": 1'], "a level such as low"],
    [["chat", "   "], "There is no prompt"],
    [["chat", "hi"], "No source is configured"],
    [["completion", "tcsh"], "bash, zsh, fish"],
  ])("%j exits 1 and says what to do", async (args, words) => {
    const terminal = fakeTerminal({ input: "" });
    expect(await runCli(args, terminal)).toBe(1);
    expect(terminal.err()).toContain(words);
    expect(terminal.err()).not.toMatch(/\n\s+at /);
  });

  it("asks for a scope when several are configured and none is LLM", async () => {
    const env = { A__X__1__MODEL: "m", B__X__1__MODEL: "m" };
    const terminal = fakeTerminal({ env });
    expect(await runCli(["chat", "hi"], terminal)).toBe(1);
    expect(terminal.err()).toContain("Several scopes are configured (A, B). Choose one with --scope.");
  });

  it("reports every mistake of a configuration at once", async () => {
    const env = { ...sourceEnv("not a url", { RPM: "-3" }), LLM__RETRY__MAX_ATTEMPTS: "many" };
    const terminal = fakeTerminal({ env });
    expect(await runCli(["chat", "hi"], terminal)).toBe(1);
    for (const key of ["LLM__SIM__1__BASE_URL", "LLM__SIM__1__RPM", "LLM__RETRY__MAX_ATTEMPTS"]) {
      expect(terminal.err()).toContain(key);
    }
  });

  it("shows a stack trace only when PGW_DEBUG asks for it", async () => {
    const terminal = fakeTerminal({ env: { PGW_DEBUG: "1" } });
    expect(await runCli(["chat", " "], terminal)).toBe(1);
    expect(terminal.err()).toMatch(/\n\s+at /);
  });
});

describe("completion", () => {
  it("completes commands, options and fixed words in a real bash", async () => {
    const terminal = fakeTerminal();
    expect(await runCli(["completion", "bash"], terminal)).toBe(0);
    const complete = (...words: string[]): string[] => {
      const script = `${terminal.out()}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _polygateway; printf '%s\\n' "\${COMPREPLY[@]}"`;
      return execFileSync("bash", ["--norc", "-c", script], { encoding: "utf8" }).trim().split("\n");
    };
    expect(complete("polygateway", "")).toEqual(expect.arrayContaining(COMMANDS));
    expect(complete("polygateway", "ba")).toEqual(["batch"]);
    expect(complete("pgw", "batch", "--re")).toEqual(["--retry-failed"]);
    expect(complete("polygateway", "completion", "z")).toEqual(["zsh"]);
  });

  it.each(["zsh", "fish"])("knows every command for %s", async (shell) => {
    const terminal = fakeTerminal();
    expect(await runCli(["completion", shell], terminal)).toBe(0);
    for (const name of COMMANDS) expect(terminal.out()).toContain(name);
    expect(terminal.out()).toContain("retry-failed");
  });
});

describe("chat", () => {
  it("streams the answer to stdout and tells source, tokens and cost on stderr", async () => {
    writeFileSync("prices.json", JSON.stringify({ "sim-model": { inputPer1M: 1000, outputPer1M: 1000 } }));
    const env = { ...sourceEnv(provider.baseUrl), PGW_PRICING_PATH: "prices.json" };
    const terminal = fakeTerminal({ env });
    expect(
      await runCli(["chat", "hello", "--temperature", "0", "--max-tokens", "50", "--system", "Be brief."], terminal),
    ).toBe(0);
    expect(terminal.out()).toBe("You said: hello\n");
    expect(terminal.err()).toMatch(/sim_1 · sim-model · .*\d+ tokens in, \d+ out · cost 0\.\d+ · /);
  });

  it("asks for thinking in the provider's own words", async () => {
    const env = { ...sourceEnv(provider.baseUrl), LLM__SIM__1__PROFILE: "qwen" };
    const asked = async (how: string): Promise<string> => {
      const terminal = fakeTerminal({ env });
      expect(await runCli(["chat", "hello", "--thinking", how, "--db", "thinking.db"], terminal)).toBe(
        how === "low" ? 2 : 0,
      );
      return terminal.err();
    };
    await asked("off");
    await asked("2048");
    expect(await asked("low")).toContain('thinking "low" is not among what sim-model takes');
  });

  it("takes the prompt from stdin, and prints the whole reply with --json", async () => {
    const terminal = fakeTerminal({ env: sourceEnv(provider.baseUrl), input: "from a pipe" });
    expect(await runCli(["chat", "--json", "-"], terminal)).toBe(0);
    expect(JSON.parse(terminal.out())).toMatchObject({
      content: "You said: from a pipe",
      sourceName: "sim_1",
      attempts: 1,
      finishReason: "stop",
    });
  });

  it("reads .env in the current folder, or the file it is given", async () => {
    const text = Object.entries(sourceEnv(provider.baseUrl)).map(([key, value]) => `${key}=${value}`);
    writeFileSync("other.env", text.join("\n"));
    const named = fakeTerminal();
    expect(await runCli(["chat", "hello", "--env", "other.env"], named)).toBe(0);
    writeFileSync(".env", text.join("\n"));
    const found = fakeTerminal();
    expect(await runCli(["chat", "hello"], found)).toBe(0);
    expect(found.out()).toBe("You said: hello\n");
  });

  it("names source, reason and remedy when the key is refused, and never the key", async () => {
    await provider.stop();
    provider = await startSimulatedProvider({ apiKeys: ["another"] });
    const terminal = fakeTerminal({ env: sourceEnv(provider.baseUrl) });
    expect(await runCli(["chat", "hello"], terminal)).toBe(3);
    expect(terminal.err()).toContain("sim_1");
    expect(terminal.err()).toContain("401");
    expect(terminal.err()).toContain("polygateway check");
    expect(terminal.err()).not.toContain("sk-test-0123456789abcdef");
  });

  it("exits 2 with the provider's words when the request itself is refused", async () => {
    provider.script(refusal("temperature must be at most 2"));
    const terminal = fakeTerminal({ env: sourceEnv(provider.baseUrl) });
    expect(await runCli(["chat", "hello"], terminal)).toBe(2);
    expect(terminal.err()).toContain("temperature must be at most 2");
  });

  it("stops on Ctrl-C with exit code 130, and closes the provider's connection", async () => {
    provider.change({ latency: { ttftMedianMs: 50, tokenMs: 5_000 } });
    const terminal = fakeTerminal({ env: sourceEnv(provider.baseUrl) });
    const running = runCli(["chat", "hello world"], terminal);
    while (terminal.out() === "") await new Promise((resolve) => setTimeout(resolve, 10));
    terminal.interrupt();
    expect(await running).toBe(130);
    expect(terminal.err()).toContain("Stopped.");
    while (provider.stats().inProgress > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(provider.ledger()).toHaveLength(1);
    expect(provider.ledger()[0]).toMatchObject({ clientClosed: true });
  });
});

describe("demo", () => {
  it("proves its promises over the first questions", async () => {
    const questions = readFileSync(join(home, "assets", "demo-questions.jsonl"), "utf8")
      .split("\n")
      .slice(0, 16)
      .join("\n");
    const terminal = fakeTerminal();
    const checks = await runDemo({ folder: folder.path, questions, terminal });
    expect(checks?.map(({ ok, found }) => ({ ok, found }))).toEqual(
      Array(4).fill({ ok: true, found: expect.any(String) }),
    );
    expect(terminal.out()).toContain("16 questions, four simulated sources");
    expect(terminal.out()).toContain("By source");
  });

  it("stops on Ctrl-C without a verdict", async () => {
    const questions = readFileSync(join(home, "assets", "demo-questions.jsonl"), "utf8").trimEnd();
    const terminal = fakeTerminal();
    const running = runDemo({ folder: folder.path, questions, terminal });
    while (!existsSync("answers.jsonl")) await new Promise((resolve) => setTimeout(resolve, 20));
    terminal.interrupt();
    terminal.interrupt();
    expect(await running).toBeUndefined();
  });
});

describe("batch", () => {
  const questions = (count: number): string =>
    Array.from(
      { length: count },
      (_, index) => `${JSON.stringify({ id: `q${index + 1}`, prompt: `question ${index + 1}` })}\n`,
    ).join("");

  it("answers every line once, exits 0 and says what it made", async () => {
    writeFileSync("in.jsonl", questions(20));
    const terminal = fakeTerminal({ env: sourceEnv(provider.baseUrl) });
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl"], terminal)).toBe(0);
    const ids = lines("out.jsonl").map((line) => line.custom_id);
    expect(ids.sort()).toEqual(Array.from({ length: 20 }, (_, index) => `q${index + 1}`).sort());
    expect(terminal.out()).toContain("All lines are answered: 20 done");
  });

  it("does nothing the second time, and prints its summary as JSON", async () => {
    writeFileSync("in.jsonl", questions(5));
    const env = sourceEnv(provider.baseUrl);
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl", "--quiet"], fakeTerminal({ env }))).toBe(0);
    const again = fakeTerminal({ env });
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl", "--json"], again)).toBe(0);
    expect(JSON.parse(again.out())).toMatchObject({ exitCode: 0, done: 0, skipped: 5, stop: null });
    expect(provider.ledger()).toHaveLength(5);
  });

  it("exits 2 when a line itself is refused, and 0 after --retry-failed", async () => {
    writeFileSync("in.jsonl", questions(3));
    provider.script(refusal("no such thing"));
    const env = sourceEnv(provider.baseUrl, { MAX_CONCURRENCY: "1" });
    const first = fakeTerminal({ env });
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl"], first)).toBe(2);
    expect(first.out()).toContain("--retry-failed");
    expect(lines("out.jsonl").filter((line) => line.error !== null)).toMatchObject([
      { error: { class: "RequestRejectedError" } },
    ]);
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl", "--retry-failed"], fakeTerminal({ env }))).toBe(0);
    expect(lines("out.jsonl").every((line) => line.error === null)).toBe(true);
  });

  it("exits 1 before anything is sent when IN is broken, missing, or OUT can't be written", async () => {
    writeFileSync("in.jsonl", `${questions(2)}{"id": "q1", "prompt": "again"}\n`);
    const env = sourceEnv(provider.baseUrl);
    const duplicate = fakeTerminal({ env });
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl"], duplicate)).toBe(1);
    expect(duplicate.err()).toContain("q1");
    const missing = fakeTerminal({ env });
    expect(await runCli(["batch", "nowhere.jsonl", "-o", "out.jsonl"], missing)).toBe(1);
    expect(missing.err()).toContain("nowhere.jsonl");
    writeFileSync("in.jsonl", questions(2));
    const nowhere = fakeTerminal({ env });
    expect(await runCli(["batch", "in.jsonl", "-o", "no/such/folder/out.jsonl"], nowhere)).toBe(1);
    expect(provider.ledger()).toHaveLength(0);
  });

  it("exits 3 when no source is usable, and says to run it again", async () => {
    await provider.stop();
    provider = await startSimulatedProvider({ apiKeys: ["another"] });
    writeFileSync("in.jsonl", questions(3));
    const terminal = fakeTerminal({ env: sourceEnv(provider.baseUrl) });
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl"], terminal)).toBe(3);
    expect(terminal.out() + terminal.err()).toMatch(/same command/);
  });

  it("draws on a terminal and writes plain text elsewhere", async () => {
    writeFileSync("in.jsonl", questions(10));
    const env = sourceEnv(provider.baseUrl);
    const drawn = fakeTerminal({ env, isTTY: true });
    expect(await runCli(["batch", "in.jsonl", "-o", "a.jsonl"], drawn)).toBe(0);
    expect(drawn.err()).toMatch(/█.*100 %/);
    expect(drawn.err()).toContain("sim_1");
    const plain = fakeTerminal({ env });
    expect(await runCli(["batch", "in.jsonl", "-o", "b.jsonl"], plain)).toBe(0);
    expect(plain.err()).not.toContain("\u001b");
    expect(plain.err()).toContain("10 done");
  });

  it("keeps its rows in ./polygateway.db, where report and reconcile find them", async () => {
    writeFileSync("in.jsonl", questions(4));
    const env = sourceEnv(provider.baseUrl);
    expect(await runCli(["batch", "in.jsonl", "-o", "out.jsonl"], fakeTerminal({ env }))).toBe(0);
    const report = fakeTerminal({ env });
    expect(await runCli(["report", "--json"], report)).toBe(0);
    expect(report.out()).toContain('"calls": 4');
    expect(await runCli(["reconcile"], fakeTerminal({ env }))).toBe(0);
  });
});
