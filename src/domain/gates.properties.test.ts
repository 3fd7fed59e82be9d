import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { emptyGateRecord, gateRules, requestWaitMs, settleGates, takeFromGates, tokenWaitMs } from "./gates/gate.js";
import {
  requestBurst,
  requestRate,
  smoothCorrect,
  smoothTake,
  smoothWaitMs,
  tokenBurst,
  tokenRate,
} from "./gates/smooth.js";
import type { LimitConfig } from "./source.js";

const MINUTE_MS = 60_000;
const NOTHING: LimitConfig = {
  maxConcurrency: 0,
  rpm: 0,
  tpm: 0,
  limitRule: "smooth",
  strict: true,
  burstS: 1,
  burstTokensS: 3,
};

const limit = fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 20_000 }));
/** Where a clock may stand: a process that just started, or one with a wall clock. */
const start = fc.constantFrom(0, 12_345.678, 1_790_000_000_123);
/** How long a caller waits beyond the moment it was told; mostly not at all. */
const delays = fc.array(
  fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.double({ min: 0, max: 3_000, noNaN: true })),
  {
    minLength: 1,
    maxLength: 30,
  },
);

function at(nowMs: number) {
  return { nowMs, wallMs: nowMs };
}

describe("smooth, strict: no half-open minute exceeds the limit", () => {
  test("requests, however the caller times them", () => {
    fc.assert(
      fc.property(limit, start, delays, (rpm, from, pauses) => {
        const rate = requestRate({ ...NOTHING, rpm })!;
        const count = Math.min(3 * rpm, 2_000);
        const times: number[] = [];
        let now = from;
        let tat = 0;
        for (let k = 0; k < count; k++) {
          now += smoothWaitMs(rate, tat, now) + (k % 7 === 0 ? pauses[k % pauses.length]! : 0);
          tat = smoothTake(rate, tat, now, 1);
          times.push(now);
        }
        // The limit + 1st request after each one lies at least a minute later.
        for (let k = 0; k + rpm < times.length; k++)
          expect(times[k + rpm]! - times[k]!).toBeGreaterThanOrEqual(MINUTE_MS);
      }),
    );
  });

  test("booked tokens: at most the limit plus one call's estimate", () => {
    const calls = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 5, maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 60, max: 2_000_000 }), start, calls, delays, (tpm, from, shares, pauses) => {
        const rate = tokenRate({ ...NOTHING, tpm })!;
        const booked: { at: number; tokens: number }[] = [];
        let now = from;
        let tat = 0;
        for (const [k, share] of shares.entries()) {
          const tokens = Math.ceil(share * tpm);
          now += smoothWaitMs(rate, tat, now) + (k % 5 === 0 ? pauses[k % pauses.length]! : 0);
          tat = smoothTake(rate, tat, now, tokens);
          booked.push({ at: now, tokens });
        }
        for (const first of booked) {
          const inMinute = booked.filter((call) => call.at >= first.at && call.at < first.at + MINUTE_MS);
          const before = inMinute.slice(0, -1).reduce((sum, call) => sum + call.tokens, 0);
          expect(before).toBeLessThanOrEqual(tpm);
        }
      }),
    );
  });
});

describe("smooth: the figures of spec 02 §3", () => {
  test("a burst never exceeds a tenth of the limit or the larger of 4 and one second of the rate", () => {
    fc.assert(
      fc.property(limit, (rpm) => {
        const burst = requestBurst({ ...NOTHING, rpm });
        expect(burst).toBeGreaterThanOrEqual(1);
        expect(burst).toBeLessThanOrEqual(Math.max(1, Math.min(Math.max(4, rpm / 60), rpm / 10)));
      }),
    );
    expect(tokenBurst({ ...NOTHING, tpm: 60_000 })).toBe(1_000);
  });

  test("the interval is never shorter than exact and at most a microsecond longer", () => {
    fc.assert(
      fc.property(limit, fc.boolean(), (rpm, strict) => {
        const limits = { ...NOTHING, rpm, strict };
        const exact = strict ? 60_500 / (rpm - requestBurst(limits) + 1) : MINUTE_MS / rpm;
        const { intervalMs } = requestRate(limits)!;
        expect(intervalMs).toBeGreaterThanOrEqual(exact - 1e-9);
        expect(intervalMs).toBeLessThanOrEqual(exact + 0.001 + 1e-9);
      }),
    );
  });

  test("not strict: at most limit + burst in any minute", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_000 }), fc.constantFrom(1, 5, 20), start, (rpm, burstS, from) => {
        const limits = { ...NOTHING, rpm, burstS, strict: false };
        const rate = requestRate(limits)!;
        const most = Math.floor(rpm + requestBurst(limits));
        const times: number[] = [];
        let now = from;
        let tat = 0;
        for (let k = 0; k < Math.min(2 * most, 3_000); k++) {
          now += smoothWaitMs(rate, tat, now);
          tat = smoothTake(rate, tat, now, 1);
          times.push(now);
        }
        for (let k = 0; k + most < times.length; k++)
          expect(times[k + most]! - times[k]!).toBeGreaterThanOrEqual(MINUTE_MS - 1e-3);
      }),
    );
  });
});

