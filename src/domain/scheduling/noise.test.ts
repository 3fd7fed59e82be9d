import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NO_LIMITS } from "../source.js";
import type { RateLimitDimension } from "../upstream-limits.js";
import { cutFor, cutForHang, newPacer, notePacedGrant, type PacerRecord, pacedRate, pacedWindow } from "./pacer.js";

const ATTEMPT_MS = 100;
const KNOWN_MS = 10_000;

interface Source {
  readonly p: PacerRecord;
  nowMs: number;
}

/** A source that has answered 50 requests a second for a while. */
function busySource(): Source {
  const p = newPacer();
  p.attemptMs = ATTEMPT_MS;
  const source = { p, nowMs: 0 };
  while (source.nowMs < KNOWN_MS) request(source, 50);
  return source;
}

/** One request at the paced rate, or at this one while nothing was cut. */
function request(source: Source, uncutPerS = 50): void {
  const rate = Math.min(pacedRate(source.p, NO_LIMITS, source.nowMs), uncutPerS);
  source.nowMs += 1_000 / rate;
  notePacedGrant(source.p, NO_LIMITS, source.nowMs, source.nowMs);
}

function refuse({ p, nowMs }: Source, limit: RateLimitDimension = "requests", limits = NO_LIMITS): boolean {
  return cutFor(p, limits, limit, { startedAtMs: nowMs - 20, inflight: 5 }, nowMs);
}

/** Every so manieth request is refused, whatever the rate. */
function noise(source: Source, everyNth: number, refusals: number): number {
  let cuts = 0;
  for (let n = 0; n < refusals; n += 1) {
    for (let k = 0; k < everyNth; k += 1) request(source);
    if (refuse(source)) cuts += 1;
  }
  return cuts;
}

describe("refusals that no rate causes", () => {
  test("cut a few times, then the rate of before is back and stays", () => {
    const source = busySource();
    expect(noise(source, 20, 30)).toBe(4);
    expect(pacedRate(source.p, NO_LIMITS, source.nowMs)).toBeGreaterThan(48);
    expect(noise(source, 20, 100)).toBe(0);
  });

  test("cut again when they come much more often than they did at the low rate", () => {
    const source = busySource();
    noise(source, 30, 10);
    expect(noise(source, 9, 24)).toBeGreaterThan(0);
  });

  test("need only two cuts to be known where they are rare and come soon after a cut", () => {
    const source = busySource();
    expect(noise(source, 100, 30)).toBe(2);
    expect(pacedRate(source.p, NO_LIMITS, source.nowMs)).toBeGreaterThan(48);
  });

  test("give the window back to the rate that was cut with it, and the rate to the window", () => {
    for (const cutFirst of ["requests", "concurrency"] as const) {
      const source = busySource();
      const limits = { ...NO_LIMITS, maxConcurrency: 10 };
      refuse(source, cutFirst === "requests" ? "concurrency" : "requests", limits);
      for (let n = 0; n < 3; n += 1) {
        for (let k = 0; k < 100; k += 1) request(source);
        refuse(source, cutFirst, limits);
      }
      expect(pacedRate(source.p, NO_LIMITS, source.nowMs)).toBeGreaterThan(48);
      expect(pacedWindow(source.p, limits, source.nowMs)).toBeGreaterThanOrEqual(9);
    }
  });

  test("leave a window alone that no refusal has cut", () => {
    const source = busySource();
    const limits = { ...NO_LIMITS, maxConcurrency: 10 };
    cutForHang(source.p, limits, { startedAtMs: source.nowMs - 20, inflight: 5 }, 0, source.nowMs);
    const cutTo = source.p.window.wMax;
    expect(noise(source, 100, 5)).toBe(2);
    expect(source.p.window.wMax).toBe(cutTo);
  });

  test("are forgotten when they stay away for two minutes", () => {
    const source = busySource();
    noise(source, 20, 10);
    const untilMs = source.nowMs + 121_000;
    while (source.nowMs < untilMs) request(source);
    expect(refuse(source)).toBe(true);
  });
});

describe("refusals that the rate causes", () => {
  test("are cut for until they stop, however often", () => {
    const source = busySource();
    const bornePerS = 10;
    for (let n = 0; n < 200 && pacedRate(source.p, NO_LIMITS, source.nowMs) > bornePerS; n += 1) {
      const rate = pacedRate(source.p, NO_LIMITS, source.nowMs);
      // What is above the limit is refused.
      const gap = Math.ceil(rate / (rate - bornePerS));
      for (let k = 0; k < gap; k += 1) request(source);
      refuse(source);
    }
    expect(pacedRate(source.p, NO_LIMITS, source.nowMs)).toBeLessThanOrEqual(bornePerS);
  });

  test("a limit met once in a while is always cut for", () => {
    const source = busySource();
    for (let n = 0; n < 20; n += 1) {
      const untilMs = source.nowMs + source.p.rate.kMs;
      while (source.nowMs < untilMs) request(source);
      expect(refuse(source)).toBe(true);
    }
  });
});

test("whatever is refused, the rate stays between a floor and the highest that was measured", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 60 }), (gaps) => {
      const source = busySource();
      for (const gap of gaps) {
        for (let k = 0; k < gap; k += 1) request(source);
        refuse(source);
        const rate = pacedRate(source.p, NO_LIMITS, source.nowMs);
        expect(rate).toBeGreaterThanOrEqual(0.05);
        expect(Number.isNaN(rate)).toBe(false);
        expect(source.p.rate.wMax).toBeLessThanOrEqual(60);
      }
    }),
    { numRuns: 30 },
  );
});
