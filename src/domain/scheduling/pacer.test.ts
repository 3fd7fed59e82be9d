import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NO_LIMITS } from "../source.js";
import { cubicValue, cut, neverCut } from "./cubic.js";
import {
  cutEarly,
  cutFor,
  emptyBurst,
  growStartWindow,
  learnLimits,
  measuredRate,
  newPacer,
  notePacedGrant,
  pacedRate,
  pacedWaitMs,
  pacedWindow,
} from "./pacer.js";

const FREE = NO_LIMITS;
const LIMITED = { ...NO_LIMITS, maxConcurrency: 20, rpm: 600 };
/** Requests at an even rate until `nowMs`. */
function admit(p: ReturnType<typeof newPacer>, perS: number, fromMs: number, toMs: number): void {
  for (let at = fromMs; at < toMs; at += 1_000 / perS) notePacedGrant(p, FREE, at, at);
}

describe("cubic", () => {
  test("a cut leaves β of the level, K later it is back at the plateau, then it probes beyond", () => {
    const c = neverCut();
    expect(cubicValue(c, 5, 0)).toBe(Infinity);
    cut(c, 100, 1_000);
    expect(cubicValue(c, 1_000, 0)).toBeCloseTo(85, 6);
    expect(cubicValue(c, 1_000 + c.kMs, 0)).toBeCloseTo(98, 6);
    expect(cubicValue(c, 1_000 + 2 * c.kMs, 0)).toBeGreaterThan(100);
  });

  test("the least growth waits at the plateau until the curve is over, then goes on from there", () => {
    const c = neverCut();
    for (let n = 0; n < 6; n += 1) cut(c, 19, 0);
    expect(c.kMs).toBe(120_000);
    expect(cubicValue(c, 10_000, 0.1)).toBeCloseTo(17.15, 6);
    expect(cubicValue(c, 110_000, 0.1)).toBeLessThanOrEqual(0.98 * 19);
    const low = neverCut();
    cut(low, 1, 0);
    expect(cubicValue(low, 60_000, 0.1)).toBeCloseTo(0.98 + 4, 6);
  });

  test("grows no faster than news of the new level can come", () => {
    const quick = neverCut();
    const slow = neverCut();
    cut(quick, 100, 0, 5_000);
    cut(slow, 100, 0, 100_000);
    expect(quick.kMs).toBe(20_000);
    expect(slow.kMs).toBe(200_000);
    expect(cubicValue(slow, 100_000, 0)).toBeLessThan(98);
    expect(cubicValue(quick, 100_000, 0)).toBeGreaterThan(1_000);
  });

  test("never falls as time passes, whatever the cuts", () => {
    const cuts = fc.array(fc.record({ stepMs: fc.nat(200_000), level: fc.double({ min: 1, max: 500, noNaN: true }) }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(cuts, fc.array(fc.nat(60_000), { maxLength: 20 }), (made, steps) => {
        const c = neverCut();
        let now = 0;
        for (const { stepMs, level } of made) {
          now += stepMs;
          cut(c, Math.min(level, cubicValue(c, now, 0.1)), now);
        }
        let before = cubicValue(c, now, 0.1);
        for (const step of steps) {
          now += step;
          const value = cubicValue(c, now, 0.1);
          expect(value).toBeGreaterThanOrEqual(before - 1e-9);
          before = value;
        }
      }),
    );
  });

  test("a limit found again is probed ever more rarely, at most every 120 s; a changed one at once", () => {
    const c = neverCut();
    let now = 0;
    const lengths: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      cut(c, 100, now);
      lengths.push(c.kMs);
      now += c.kMs;
    }
    expect(lengths).toEqual([20_000, 30_000, 45_000, 67_500, 101_250, 120_000, 120_000, 120_000]);
    cut(c, 40, now);
    expect(c.kMs).toBe(20_000);
  });
});