describe("smooth: waiting and correcting", () => {
  const rateOf = (tpm: number) => tokenRate({ ...NOTHING, tpm })!;

  test("after exactly the wait it is free; well before it isn't", () => {
    fc.assert(
      fc.property(limit, start, fc.double({ min: 0, max: 200_000, noNaN: true }), (tpm, now, aheadMs) => {
        const rate = rateOf(tpm);
        const wait = smoothWaitMs(rate, now + aheadMs, now);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(smoothWaitMs(rate, now + aheadMs, now + wait)).toBe(0);
        if (wait > 1) expect(smoothWaitMs(rate, now + aheadMs, now + wait - 0.5)).toBeGreaterThan(0);
      }),
    );
  });

  test("a correction moves the clock by actual − estimate; credit beyond the burst doesn't exist", () => {
    fc.assert(
      fc.property(limit, start, fc.nat(10_000), fc.nat(30_000), fc.nat(90_000), (tpm, from, est, actual, laterMs) => {
        const rate = rateOf(tpm);
        const now = from + laterMs;
        const tat = smoothTake(rate, from, from, est);
        const corrected = smoothCorrect(rate, tat, now, actual - est);
        expect(corrected).toBeGreaterThanOrEqual(Math.min(tat, now - rate.toleranceMs));
        if (actual < est) expect(corrected).toBeLessThanOrEqual(Math.max(tat, now - rate.toleranceMs));
        if (actual > est) expect(corrected).toBeGreaterThanOrEqual(tat);
        if (laterMs === 0 && actual <= est) {
          const exact = smoothTake(rate, from, from, actual);
          expect(Math.abs(corrected - Math.max(exact, now - rate.toleranceMs))).toBeLessThan(0.01);
        }
      }),
    );
  });
});

describe("window: counts per aligned minute", () => {
  const verb = fc.record({
    stepMs: fc.constantFrom(0, 0, 1, 900, 20_000, MINUTE_MS),
    tokens: fc.nat(700),
    actual: fc.nat(2_000),
    sent: fc.boolean(),
  });

  test("no minute holds more requests or tokens than the limit; settles of other minutes change nothing", () => {
    fc.assert(
      fc.property(
        fc.array(verb, { maxLength: 60, size: "max" }),
        start,
        fc.integer({ min: 1, max: 6 }),
        (verbs, from, rpm) => {
          const rules = gateRules({ ...NOTHING, limitRule: "window", rpm, tpm: 1_000 });
          const record = emptyGateRecord();
          let now = from;
          for (const { stepMs, tokens, actual, sent } of verbs) {
            now += stepMs;
            const clock = at(now);
            if (requestWaitMs(rules, record, clock) > 0 || tokenWaitMs(rules, record, clock, tokens) > 0) continue;
            const windowId = takeFromGates(rules, record, clock, tokens, "lease");
            expect(windowId).toBe(Math.floor(now / MINUTE_MS));
            expect(record.windowRequests).toBeLessThanOrEqual(rpm);
            expect(record.windowTokens).toBeLessThanOrEqual(1_000);
            const books = { leaseId: "lease", reservedTokens: tokens, actualTokens: actual, returnRequest: !sent };
            const before = { ...record };
            settleGates(rules, record, clock, { ...books, windowId: windowId! - 1 });
            expect(record).toEqual(before);
            settleGates(rules, record, clock, { ...books, windowId });
            expect(record.windowTokens).toBe(before.windowTokens - tokens + actual);
            expect(record.windowRequests).toBe(before.windowRequests - (sent ? 0 : 1));
          }
        },
      ),
    );
  });

  test("a refusal's wait ends on the next minute", () => {
    fc.assert(
      fc.property(start, fc.nat(MINUTE_MS), (from, offset) => {
        const rules = gateRules({ ...NOTHING, limitRule: "window", rpm: 1 });
        const record = emptyGateRecord();
        const now = from + offset;
        takeFromGates(rules, record, at(now), 0, "lease");
        const wait = requestWaitMs(rules, record, at(now));
        expect(wait).toBeGreaterThan(0);
        expect(Math.floor((now + wait) / MINUTE_MS)).toBe(Math.floor(now / MINUTE_MS) + 1);
        expect(requestWaitMs(rules, record, at(now + wait))).toBe(0);
      }),
    );
  });
});
