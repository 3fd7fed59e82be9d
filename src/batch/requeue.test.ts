import { describe, expect, it } from "vitest";
import {
  AllSourcesExhausted,
  CircuitOpenError,
  ConfigError,
  GovernanceBackendError,
  RequestRejectedError,
  ResultInvalidError,
  SourceNotConfiguredError,
  TransientError,
  type UnavailableReason,
} from "../errors.js";
import { judgeFailure, type LineEvidence } from "./requeue.js";
import { WorkersFailedError } from "./workers/restarts.js";

const quiet: LineEvidence = {
  successSinceFirstAttempt: false,
  freshSuccess: false,
  moreEvidenceComes: true,
  outageRequeues: 0,
  wholeScopeDead: true,
};
const exhausted = (reason: UnavailableReason, retryAfterMs = 0) =>
  new AllSourcesExhausted("message", { scope: "LLM", reason, retryAfterMs, cause: new TransientError("500") });

describe("what a failed call means for its line", () => {
  it.each([
    new RequestRejectedError("bad"),
    new ResultInvalidError("invalid"),
    exhausted("deadline_exceeded"),
    new TypeError("a defect"),
  ])("is a failure line: %s", (error) => {
    expect(judgeFailure(error, quiet)).toEqual({ kind: "failed" });
  });

  it.each([
    [exhausted("stalled"), 1_000],
    [exhausted("stalled", 7_000), 7_000],
    [exhausted("quota_exhausted", 50), 1_000],
    [new CircuitOpenError("open", { scope: "LLM", retryAfterMs: 4_000 }), 4_000],
    [new GovernanceBackendError("down", { scope: "LLM" }), 5_000],
  ])("goes back to the queue: %s", (error, afterMs) => {
    expect(judgeFailure(error, { ...quiet, outageRequeues: 10 })).toEqual({ kind: "requeue", afterMs, outage: false });
  });

  it("tells an outage from a bad line by the other calls of the scope", () => {
    const judge = (evidence: Partial<LineEvidence>) =>
      judgeFailure(exhausted("retry_exhausted"), { ...quiet, ...evidence }).kind;
    expect(judge({})).toBe("requeue");
    expect(judge({ successSinceFirstAttempt: true, freshSuccess: true })).toBe("failed");
    // A success from before the trouble began proves nothing while others can still tell …
    expect(judge({ successSinceFirstAttempt: true })).toBe("requeue");
    // … and is all there is when they can't.
    expect(judge({ successSinceFirstAttempt: true, moreEvidenceComes: false })).toBe("failed");
    expect(judge({ outageRequeues: 9 })).toBe("requeue");
    expect(judge({ outageRequeues: 10 })).toBe("failed");
  });

  it("waits longer each time, obeys Retry-After, and ten tries outlast 8 minutes", () => {
    const waits = Array.from({ length: 10 }, (_, outageRequeues) => {
      const verdict = judgeFailure(exhausted("retry_exhausted"), { ...quiet, outageRequeues });
      return verdict.kind === "requeue" ? verdict.afterMs : 0;
    });
    expect(waits.reduce((sum, wait) => sum + wait)).toBeGreaterThan(480_000);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(judgeFailure(exhausted("retry_exhausted", 9_000), quiet)).toMatchObject({ afterMs: 9_000 });
  });

  it("ends the batch when no line can succeed, and says why", () => {
    const dead = new AllSourcesExhausted("m", {
      scope: "LLM",
      reason: "all_sources_dead",
      retryAfterMs: 60_000,
      perSourceReasons: { a: { reason: "dead", waitMs: 1, lastError: { code: "auth", message: "a: 401 | bad key" } } },
    });
    expect(judgeFailure(dead, quiet)).toMatchObject({
      stop: "all_sources_dead",
      reason: expect.stringMatching(/a: 401 \| bad key/),
    });
    expect(judgeFailure(dead, { ...quiet, wholeScopeDead: false })).toMatchObject({ kind: "requeue", afterMs: 60_000 });
    expect(judgeFailure(exhausted("no_sources"), quiet)).toMatchObject({ kind: "stop", stop: "no_sources" });
    for (const error of [new SourceNotConfiguredError("x"), new ConfigError([])]) {
      expect(judgeFailure(error, quiet)).toMatchObject({ kind: "stop", stop: "misconfigured" });
    }
    const workers = new WorkersFailedError("They died.");
    expect(judgeFailure(workers, quiet)).toEqual({ kind: "stop", stop: "workers_failed", reason: "They died." });
  });
});
