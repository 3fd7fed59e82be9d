import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../src/cli/program.js";
import { statusLines } from "../src/cli/status-view.js";
import { styleOf } from "../src/cli/terminal.js";
import { TransientError } from "../src/errors.js";
import type { StatusFile } from "../src/status/status-file.js";
import { readStatus } from "../src/status/status-reader.js";
import { fakeTerminal } from "./cli-harness.js";
import { hi, patient, type SimulationOptions, simulate } from "./loop/harness.js";

/** What a client shows of itself while it works (spec 08 "status"), on virtual time and real files. */

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-status-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const files = (): string[] => readdirSync(folder).filter((name) => name.endsWith(".json"));
const shown = (): StatusFile => JSON.parse(readFileSync(join(folder, files()[0] ?? ""), "utf8"));

/** Files are written for real: they get their turn. */
async function untilWritten(): Promise<void> {
  await expect.poll(() => files().length).toBeGreaterThan(0);
}

function client(setup: SimulationOptions = {}) {
  return simulate({ ...setup, options: { statusPath: folder, ...setup.options } });
}

/** Four seconds after it was written. */
function drawn(status: StatusFile): string {
  const style = styleOf({ write: () => {} }, {});
  return statusLines({ live: [status], stale: [] }, status.writtenAtMs + 4_000, style).join("\n");
}

async function cli(...args: string[]) {
  const terminal = fakeTerminal();
  const code = await runCli(["status", "--path", folder, ...args], terminal);
  return { code, out: terminal.out(), err: terminal.err() };
}

