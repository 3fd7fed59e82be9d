import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { draw, seededRandom } from "../random.js";
import { decayFactor } from "./decay.js";
import {
  addEvidence,
  type EvidenceKind,
  evidenceNow,
  isMostlyHanging,
  noEvidence,
  restartEvidence,
  TRIPS_AT,
} from "./evidence.js";

/** Calls until it trips, 100 a second; `Infinity` when it doesn't within `most`. */
function callsToTrip(failShare: number, seed: number, most: number): number {
  const random = seededRandom(seed);
  const e = noEvidence();
  for (let n = 1; n <= most; n += 1) {
    const kind: EvidenceKind = draw(random) < failShare ? "failure" : "success";
    if (addEvidence(e, kind, 0, n * 10)) return n;
  }
  return Infinity;
}

function medianToTrip(failShare: number, most = 100_000): number {
  const runs = Array.from({ length: 101 }, (_, seed) => callsToTrip(failShare, seed * 7_919 + 1, most));
  return runs.sort((a, b) => a - b)[50]!;
}

describe("evidence", () => {
  test("calls to trip as spec 10 §4 measured them", () => {
    expect(medianToTrip(0.9)).toBe(4);
    expect(medianToTrip(0.5)).toBeLessThanOrEqual(14);
    expect(medianToTrip(0.3)).toBeGreaterThan(14);
    expect(medianToTrip(0.3)).toBeLessThan(60);
    expect(medianToTrip(0.05, 5_000)).toBe(Infinity);
  });

  test("successes outweigh: what 3 failures say is forgotten after a dozen successes", () => {
    const e = noEvidence();
    for (let n = 0; n < 3; n += 1) addEvidence(e, "failure", 0, 0);
    for (let n = 0; n < 12; n += 1) addEvidence(e, "success", 0, 0);
    expect(e).toMatchObject({ score: 0, fails: 0, hangs: 0 });
  });

  test("halves every minute", () => {
    const e = noEvidence();
    addEvidence(e, "failure", 0, 0);
    expect(evidenceNow(e, 60_000)).toBeCloseTo(Math.LN10 / 2, 3);
    expect(evidenceNow(e, 24 * 3_600_000)).toBe(0);
  });

  test("a source that fails like its whole pool is not singled out soon", () => {
    const alone = noEvidence();
    const alike = noEvidence();
    for (let n = 0; n < 4; n += 1) {
      addEvidence(alone, "failure", 0, 0);
      addEvidence(alike, "failure", 0.5, 0);
    }
    expect(alone.score).toBeGreaterThanOrEqual(TRIPS_AT);
    expect(alike.score).toBeLessThan(2);
  });

  test("hangs are told from failures; after closing it starts half way, or from nothing", () => {
    const e = noEvidence();
    addEvidence(e, "hang", 0, 0);
    addEvidence(e, "hang", 0, 0);
    addEvidence(e, "failure", 0, 0);
    expect(isMostlyHanging(e)).toBe(true);
    restartEvidence(e, true, 5);
    expect(evidenceNow(e, 5)).toBe(TRIPS_AT / 2);
    expect(isMostlyHanging(e)).toBe(false);
    restartEvidence(e, false, 5);
    expect(evidenceNow(e, 5)).toBe(0);
  });

  test("is never negative, and only a failure trips", () => {
    const kinds = fc.constantFrom<EvidenceKind[]>("failure", "hang", "slow_success", "success", "double_success");
    fc.assert(
      fc.property(fc.array(fc.tuple(kinds, fc.nat(100_000), fc.double({ min: 0, max: 1, noNaN: true }))), (steps) => {
        const e = noEvidence();
        let now = 0;
        for (const [kind, stepMs, share] of steps) {
          now += stepMs;
          const trips = addEvidence(e, kind, share, now);
          expect(e.score).toBeGreaterThanOrEqual(0);
          if (trips) expect(["failure", "hang"]).toContain(kind);
        }
      }),
    );
  });
});

test("decay: a table that stays within 2e-5 of the power function, monotone and multiplicative for whole half-lives", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 3_000_000, noNaN: true }), (ms) => {
      expect(Math.abs(decayFactor(ms, 60_000) - 2 ** (-ms / 60_000))).toBeLessThan(2e-5);
      expect(decayFactor(ms + 60_000, 60_000)).toBeCloseTo(decayFactor(ms, 60_000) / 2, 9);
    }),
  );
  expect(decayFactor(-5, 60_000)).toBe(1);
  expect(decayFactor(1e12, 60_000)).toBe(0);
});
