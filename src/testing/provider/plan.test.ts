import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resizeTokens, toTokens } from "./answer.js";
import { drawPlan } from "./plan.js";
import { drawsFor, lognormal } from "./random.js";

const plans = (count: number, seed: number, faults: Parameters<typeof drawPlan>[1]["faults"]) =>
  Array.from({ length: count }, (_, i) =>
    drawPlan(drawsFor(seed, i), {
      faults,
      latency: { ttftMedianMs: 100, ttftSigma: 0.5 },
      output: { medianTokens: 50 },
    }),
  );

describe("drawn plans", () => {
  it("follow the rates", () => {
    const drawn = plans(20_000, 5, {
      errorRate: 0.05,
      rateLimitRate: 0.05,
      cutRate: 0.01,
      hangRate: 0.01,
      resetRate: 0.02,
    });
    const share = (fault: string): number => drawn.filter((plan) => plan.fault === fault).length / drawn.length;
    expect(share("error")).toBeCloseTo(0.05, 2);
    expect(share("rate_limit")).toBeCloseTo(0.05, 2);
    expect(share("cut")).toBeCloseTo(0.01, 2);
    expect(share("hang")).toBeCloseTo(0.01, 2);
    expect(share("reset")).toBeCloseTo(0.02, 2);
  });

  it("draw nothing at rate 0 and always at rate 1", () => {
    expect(plans(500, 1, {}).every(({ fault }) => fault === "none")).toBe(true);
    expect(plans(500, 1, { cutRate: 1 }).every(({ fault, brokenAt }) => fault === "cut" && brokenAt !== null)).toBe(
      true,
    );
    expect(plans(500, 1, { hangRate: 1, hangAt: "start" }).every(({ brokenAt }) => brokenAt === null)).toBe(true);
    const either = plans(500, 1, { hangRate: 1 }).filter(({ brokenAt }) => brokenAt === null).length;
    expect(either).toBeGreaterThan(150);
    expect(either).toBeLessThan(350);
  });

  it("have lognormal first-token times around the median", () => {
    const times = plans(4_000, 9, {}).map(({ ttftMs }) => ttftMs);
    const below = times.filter((ms) => ms < 100).length / times.length;
    expect(below).toBeGreaterThan(0.46);
    expect(below).toBeLessThan(0.54);
    expect(Math.min(...times)).toBeGreaterThan(0);
  });

  it("give equal draws for equal seed and ordinal only", () => {
    const first = (seed: number, ordinal: number): number => drawsFor(seed, ordinal)();
    expect(first(1, 1)).toBe(first(1, 1));
    const all = new Set(Array.from({ length: 2_000 }, (_, i) => first(i % 20, Math.floor(i / 20))));
    expect(all.size).toBeGreaterThan(1_990);
  });

  it("keep lognormal at its median without spread, and finite with any draw", () => {
    expect(lognormal(() => 0.3, 80, 0)).toBe(80);
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (u) => {
        expect(Number.isFinite(lognormal(() => u, 80, 1))).toBe(true);
      }),
    );
  });
});

describe("tokens", () => {
  it("joined are the text again, none longer than 12 characters and its spaces", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
        expect(toTokens(text).join("")).toBe(text);
      }),
    );
    expect(toTokens(" a  bc\n")).toEqual([" a", "  bc", "\n"]);
  });

  it("are brought to any length", () => {
    fc.assert(
      fc.property(fc.nat({ max: 60 }), (count) => {
        expect(resizeTokens(["a", "b", "c"], count)).toHaveLength(count);
      }),
    );
    expect(resizeTokens(["a", "b", "c"], 2)).toEqual(["a", "b"]);
  });
});
