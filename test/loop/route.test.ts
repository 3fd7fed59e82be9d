import { describe, expect, it } from "vitest";
import type { SourceOptions } from "../../src/config/options.js";
import type { CallRecord } from "../../src/domain/record.js";
import { GovernanceBackendError } from "../../src/errors.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import {
  deadKey,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  inOrder,
  limited,
  noBreaker,
  patient,
  serverError,
  simulate,
  simulateOn,
  storeFor,
} from "./harness.js";

/** The column `route` tells why sources were passed over and what a call waited for (spec 05, spec 10). */

interface Entry {
  readonly source: string;
  readonly reason: string;
  readonly waitMs: number;
}

const routeOf = (row: CallRecord | undefined): Entry[] => JSON.parse(row?.route ?? "[]");
const reasonsOf = (row: CallRecord | undefined): string[] =>
  routeOf(row).map(({ source, reason }) => `${source} ${reason}`);

/** The first of two is preferred, so that it is passed over for a reason. */
const tiers = (first: Partial<SourceOptions>): Partial<SourceOptions>[] => [{ priority: 0, ...first }, { priority: 1 }];

describe("route of a call that waits while the store of the limits is away", () => {
  const away = new GovernanceBackendError("store is away", { scope: "LLM" });
  const source = [{ ...patient, maxConcurrency: 1 }];
  const setup = (backendGraceMs: number) => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const isAway = () => kernel.now() >= 3_000 && kernel.now() < 8_000;
    const options = { backpressure: { backendGraceMs } };
    const store = storeFor(kernel, { sources: source, options });
    const governor = store.connect(runtime, { fault: () => (isAway() ? { refuse: away } : null) });
    return simulate({ kernel, sources: source, options: { ...options, governor }, script: () => ({ afterMs: 3_000 }) });
  };

  it("says what it waited for first, and then the store, each with its length", async () => {
    const { kernel, client, recorder } = setup(60_000);
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    const [full, outage, ...more] = routeOf(recorder.rows[1]);
    expect(more).toEqual([]);
    expect([full?.reason, outage?.reason]).toEqual(["concurrency", "backend"]);
    expect(full?.waitMs).toBe(3_000);
    expect(outage?.waitMs).toBeGreaterThanOrEqual(5_000);
    expect(full!.waitMs + outage!.waitMs).toBe(Math.ceil(recorder.rows[1]!.waitedMs!));
  });

  it("says it in the last row of a call that gives up", async () => {
    const { kernel, client, recorder } = setup(2_000);
    const holder = client.chat(hi);
    await failureOf(kernel, client.chat(hi));
    await kernel.run(holder);
    const end = recorder.rows.find((row) => row.attempt === null);
    expect(reasonsOf(end)).toEqual(["* concurrency", "* backend"]);
    const [full, outage] = routeOf(end).map(({ waitMs }) => waitMs);
    expect(full).toBe(3_000);
    // Patience is looked at with every try, and those come ever more rarely.
    expect(outage).toBeGreaterThanOrEqual(2_000);
    expect(outage).toBeLessThan(5_000);
  });
});

