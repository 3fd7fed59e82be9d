import fc from "fast-check";
import { expect, test } from "vitest";
import { backoffMs, spreadMs } from "./backoff.js";

const DEFAULTS = { backoffBaseMs: 500, backoffMaxMs: 20_000 };
const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test("the pause doubles with each failure, up to the maximum", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8].map((failures) => backoffMs(failures, DEFAULTS, 0))).toEqual([
    250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000,
  ]);
});

test("jitter takes up to half away", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), unit, (failures, u) => {
      const fullMs = 500 * 2 ** (failures - 1);
      const pauseMs = backoffMs(failures, DEFAULTS, u);
      expect(pauseMs).toBeGreaterThanOrEqual(fullMs / 2);
      expect(pauseMs).toBeLessThanOrEqual(fullMs);
    }),
  );
});

test("for any input it is finite, within [min(50 ms, maximum), maximum], and not below a usable Retry-After", () => {
  const delay = fc.integer({ min: 0, max: 100_000 });
  const retryAfter = fc.option(fc.double(), { nil: undefined });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000_000 }),
      delay,
      delay,
      unit,
      retryAfter,
      (failures, baseMs, maxMs, u, askedMs) => {
        const config = { backoffBaseMs: baseMs, backoffMaxMs: maxMs };
        const ownMs = backoffMs(failures, config, u);
        expect(ownMs).toBeGreaterThanOrEqual(Math.min(50, maxMs));
        expect(ownMs).toBeLessThanOrEqual(maxMs);
        const pauseMs = backoffMs(failures, config, u, askedMs);
        if (askedMs === undefined || !(askedMs > 0) || askedMs === Number.POSITIVE_INFINITY)
          expect(pauseMs).toBe(ownMs);
        else expect(pauseMs).toBeGreaterThanOrEqual(Math.max(askedMs, ownMs));
      },
    ),
  );
});

test("clients given the same Retry-After come back spread over 50 to 200 ms, none early", () => {
  expect(backoffMs(1, DEFAULTS, 0, 30_000)).toBe(30_050);
  expect(backoffMs(1, DEFAULTS, 0.5, 30_000)).toBe(30_125);
  expect(backoffMs(1, DEFAULTS, 0, 1)).toBe(250);
});

test("the spread lies in [50, 200) ms", () => {
  fc.assert(
    fc.property(unit, (u) => {
      expect(spreadMs(u)).toBeGreaterThanOrEqual(50);
      expect(spreadMs(u)).toBeLessThanOrEqual(200);
    }),
  );
});
