import assert from "node:assert/strict";
import {
  type ContractTest,
  DEFAULT_TTL_MS,
  MINUTE_MS,
  near,
  type Open,
  settleOf,
  sourceConfig,
  verdictOf,
} from "./bench.js";

const GRACE_MS = 1_000;
const UNSENT = { sent: false, actualTokens: 0 } as const;

const permits: ContractTest[] = [
  {
    name: "settle frees the permit once; the second settle is a no-op",
    body: async (open) => {
      const limited = { maxConcurrency: 2, tpm: 1_000, limitRule: "window" } as const;
      const bench = await open({ sources: [sourceConfig("a", limited)] });
      await bench.alignToMinute();
      const first = await bench.granted("a", { estTokens: 300 });
      await bench.granted("a", { estTokens: 300 });
      assert.equal(await bench.settle(first, "success", { actualTokens: 100 }), true);
      const after = await bench.source("a");
      assert.equal(after.inflight, 1);
      assert.equal(after.tokensUsed, 400);
      for (const sent of [true, false]) {
        assert.equal(await bench.settle(first, "failure", { actualTokens: 0, sent }), false);
        assert.deepEqual(await bench.source("a"), after);
      }
      const twice = [settleOf(await bench.granted("a"), "success"), settleOf(first, "success")];
      assert.deepEqual((await bench.tick({ settles: [twice[0]!, twice[0]!, twice[1]!] })).applied, [
        true,
        false,
        false,
      ]);
    },
  },
  {
    name: "settle, verdict and renewal without a lease do nothing",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 2, rpm: 60, tpm: 60_000 })] });
      const grant = await bench.granted("a");
      const before = await bench.snapshot();
      const stranger = { ...grant, leaseId: "never-granted" };
      assert.equal(await bench.settle(stranger, "failure", UNSENT), false);
      assert.equal(await bench.settle(stranger, "dead"), false);
      assert.equal(await bench.verdict(stranger), false);
      assert.equal(await bench.renew(stranger), false);
      assert.deepEqual(await bench.snapshot(), before);
    },
  },
  {
    name: "applied answers settles, then verdicts, then renewals, in their order",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")] });
      const [settled, judged, renewed] = [await bench.granted("a"), await bench.granted("a"), await bench.granted("a")];
      const stranger = { ...settled, leaseId: "never-granted" };
      const { applied } = await bench.tick({
        settles: [settleOf(stranger, "success"), settleOf(settled, "success")],
        verdicts: [verdictOf(judged), verdictOf(stranger)],
        renew: [stranger.leaseId, renewed.leaseId, settled.leaseId],
      });
      assert.deepEqual(applied, [false, true, true, false, false, true, false]);
    },
  },
  {
    name: "a permit freed by a settle serves a want of the same tick",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })] });
      const held = await bench.granted("a");
      const reply = await bench.tick({ settles: [settleOf(held, "success")], wants: [bench.newWant("a")] });
      assert.equal(reply.grants.length, 1);
    },
  },
  {
    name: "the lease TTL is 30 s unless set, and every grant states it",
    body: async (open) => {
      const usual = await open({ sources: [sourceConfig("a")] });
      assert.equal((await usual.granted("a")).leaseTtlMs, DEFAULT_TTL_MS);
      const short = await open({ sources: [sourceConfig("a")], leaseTtlMs: 6_000 });
      assert.equal((await short.granted("a")).leaseTtlMs, 6_000);
    },
  },
  {
    name: "without renewal a permit comes back within TTL + 1 s, not before the TTL; its request and tokens stay booked",
    body: async (open) => {
      const limited = { maxConcurrency: 1, rpm: 2, tpm: 1_000, limitRule: "window" } as const;
      const bench = await open({ sources: [sourceConfig("a", limited)], global: { maxConcurrency: 1 } });
      await bench.alignToMinute();
      await bench.granted("a", { estTokens: 600 });
      await bench.advance(DEFAULT_TTL_MS - 1);
      await bench.refused("a", { estTokens: 400 });
      assert.equal((await bench.source("a")).inflight, 1);
      await bench.advance(1 + GRACE_MS);
      const after = await bench.source("a");
      assert.deepEqual([after.inflight, after.requestsUsed, after.tokensUsed], [0, 1, 600]);
      assert.equal((await bench.refused("a", { estTokens: 401 })).gate, "tpm");
      await bench.granted("a", { estTokens: 400 });
    },
  },
  {
    name: "renewal at a third of the TTL keeps a permit for as long as its worker lives",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })] });
      const held = await bench.granted("a");
      for (let elapsed = 0; elapsed < 10 * DEFAULT_TTL_MS; elapsed += DEFAULT_TTL_MS / 3) {
        await bench.advance(DEFAULT_TTL_MS / 3);
        assert.equal(await bench.renew(held), true);
        await bench.refused("a");
      }
      await bench.advance(DEFAULT_TTL_MS - 1);
      await bench.refused("a");
      assert.equal(await bench.settle(held, "success"), true);
      await bench.granted("a");
    },
  },
  {
    name: "one renewal step serves all leases of a worker, over several sources",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")] });
      const held = [await bench.granted("a"), await bench.granted("b"), await bench.granted("a")];
      await bench.advance(DEFAULT_TTL_MS - 1);
      const { applied } = await bench.tick({ renew: held.slice(0, 2).map((grant) => grant.leaseId) });
      assert.deepEqual(applied, [true, true]);
      await bench.advance(1 + GRACE_MS);
      assert.equal((await bench.source("a")).inflight, 1);
      assert.equal((await bench.source("b")).inflight, 1);
    },
  },
  {
    name: "a lost lease can't be renewed, settled or judged, and its late settle frees nobody else's permit",
    body: lostLease,
  },
];

