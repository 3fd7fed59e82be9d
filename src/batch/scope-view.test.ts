import { describe, expect, it } from "vitest";
import { GovernanceBackendError } from "../errors.js";
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
  it("is dead when every source is", async () => {
    expect(await of(source(true, 0), source(false, 0)).allDead()).toBe(false);
    expect(await of(source(true, 0), source(true, 0)).allDead()).toBe(true);
    expect(await of(source(false, 0, "a failed: 503")).trouble()).toBe("a failed: 503");
  });

  it("is idle when this batch holds no permit, whatever the governor says", async () => {
    const holding = (live: number) => createScopeView({ leases: () => ({ live }) } as unknown as BatchClient);
    expect([await holding(0).idle(), await holding(1).idle()]).toEqual([true, false]);
  });

  it("is on the safe side when the governor can't say, and tells why", async () => {
    const down = view(() => Promise.reject(new GovernanceBackendError("Redis is away", { scope: "LLM" })));
    expect([await down.allDead(), await down.trouble()]).toEqual([true, "Redis is away"]);
    expect(await view(() => Promise.reject(new Error("no worker yet"))).trouble()).toBe("");
  });
});
