import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadEnv } from "../config/env.js";
import { OcrClient } from "../gateway/ocr-client.js";
import { CliError } from "./failure.js";
import { registerMock } from "./mock.js";
import type { Terminal } from "./terminal.js";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-mock-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

interface Run {
  /** Resolves when something was printed, with everything so far. */
  readonly printed: Promise<string>;
  readonly finished: Promise<string>;
  interrupt(): void;
  listeners(): number;
}

function run(args: readonly string[]): Run {
  let output = "";
  let onPrint: (text: string) => void = () => undefined;
  const printed = new Promise<string>((resolve) => {
    onPrint = resolve;
  });
  const listeners = new Set<() => void>();
  const write = (text: string): void => {
    output += text;
    onPrint(output);
  };
  const terminal: Terminal = {
    stdout: { write },
    stderr: { write },
    stdin: new PassThrough(),
    env: {},
    onInterrupt(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const program = new Command().exitOverride().configureOutput({ writeErr: write, writeOut: write });
  registerMock(program, terminal);
  const finished = program.parseAsync(["mock", ...args], { from: "user" }).then(() => output);
  const started = Promise.race([printed, finished]);
  // A test that looks at one of them must not be failed by the other.
  for (const promise of [finished, started]) promise.catch(() => undefined);
  return {
    printed: started,
    finished,
    interrupt: () => {
      for (const listener of [...listeners]) listener();
    },
    listeners: () => listeners.size,
  };
}

async function failureOf(args: readonly string[]): Promise<CliError> {
  return run(args).finished.then(
    () => expect.fail("it started"),
    (error: CliError) => error,
  );
}

function ask(url: string): Promise<Response> {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
  return fetch(`${url}/chat/completions`, { method: "POST", body });
}

describe("mock", () => {
  it("prints an environment that the configuration accepts as it stands, limits included", async () => {
    const mock = run([
      "--port",
      "0",
      "--rpm",
      "60",
      "--max-concurrency",
      "4",
      "--limit-rule",
      "window",
      "--model",
      "m1",
    ]);
    const text = await mock.printed;
    const env = Object.fromEntries(
      text
        .split("\n")
        .filter((line) => line.startsWith("LLM__"))
        .map((line) => line.split(/=(.*)/s).slice(0, 2)),
    );
    const [source] = loadEnv("LLM", env).options.sources;
    expect(source).toMatchObject({ name: "sim_1", model: "m1", rpm: 60, maxConcurrency: 4, limitRule: "window" });
    expect((await ask(String(source?.baseUrl))).status).toBe(200);
    mock.interrupt();
    expect(await mock.finished).toContain("Stopped after 1 request: 1 answered.\n");
    expect(mock.listeners()).toBe(0);
  });

  it("speaks JSON when told, and writes its ledger", async () => {
    const ledger = join(folder, "ledger.jsonl");
    const mock = run(["--port", "0", "--json", "--ledger", ledger, "--error-rate", "100%"]);
    const { url, port, env } = JSON.parse(await mock.printed);
    expect(url).toBe(`http://127.0.0.1:${port}/v1`);
    expect(env.LLM__SIM__1__BASE_URL).toBe(url);
    expect((await ask(url)).status).toBeGreaterThanOrEqual(500);
    mock.interrupt();
    const lines = (await mock.finished).trim().split("\n");
    expect(JSON.parse(lines[1] ?? "")).toEqual({ arrived: 1, outcomes: { error: 1 } });
    expect(JSON.parse(readFileSync(ledger, "utf8"))).toMatchObject({ provider: "mock", outcome: "error" });
  });

  it("plays the scripts of a file in order, the last one for ever", async () => {
    const file = join(folder, "scripts.jsonl");
    writeFileSync(file, '{"status":501,"end":"close"}\n{"id":"x","upstream":{"status":502,"end":"close"}}\n');
    const mock = run(["--port", "0", "--json", "--script", file, "--script-forever"]);
    const { url } = JSON.parse(await mock.printed);
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask(url)).status);
    expect(statuses).toEqual([501, 502, 502, 502]);
    mock.interrupt();
    await mock.finished;
  });

  it("ends an answer in progress at the second signal at the latest", async () => {
    const mock = run(["--port", "0", "--json", "--ttft", "600000"]);
    const { url } = JSON.parse(await mock.printed);
    const lost = ask(url).catch(() => "lost");
    await fetch(url.replace("/v1", "/healthz"));
    mock.interrupt();
    mock.interrupt();
    await mock.finished;
    expect(await lost).toBe("lost");
  });

  it("names every bad option at once, as it was given", async () => {
    const failure = await failureOf([
      "--port=70000",
      "--rpm=-1",
      "--error-rate=5x",
      "--cut-rate=80%",
      "--hang-rate=0.7",
      "--output-sigma=1",
      "--script-forever",
    ]);
    expect(failure).toBeInstanceOf(CliError);
    expect(failure.exitCode).toBe(1);
    expect(failure.message.split("\n").slice(1)).toEqual([
      "  --port 70000: not accepted. Give a whole number from 0 to 65535",
      "  --rpm -1: not accepted. Give a number of at least 0",
      "  --output-tokens: missing. Give a number of at least 1",
      "  --error-rate 5x: not accepted. Give a number from 0 to 1",
      "  --script-forever: give the file with --script",
    ]);
    expect((await failureOf(["--cut-rate=80%", "--hang-rate=0.7"])).message).toContain(
      "--cut-rate + --hang-rate 1.5: the fault rates together are above 1.",
    );
    await expect(run(["--limit-rule", "other"]).finished).rejects.toMatchObject({ exitCode: 1 });
  });

  it("says what is wrong with a port, a ledger or a script it can't use", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { port: number };
    expect((await failureOf(["--port", String(port)])).message).toContain(`Port ${port} is already in use`);
    taken.close();
    expect((await failureOf(["--port", "0", "--ledger", join(folder, "no", "file")])).message).toMatch(/^--ledger /);
    const file = join(folder, "script.json");
    for (const [text, problem] of [
      ["{", "line 1 is not valid JSON"],
      ["", "it holds no script"],
      ["7", "script 1: a script must be an object"],
      ['{"status":200}', "script 1: end must be close, reset, hang"],
      ['{"status":99,"end":"close"}', "status must be"],
      ['{"end":"close","staus":200}', 'unknown key "staus"'],
      ['[{"end":"close"},{"end":"close","headers":{"a":"b\\r\\nc"}}]', "script 2: headers must be"],
      ['{"status":200,"end":"close","chunks":[{"utf8":"a","base64":"b"}]}', "one text"],
      ['{"status":200,"end":"close","chunks":[{"utf8":"a","delayMs":-1}]}', "delayMs"],
      ['{"reusedSocket":"x"}', "reusedSocket must be"],
    ] as const) {
      writeFileSync(file, text);
      expect((await failureOf(["--port", "0", "--script", file])).message).toContain(problem);
    }
  });
});

