import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLimiter, formatReset, type LimiterMoment } from "./limits.js";

const at = (nowMs: number, inProgress = 0): LimiterMoment => ({ nowMs, wallNowMs: nowMs, inProgress });

describe("upstream limits", () => {
  it("never let more than the bucket and its refill through", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.nat({ max: 2_000 }), { minLength: 1, maxLength: 200 }),
        (rpm, bucketSeconds, gaps) => {
          const limiter = createLimiter({ rpm, bucketSeconds });
          let nowMs = 0;
          let admitted = 0;
          for (const gap of gaps) {
            nowMs += gap;
            if (limiter.admit(1, at(nowMs)).refusedBy === null) admitted += 1;
          }
          const capacity = Math.max(1, (rpm * bucketSeconds) / 60);
          expect(admitted).toBeLessThanOrEqual(capacity + (nowMs * rpm) / 60_000 + 1e-6);
        },
      ),
    );
  });

  it("hold no more than a full bucket after a long pause", () => {
    const limiter = createLimiter({ rpm: 60, bucketSeconds: 3 });
    limiter.admit(1, at(0));
    const burst = Array.from({ length: 5 }, () => limiter.admit(1, at(600_000)).refusedBy);
    expect(burst).toEqual([null, null, null, "requests", "requests"]);
  });

  it("tell a wait after which the request passes", () => {
    const limiter = createLimiter({ rpm: 60, bucketSeconds: 1 });
    expect(limiter.admit(1, at(0)).refusedBy).toBe(null);
    const refused = limiter.admit(1, at(100));
    expect(refused).toMatchObject({ refusedBy: "requests", retryAfterMs: 900 });
    expect(limiter.admit(1, at(999)).refusedBy).toBe("requests");
    expect(limiter.admit(1, at(1_000)).refusedBy).toBe(null);
  });

  it("count by aligned minute under the window rule", () => {
    const limiter = createLimiter({ rpm: 2, rule: "window" });
    expect(limiter.admit(1, at(59_000)).refusedBy).toBe(null);
    expect(limiter.admit(1, at(59_100)).refusedBy).toBe(null);
    expect(limiter.admit(1, at(59_200))).toMatchObject({ refusedBy: "requests", retryAfterMs: 800 });
    expect(limiter.admit(1, at(60_000)).refusedBy).toBe(null);
  });

  it("book nothing on a refusal, whichever gate refused", () => {
    const limiter = createLimiter({ rpm: 10, tpm: 100, maxConcurrency: 1 });
    expect(limiter.admit(10, at(0, 1)).refusedBy).toBe("concurrency");
    expect(limiter.admit(100, at(0)).refusedBy).toBe(null);
    const refused = limiter.admit(50, at(0));
    expect(refused).toMatchObject({ refusedBy: "tokens", requests: { limit: 10, remaining: 9 } });
  });

  it("let a request above the whole token limit pass a full bucket instead of never", () => {
    for (const rule of ["bucket", "window"] as const) {
      const limiter = createLimiter({ tpm: 100, rule });
      expect(limiter.admit(500, at(0)).refusedBy).toBe(null);
      expect(limiter.admit(1, at(1)).refusedBy).toBe("tokens");
    }
  });

  it("are off at 0", () => {
    const limiter = createLimiter({ rpm: 0, tpm: 0, maxConcurrency: 0 });
    expect(limiter.admit(1e9, at(0, 1e6))).toEqual({ refusedBy: null, retryAfterMs: 0, requests: null, tokens: null });
  });

  it("write resets as providers do", () => {
    expect([0, 250.2, 1_500, 60_000, 360_000].map(formatReset)).toEqual(["0ms", "251ms", "1.5s", "1m0s", "6m0s"]);
  });
});
