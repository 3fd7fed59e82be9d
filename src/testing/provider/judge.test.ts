import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JudgedEntry, judgeLimits, maxConcurrent, maxRequestsInWindow, maxTokensInWindow } from "./judge.js";

let nextId = 0;
function entry(arrivedAtMs: number, more: Partial<JudgedEntry> = {}): JudgedEntry {
  nextId += 1;
  const billedTokens = more.billedTokens ?? 0;
  return {
    id: nextId,
    arrivedAtMs,
    endedAtMs: arrivedAtMs + 10,
    promptTokens: 10,
    maxTokens: null,
    clientClosed: false,
    ...more,
    billedTokens,
  };
}

const every = (count: number, stepMs: number, more: Partial<JudgedEntry> = {}): JudgedEntry[] =>
  Array.from({ length: count }, (_, i) => entry(i * stepMs, more));

/** Coarse times, so that ties and window edges are common. */
const arbitraryLedger = fc.array(
  fc
    .record({
      arrivedAtMs: fc.integer({ min: 0, max: 60 }).map((t) => t * 50),
      durationMs: fc.option(fc.integer({ min: 0, max: 40 }).map((t) => t * 50)),
      billedTokens: fc.integer({ min: 0, max: 9 }),
      clientClosed: fc.boolean(),
    })
    .map(({ arrivedAtMs, durationMs, ...rest }) =>
      entry(arrivedAtMs, { ...rest, endedAtMs: durationMs === null ? null : arrivedAtMs + durationMs }),
    ),
  { maxLength: 30 },
);

describe("windows", () => {
  it("are half open", () => {
    expect(maxRequestsInWindow([entry(0), entry(59_999.9)]).peak).toBe(2);
    expect(maxRequestsInWindow([entry(0), entry(60_000)]).peak).toBe(1);
    expect(maxRequestsInWindow([])).toEqual({ peak: 0, startMs: null });
  });

  it("agree with counting every window by hand", () => {
    fc.assert(
      fc.property(arbitraryLedger, fc.constantFrom(50, 125, 500, 3000), (ledger, windowMs) => {
        let requests = 0;
        let tokens = 0;
        for (let start = -3000; start <= 3000; start += 25) {
          const inside = ledger.filter((e) => e.arrivedAtMs >= start && e.arrivedAtMs < start + windowMs);
          requests = Math.max(requests, inside.length);
          tokens = Math.max(
            tokens,
            inside.reduce((sum, e) => sum + e.billedTokens, 0),
          );
        }
        expect(maxRequestsInWindow(ledger, windowMs).peak).toBe(requests);
        expect(maxTokensInWindow(ledger, windowMs).peak).toBe(tokens);
      }),
    );
  });
});

describe("concurrency", () => {
  it("agrees with looking at every moment, 250 ms of an aborted request left out", () => {
    fc.assert(
      fc.property(arbitraryLedger, (ledger) => {
        let peak = 0;
        for (let at = 0; at <= 5000; at += 10) {
          const busy = ledger.filter((e) => {
            const end = (e.endedAtMs ?? Number.POSITIVE_INFINITY) - (e.clientClosed ? 250 : 0);
            return e.arrivedAtMs <= at && at < end;
          });
          peak = Math.max(peak, busy.length);
        }
        expect(maxConcurrent(ledger).peak).toBe(peak);
      }),
    );
  });

  it("overlooks 250 ms after an abort, but not after an answer", () => {
    const second = entry(1000, { endedAtMs: 2000 });
    const aborted = entry(0, { endedAtMs: 1250, clientClosed: true });
    const answered = entry(0, { endedAtMs: 1001 });
    expect(judgeLimits([aborted, second], { maxConcurrency: 1 }).ok).toBe(true);
    expect(judgeLimits([{ ...aborted, endedAtMs: 1251 }, second], { maxConcurrency: 1 }).ok).toBe(false);
    expect(judgeLimits([answered, second], { maxConcurrency: 1 }).ok).toBe(false);
  });
});

