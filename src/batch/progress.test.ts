import { describe, expect, it } from "vitest";
import { createTally, type LiveCounts } from "./progress.js";

const live: LiveCounts = { inFlight: 0, requeued: 0, draining: false, linesToDo: 100, badLines: 0 };
const HERE = { snapshot: null, limitsAway: false };
const AWAY = { snapshot: null, limitsAway: true };

describe("the time left", () => {
  it("is not told while the limits are away, and that time doesn't count afterwards", () => {
    const tally = createTally({ batchId: "b", skipped: 0, skippedFailed: 0, startedMs: 0 });
    for (let line = 0; line < 20; line++) tally.failed();
    expect(tally.report(10_000, live, HERE)).toMatchObject({ callsPerSecond: 2, etaMs: 40_000, limitsAway: false });
    for (let atMs = 11_000; atMs <= 310_000; atMs += 1_000) {
      expect(tally.report(atMs, live, AWAY)).toMatchObject({ etaMs: null, limitsAway: true, callsPerSecond: 0 });
    }
    expect(tally.report(311_000, live, HERE).etaMs).toBeCloseTo(44_000, 0);
  });
});
