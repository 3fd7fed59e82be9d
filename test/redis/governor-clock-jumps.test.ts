import { randomInt } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { RedisGovernor } from "../../src/backends/redis/governor.js";
import { LAYOUT_VERSION } from "../../src/backends/redis/script/layout.js";
import {
  GovernorBench,
  type GovernorSetup,
  isRefusal,
  sourceConfig,
} from "../../src/testing/contracts/governor/bench.js";
import { sharedRedis } from "../services/redis.js";

const redis = await sharedRedis();
const opened: RedisGovernor[] = [];
afterAll(async () => void (await Promise.all(opened.map((governor) => governor.close()))));

const HOUR_MS = 3_600_000;
const JUMPS = [-1, -1_000, -90_000, -HOUR_MS, 1, 90_000, HOUR_MS];

/** A scope whose server's clock the test sets, in any direction. */
function bench(setup: Partial<GovernorSetup>) {
  let nowMs = 1_700_000_000_000.5;
  const scope = `jump-${process.pid}-${randomInt(2 ** 40)}`;
  const options = { sources: [sourceConfig("a")], ...setup, scope, url: redis!.url, timeoutMs: 5_000 };
  const governor = new RedisGovernor(options, { nowMs: () => nowMs });
  opened.push(governor);
  const made = new GovernorBench({
    governor,
    advance: async (ms) => {
      nowMs += ms;
    },
    now: () => nowMs,
    close: () => governor.close(),
  });
  return Object.assign(made, { jump: (ms: number) => made.advance(ms), scope });
}

const PLAIN = { pacer: false, fairness: false, prefetchMs: 0 };

describe.skipIf(redis === null).each(JUMPS)("the server's clock jumps by %i ms", (jumpMs) => {
  test("a dead worker's permit comes back within its time to live", async () => {
    const b = bench({ sources: [sourceConfig("a", { maxConcurrency: 1 })] });
    await b.granted("a");
    await b.jump(jumpMs);
    if (jumpMs < 1_000) await b.refused("a");
    // It ends at a whole millisecond.
    await b.advance(30_001);
    const grant = await b.granted("a");
    expect(await b.settle(grant, "success")).toBe(true);
  });

  test("a permit that is renewed stays, unless its whole time has passed", async () => {
    const b = bench({ sources: [sourceConfig("a", { maxConcurrency: 1 })] });
    const grant = await b.granted("a");
    await b.jump(jumpMs);
    const isLost = jumpMs >= 30_000;
    for (let n = 0; n < 5; n += 1) {
      expect(await b.renew(grant)).toBe(!isLost);
      await b.advance(10_000);
    }
    expect(await b.settle(grant, "success")).toBe(!isLost);
    expect(await b.want("a").then(isRefusal)).toBe(false);
  });

  test("cooldowns, open times and slots last no longer than they were to", async () => {
    const limited = sourceConfig("limited");
    const broken = sourceConfig("broken");
    const paced = sourceConfig("paced", { rpm: 10, tpm: 1_000 });
    const b = bench({ sources: [limited, broken, paced], breaker: { failThreshold: 1 }, scheduling: PLAIN });
    await b.attempt("limited", "alive", { rateLimited: "requests", retryAfterMs: 20_000 });
    await b.attempt("broken", "failure");
    await b.attempt("paced", "success", { actualTokens: 600 });
    await b.jump(jumpMs);
    for (const [name, mostMs] of [
      ["limited", 20_000],
      ["broken", 30_000],
      ["paced", 60_500],
    ] as const) {
      const answer = await b.want(name);
      if (isRefusal(answer)) expect(answer.waitHintMs, name).toBeLessThanOrEqual(mostMs);
    }
    await b.advance(60_500);
    for (const name of ["limited", "broken", "paced"]) await b.granted(name);
    for (const { coolingMs, openForMs, requestsUsed, tokensUsed } of (await b.snapshot()).sources)
      expect(Math.min(coolingMs, openForMs, requestsUsed, tokensUsed)).toBeGreaterThanOrEqual(0);
  });

  test.each(["smooth", "window"] as const)("at most one extra window is let through (%s)", async (limitRule) => {
    const b = bench({ sources: [sourceConfig("a", { rpm: 10, limitRule })], scheduling: PLAIN });
    await b.alignToMinute();
    const greedy = async (forMs: number): Promise<number> => {
      let granted = 0;
      for (let at = 0; at < forMs; at += 500) {
        while (!isRefusal(await b.want("a"))) granted += 1;
        await b.advance(500);
      }
      return granted;
    };
    const before = await greedy(30_000);
    await b.jump(jumpMs);
    const after = await greedy(29_000);
    expect(before + after).toBeLessThanOrEqual(jumpMs >= 1_000 || limitRule === "window" ? 20 : 10);
    // A minute that was counted is not counted again: who is set back into it waits for the next one.
    if (limitRule === "smooth") expect(after).toBeGreaterThanOrEqual(4);
  });

  test("progress is never in the future", async () => {
    const b = bench({});
    await b.attempt("a", "success");
    await b.jump(jumpMs);
    const age = await b.progressAgeMs();
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThanOrEqual(Math.max(0, jumpMs) + 1);
  });
});

test.skipIf(redis === null)("the clock jumps back, and what the scope knew of its clock is lost", async () => {
  const b = bench({ sources: [sourceConfig("a", { maxConcurrency: 1, rpm: 60 })], scheduling: PLAIN });
  const grant = await b.granted("a");
  await b.jump(-HOUR_MS);
  await redis!.command("HDEL", `pgw-test:{${b.scope}}:s${LAYOUT_VERSION}`, "@");
  expect(await b.renew(grant)).toBe(true);
  await b.refused("a");
  await b.advance(30_001);
  await b.granted("a");
});
