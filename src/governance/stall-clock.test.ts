import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createStallClock } from "./stall-clock.js";

describe("stall clock", () => {
  test("waiting counts, a counted attempt does not", () => {
    const clock = createStallClock(1_000);
    expect(clock.stalledMs(1_300)).toBe(300);
    const mark = clock.begin(1_300);
    clock.end(mark, 6_300, true);
    expect(clock.stalledMs(6_400)).toBe(400);
  });

  test("an attempt that is not counted gives its whole duration back", () => {
    const clock = createStallClock(0);
    clock.end(clock.begin(0), 120_000, false);
    expect(clock.stalledMs(120_000)).toBe(120_000);
  });

  test("a running attempt is not a stall yet", () => {
    const clock = createStallClock(0);
    clock.begin(100);
    expect(clock.stalledMs(60_100)).toBe(100);
  });

  test("overlapping counted attempts are paid for once", () => {
    const clock = createStallClock(0);
    const first = clock.begin(10);
    const hedge = clock.begin(20);
    clock.end(first, 30, true);
    clock.end(hedge, 40, true);
    expect(clock.stalledMs(100)).toBe(70);
  });

  test("of two overlapping attempts only the counted one's interval is taken out", () => {
    const clock = createStallClock(0);
    const limited = clock.begin(0);
    const counted = clock.begin(20);
    clock.end(counted, 30, true);
    clock.end(limited, 50, false);
    expect(clock.stalledMs(50)).toBe(40);
  });

  test("an end is taken once, and an unknown mark is ignored", () => {
    const clock = createStallClock(0);
    const mark = clock.begin(0);
    clock.end(mark, 10, true);
    clock.end(mark, 90, true);
    clock.end(99, 90, true);
    expect(clock.stalledMs(100)).toBe(90);
  });

  test("two clocks share nothing", () => {
    const [first, second] = [createStallClock(0), createStallClock(0)];
    first.end(first.begin(0), 100, true);
    expect(second.stalledMs(100)).toBe(100);
  });

  const steps = fc.array(
    fc.record({
      waitMs: fc.integer({ min: 0, max: 1_000 }),
      action: fc.constantFrom("begin", "end", "wait"),
      which: fc.nat(),
      counted: fc.boolean(),
    }),
    { maxLength: 60 },
  );

  test("elapsed = union of counted attempts + stalledMs, at every moment of any script", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e9 }), steps, (startMs, script) => {
        const clock = createStallClock(startMs);
        let nowMs = startMs;
        const running: { mark: number; fromMs: number }[] = [];
        const counted: [number, number][] = [];
        for (const step of script) {
          nowMs += step.waitMs;
          if (step.action === "begin") running.push({ mark: clock.begin(nowMs), fromMs: nowMs });
          if (step.action === "end" && running.length > 0) {
            const [ended] = running.splice(step.which % running.length, 1);
            clock.end(ended!.mark, nowMs, step.counted);
            if (step.counted) counted.push([ended!.fromMs, nowMs]);
          }
          const open = running.map(({ fromMs }): [number, number] => [fromMs, nowMs]);
          expect(clock.stalledMs(nowMs) + measure([...counted, ...open])).toBe(nowMs - startMs);
        }
      }),
    );
  });
});

/** Length of the union by counting every pair of neighbouring ends: slow and plain, on purpose. */
function measure(intervals: readonly (readonly [number, number])[]): number {
  const ends = [...new Set(intervals.flat())].sort((a, b) => a - b);
  let totalMs = 0;
  for (let index = 1; index < ends.length; index++) {
    const [fromMs, toMs] = [ends[index - 1]!, ends[index]!];
    if (intervals.some(([start, end]) => start <= fromMs && end >= toMs)) totalMs += toMs - fromMs;
  }
  return totalMs;
}