async function lostLease(open: Open): Promise<void> {
  const limited = { maxConcurrency: 1, tpm: 60_000 };
  const bench = await open({ sources: [sourceConfig("a", limited)], breaker: { failThreshold: 1 } });
  const frozen = await bench.granted("a", { estTokens: 6_000 });
  await bench.advance(DEFAULT_TTL_MS + GRACE_MS);
  const current = await bench.granted("a");
  const before = await bench.snapshot();
  assert.equal(await bench.renew(frozen), false);
  assert.equal(await bench.verdict(frozen), false);
  assert.equal(await bench.settle(frozen, "failure", UNSENT), false);
  assert.equal(await bench.settle(frozen, "dead"), false);
  assert.deepEqual(await bench.snapshot(), before);
  assert.equal((await bench.refused("a")).gate, "concurrency");
  assert.equal(await bench.settle(current, "success"), true);
}

const requestReturns: ContractTest[] = [
  {
    name: "window: an unsent attempt returns its request in the minute of its grant, also when it isn't the newest",
    body: async (open) => {
      const limited = { rpm: 2, limitRule: "window" } as const;
      const bench = await open({ sources: [sourceConfig("a", limited)], global: limited });
      await bench.alignToMinute();
      const first = await bench.granted("a");
      await bench.granted("a");
      await bench.refused("a");
      await bench.settle(first, "cancelled", UNSENT);
      await bench.granted("a");
      await bench.refused("a");
    },
  },
  {
    name: "window: an unsent attempt of an earlier minute returns nothing",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 2, limitRule: "window" })] });
      await bench.alignToMinute();
      await bench.advance(MINUTE_MS - 1_000);
      const old = await bench.granted("a");
      await bench.advance(1_000);
      await bench.fill("a");
      await bench.settle(old, "cancelled", UNSENT);
      assert.equal((await bench.source("a")).requestsUsed, 2);
      await bench.refused("a");
    },
  },
  {
    name: "a sent attempt never returns its request, whatever came of it",
    body: async (open) => {
      for (const rule of ["smooth", "window"] as const) {
        for (const outcome of ["success", "failure", "alive", "cancelled"] as const) {
          const limited = { rpm: 1, limitRule: rule };
          const bench = await open({ sources: [sourceConfig("a", limited)], global: limited });
          await bench.alignToMinute();
          await bench.attempt("a", outcome, { actualTokens: 0 });
          await bench.refused("a");
        }
      }
    },
  },
  {
    name: "smooth: an unsent attempt that is the newest grant returns its request",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 10 })], global: { rpm: 10 } });
      const grant = await bench.granted("a");
      await bench.advance(1_000);
      await bench.refused("a");
      await bench.settle(grant, "cancelled", UNSENT);
      await bench.granted("a");
      near((await bench.refused("a")).waitHintMs, 6_050, 0.01, "the slot was used once");
    },
  },
  {
    name: "smooth: an unsent attempt that isn't the newest grant returns nothing",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 10 })] });
      const older = await bench.granted("a");
      await bench.advance(6_050);
      await bench.granted("a");
      await bench.settle(older, "cancelled", UNSENT);
      near((await bench.refused("a")).waitHintMs, 6_050, 0.01, "wait");
    },
  },
  {
    name: "smooth: the scope's request returns only for the scope's newest grant",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 10 }), sourceConfig("b")], global: { rpm: 10 } });
      const older = await bench.granted("a");
      await bench.advance(6_050);
      await bench.granted("b");
      await bench.settle(older, "cancelled", UNSENT);
      const refusal = await bench.refused(["a", "b"]);
      assert.equal(refusal.gate, "global_rpm");
      near(refusal.waitHintMs, 6_050, 0.01, "wait");
    },
  },
  {
    name: "an unsent attempt returns its tokens like every other one",
    body: async (open) => {
      for (const rule of ["smooth", "window"] as const) {
        const bench = await open({ sources: [sourceConfig("a", { tpm: 1_000, limitRule: rule })] });
        await bench.alignToMinute();
        const first = await bench.granted("a", { estTokens: 1_000 });
        await bench.refused("a");
        await bench.settle(first, "cancelled", UNSENT);
        assert.equal((await bench.source("a")).tokensUsed, 0);
        await bench.granted("a", { estTokens: 1_000 });
      }
    },
  },
];

export const leaseTests: readonly ContractTest[] = [...permits, ...requestReturns];
