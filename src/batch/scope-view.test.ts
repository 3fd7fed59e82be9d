import { describe, expect, it } from "vitest";
import { createScopeView } from "./scope-view.js";
import type { BatchClient, BatchSnapshot } from "./types.js";

const source = (dead: boolean, inflight: number, message?: string) => ({
  name: "a",
  dead,
  inflight,
  lastError: message === undefined ? null : { code: "x", message },
});

function view(snapshot: () => unknown) {
  return createScopeView({ snapshot } as unknown as BatchClient);
}

const of = (...sources: ReturnType<typeof source>[]) => view(() => ({ sources }) as unknown as BatchSnapshot);

describe("what the scope tells", () => {
  it("is dead when every source is, and idle when no attempt is under way", async () => {
    expect(await of(source(true, 0), source(false, 0)).allDead()).toBe(false);
    expect(await of(source(true, 0), source(true, 0)).allDead()).toBe(true);
    expect(await of(source(false, 0), source(false, 1)).idle()).toBe(false);
    expect(await of(source(false, 0), source(true, 0)).idle()).toBe(true);
    expect(await of(source(false, 0, "a failed: 503")).trouble()).toBe("a failed: 503");
  });

  it("is idle when this batch holds no permit, whatever other processes do", async () => {
    const shared = (live: number) => view(() => ({ sources: [source(false, 7)], leases: { live } }));
    expect([await shared(0).idle(), await shared(1).idle()]).toEqual([true, false]);
  });

  it("is on the safe side when the governor can't say", async () => {
    const down = view(() => Promise.reject(new Error("down")));
    expect([await down.allDead(), await down.idle(), await down.trouble()]).toEqual([true, false, ""]);
    // No source is known: nothing says that nothing is under way.
    expect(await of().idle()).toBe(false);
  });
});