describe("requests per minute", () => {
  it("allow exactly the limit in any 60 s", () => {
    const paced = every(60, 1_000);
    expect(judgeLimits(paced, { rpm: 60 }).ok).toBe(true);
    const { ok, violations } = judgeLimits([...paced, entry(30_500)], { rpm: 60 });
    expect(ok).toBe(false);
    expect(violations).toMatchObject([{ gate: "rpm", limit: 60, allowed: 60, observed: 61, atMs: 0 }]);
    expect(violations[0]?.message).toBe(
      "rpm: 61 requests in the 60 s from 1970-01-01T00:00:00.000Z, above the 60 allowed",
    );
  });

  it("allow the burst on top when the source is not strict", () => {
    const limits = { rpm: 60, strict: false, burstS: 10 };
    expect(judgeLimits(every(70, 800), limits).ok).toBe(true);
    expect(judgeLimits(every(71, 800), limits).ok).toBe(false);
    expect(judgeLimits(every(5, 1), { rpm: 1, strict: false }).ok).toBe(true);
  });

  it("count by aligned minute under the window rule, late arrivals of the minute before left out", () => {
    const edge = [
      ...every(10, 1, {}).map((e) => ({ ...e, arrivedAtMs: 59_000 })),
      ...every(10, 1).map((e) => ({ ...e, arrivedAtMs: 61_000 })),
    ];
    expect(judgeLimits(edge, { rpm: 10, limitRule: "window" }).ok).toBe(true);
    expect(judgeLimits([...edge, entry(60_499)], { rpm: 10, limitRule: "window" }).ok).toBe(true);
    expect(judgeLimits([...edge, entry(60_500)], { rpm: 10, limitRule: "window" }).ok).toBe(false);
    expect(judgeLimits(edge, { rpm: 10 }).ok).toBe(false);
  });
});

describe("tokens per minute", () => {
  const estimateOf = (): number => 100;

  it("allow the limit plus one request's estimate", () => {
    expect(judgeLimits(every(11, 100, { billedTokens: 100 }), { tpm: 1000 }, { estimateOf }).ok).toBe(true);
    const judged = judgeLimits(every(12, 100, { billedTokens: 100 }), { tpm: 1000 }, { estimateOf });
    expect(judged.violations).toMatchObject([{ gate: "tpm", limit: 1000, allowed: 1100, observed: 1200 }]);
  });

  it("allow what requests in progress at the window's start gave back in it", () => {
    const long = Array.from({ length: 5 }, () => entry(0, { billedTokens: 0, endedAtMs: 70_000 }));
    const later = Array.from({ length: 16 }, () => entry(65_000, { billedTokens: 100 }));
    // From 65 s on: 16 × 100 used, 1,000 + one estimate allowed, 5 × 100 given back by those in progress.
    expect(judgeLimits([...long, ...later], { tpm: 1000 }, { estimateOf }).ok).toBe(true);
    const endedBefore = long.map((e) => ({ ...e, endedAtMs: 64_999 }));
    expect(judgeLimits([...endedBefore, ...later], { tpm: 1000 }, { estimateOf }).ok).toBe(false);
  });

  it("allow what was used above the estimate, and nothing for it in other windows", () => {
    const greedy = [entry(0, { billedTokens: 5_000 })];
    expect(judgeLimits(greedy, { tpm: 1000 }, { estimateOf }).ok).toBe(true);
    const other = Array.from({ length: 12 }, () => entry(120_000, { billedTokens: 100 }));
    expect(judgeLimits([...greedy, ...other], { tpm: 1000 }, { estimateOf }).ok).toBe(false);
  });

  it("estimate from prompt and token limit when nothing else is said", () => {
    const judged = judgeLimits([entry(0, { promptTokens: 7, maxTokens: 50, billedTokens: 57 })], { tpm: 1 });
    expect(judged.verdicts[0]).toMatchObject({ gate: "tpm", allowed: 58, observed: 57, ok: true });
  });
});

describe("a judgement", () => {
  it("speaks only of gates that are on, and of an empty ledger as good", () => {
    expect(judgeLimits([entry(0)], {})).toEqual({ ok: true, verdicts: [], violations: [] });
    const judged = judgeLimits([], { rpm: 1, tpm: 1, maxConcurrency: 1 });
    expect(judged.verdicts.map(({ gate }) => gate)).toEqual(["concurrency", "rpm", "tpm"]);
    expect(judged.ok).toBe(true);
  });

  it("depends on nothing but the entries: their order doesn't matter", () => {
    fc.assert(
      fc.property(arbitraryLedger, fc.integer(), (ledger, seed) => {
        const shuffled = [...ledger].sort((a, b) => ((a.id * seed) % 7) - ((b.id * seed) % 7));
        const limits = { rpm: 5, tpm: 20, maxConcurrency: 2 };
        expect(judgeLimits(shuffled, limits)).toEqual(judgeLimits(ledger, limits));
      }),
    );
  });

  it("never blames what a strict pacer with exact estimates would send", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.array(fc.nat({ max: 500 }), { maxLength: 120 }), (rpm, gaps) => {
        const burst = Math.max(1, Math.min(Math.max(4, rpm / 60), rpm / 10));
        const stepMs = 60_500 / (rpm - burst + 1);
        const tauMs = (burst - 1) * stepMs;
        let tat = 0;
        let now = 0;
        const sent = gaps.map((gap) => {
          now += gap;
          const slot = Math.max(now, tat - tauMs);
          tat = Math.max(slot, tat) + stepMs;
          now = slot;
          return entry(slot);
        });
        expect(judgeLimits(sent, { rpm }).ok).toBe(true);
      }),
    );
  });
});
