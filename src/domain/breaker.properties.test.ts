import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  applyOutcome,
  type BreakerRecord,
  breakerAdmission,
  closedBreaker,
  forceOpen,
  handBackProbe,
  isCurrent,
  openTimeMs,
  passProbe,
  startProbe,
} from "./breaker.js";
import { coolDown, cooldownWaitMs, endCooldown, noCooldown } from "./cooldown.js";
import { draw, jittered, seededRandom } from "./random.js";
import type { BreakerConfig } from "./scope.js";
import type { Outcome } from "./tick.js";

const CONFIG: BreakerConfig = {
  failThreshold: 3,
  failRate: 0.5,
  minSamples: 20,
  windowMs: 60_000,
  cooldownMs: 4_000,
  cooldownMaxMs: 30_000,
};

const seeds = fc.integer({ min: 0, max: 0xffffffff });
const verb = fc.record({
  stepMs: fc.constantFrom(0, 10, 1_000, 5_000, 40_000),
  outcome: fc.constantFrom<Outcome[]>("success", "failure", "failure", "failure", "alive", "dead", "cancelled"),
  rateLimited: fc.boolean(),
  firstToken: fc.boolean(),
});

interface Attempt {
  readonly leaseId: string;
  readonly epoch: number;
}

/** One call against the breaker: admission, then its end; returns what was admitted. */
function play(b: BreakerRecord, now: number, leaseId: string, probing: () => void): Attempt | null {
  const admission = breakerAdmission(b, CONFIG, now, null);
  if (admission.kind === "wait") {
    expect(admission.waitMs).toBeGreaterThan(0);
    return null;
  }
  if (admission.kind === "probe") {
    startProbe(b, leaseId);
    probing();
  }
  return { leaseId, epoch: b.epoch };
}

describe("breaker", () => {
  test("the epoch grows by entering open alone; an old epoch and a foreign probe never speak", () => {
    fc.assert(
      fc.property(fc.array(verb, { maxLength: 120, size: "max" }), seeds, (verbs, seed) => {
        const random = seededRandom(seed);
        const b = closedBreaker(0);
        const past: Attempt[] = [];
        let now = 0;
        for (const [index, { stepMs, outcome, rateLimited, firstToken }] of verbs.entries()) {
          now += stepMs;
          const attempt = play(b, now, `lease-${index}`, () =>
            expect(breakerAdmission(b, CONFIG, now, now + 5).kind).toBe("wait"),
          );
          for (const old of past) if (old.epoch !== b.epoch) expect(isCurrent(b, old.leaseId, old.epoch)).toBe(false);
          if (attempt === null) continue;
          past.push(attempt);
          expect(isCurrent(b, attempt.leaseId, attempt.epoch)).toBe(true);
          if (b.state === "half_open") expect(isCurrent(b, "somebody-else", attempt.epoch)).toBe(false);
          const before = { state: b.state, epoch: b.epoch };
          if (firstToken && b.state === "half_open") passProbe(b, attempt.leaseId, now);
          if (outcome === "dead") forceOpen(b, now, undefined);
          else applyOutcome(b, CONFIG, attempt.leaseId, outcome, rateLimited, false, now, random);
          expect(b.epoch).toBe(before.epoch + (b.state === "open" ? 1 : 0));
          if (b.state === "closed") expect(b.probeLease).toBe("");
        }
      }),
    );
  });

  test("after any history a source is probed within its longest open time, and a success closes it", () => {
    fc.assert(
      fc.property(fc.array(verb, { maxLength: 60, size: "max" }), seeds, (verbs, seed) => {
        const random = seededRandom(seed);
        const b = closedBreaker(0);
        let now = 0;
        for (const [index, { stepMs, outcome, rateLimited }] of verbs.entries()) {
          now += stepMs;
          const attempt = play(b, now, `lease-${index}`, () => {});
          if (attempt === null) continue;
          if (outcome === "dead") forceOpen(b, now, undefined);
          else applyOutcome(b, CONFIG, attempt.leaseId, outcome, rateLimited, false, now, random);
        }
        now += 30 * 60_000;
        handBackProbe(b, b.probeLease);
        const last = play(b, now, "last", () => {});
        expect(last).not.toBeNull();
        applyOutcome(b, CONFIG, "last", "success", false, false, now, random);
        expect([b.state, b.dead]).toEqual(["closed", false]);
      }),
    );
  });

  test("open time: 1.7 a trip within ± 10 %, never above the maximum", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), seeds, (trips, seed) => {
        const time = openTimeMs(CONFIG, trips, seededRandom(seed));
        const planned = Math.min(CONFIG.cooldownMs * 1.7 ** (trips - 1), CONFIG.cooldownMaxMs);
        expect(time).toBeGreaterThanOrEqual(planned * 0.9 - 1e-6);
        expect(time).toBeLessThanOrEqual(Math.min(planned * 1.1, CONFIG.cooldownMaxMs) + 1e-6);
      }),
    );
  });

  test("only the owner hands a probe back", () => {
    const b = closedBreaker(0);
    forceOpen(b, 0, 1);
    startProbe(b, "owner");
    handBackProbe(b, "somebody-else");
    expect(breakerAdmission(b, CONFIG, 10, 100)).toEqual({ kind: "wait", waitMs: 90 });
    handBackProbe(b, "owner");
    expect(breakerAdmission(b, CONFIG, 10, 100)).toEqual({ kind: "probe" });
  });
});

