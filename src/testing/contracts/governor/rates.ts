import assert from "node:assert/strict";
import type { LimitConfig } from "../../../domain/source.js";
import { type ContractTest, type GovernorBench, isRefusal, MINUTE_MS, near, sourceConfig, within } from "./bench.js";

/** The figures of spec 02 §3 for `strict`; periods in milliseconds, rounded up to whole microseconds. */
const STRICT_REQUESTS = [
  { limit: 1, burst: 1, firstWaitMs: 60_500, periodMs: 60_500 },
  { limit: 3, burst: 1, firstWaitMs: 20_166.667, periodMs: 20_166.667 },
  { limit: 10, burst: 1, firstWaitMs: 6_050, periodMs: 6_050 },
  { limit: 25, burst: 2, firstWaitMs: 1_287.235, periodMs: 2_574.469 },
  { limit: 60, burst: 4, firstWaitMs: 1_061.404, periodMs: 1_061.404 },
  { limit: 6_000, burst: 100, firstWaitMs: 10.253, periodMs: 10.253 },
];

/** Takes every grant at the earliest millisecond the governor allows; returns their times from the start. */
async function greedyGrants(bench: GovernorBench, horizonMs: number): Promise<number[]> {
  const start = bench.now();
  const times: number[] = [];
  while (bench.now() - start < horizonMs) {
    const answer = await bench.want("a");
    if (isRefusal(answer)) await bench.advance(Math.ceil(answer.waitHintMs));
    else {
      times.push(bench.now() - start);
      await bench.settle(answer, "success", { actualTokens: answer.reservedTokens });
    }
  }
  return times;
}

function mostInAnyMinute(times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((time) => time >= from && time < from + MINUTE_MS).length));
}

const strictRequests: ContractTest[] = STRICT_REQUESTS.map(({ limit, burst, firstWaitMs, periodMs }) => ({
  name: `smooth, strict, RPM ${limit}: ${burst} at once, then one every ${(periodMs / 1_000).toFixed(4)} s`,
  body: async (open) => {
    const bench = await open({ sources: [sourceConfig("a", { rpm: limit })] });
    const { grants, refusal } = await bench.fill("a");
    assert.equal(grants.length, burst);
    near(refusal.waitHintMs, firstWaitMs, 0.01, "first wait");
    await bench.advance(Math.ceil(firstWaitMs) - 1);
    await bench.refused("a");
    await bench.advance(1);
    await bench.granted("a");
    const late = Math.ceil(firstWaitMs) - firstWaitMs;
    near((await bench.refused("a")).waitHintMs, burst === 1 ? periodMs : periodMs - late, 0.01, "next wait");
  },
}));

const strictWindow: ContractTest[] = [1, 3, 10, 25, 60].map((limit) => ({
  name: `smooth, strict, RPM ${limit}: a greedy caller gets ${limit} in the first minute and never more in any minute`,
  body: async (open) => {
    const bench = await open({ sources: [sourceConfig("a", { rpm: limit })] });
    const times = await greedyGrants(bench, 4 * MINUTE_MS);
    assert.equal(times.filter((time) => time < MINUTE_MS).length, limit);
    assert.equal(mostInAnyMinute(times), limit);
  },
}));

const looseRequests: ContractTest[] = [
  { limit: 60, burstS: 1, burst: 4, periodMs: 1_000 },
  { limit: 600, burstS: 1, burst: 10, periodMs: 100 },
  { limit: 60, burstS: 20, burst: 20, periodMs: 1_000 },
].map(({ limit, burstS, burst, periodMs }) => ({
  name: `smooth, not strict, RPM ${limit}, BURST_S ${burstS}: ${burst} at once, then one every ${periodMs} ms`,
  body: async (open) => {
    const bench = await open({ sources: [sourceConfig("a", { rpm: limit, strict: false, burstS })] });
    const { grants, refusal } = await bench.fill("a");
    assert.equal(grants.length, burst);
    near(refusal.waitHintMs, periodMs, 0.01, "wait");
    await bench.advance(periodMs);
    await bench.granted("a");
    near((await bench.refused("a")).waitHintMs, periodMs, 0.01, "wait");
  },
}));

