import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../src/cli/program.js";
import { stateText } from "../src/cli/status-table.js";
import { statusLines } from "../src/cli/status-view.js";
import { styleOf } from "../src/cli/terminal.js";
import { TransientError } from "../src/errors.js";
import type { SourceSnapshot } from "../src/ports/governor.js";
import type { StatusFile } from "../src/status/status-file.js";
import { readStatus } from "../src/status/status-reader.js";
import { fakeTerminal } from "./cli-harness.js";
import { hi, limited, noPacer, patient, type SimulationOptions, simulate } from "./loop/harness.js";

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

const shownSource: SourceSnapshot = {
  name: "s_1",
  state: "closed",
  epoch: 0,
  openForMs: 0,
  probeInFlight: false,
  inflight: 1,
  maxConcurrency: 1,
  requestsUsed: 1,
  tokensUsed: 0,
  coolingMs: 0,
  dead: false,
  lastError: null,
  passedOver: null,
  adaptive: {
    window: 1,
    ratePerS: null,
    learnedRpm: null,
    learnedTpm: null,
    lastCutAgoMs: null,
    evidence: 0,
    tripsAt: 9.2,
    successShare: 1,
    ttftMs: null,
    tpotMs: null,
    firstTokenDueMs: null,
    ramping: false,
  },
};

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
    expect(status.limits).toEqual({ s_1: { maxConcurrency: 1, rpm: 600, tpm: 90_000, limitRule: "smooth" } });
    expect(status.snapshot.sources[0]).toMatchObject({ inflight: 1, passedOver: { reason: "concurrency" } });
    expect(status.snapshot.waiting).toMatchObject({ count: 1, reasons: { concurrency: 1 }, byPriority: { 3: 1 } });
    const text = drawn(status);
    expect(text).toContain(`LLM: process ${process.pid} in ${process.cwd()}`);
    expect(text).toMatch(/s_1 +1\/1 +600, \d+ ahead +90,000, [\d,]+ ahead .*full: no free place/);
    expect(text).toContain("1 call waits, the longest 100 ms: 1 for no free place");
    await kernel.run(Promise.all(calls));
    await gateway.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    ["the burst of a paced limit", { rpm: 60 }, /s_1 .* 60, 4 ahead .*full: burst of requests, next in [\d.]+ (s|ms)/],
    [
      "the burst of paced tokens",
      { tpm: 6_000, estTokens: 90, tpmCharge: "max" },
      /s_1 .* 6,000, \d+ ahead .*full: burst of tokens, next in/,
    ],
    ["the minute itself", { rpm: 5, limitRule: "window" }, /s_1 .* 5\/5 .*full: requests per minute, next in/],
    [
      "the rest of a minute's tokens",
      { tpm: 2_000, estTokens: 900, tpmCharge: "max", limitRule: "window" },
      /s_1 .* 1,800\/2,000 .*full: no room for a usual call in the tokens of the minute, next in/,
    ],
    ["the configured places", { maxConcurrency: 2 }, /s_1 +2\/2 .*full: no free place\b/],
  ] as const)("names the gate that is full: %s", async (_, source, shownAs) => {
    const { kernel, client: gateway } = client({
      sources: [{ ...patient, ...source }],
      options: noPacer,
      script: () => ({ afterMs: 60_000 }),
    });
    const calls = Array.from({ length: 8 }, () => gateway.chat(hi));
    await kernel.advance(200);
    await untilWritten();
    expect(drawn(shown())).toMatch(shownAs);
    await kernel.run(Promise.all(calls));
    await gateway.close();
  });

  it("names the pacer where it is that, by its window or its rate", async () => {
    const { kernel, client: gateway } = client({
      sources: [{ ...patient, maxConcurrency: 2, rpm: 600 }],
      script: (_, n) => (n <= 2 ? { afterMs: 10 * n, error: limited(1) } : { afterMs: 30_000 }),
    });
    // Both places were taken when the 429 came: the window is cut to one.
    const calls = [gateway.chat(hi), gateway.chat(hi)];
    await kernel.advance(3_000);
    await untilWritten();
    const later = async (): Promise<string> => {
      await kernel.advance(1_000);
      return drawn(shown());
    };
    await expect.poll(later).toMatch(/s_1 +1\/1 .*full: no place more for now, by its pacer or ramp/);
    expect(drawn(shown())).toContain("1 of 2 places in use by its pacer or ramp");
    await kernel.run(Promise.all(calls));
    await gateway.close();
    const style = styleOf({ write: () => {} }, {});
    const paced = { window: 8, ratePerS: 0.8, learnedRpm: null, learnedTpm: null };
    const source = {
      ...shownSource,
      passedOver: { reason: "rpm" as const, waitMs: 1_200 },
      adaptive: { ...shownSource.adaptive!, ...paced },
    };
    const limits = { maxConcurrency: 0, rpm: 600, tpm: 0, limitRule: "smooth" as const };
    expect(stateText(source, style, limits)).toBe("full: 0.80 requests/s by its pacer, next in 1.2 s");
  });

  it("one place is no places", async () => {
    const style = styleOf({ write: () => {} }, {});
    const source = { ...shownSource, maxConcurrency: 0, adaptive: { ...shownSource.adaptive!, window: 1 } };
    const { kernel, client: gateway } = client({ script: () => ({ afterMs: 3_000 }) });
    const call = gateway.chat(hi);
    await kernel.advance(200);
    await untilWritten();
    const status = { ...shown(), snapshot: { ...shown().snapshot, sources: [source] } };
    const text = statusLines({ live: [status], stale: [] }, 0, style).join("\n");
    expect(text).toContain("1 place for now, no concurrency limit is configured");
    await kernel.run(call);
    await gateway.close();
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
      global: { maxConcurrency: 0, rpm: 0, tpm: 0, limitRule: "smooth" },
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

  it("counts the processes that died where there are several", async () => {
    for (let n = 0; n < 30; n += 1) left(DEAD + n);
    const { err } = await cli();
    expect(err).toContain("LLM: 30 processes are gone without taking their status away");
    expect(err.match(/gone/g)).toHaveLength(1);
  });

  const waiting = { count: 12, oldestMs: 90_000, reasons: { rpm: 7, global_concurrency: 5 }, byPriority: { 0: 12 } };
  const snapshot = {
    scope: "LLM",
    sources: [{ ...shownSource, requestsUsed: 4, passedOver: { reason: "rpm" as const, waitMs: 1_200 } }],
    backend: { kind: "redis", ok: true },
    waiting,
  };
  const limits = { s_1: { maxConcurrency: 1, rpm: 60, tpm: 90_000, limitRule: "smooth" as const } };

  it("says once that what processes show of shared limits is the fleet's, and what the figures are", async () => {
    left(process.pid, "LLM", { snapshot, limits });
    left(1, "LLM", { snapshot, limits });
    const { out } = await cli();
    expect(out.match(/2 processes share the limits through Redis/g)).toHaveLength(1);
    expect(out).toMatch(/s_1 +1\/1 +60, 4 ahead/);
    expect(out.match(/^ahead: /gm)).toHaveLength(1);
    expect(out).not.toMatch(/4\/60/);
  });

  it("a process alone shares with nobody", async () => {
    left(process.pid, "LLM", { snapshot, limits });
    expect((await cli()).out).not.toContain("share the limits");
  });

  it.each([60, 80, 100])("on a terminal of %d columns nothing essential is cut", async (columns) => {
    left(process.pid, "LLM", { snapshot, limits, folder: "/srv/applications/with/a/long/name/of/its/own/for/this" });
    left(1, "LLM", { snapshot, limits });
    const terminal = fakeTerminal();
    await runCli(["status", "--path", folder], { ...terminal, stdout: { ...terminal.stdout, columns } });
    const out = terminal.out();
    expect(out).not.toContain("…");
    for (const line of out.split("\n")) expect(line.length, line).toBeLessThanOrEqual(columns);
    const text = out.replace(/\s+/g, " ");
    expect(text).toContain("s_1: full: burst of requests, next in 1.2 s");
    expect(text).toContain("7 for requests per minute, 5 for no free place in the scope");
    expect(text).toMatch(/running .*state/);
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
