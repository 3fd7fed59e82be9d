import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TransientError } from "../../src/errors.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import type { UpstreamSpec } from "../../src/testing/simulation/scenario.js";
import { SharedServer } from "../../src/testing/simulation/shared-server.js";
import { FIVE } from "../../src/testing/simulation/sources.js";
import { type Exchange, SimulatedSource } from "../../src/testing/simulation/upstream.js";

const BASE: UpstreamSpec = { ...FIVE[0]!, rpm: 0, tpm: 0, concurrency: 0, bucketS: 2 };

/** Requests at these distances, none of which the client ends by itself. */
function play(spec: UpstreamSpec, gapsMs: readonly number[], inputTokens = 100, outputTokens = 10): Exchange[] {
  const source = new SimulatedSource(spec, 1, 1);
  let nowMs = 0;
  return gapsMs.map((gapMs) => {
    nowMs += gapMs;
    return source.begin(nowMs, inputTokens, outputTokens);
  });
}

const gaps = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 20, maxLength: 300 });
const isTaken = ({ refusal }: Exchange): boolean => refusal === null || refusal.statusCode === 500;

/** Most that is taken in any stretch of time: a full bucket, and what flowed in meanwhile. */
function mostOver(exchanges: readonly Exchange[], weight: (exchange: Exchange) => number, perMs: number): number {
  const taken = exchanges.filter(isTaken);
  let most = -Infinity;
  for (let from = 0; from < taken.length; from++) {
    let sum = 0;
    for (let to = from; to < taken.length; to++) {
      sum += weight(taken[to]!);
      most = Math.max(most, sum - (taken[to]!.startMs - taken[from]!.startMs) * perMs);
    }
  }
  return most;
}

describe("a simulated source", () => {
  test("never takes more requests than its bucket lets through, in any stretch of time", () => {
    fc.assert(
      fc.property(gaps, (gapsMs) => {
        const exchanges = play({ ...BASE, rpm: 120 }, gapsMs);
        expect(mostOver(exchanges, () => 1, 120 / 60_000)).toBeLessThanOrEqual(4 + 1e-6);
        expect(exchanges.filter(({ refusal }) => refusal === null).length).toBeGreaterThan(0);
      }),
    );
  });

  test("charges input when it is taken and output when it is complete", () => {
    fc.assert(
      fc.property(gaps, (gapsMs) => {
        const input = play({ ...BASE, tpm: 60_000 }, gapsMs, 500, 1);
        // The bucket may be overdrawn by nothing: a request is taken only when its input is there.
        expect(mostOver(input, ({ refusal }) => (refusal === null ? 500 : 0), 1)).toBeLessThanOrEqual(2_000 + 1e-6);
      }),
    );
    const source = new SimulatedSource({ ...BASE, tpm: 60_000 }, 1, 1);
    const first = source.begin(0, 500, 1_900);
    expect(source.begin(1, 500, 0).refusal).toBeNull();
    // Refilled long before, but the answer's own tokens are due when it is complete.
    const afterMs = first.durationMs + 1;
    expect(source.begin(afterMs, 500, 0).refusal).toMatchObject({ statusCode: 429 });
  });

  test("holds its concurrency, and an answer or a client that leaves frees it", () => {
    const source = new SimulatedSource({ ...BASE, concurrency: 2 }, 1, 1);
    const first = source.begin(0, 10, 10);
    const second = source.begin(0, 10, 10);
    expect(source.begin(0, 10, 10).refusal).toMatchObject({ statusCode: 429 });
    source.leave(second, 1, 0);
    expect(source.begin(1, 10, 100_000).refusal).toBeNull();
    expect(source.begin(first.durationMs - 0.1, 10, 10).refusal).toMatchObject({ statusCode: 429 });
    expect(source.begin(first.durationMs, 10, 10).refusal).toBeNull();
    expect(source.peakInProgress).toBe(2);
  });

  test("a refusal says when to come back, and then there is room", () => {
    const exchanges = play({ ...BASE, rpm: 60 }, [0, 0, 0]);
    expect(exchanges[2]!.refusal).toMatchObject({ statusCode: 429, retryAfterS: 1 });
    const later = play({ ...BASE, rpm: 60 }, [0, 0, 0, 1_000]);
    expect(later[3]!.refusal).toBeNull();
    const silent = play({ ...BASE, rpm: 60, retryAfter: false }, [0, 0, 0]);
    expect(silent[2]!.refusal).toMatchObject({ retryAfterS: null });
  });

  test("where refused requests are charged, hammering starves itself", () => {
    const everyTenMs = Array<number>(3_000).fill(10);
    const taken = (chargesRejected: boolean): number =>
      play({ ...BASE, rpm: 600, chargesRejected }, everyTenMs).filter(isTaken).length;
    expect(taken(false)).toBeGreaterThan(300);
    expect(taken(true)).toBeLessThan(50);
  });

  test("limits that begin small grow with time", () => {
    const ramp = { fromShare: 0.1, overMs: 100_000 };
    const every = Array<number>(2_000).fill(100);
    const exchanges = play({ ...BASE, rpm: 600, ramp }, every);
    const between = (fromMs: number, toMs: number): number =>
      exchanges.filter((e) => isTaken(e) && e.startMs >= fromMs && e.startMs < toMs).length;
    expect(between(5_000, 15_000)).toBeGreaterThan(10);
    expect(between(5_000, 15_000)).toBeLessThan(30);
    expect(between(100_000, 110_000)).toBeGreaterThan(90);
  });

  test("headers tell limit and rest", () => {
    const [first, second] = play({ ...BASE, rpm: 600, tpm: 60_000, headers: true }, [0, 0]);
    expect(first!.limits).toEqual({
      limitRequests: 600,
      remainingRequests: 19,
      limitTokens: 60_000,
      remainingTokens: 1_900,
    });
    expect(second!.limits).toMatchObject({ remainingRequests: 18, remainingTokens: 1_800 });
  });

  test("faults: hanging, dead, used up, down, cut", () => {
    const forEver = { fromMs: 0, toMs: Infinity };
    const many = Array<number>(400).fill(1_000);
    const hanging = play({ ...BASE, faults: [{ kind: "half_dead", ...forEver, hangShare: 0.7 }] }, many);
    const hung = hanging.filter(({ durationMs }) => durationMs === Infinity).length;
    expect(hung / 400).toBeGreaterThan(0.6);
    expect(hung / 400).toBeLessThan(0.8);
    const statusOf = (kind: "dead_key" | "quota" | "outage"): number | undefined =>
      play({ ...BASE, faults: [{ kind, ...forEver, cutsAnswers: false }] }, [1])[0]!.refusal?.statusCode;
    expect([statusOf("dead_key"), statusOf("quota"), statusOf("outage")]).toEqual([401, 429, 503]);
    const outage = { kind: "outage", fromMs: 500, toMs: 1_000, cutsAnswers: true } as const;
    const [cut, refused, again] = play({ ...BASE, faults: [outage] }, [1, 600, 600], 10, 2_000);
    expect(cut).toMatchObject({ cut: true, durationMs: 499 });
    expect(refused!.refusal).toMatchObject({ statusCode: 503 });
    expect(again).toMatchObject({ cut: false, refusal: null });
    const [spared] = play({ ...BASE, faults: [{ ...outage, cutsAnswers: false }] }, [1], 10, 2_000);
    expect(spared!.cut).toBe(false);
    expect(spared!.durationMs).toBeGreaterThan(5_000);
  });
});