describe("mock --ocr", () => {
  it.each(["monkey-ocr", "mineru", "paddle", "mistral"])(
    "serves %s, with lines for a scope that can be used",
    async (kind) => {
      const mock = run(["--ocr", kind, "--port", "0", "--latency", "1", "--json"]);
      const { url, env } = JSON.parse(await mock.printed);
      expect(env).toMatchObject({ OCR__SIM__1__BASE_URL: url, OCR__SIM__1__TRANSPORT: kind });
      await using client = OcrClient.fromEnv("OCR", { env });
      const picture = Buffer.from("iVBORw0KGgoAAAANSUhEUgAABLAAAAMg", "base64");
      expect((await client.recognizeText(picture)).text).not.toBe("");
      expect((await client.parseLayout(picture)).elements).not.toEqual([]);
      mock.interrupt();
      expect(JSON.parse((await mock.finished).split("\n")[1]!)).toMatchObject({ outcomes: expect.any(Object) });
    },
  );

  it("fails a share of the pages by the seed", async () => {
    const mock = run(["--ocr", "monkey-ocr", "--port", "0", "--error-rate", "100%", "--seed", "3"]);
    const [, url] = /answers at (\S+) /.exec(await mock.printed) ?? [];
    const form = new FormData();
    form.set("file", new Blob(["x"]), "a.png");
    const response = await fetch(`${url}/ocr/text`, { method: "POST", body: form });
    expect(JSON.stringify(await response.json())).toMatch(/fail|"success":false/);
    mock.interrupt();
    expect(await mock.finished).toMatch(/Stopped after 1 request/);
  });

  it.each([
    [
      ["--ocr", "paddle", "--rpm", "3", "--error-rate", "1%"],
      /--rpm, --error-rate can't be used with --ocr paddle, which takes --port, /,
    ],
    [["--ocr", "mineru", "--latency", "soon"], /--latency soon: /],
    [["--ocr", "mineru", "--error-rate", "300%"], /--error-rate 300%: /],
    [["--latency", "3"], /--latency is for --ocr/],
  ])("refuses %j", async (args, reason) => {
    const error = await run(args).finished.then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );
    expect(error).toBeInstanceOf(CliError);
    expect(error?.message).toMatch(reason);
  });
});
