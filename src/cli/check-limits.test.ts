import fc from "fast-check";
import { expect, test } from "vitest";
import { requestRate } from "../domain/gates/smooth.js";
import type { LimitConfig } from "../domain/source.js";
import { requestPace } from "./check-limits.js";

const LIMITS: LimitConfig = {
  maxConcurrency: 0,
  rpm: 0,
  tpm: 0,
  limitRule: "smooth",
  strict: true,
  burstS: 1,
  burstTokensS: 3,
};

test.each([
  [1, 1, 60_500],
  [10, 1, 6_050],
  [60, 4, 1_062],
  [6_000, 100, 10.3],
])("rpm %i: burst %i, then one each %f ms (the figures of spec 02 §3)", (rpm, burst, intervalMs) => {
  const pace = requestPace({ ...LIMITS, rpm });
  expect(pace?.burst).toBe(burst);
  expect(Math.abs((pace?.intervalMs ?? 0) / intervalMs - 1)).toBeLessThan(0.005);
});

test("no limit has no pace; a window may start everything at once, twice around a minute's end", () => {
  expect(requestPace(LIMITS)).toBeNull();
  expect(requestPace({ ...LIMITS, rpm: 50, limitRule: "window" })).toEqual({
    burst: 50,
    intervalMs: null,
    firstMinute: 50,
    mostInAnyMinute: 100,
  });
});

test("the printed figures are what the gate grants from rest", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3_000 }), fc.boolean(), (rpm, strict) => {
      const limits = { ...LIMITS, rpm, strict };
      const pace = requestPace(limits);
      const rate = requestRate(limits);
      if (pace === null || rate === null) throw new Error("a limit has a pace");
      const starts: number[] = [];
      for (let tat = 0; ; tat += rate.intervalMs) {
        const startMs = Math.max(0, tat - rate.toleranceMs);
        if (startMs >= 60_000 - 1e-6) break;
        starts.push(startMs);
      }
      expect(starts.filter((startMs) => startMs < 1e-6).length).toBe(pace.burst);
      expect(starts.length).toBe(pace.firstMinute);
      expect(pace.firstMinute).toBeLessThanOrEqual(pace.mostInAnyMinute);
    }),
    { numRuns: 300 },
  );
});