describe("cooldown", () => {
  test("never shorter than a Retry-After of up to ten minutes, and never shortened by a later one", () => {
    const limits = fc.array(
      fc.record({ stepMs: fc.nat(5_000), retryAfterMs: fc.option(fc.nat(2_000_000), { nil: undefined }) }),
      {
        minLength: 1,
        maxLength: 20,
      },
    );
    fc.assert(
      fc.property(limits, seeds, (steps, seed) => {
        const random = seededRandom(seed);
        const c = noCooldown();
        let now = 0;
        let earliest = 0;
        for (const { stepMs, retryAfterMs } of steps) {
          now += stepMs;
          coolDown(c, now, now, retryAfterMs, random);
          if (retryAfterMs !== undefined) earliest = Math.max(earliest, now + Math.min(retryAfterMs, 600_000));
          expect(now + cooldownWaitMs(c, now)).toBeGreaterThanOrEqual(earliest - 1e-6);
          expect(cooldownWaitMs(c, now)).toBeLessThanOrEqual(Math.max(600_000, 15_000 * 1.25));
        }
      }),
    );
  });

  test("many that left together and are refused together cool down once; what one says of when to come back counts", () => {
    const random = seededRandom(1);
    const c = noCooldown();
    for (let n = 0; n < 30; n += 1) coolDown(c, 1_020 + n, 1_000 + n / 2, undefined, random);
    expect(c.limitedInARow).toBe(1);
    expect(c.coolUntilMs).toBeLessThanOrEqual(1_020 + 500);
    coolDown(c, 1_100, 1_000, 5_000, random);
    expect([c.limitedInARow, c.coolUntilMs]).toEqual([1, 6_100]);
    coolDown(c, 6_200, 6_150, undefined, random);
    expect(c.limitedInARow).toBe(2);
  });

  test("without Retry-After: doubling from 400 ms to 15 s within ± 25 %, from the start again after a success", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), seeds, (inRow, seed) => {
        const random = seededRandom(seed);
        const c = noCooldown();
        let now = 0;
        for (let n = 1; n <= inRow; n++) {
          const planned = Math.min(400 * 2 ** (n - 1), 15_000);
          coolDown(c, now, now, undefined, random);
          expect(cooldownWaitMs(c, now)).toBeGreaterThanOrEqual(planned * 0.75 - 1e-6);
          expect(cooldownWaitMs(c, now)).toBeLessThanOrEqual(planned * 1.25 + 1e-6);
          now += 20_000;
        }
        endCooldown(c);
        coolDown(c, now, now, undefined, random);
        expect(cooldownWaitMs(c, now)).toBeLessThanOrEqual(500 + 1e-6);
      }),
    );
  });
});

describe("the one source of randomness", () => {
  test("the same seed draws the same numbers, within (0, 1), exact in doubles", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const [one, two] = [seededRandom(seed), seededRandom(seed)];
        for (let n = 0; n < 20; n++) {
          const value = draw(one);
          expect(value).toBe(draw(two));
          expect(value).toBeGreaterThan(0);
          expect(value).toBeLessThan(1);
        }
      }),
    );
  });

  test("jitter stays within its share", () => {
    fc.assert(
      fc.property(
        seeds,
        fc.double({ min: 1, max: 1e6, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (seed, value, share) => {
          const spread = jittered(value, share, seededRandom(seed));
          expect(Math.abs(spread - value)).toBeLessThanOrEqual(value * share * (1 + 1e-9) + 1e-9);
        },
      ),
    );
  });
});