describe.each(GOVERNOR_KINDS)("route (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  it("cooling: after a 429, with what is left of it", async () => {
    const { kernel, client, recorder } = simulate({
      sources: tiers({}),
      script: (_, n) => (n === 1 ? { afterMs: 1, error: limited(30_000) } : { afterMs: 1 }),
    });
    await kernel.run(client.chat(hi));
    expect(routeOf(recorder.rows[1])).toEqual([{ source: "s_1", reason: "cooling", waitMs: 30_000 }]);
  });

  it("breaker_open, then half_open while the one probe runs", async () => {
    const { kernel, client, recorder } = simulate({
      sources: tiers({ ...patient }),
      options: { breaker: { failThreshold: 1, cooldownMs: 1_000 } },
      script: ({ source }, n) =>
        n === 1 ? { afterMs: 1, error: serverError() } : { afterMs: source.name === "s_1" ? 5_000 : 1 },
    });
    await kernel.run(client.chat(hi));
    expect(reasonsOf(recorder.rows[1])).toEqual(["s_1 breaker_open"]);
    await kernel.advance(2_000);
    const probe = client.chat(hi);
    await kernel.advance(10);
    await kernel.run(client.chat(hi));
    expect(reasonsOf(recorder.rows.at(-1))).toEqual(["s_1 half_open"]);
    await kernel.run(probe);
  });

  it("dead: the call after the one that found out", async () => {
    const { kernel, client, recorder } = simulate({
      sources: tiers({}),
      script: ({ source }) => (source.name === "s_1" ? { afterMs: 1, error: deadKey() } : { afterMs: 1 }),
    });
    await kernel.run(client.chat(hi));
    await kernel.run(client.chat(hi));
    expect(reasonsOf(recorder.rows.at(-1))).toEqual(["s_1 dead"]);
    // The call that found out can't go back to it either, and says so.
    expect(reasonsOf(recorder.rows[1])).toEqual(["s_1 dead"]);
  });

  it("tpm: the tokens of this minute are booked", async () => {
    const { kernel, client, recorder } = simulate({
      sources: tiers({ tpm: 1_000, estTokens: 1_000, tpmCharge: "max" }),
    });
    await kernel.run(client.chat(hi));
    await kernel.run(client.chat(hi));
    expect(reasonsOf(recorder.rows.at(-1))).toEqual(["s_1 tpm"]);
  });

  it("concurrency: also where the pacer's window is narrower than the limit", async () => {
    const { kernel, client, recorder } = simulate({
      sources: tiers({ ...patient, maxConcurrency: 2 }),
      script: ({ source }, n) => {
        if (n <= 2) return { afterMs: 10 * n, error: limited(1) };
        return { afterMs: source.name === "s_1" ? 5_000 : 1 };
      },
    });
    // Both places were taken when the 429 came: the window is cut to one.
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    await kernel.advance(3_000);
    const { sources } = await kernel.run(client.snapshot());
    expect(sources[0]?.adaptive?.window).toBe(1);
    const holder = client.chat(hi);
    // Beyond the distance between calls after a 429.
    await kernel.advance(200);
    await kernel.run(client.chat(hi));
    expect(reasonsOf(recorder.rows.at(-1))).toEqual(["s_1 concurrency"]);
    await kernel.run(holder);
  });

  it("a call that waited says for what, and how long; one that did not says nothing", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ maxConcurrency: 1 }],
      script: () => ({ afterMs: 1_000 }),
    });
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    expect(recorder.rows.map(routeOf)).toEqual([[], [{ source: "*", reason: "concurrency", waitMs: 1_000 }]]);
  });

  it("fairness: a retry that waited for the scope's budget, and one that ended waiting for it", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ ...patient }],
      options: {
        breaker: noBreaker,
        scheduling: { evidence: false },
        retry: { maxAttempts: 60, backoffBaseMs: 1, backoffMaxMs: 1 },
      },
      script: () => ({ afterMs: 1_000, error: serverError() }),
    });
    const calls = Array.from({ length: 30 }, () => client.chat({ ...hi, deadlineMs: 20_000 }).catch(() => {}));
    await kernel.run(Promise.all(calls));
    const waited = recorder.rows.filter((row) => row.attempt !== null && reasonsOf(row).includes("* fairness"));
    expect(waited.length).toBeGreaterThan(0);
    for (const row of waited) {
      const waits = routeOf(row).filter(({ source }) => source === "*");
      const total = waits.reduce((sum, { waitMs }) => sum + waitMs, 0);
      expect(total).toBeGreaterThanOrEqual(row.waitedMs!);
      expect(total).toBeLessThan(row.waitedMs! + waits.length);
    }
    const ends = recorder.rows.filter((row) => row.attempt === null);
    expect(ends.some((row) => reasonsOf(row).includes("* fairness"))).toBe(true);
  });

  it("a caller who leaves the queue leaves what the call waited for", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ ...patient, maxConcurrency: 1 }],
      script: () => ({ afterMs: 10_000 }),
    });
    const holder = client.chat(hi);
    const controller = new AbortController();
    const waiting = client.chat({ ...hi, signal: controller.signal });
    await kernel.advance(100);
    controller.abort(new Error("gone"));
    await failureOf(kernel, waiting);
    expect(recorder.rows[0]).toMatchObject({ outcome: "cancelled", attempt: null });
    expect(routeOf(recorder.rows[0])).toEqual([
      { source: "s_1", reason: "concurrency", waitMs: expect.any(Number) },
      { source: "*", reason: "concurrency", waitMs: 100 },
    ]);
    await kernel.run(holder);
  });

  it("a wait for one thing after another says each, with its length, in that order", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ ...patient, maxConcurrency: 1 }],
      options: { scheduling: { pacer: false } },
      script: (_, n) => (n === 2 ? { afterMs: 2_000, error: limited(7_000) } : { afterMs: n === 1 ? 3_000 : 10 }),
    });
    // Two stand in the queue behind the first; the second of them hears nothing by itself while it is not the head.
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi), client.chat(hi)]));
    const last = recorder.rows.find((row) => row.attempt === 1 && row.waitedMs! > 10_000);
    expect(routeOf(last)).toEqual([
      { source: "*", reason: "concurrency", waitMs: expect.any(Number) },
      { source: "*", reason: "cooling", waitMs: expect.any(Number) },
    ]);
    const [full, cooling] = routeOf(last).map(({ waitMs }) => waitMs);
    expect(full! + cooling!).toBeCloseTo(last!.waitedMs!, -1);
    expect(Math.abs(cooling! - 7_000)).toBeLessThan(100);
  });

  it("hedged: the second attempt names the one that it was sent beside, and for how long that was silent", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{}, {}],
      options: { scheduling: { hedge: true } },
      script: (_, n) => (n === 41 ? { firstTokenMs: 20_000, afterMs: 21_000 } : { firstTokenMs: 100, afterMs: 200 }),
    });
    for (let n = 0; n < 40; n += 1) await kernel.run(client.chat(hi));
    await kernel.run(client.chat(hi));
    const [loser, winner] = recorder.rows.slice(-2);
    expect([loser?.outcome, winner?.outcome]).toEqual(["cancelled", "success"]);
    expect(routeOf(winner)).toEqual([{ source: loser?.sourceName, reason: "hedged", waitMs: expect.any(Number) }]);
    expect(routeOf(winner)[0]?.waitMs).toBeGreaterThanOrEqual(1_000);
  });

  it("an evacuated attempt says why it left, and the next one that the breaker is open", async () => {
    const { kernel, client, recorder } = simulate({
      sources: [{ ttftTimeoutMs: 60_000 }, {}],
      options: { ...inOrder, breaker: { failThreshold: 2 } },
      script: ({ source }, n) => {
        if (source.name !== "s_1") return { firstTokenMs: 1, afterMs: 2 };
        return n === 1 ? { afterMs: 90_000 } : { afterMs: 40_000, error: serverError() };
      },
    });
    const stuck = client.chat(hi);
    const broken = Array.from({ length: 4 }, () => client.chat(hi));
    await kernel.run(Promise.all([stuck, ...broken]));
    const left = recorder.rows.find((row) => row.error?.includes("its breaker opened") === true);
    expect(left).toMatchObject({ sourceName: "s_1", outcome: "transient" });
    const next = recorder.rows.find((row) => row.requestId === left?.requestId && row.attempt === 2);
    expect(reasonsOf(next)).toEqual(["s_1 breaker_open"]);
  });
});
