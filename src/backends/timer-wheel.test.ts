import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTimerWheel } from "./timer-wheel.js";

/** A wheel on a clock that stands still until the test moves it, with at most one system timer as the real one has. */
function wheelOnFakeClock(startMs = 0) {
  let nowMs = startMs;
  let current: { dueMs: number; callback: () => void; alive: boolean } | undefined;
  let wakeUps = 0;
  let started = 0;
  const wheel = createTimerWheel({
    now: () => nowMs,
    startSystemTimer(delayMs, callback) {
      expect(current, "a second system timer").toBeUndefined();
      started += 1;
      const timer = { dueMs: nowMs + delayMs, callback, alive: true };
      current = timer;
      return {
        cancel: () => {
          if (current === timer) current = undefined;
        },
        keepProcessAlive: (keep) => {
          timer.alive = keep;
        },
      };
    },
  });
  function fire(): void {
    const { callback } = current!;
    current = undefined;
    wakeUps += 1;
    callback();
  }
  return {
    wheel,
    now: () => nowMs,
    fire,
    advance(ms: number) {
      const endMs = nowMs + ms;
      while (current !== undefined && current.dueMs <= endMs) {
        nowMs = Math.max(nowMs, current.dueMs);
        fire();
      }
      nowMs = endMs;
    },
    keepsAlive: () => current?.alive ?? false,
    wakeUps: () => wakeUps,
    started: () => started,
  };
}

describe("timer wheel", () => {
  test("fires every timer once, never early and at most one slot late, in any script of delays and cancellations", () => {
    const script = fc.array(
      fc.record({
        delayMs: fc.oneof(fc.double({ min: 0, max: 50, noNaN: true }), fc.integer({ min: 0, max: 200_000 })),
        cancelled: fc.boolean(),
        pauseMs: fc.integer({ min: 0, max: 300 }),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(script, fc.double({ min: 0, max: 1e6, noNaN: true }), (steps, startMs) => {
        const { wheel, now, advance } = wheelOnFakeClock(startMs);
        const fired = new Map<number, number>();
        const expected = new Set<number>();
        steps.forEach(({ delayMs, cancelled, pauseMs }, index) => {
          const dueMs = now() + delayMs;
          const cancel = wheel.schedule(delayMs, () => {
            expect(fired.has(index)).toBe(false);
            expect(now()).toBeGreaterThanOrEqual(dueMs);
            expect(now() - dueMs).toBeLessThan(18);
            fired.set(index, now());
          });
          if (cancelled) cancel();
          else expected.add(index);
          advance(pauseMs);
        });
        advance(200_020);
        expect(new Set(fired.keys())).toEqual(expected);
        expect(wheel.pending()).toBe(0);
      }),
    );
  });

  test("a system timer that fires early is not taken for the due time", () => {
    const { wheel, fire, advance } = wheelOnFakeClock();
    let fired = 0;
    wheel.schedule(100, () => fired++);
    fire();
    expect(fired).toBe(0);
    advance(100);
    expect(fired).toBe(1);
  });

  test("timers of one slot fire in the order they were set", () => {
    const { wheel, advance } = wheelOnFakeClock();
    const order: number[] = [];
    for (let index = 0; index < 5; index++) wheel.schedule(10, () => order.push(index));
    advance(10);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test("a timer cancelled by another one of the same slot does not fire", () => {
    const { wheel, advance } = wheelOnFakeClock();
    let fired = false;
    wheel.schedule(10, () => cancelSecond());
    const cancelSecond = wheel.schedule(10, () => {
      fired = true;
    });
    advance(50);
    expect(fired).toBe(false);
    expect(wheel.pending()).toBe(0);
  });

  test("cancelling twice, or after firing, changes nothing", () => {
    const { wheel, advance } = wheelOnFakeClock();
    const cancel = wheel.schedule(10, () => {});
    wheel.schedule(20, () => {});
    advance(10);
    cancel();
    cancel();
    expect(wheel.pending()).toBe(1);
  });

  test("a callback that sets a timer of 0 ms does not starve the process", () => {
    const { wheel, advance } = wheelOnFakeClock();
    let rounds = 0;
    const again = (): void => {
      rounds += 1;
      wheel.schedule(0, again);
    };
    wheel.schedule(0, again);
    advance(10);
    expect(rounds).toBe(10);
  });

  test("nothing wakes up while nothing is due: 10,000 timers of 120 s cost no wake-up in the first two minutes", () => {
    const { wheel, advance, wakeUps, started } = wheelOnFakeClock();
    for (let index = 0; index < 10_000; index++) {
      wheel.schedule(120_000, () => {});
      advance(1);
    }
    advance(109_000);
    expect(wakeUps()).toBe(0);
    expect(started()).toBe(1);
    advance(20_000);
    expect(wheel.pending()).toBe(0);
    expect(wakeUps()).toBeLessThanOrEqual(10_000 / 16 + 1);
  });

  test("cancelled deadlines of a steady stream of calls cause one wake-up a deadline length, not one a call", () => {
    const { wheel, advance, wakeUps } = wheelOnFakeClock();
    for (let index = 0; index < 60_000; index++) {
      const cancel = wheel.schedule(10_000, () => {});
      advance(10);
      cancel();
    }
    expect(wakeUps()).toBeLessThanOrEqual(61);
  });

  test("the process is kept alive exactly while a timer is pending", () => {
    const { wheel, keepsAlive, advance } = wheelOnFakeClock();
    expect(keepsAlive()).toBe(false);
    const cancel = wheel.schedule(5_000, () => {});
    expect(keepsAlive()).toBe(true);
    cancel();
    expect(keepsAlive()).toBe(false);
    wheel.schedule(6_000, () => {});
    expect(keepsAlive()).toBe(true);
    advance(6_020);
    expect(keepsAlive()).toBe(false);
  });

  test("sweeping thousands of cancelled delays of all lengths loses no living timer", () => {
    const { wheel, advance, now } = wheelOnFakeClock();
    const fired: number[] = [];
    for (let index = 0; index < 20_000; index++) {
      const cancel = wheel.schedule(10_000 + index * 16, () => fired.push(now()));
      if (index % 100 !== 0) cancel();
    }
    expect(wheel.pending()).toBe(200);
    advance(400_000);
    expect(fired).toEqual(Array.from({ length: 200 }, (_, index) => 10_000 + index * 1_600));
  });

  test("a NaN delay counts as 0", () => {
    const { wheel, advance } = wheelOnFakeClock();
    let fired = false;
    wheel.schedule(Number.NaN, () => {
      fired = true;
    });
    advance(1);
    expect(fired).toBe(true);
  });

  test("a delay beyond the system's longest still waits its full length", () => {
    const { wheel, advance } = wheelOnFakeClock();
    let fired = false;
    wheel.schedule(2 ** 32, () => {
      fired = true;
    });
    advance(2 ** 32 - 1);
    expect(fired).toBe(false);
    advance(20);
    expect(fired).toBe(true);
  });
});