describe("the file", () => {
  it("shows limits, what runs and who waits for what, to its user alone, and goes with the client", async () => {
    const { kernel, client: gateway } = client({
      sources: [{ ...patient, maxConcurrency: 1, rpm: 600, tpm: 90_000 }],
      script: () => ({ afterMs: 60_000 }),
    });
    const calls = [gateway.chat(hi), gateway.chat({ ...hi, priority: 3 })];
    await kernel.advance(200);
    await untilWritten();
    expect(statSync(join(folder, files()[0] ?? "")).mode & 0o777).toBe(0o600);
    const status = shown();
    expect(status).toMatchObject({ scope: "LLM", folder: process.cwd(), idle: false });
    expect(status.limits).toEqual({ s_1: { maxConcurrency: 1, rpm: 600, tpm: 90_000 } });
    expect(status.snapshot.sources[0]).toMatchObject({ inflight: 1, passedOver: { reason: "concurrency" } });
    expect(status.snapshot.waiting).toMatchObject({ count: 1, reasons: { concurrency: 1 }, byPriority: { 3: 1 } });
    const text = drawn(status);
    expect(text).toContain(`LLM: process ${process.pid} in ${process.cwd()}`);
    expect(text).toMatch(/s_1 +1\/1 +\d+\/600 +[\d,]+\/90,000 .*full: no free place/);
    expect(text).toContain("1 call waits, the longest 100 ms: 1 for no free place");
    await kernel.run(Promise.all(calls));
    await gateway.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("is not written for a client that nobody asked for it", async () => {
    const { kernel, client: gateway } = simulate();
    await kernel.run(gateway.chat(hi));
    expect(kernel.pendingTimers()).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    await gateway.close();
  });

  it("says idle once the last call has ended, and then sets no timer", async () => {
    const { kernel, client: gateway } = client({ script: () => ({ afterMs: 2_500 }) });
    await kernel.run(gateway.chat(hi));
    await untilWritten();
    await kernel.advance(5_000);
    await expect.poll(() => shown().idle).toBe(true);
    expect(kernel.pendingTimers()).toBe(0);
    expect(drawn(shown())).toContain(", idle for 4.0 s");
    await gateway.close();
  });

  it("clients that share a queue show it once", async () => {
    const { kernel, client: first } = client({ script: () => ({ afterMs: 3_000 }) });
    const { client: second } = client({ kernel, options: { statusPath: folder, governor: first.governor } });
    const calls = [first.chat(hi), second.chat(hi)];
    await kernel.advance(200);
    await untilWritten();
    expect(files()).toHaveLength(1);
    await kernel.run(Promise.all(calls));
    await first.close();
    expect(files()).toHaveLength(1);
    await second.close();
    expect(files()).toEqual([]);
  });

  it("tells what a source said without keys, and without its words where they are not kept", async () => {
    const said = new TransientError("s_1 transient failure: key sk-simulated-key is busy", { statusCode: 503 });
    for (const capture of ["full", "digest"] as const) {
      const { kernel, client: gateway } = client({
        script: (_, n) => (n === 1 ? { afterMs: 1, error: said } : { afterMs: 5_000 }),
        options: { telemetryOptions: { capture } },
      });
      const call = gateway.chat(hi);
      await kernel.advance(2_000);
      await untilWritten();
      await expect.poll(() => shown().snapshot.sources[0]?.lastError).not.toBeNull();
      const { message } = shown().snapshot.sources[0]!.lastError!;
      expect(message).toBe(capture === "full" ? "s_1 transient failure: key [redacted] is busy" : "upstream_error");
      await kernel.run(call);
      await gateway.close();
    }
  });

  it("a folder that can't be written to is told once and is in nobody's way", async () => {
    const taken = join(folder, "taken");
    writeFileSync(taken, "");
    const {
      kernel,
      client: gateway,
      recorder,
    } = client({
      options: { statusPath: taken },
      script: () => ({ afterMs: 4_000 }),
    });
    await kernel.run(gateway.chat(hi));
    expect(recorder.rows.at(-1)?.outcome).toBe("success");
    await gateway.close();
  });
});

describe("polygateway status", () => {
  const left = (pid: number, scope = "LLM", more: Partial<StatusFile> = {}): void => {
    const status: StatusFile = {
      version: 1,
      scope,
      worker: `${hostname()}:${pid}:abcdef`,
      folder: "/srv/app",
      startedAtMs: Date.now() - 65_000,
      writtenAtMs: Date.now(),
      idle: false,
      limits: {},
      global: { maxConcurrency: 0, rpm: 0, tpm: 0 },
      snapshot: {
        scope,
        sources: [],
        backend: { kind: "memory", ok: true },
        waiting: { count: 0, oldestMs: 0, reasons: {}, byPriority: {} },
      },
      ...more,
    };
    writeFileSync(join(folder, `${scope}-${pid}-abcdef.json`), JSON.stringify(status));
  };
  /** Above every pid that Linux gives by default. */
  const DEAD = 4_190_000;

  it("says what to do when nothing is at work, with exit code 1", async () => {
    const { code, err } = await cli();
    expect(code).toBe(1);
    expect(err).toContain(`No process shows itself in ${folder}.`);
    expect(err).toContain("PGW_STATUS_PATH");
    expect(JSON.parse((await cli("--json")).out)).toMatchObject({ processes: [], gone: [] });
  });

  it("says of figures that they are old while the store that processes share doesn't answer", async () => {
    const waiting = { count: 0, oldestMs: 0, reasons: {}, byPriority: {} };
    left(process.pid, "LLM", {
      snapshot: { scope: "LLM", sources: [], backend: { kind: "redis", ok: false }, waiting },
    });
    const { code, out } = await cli();
    expect(code).toBe(0);
    expect(out).toContain("Redis does not answer");
  });

  it("names a process that died, once, and takes its file away", async () => {
    left(DEAD);
    const { code, err } = await cli();
    expect([code, files()]).toEqual([1, []]);
    expect(err).toContain(`LLM: process ${DEAD} is gone`);
    expect((await cli()).err).not.toContain("is gone");
  });

  it("shows every process, or those of one scope, and who has been silent", async () => {
    left(process.pid);
    left(1, "OTHER", { writtenAtMs: Date.now() - 20_000 });
    const both = await cli();
    expect(both.code).toBe(0);
    expect(both.out).toContain("LLM: process");
    expect(both.out).toMatch(/OTHER: process \d+ in \/srv\/app.*it hangs or is stopped/);
    expect((await cli("OTHER")).out).not.toContain("LLM:");
    expect((await cli("--scope", "OTHER")).out).not.toContain("LLM:");
    expect((await cli("THIRD")).err).toContain("No process with calls of scope THIRD");
    expect(JSON.parse((await cli("--json")).out).processes).toHaveLength(2);
  });

  it("leaves files alone that are none of ours", async () => {
    for (const text of ["{", "null", '{"version":2}', '{"version":1,"scope":"LLM"}'])
      writeFileSync(join(folder, `x${text.length}.json`), text);
    expect((await cli()).code).toBe(1);
    expect(files()).toHaveLength(4);
    expect(readStatus(join(folder, "missing"), undefined, 0)).toEqual({ live: [], stale: [] });
  });

  it("refuses --watch with --json", async () => {
    const { code, err } = await cli("--watch", "--json");
    expect(code).toBe(1);
    expect(err).toContain("Leave out one of them.");
  });

  it("--watch draws on a terminal until Ctrl-C", async () => {
    left(process.pid);
    const terminal = fakeTerminal({ isTTY: true, env: { NO_COLOR: "1" } });
    const watching = runCli(["status", "--path", folder, "--watch"], terminal);
    await expect.poll(terminal.out).toContain("LLM: process");
    terminal.interrupt();
    expect(await watching).toBe(0);
  });
});
