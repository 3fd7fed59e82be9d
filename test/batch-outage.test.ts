import { describe, expect, it } from "vitest";
import { TransientError } from "../src/errors.js";
import type { Script, ScriptedReply } from "../src/testing/scripted-transport.js";
import { type SimulatedRun, simulateBatch } from "./support-batch/simulated-batch.js";

/** A provider that is down for minutes costs no line: the real client and the real batch loop on virtual time. */

const ANSWER_MS = 200;
const OUTAGE = { fromMs: 3_000, toMs: 3_000 + 6 * 60_000 };
const LINES = 2_000;
const SEEDS = [1, 2, 3, 4, 5];
const MAX_PROBES = 40;
/** Longest open time of a breaker and what eight in flight need for the rest. */
const BACK_TO_WORK_MS = 120_000;

type Broken = (sourceName: string) => ScriptedReply;

const failing = (afterMs: number, message: string, details: ConstructorParameters<typeof TransientError>[1]) => ({
  afterMs,
  error: new TransientError(message, details),
});

const KINDS: Readonly<Record<string, Broken>> = {
  "answers 503": (sourceName) => failing(20, "503", { code: "upstream_error", statusCode: 503, sourceName }),
  "refuses connections": (sourceName) => failing(1, "ECONNREFUSED", { code: "network", sourceName }),
  "never answers": () => ({}),
  "answers 429 without end": (sourceName) =>
    failing(20, "429", { code: "rate_limit", statusCode: 429, rateLimited: true, sourceName }),
  "answers 503 after a long silence": (sourceName) =>
    failing(50_000, "503", { code: "upstream_error", statusCode: 503, sourceName }),
};

/** Down for a while: what is on its way when it begins breaks too. */
function downBetween({ fromMs, toMs }: typeof OUTAGE, broken: Broken): Script {
  return ({ context, source }) => {
    const now = context.runtime.now();
    const dies = now + ANSWER_MS > fromMs && now < toMs;
    return dies ? broken(source.name) : { firstTokenMs: ANSWER_MS / 2, afterMs: ANSWER_MS };
  };
}

function expectNothingLost(run: SimulatedRun): void {
  expect(run.stop).toBeNull();
  expect(run.out.filter(({ error }) => error !== null)).toEqual([]);
  expect(new Set(run.out.map((line) => line.custom_id)).size).toBe(LINES);
  expect(run.out).toHaveLength(LINES);
  expectBooksBalance(run);
}

function expectBooksBalance({ recorder, transport, leftBehind }: SimulatedRun): void {
  expect(leftBehind).toEqual({ leases: 0, waiting: 0, timers: 0 });
  expect(recorder.openAttempts.size).toBe(0);
  expect(recorder.rows.filter((row) => row.attempt !== null)).toHaveLength(transport.sends.length);
  const calls = new Set(recorder.rows.map((row) => row.requestId));
  expect(recorder.rows.filter((row) => row.final)).toHaveLength(calls.size);
}

describe.each([8, 64])("an outage of six minutes with %i lines in flight", (concurrency) => {
  it.each(Object.keys(KINDS))("costs no line when the provider %s", async (kind) => {
    for (const seed of SEEDS) {
      const script = downBetween(OUTAGE, KINDS[kind]!);
      const run = await simulateBatch({ seed, lines: LINES, concurrency, script });
      expectNothingLost(run);
      const during = run.transport.sends.filter(({ atMs }) => atMs >= OUTAGE.fromMs && atMs < OUTAGE.toMs);
      // The first wave and then a few probes: no storm of retries.
      expect(during.length).toBeLessThanOrEqual(concurrency + MAX_PROBES);
      expect(run.requeues).toBeGreaterThan(0);
      expect(run.tookMs).toBeLessThan(OUTAGE.toMs + BACK_TO_WORK_MS);
    }
  });
});

describe("an outage from the first moment on", () => {
  it.each(Object.keys(KINDS))("costs no line when the provider %s", async (kind) => {
    for (const concurrency of [1, 8]) {
      const script = downBetween({ fromMs: 0, toMs: 6 * 60_000 }, KINDS[kind]!);
      expectNothingLost(await simulateBatch({ seed: 1, lines: LINES, concurrency, script }));
    }
  });
});

describe("a run that stops while its calls wait for a permit", () => {
  const cancelled = ({ recorder }: SimulatedRun) => recorder.rows.filter(({ outcome }) => outcome === "cancelled");

  it("gives up in time with what the provider said, and no line is a failure line", async () => {
    const giveUpAfterMs = 5 * 60_000;
    for (const seed of SEEDS) {
      const down = downBetween({ fromMs: 3_000, toMs: Number.POSITIVE_INFINITY }, KINDS["answers 503"]!);
      const run = await simulateBatch({ seed, lines: LINES, concurrency: 8, giveUpAfterMs, script: down });
      expect(run.stop).toEqual({
        kind: "no_success",
        reason: "No line succeeded for 5 min. The last reason: s_1: 503.",
      });
      expect(run.out.length).toBeGreaterThan(0);
      expect(run.out.filter(({ error }) => error !== null)).toEqual([]);
      expect(run.tookMs).toBeLessThan(3_000 + giveUpAfterMs + 5_000);
      expectBooksBalance(run);
    }
  });

  it("takes back, on Ctrl-C, what waits behind a low limit; what was sent is answered", async () => {
    const drainAtMs = 20_000;
    const script: Script = () => ({ firstTokenMs: 500, afterMs: 1_000 });
    const run = await simulateBatch({
      seed: 1,
      lines: LINES,
      concurrency: 32,
      sources: [{ rpm: 10 }],
      drainAtMs,
      script,
    });
    expect(run.stop).toMatchObject({ kind: "drained" });
    expect(run.out).toHaveLength(run.transport.sends.length);
    expect(run.out.filter(({ error }) => error !== null)).toEqual([]);
    // One every six seconds: had it waited for all 32, it would have taken minutes.
    expect(run.transport.sends.filter(({ atMs }) => atMs > drainAtMs).length).toBeLessThanOrEqual(1);
    expect(run.tookMs).toBeLessThan(drainAtMs + 3_000);
    expect(cancelled(run)).toHaveLength(32 - run.transport.sends.filter(({ atMs }) => atMs > drainAtMs).length);
    expectBooksBalance(run);
  });

  it("lets what was sent end, however long it takes", async () => {
    const script: Script = () => ({ firstTokenMs: 50_000, afterMs: 100_000 });
    const run = await simulateBatch({ seed: 1, lines: LINES, concurrency: 8, drainAtMs: 1_000, script });
    expect(run.out).toHaveLength(8);
    expect(cancelled(run)).toEqual([]);
    expectBooksBalance(run);
  });
});