/** TPM 60,000 strict: 59,000 tokens are spread over 60.5 s, 1,000 are the burst. */
const TOKEN_MS = { exact: 60_500 / 59_000, roundedUp: 1.026 };

function tokenWait(waitMs: number, tokensAhead: number): void {
  within(waitMs, (tokensAhead - 1_000) * TOKEN_MS.exact - 1, (tokensAhead - 1_000) * TOKEN_MS.roundedUp + 1, "wait");
}

const smoothTokens: ContractTest[] = [
  {
    name: "smooth, strict, TPM 60,000: one call may run into debt, the next waits until it is within the burst",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 60_000 })] });
      const grant = await bench.granted("a", { estTokens: 6_000 });
      assert.equal(grant.reservedTokens, 6_000);
      assert.equal(grant.windowId, null);
      const refusal = await bench.refused("a", { estTokens: 1 });
      assert.equal(refusal.gate, "tpm");
      tokenWait(refusal.waitHintMs, 6_000);
      await bench.advance(Math.ceil(refusal.waitHintMs) - 1);
      await bench.refused("a", { estTokens: 1 });
      await bench.advance(1);
      await bench.granted("a", { estTokens: 1 });
    },
  },
  {
    name: "smooth, strict, TPM 60,000: small calls share the burst of one second",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 60_000 })] });
      const { grants, refusal } = await bench.fill("a", { estTokens: 600 });
      assert.equal(grants.length, 2);
      tokenWait(refusal.waitHintMs, 1_200);
    },
  },
  {
    name: "smooth, not strict: the token burst is BURST_TOKENS_S of the rate",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 60_000, strict: false, burstTokensS: 3 })] });
      const { grants, refusal } = await bench.fill("a", { estTokens: 1_100 });
      assert.equal(grants.length, 3);
      near(refusal.waitHintMs, 300, 0.01, "wait");
    },
  },
  {
    name: "smooth: a settle moves the token clock by actual − estimate, down and up; null leaves it",
    body: async (open) => {
      for (const actualTokens of [0, 1_000, 3_000, 6_000, 9_000, null]) {
        const bench = await open({ sources: [sourceConfig("a", { tpm: 60_000 })] });
        const grant = await bench.granted("a", { estTokens: 6_000 });
        assert.equal(await bench.settle(grant, "success", { actualTokens }), true);
        const booked = actualTokens ?? 6_000;
        if (booked < 1_000) await bench.granted("a", { estTokens: 1 });
        else if (booked > 1_000) tokenWait((await bench.refused("a", { estTokens: 1 })).waitHintMs, booked);
      }
    },
  },
  {
    name: "smooth: a late refund gives no more credit than an idle source has",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 60_000 })], leaseTtlMs: 300_000 });
      const old = await bench.granted("a", { estTokens: 60_000 });
      await bench.advance(120_000);
      await bench.settle(old, "success", { actualTokens: 0 });
      assert.equal((await bench.source("a")).tokensUsed, 0);
      assert.equal((await bench.fill("a", { estTokens: 600 })).grants.length, 2);
    },
  },
  {
    name: "smooth: corrections reach the global token clock too",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], global: { tpm: 60_000 } });
      const grant = await bench.granted("a", { estTokens: 6_000 });
      await bench.settle(grant, "success", { actualTokens: 9_000 });
      const refusal = await bench.refused("b", { estTokens: 1 });
      assert.equal(refusal.gate, "global_tpm");
      tokenWait(refusal.waitHintMs, 9_000);
    },
  },
];

const WINDOW: Partial<LimitConfig> = { limitRule: "window" };

