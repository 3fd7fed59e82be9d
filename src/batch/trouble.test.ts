import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, type SourceReasonDetail } from "../errors.js";
import { describeTrouble, troubleIn } from "./trouble.js";
import type { BatchSnapshot } from "./types.js";

function unavailable(said: Record<string, string | null>): AllSourcesExhausted {
  const perSourceReasons = Object.fromEntries(
    Object.entries(said).map(([name, message]): [string, SourceReasonDetail] => {
      const lastError = message === null ? {} : { lastError: { code: "x", message } };
      return [name, { reason: "breaker_open", waitMs: 1, ...lastError }];
    }),
  );
  return new AllSourcesExhausted("no source is free", {
    scope: "LLM",
    reason: "stalled",
    retryAfterMs: 0,
    perSourceReasons,
  });
}

describe("trouble", () => {
  it("is told in the words of the sources, where they said something", () => {
    const said = { a: "a transient failure: 503", b: null, c: "ECONNREFUSED" };
    expect(describeTrouble(unavailable(said))).toBe("a transient failure: 503; c: ECONNREFUSED");
    expect(describeTrouble(unavailable({ a: null }))).toBe("no source is free");
    expect(describeTrouble(new TypeError("a defect"))).toBe("a defect");
    expect(describeTrouble("a text")).toBe("a text");
  });

  it("of many sources is cut", () => {
    const many = Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((name) => [name, name]));
    expect(describeTrouble(unavailable(many))).toBe("a; b; c; d; and 2 more");
  });

  it("of a snapshot is what the sources said last", () => {
    const sources = [
      { name: "a", lastError: null },
      { name: "b", lastError: { code: "x", message: "b: 503" } },
    ];
    expect(troubleIn({ scope: "LLM", sources } as unknown as BatchSnapshot)).toBe("b: 503");
  });
});
