import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { joinWaits, markWait, newWaitLog, noteReason, waitsSince } from "./wait-log.js";

describe("what a kind of call waits for", () => {
  it("is told to each from the moment on at which it came, the last reason last", () => {
    const log = newWaitLog();
    const first = markWait(log, 0);
    noteReason(log, "concurrency", 10);
    const second = markWait(log, 1_000);
    noteReason(log, "backend", 3_010);
    noteReason(log, "backend", 4_000);
    expect(waitsSince(log, first, 8_010)).toEqual([
      { reason: "concurrency", waitMs: 3_000 },
      { reason: "backend", waitMs: 5_000 },
    ]);
    expect(waitsSince(log, second, 8_010)).toEqual([
      { reason: "concurrency", waitMs: 2_010 },
      { reason: "backend", waitMs: 5_000 },
    ]);
    noteReason(log, "concurrency", 8_010);
    expect(waitsSince(log, first, 9_010)).toEqual([
      { reason: "backend", waitMs: 5_000 },
      { reason: "concurrency", waitMs: 4_000 },
    ]);
  });

  it("adds up to the whole wait from the first reason on, whatever the order", () => {
    const reason = fc.constantFrom("rpm", "tpm", "backend", "fairness");
    const change = fc.record({ afterMs: fc.nat(5_000), reason });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1 }), fc.nat(20), fc.nat(5_000), (changes, from, restMs) => {
        const log = newWaitLog();
        let nowMs = 0;
        let sinceMs = 0;
        let mark = markWait(log, 0);
        changes.forEach((next, at) => {
          nowMs += next.afterMs;
          noteReason(log, next.reason, nowMs);
          if (at === 0) sinceMs = nowMs;
          if (at !== from) return;
          mark = markWait(log, nowMs);
          sinceMs = nowMs;
        });
        const waits = waitsSince(log, mark, nowMs + restMs);
        expect(waits.reduce((sum, { waitMs }) => sum + waitMs, 0)).toBe(nowMs + restMs - sinceMs);
        expect(waits.at(-1)?.reason).toBe(changes.at(-1)?.reason);
      }),
    );
  });

  it("of a call that asked twice is one list", () => {
    const rpm = { reason: "rpm", waitMs: 5 };
    const full = { reason: "concurrency", waitMs: 7 };
    expect(joinWaits([], [rpm])).toEqual([rpm]);
    expect(joinWaits([rpm, full], [rpm])).toEqual([full, { reason: "rpm", waitMs: 10 }]);
  });
});
