import { describe, expect, test } from "vitest";
import { type BreakerRecord, closedBreaker, isCurrent } from "./breaker.js";

const inState = (state: BreakerRecord["state"], probeLease = ""): BreakerRecord => ({
  ...closedBreaker(0),
  state,
  epoch: 5,
  probeLease,
});

/** Fencing (spec 02 §4): whose evidence still concerns the present state. */
describe("isCurrent", () => {
  test("epochs are compared for equality: neither an older nor a newer one speaks", () => {
    for (const epoch of [0, 4, 6, 1_000_000]) {
      expect(isCurrent(inState("closed"), "a", epoch)).toBe(false);
      expect(isCurrent(inState("half_open", "a"), "a", epoch)).toBe(false);
    }
  });

  test("while closed anybody of this epoch speaks, while half-open only the probe, while open nobody", () => {
    expect(isCurrent(inState("closed"), "a", 5)).toBe(true);
    expect(isCurrent(inState("half_open", "a"), "a", 5)).toBe(true);
    expect(isCurrent(inState("half_open", "a"), "b", 5)).toBe(false);
    expect(isCurrent(inState("half_open"), "a", 5)).toBe(false);
    expect(isCurrent(inState("open"), "a", 5)).toBe(false);
    // Not even one whose id is as empty as the mark of no probe.
    expect(isCurrent(inState("open"), "", 5)).toBe(false);
  });
});