const windowRule: ContractTest[] = [
  {
    name: "window: RPM counts per aligned minute; the hint is the time to the next one",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { ...WINDOW, rpm: 3 })] });
      await bench.alignToMinute();
      await bench.advance(59_900);
      const { grants, refusal } = await bench.fill("a");
      assert.equal(grants.length, 3);
      near(refusal.waitHintMs, 100, 0.01, "wait");
      await bench.advance(99);
      await bench.refused("a");
      await bench.advance(1);
      const next = await bench.fill("a");
      assert.equal(next.grants.length, 3, "a new minute starts with the whole limit");
      near(next.refusal.waitHintMs, MINUTE_MS, 0.01, "wait");
      assert.equal(next.grants[0]!.windowId, grants[0]!.windowId! + 1);
      assert.equal(grants[0]!.windowId, Math.floor(bench.now() / MINUTE_MS) - 1);
    },
  },
  {
    name: "window: TPM refuses when used + estimate exceeds the limit, and only then",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { ...WINDOW, tpm: 1_000 })] });
      await bench.alignToMinute();
      await bench.granted("a", { estTokens: 600 });
      const refusal = await bench.refused("a", { estTokens: 401 });
      assert.equal(refusal.gate, "tpm");
      near(refusal.waitHintMs, MINUTE_MS, 0.01, "wait");
      await bench.granted("a", { estTokens: 400 });
      await bench.refused("a", { estTokens: 1 });
    },
  },
  {
    name: "window: a settle in the minute of its grant refunds exactly the difference",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { ...WINDOW, tpm: 1_000 })] });
      await bench.alignToMinute();
      const grant = await bench.granted("a", { estTokens: 900 });
      await bench.settle(grant, "success", { actualTokens: 300 });
      assert.equal((await bench.source("a")).tokensUsed, 300);
      await bench.refused("a", { estTokens: 701 });
      await bench.granted("a", { estTokens: 700 });
    },
  },
  {
    name: "window: actual above the estimate overfills; later calls wait for the next minute",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { ...WINDOW, tpm: 1_000 })] });
      await bench.alignToMinute();
      const grant = await bench.granted("a", { estTokens: 100 });
      await bench.settle(grant, "success", { actualTokens: 5_000 });
      assert.equal((await bench.source("a")).tokensUsed, 5_000);
      near((await bench.refused("a", { estTokens: 1 })).waitHintMs, MINUTE_MS, 0.01, "wait");
      await bench.advance(MINUTE_MS);
      await bench.granted("a", { estTokens: 1_000 });
    },
  },
  {
    name: "window: a settle in another minute than its grant corrects nothing",
    body: async (open) => {
      for (const actualTokens of [0, 5_000]) {
        const bench = await open({
          sources: [sourceConfig("a", { ...WINDOW, tpm: 1_000 })],
          global: { ...WINDOW, tpm: 1_000 },
        });
        await bench.alignToMinute();
        await bench.advance(59_000);
        const old = await bench.granted("a", { estTokens: 1_000 });
        await bench.advance(1_000);
        await bench.granted("a", { estTokens: 600 });
        assert.equal(
          await bench.settle(old, "success", { actualTokens, sent: false }),
          true,
          "the permit still comes back",
        );
        assert.equal((await bench.source("a")).tokensUsed, 600);
        await bench.refused("a", { estTokens: 401 });
        await bench.granted("a", { estTokens: 400 });
      }
    },
  },
  {
    name: "a source under smooth and a scope under window each follow their own rule",
    body: async (open) => {
      const bench = await open({
        sources: [sourceConfig("a", { rpm: 60 })],
        global: { ...WINDOW, rpm: 6, tpm: 1_000 },
      });
      await bench.alignToMinute();
      const first = await bench.granted("a", { estTokens: 1_000 });
      assert.equal((await bench.refused("a")).gate, "global_tpm");
      await bench.settle(first, "success", { actualTokens: 0 });
      for (let count = 0; count < 3; count++) await bench.granted("a", { estTokens: 0 });
      assert.equal((await bench.refused("a", { estTokens: 0 })).gate, "rpm");
      await bench.advance(5_000);
      await bench.granted("a", { estTokens: 0 });
      await bench.granted("a", { estTokens: 0 });
      const refusal = await bench.refused("a", { estTokens: 0 });
      assert.equal(refusal.gate, "global_rpm");
      near(refusal.waitHintMs, 55_000, 0.01, "wait");
    },
  },
];

export const rateTests: readonly ContractTest[] = [
  ...strictRequests,
  ...strictWindow,
  ...looseRequests,
  ...smoothTokens,
  ...windowRule,
];
