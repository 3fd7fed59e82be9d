import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { smartResize } from "./smart-resize.js";

describe("the size a vision model looks at", () => {
  test.each([
    ["sides that fit stay", [1_008, 700], [1_008, 700]],
    ["others go to the nearest multiple", [1_000, 701], [1_008, 700]],
    ["from the middle to the even multiple", [70, 1_022], [56, 1_008]],
    ["from the other middle up", [42, 98], [56, 112]],
    ["too large ones shrink", [6_000, 8_000], [2_884, 3_864]],
    ["too small ones grow", [10, 10], [56, 56]],
    ["narrow ones keep one multiple", [20, 4_000], [28, 4_004]],
  ])("%s", (_name, [width, height], [seenWidth, seenHeight]) => {
    expect(smartResize({ width: width!, height: height! })).toEqual({ width: seenWidth, height: seenHeight });
  });

  test("threads and what is no picture have none", () => {
    expect(smartResize({ width: 10_000, height: 49 })).toBeNull();
    expect(smartResize({ width: 10_000, height: 50 })).not.toBeNull();
    for (const width of [0, -5, Number.NaN]) expect(smartResize({ width, height: 10 })).toBeNull();
  });

  test("every picture: both sides are multiples of 28, and the area is within its bounds", () => {
    const side = fc.integer({ min: 1, max: 40_000 });
    fc.assert(
      fc.property(side, side, (width, height) => {
        fc.pre(Math.max(width, height) / Math.min(width, height) <= 200);
        const seen = smartResize({ width, height })!;
        expect(seen.width % 28).toBe(0);
        expect(seen.height % 28).toBe(0);
        expect(seen.width * seen.height).toBeLessThanOrEqual(11_289_600);
        expect(seen.width * seen.height).toBeGreaterThanOrEqual(3_136);
      }),
    );
  });
});