describe("pacer", () => {
  test("without a 429 the configured limits alone apply", () => {
    const p = newPacer();
    expect(pacedWindow(p, LIMITED, 0)).toBe(20);
    expect(pacedRate(p, LIMITED, 0)).toBe(10);
    expect(pacedRate(p, FREE, 0)).toBe(Infinity);
    expect(pacedWaitMs(p, FREE, 0)).toBe(0);
  });

  test("nobody configured a concurrency: it starts at 8 and grows while half of it is used", () => {
    const p = newPacer();
    for (let n = 0; n < 100; n += 1) growStartWindow(p, FREE, 3);
    expect(pacedWindow(p, FREE, 0)).toBe(8);
    for (let n = 0; n < 100; n += 1) growStartWindow(p, FREE, 200);
    expect(pacedWindow(p, FREE, 0)).toBe(108);
    for (let n = 0; n < 1_000; n += 1) growStartWindow(p, FREE, 600);
    expect(pacedWindow(p, FREE, 0)).toBe(512);
  });

  test("the first 429 sets the rate from what was admitted; one congestion cuts once", () => {
    const p = newPacer();
    admit(p, 20, 0, 30_000);
    expect(measuredRate(p, 30_000)).toBeCloseTo(20, 0);
    expect(cutFor(p, FREE, "requests", { startedAtMs: 29_000, inflight: 5 }, 30_000)).toBe(true);
    const rate = pacedRate(p, FREE, 30_000);
    expect(rate).toBeCloseTo(20 * 1.05 * 0.85, 0);
    expect(pacedWindow(p, FREE, 30_000)).toBe(8);
    expect(cutFor(p, FREE, "requests", { startedAtMs: 29_999, inflight: 5 }, 30_500)).toBe(false);
    expect(pacedRate(p, FREE, 30_500)).toBeGreaterThanOrEqual(rate);
    expect(cutFor(p, FREE, "requests", { startedAtMs: 30_001, inflight: 5 }, 31_000)).toBe(true);
    expect(pacedRate(p, FREE, 31_000)).toBeLessThan(rate);
  });

  test("one call that met a 429 does not bring the source down to one call in many seconds", () => {
    const p = newPacer();
    notePacedGrant(p, FREE, 0, 0);
    cutFor(p, FREE, "unknown", { startedAtMs: 0, inflight: 1 }, 100);
    expect(pacedRate(p, FREE, 100)).toBeGreaterThan(0.7);
  });

  test("cuts only what was named; unknown cuts both", () => {
    for (const [dimension, cutsRate, cutsWindow] of [
      ["requests", true, false],
      ["tokens", true, false],
      ["concurrency", false, true],
      ["unknown", true, true],
    ] as const) {
      const p = newPacer();
      admit(p, 5, 0, 10_000);
      cutFor(p, LIMITED, dimension, { startedAtMs: 9_000, inflight: 10 }, 10_000);
      expect([dimension, pacedRate(p, LIMITED, 10_000) < 10, pacedWindow(p, LIMITED, 10_000) < 20]).toEqual([
        dimension,
        cutsRate,
        cutsWindow,
      ]);
    }
  });

  test("after a cooldown the source reopens paced: one request at its end, each later one an interval on", () => {
    const p = newPacer();
    admit(p, 10, 0, 20_000);
    cutFor(p, FREE, "requests", { startedAtMs: 19_000, inflight: 5 }, 20_000);
    emptyBurst(p, FREE, 25_000, 20_000);
    expect(pacedWaitMs(p, FREE, 20_000)).toBeGreaterThan(4_990);
    expect(pacedWaitMs(p, FREE, 25_000)).toBe(0);
    notePacedGrant(p, FREE, 25_000, 25_000);
    const gapMs = pacedWaitMs(p, FREE, 25_000);
    expect(gapMs).toBeGreaterThan(80);
    expect(gapMs).toBeLessThan(160);
  });

  test("any history keeps window and rate within floor and cap", () => {
    const step = fc.record({
      stepMs: fc.nat(30_000),
      dimension: fc.constantFrom("requests", "tokens", "concurrency", "unknown"),
      inflight: fc.integer({ min: 1, max: 600 }),
      grants: fc.nat(50),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.boolean(), (steps, limited) => {
        const limits = limited ? LIMITED : FREE;
        const p = newPacer();
        let now = 0;
        for (const { stepMs, dimension, inflight, grants } of steps) {
          now += stepMs;
          for (let n = 0; n < grants; n += 1) notePacedGrant(p, limits, now, now);
          cutFor(p, limits, dimension as "unknown", { startedAtMs: now, inflight }, now + 1);
          const window = pacedWindow(p, limits, now);
          const rate = pacedRate(p, limits, now);
          expect(window).toBeGreaterThanOrEqual(1);
          expect(window).toBeLessThanOrEqual(limited ? 20 : 512);
          expect(rate).toBeGreaterThan(0);
          if (limited) expect(rate).toBeLessThanOrEqual(10);
          expect(pacedWaitMs(p, limits, now)).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });
});

describe("headers", () => {
  test("a told limit is a cap below the configured one, never above it; nonsense is ignored", () => {
    const p = newPacer();
    expect(learnLimits(p, { limitRequests: 300, limitTokens: 50_000 })).toBe(true);
    expect(pacedRate(p, LIMITED, 0)).toBe(5);
    expect(learnLimits(p, { limitRequests: 6_000 })).toBe(true);
    expect(pacedRate(p, LIMITED, 0)).toBe(10);
    for (const limitRequests of [0, -1, Number.NaN, Infinity]) expect(learnLimits(p, { limitRequests })).toBe(false);
  });

  test("little left is cut before anything fails", () => {
    const attempt = { startedAtMs: 9_000, inflight: 3 };
    for (const [told, isCut] of [
      [{ remainingRequests: 9 }, true],
      [{ remainingRequests: 11 }, false],
      [{ remainingTokens: 400, limitTokens: 60_000 }, true],
      [{ remainingTokens: 600, limitTokens: 60_000 }, false],
      [{}, false],
    ] as const) {
      const p = newPacer();
      admit(p, 5, 0, 10_000);
      learnLimits(p, told);
      expect([told, cutEarly(p, LIMITED, told, attempt, 10_000)]).toEqual([told, isCut]);
    }
  });
});