describe("a shared server", () => {
  async function finish(jobs: number, knee: number, workMs: number): Promise<number> {
    const kernel = new SimulationKernel();
    const server = new SharedServer(kernel.runtime(), knee);
    const all = Array.from({ length: jobs }, () => {
      server.enter();
      return new Promise<void>((resolve) => {
        server.after(workMs, () => {
          server.leave();
          resolve();
        });
      });
    });
    await kernel.run(Promise.all(all));
    expect(kernel.pendingTimers()).toBe(0);
    return kernel.now();
  }

  test("is as fast as ever up to its knee, then shares its speed evenly", async () => {
    expect(await finish(4, 4, 1_000)).toBeCloseTo(1_000, 1);
    expect(await finish(8, 4, 1_000)).toBeCloseTo(2_000, 1);
    expect(await finish(40, 4, 1_000)).toBeCloseTo(10_000, 1);
  });

  test("a request that leaves makes the others faster", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const server = new SharedServer(runtime, 1);
    server.enter();
    server.enter();
    let endMs = 0;
    server.after(1_000, () => {
      endMs = kernel.now();
    });
    runtime.setTimer(1_000, () => server.leave());
    await kernel.drain();
    expect(endMs).toBeCloseTo(1_500, 1);
  });
});

test("the errors are those of the HTTP transport", async () => {
  const { refusalError } = await import("../../src/testing/simulation/refusal.js");
  const { gatewayOptions, scopeConfig } = await import("../../src/testing/simulation/gateway-caller.js");
  const { small } = await import("./small.js");
  const source = scopeConfig(gatewayOptions(small("A"))).sources[0]!;
  const refused = play({ ...BASE, rpm: 60, headers: true }, [0, 0, 0])[2]!;
  const limited = refusalError(refused.refusal!, refused.limits, source, 0);
  expect(TransientError.isInstance(limited)).toBe(true);
  expect(limited).toMatchObject({ code: "rate_limit", statusCode: 429, rateLimited: true, retryAfterMs: 1_000 });
  expect(limited.details).toMatchObject({ limits: { limitRequests: 60, remainingRequests: 0 } });
  const codeOf = (kind: "dead_key" | "quota" | "outage"): string => {
    const { refusal } = play({ ...BASE, faults: [{ kind, fromMs: 0, toMs: Infinity, cutsAnswers: false }] }, [1])[0]!;
    const error = refusalError(refusal!, undefined, source, 0);
    return `${error.name} ${error.code}`;
  };
  expect(codeOf("dead_key")).toBe("SourceDeadError auth");
  expect(codeOf("quota")).toBe("SourceDeadError quota");
  expect(codeOf("outage")).toMatch(/^TransientError (overloaded|upstream_error)$/);
});
