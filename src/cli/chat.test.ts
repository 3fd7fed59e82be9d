import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTelemetryFile } from "../telemetry/reader.js";
import { type SimulatedProvider, startSimulatedProvider } from "../testing/provider/server.js";
import { runCli } from "./program.js";

let folder: string;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pgw-chat-"));
  provider = await startSimulatedProvider({ latency: { ttftMedianMs: 20 } });
});

afterEach(async () => {
  await provider.stop();
  rmSync(folder, { recursive: true, force: true });
});

const db = () => join(folder, "telemetry.db");

async function chat(stdout: Writable & { readonly isTTY?: boolean }, more: readonly string[] = []) {
  const envFile = join(folder, "env");
  const fields = { BASE_URL: provider.baseUrl, API_KEY: "sk-test-0123456789abcdef", MODEL: "sim-model" };
  const entries = Object.entries(fields).map(([field, value]) => `LLM__SIM__1__${field}=${value}\n`);
  writeFileSync(envFile, entries.join(""));
  let stderr = "";
  const code = await runCli(["chat", "hello", "--env", envFile, "--db", db(), ...more], {
    stdout,
    stderr: { write: (text) => (stderr += text) },
    stdin: Readable.from([]),
    env: {},
    onInterrupt: () => () => {},
  });
  return { code, stderr };
}

async function outcomes(): Promise<unknown[]> {
  const file = openTelemetryFile(db());
  const found: unknown[] = [];
  try {
    for await (const row of file.rows({ withoutTexts: true })) if (row.attempt !== null) found.push(row.outcome);
  } finally {
    file.close();
  }
  return found;
}

describe("chat into a pipe", () => {
  it("cancels the call, records it and exits non-zero when the reader has gone", async () => {
    const gone = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
    });
    // What the command line does with any other command: it would end before the call is recorded.
    let endedAtOnce = false;
    gone.on("error", () => {
      endedAtOnce = true;
    });
    provider.change({ latency: { ttftMedianMs: 20, tokenMs: 60_000 } });
    const { code, stderr } = await chat(gone);
    expect(code).toBe(130);
    expect(stderr).toContain("The reader of the answer has gone: the call was cancelled, and may be billed.");
    expect(endedAtOnce).toBe(false);
    expect(gone.listenerCount("error")).toBe(1);
    expect(await outcomes()).toEqual(["cancelled"]);
  });

  it("answers in JSON with whole milliseconds", async () => {
    let text = "";
    const stdout = new Writable({
      write(chunk, _encoding, done) {
        text += chunk;
        done();
      },
    });
    expect(await chat(stdout, ["--json"])).toMatchObject({ code: 0 });
    const { latencyMs, ttftMs } = JSON.parse(text);
    expect([latencyMs, ttftMs].every(Number.isInteger)).toBe(true);
  });
});
