import assert from "node:assert/strict";
import type { SourceConfig } from "../../../domain/source.js";
import type { Grant } from "../../../ports/governor.js";
import {
  type ContractTest,
  DEFAULT_TTL_MS,
  type GovernorBench,
  near,
  type Open,
  sourceConfig,
  within,
} from "./bench.js";
import { fiftyAtOnce } from "./breaker-bench.js";

/** A source `a` that one failure opened and whose open time is over. */
async function due(open: Open, source: Partial<SourceConfig> = {}): Promise<GovernorBench> {
  const sources = [sourceConfig("a", source), sourceConfig("z")];
  const bench = await open({ sources, breaker: { failThreshold: 1 } });
  await bench.attempt("a", "failure");
  await bench.waitOutOpen("a");
  return bench;
}

async function halfOpen(open: Open): Promise<{ bench: GovernorBench; probe: Grant }> {
  const bench = await due(open);
  const probe = await bench.granted("a");
  assert.equal(probe.probe, true);
  return { bench, probe };
}

async function expectState(bench: GovernorBench, state: string, epoch: number): Promise<void> {
  const now = await bench.source("a");
  assert.deepEqual([now.state, now.epoch], [state, epoch]);
}

const oneProbe: ContractTest[] = [
  {
    name: "half-open: exactly one probe among 50 simultaneous wants; the others are told to wait or go elsewhere",
    body: async (open) => {
      const bench = await due(open);
      assert.equal(await fiftyAtOnce(bench, "a"), 1);
      const { inflight, probeInFlight } = await bench.source("a");
      assert.deepEqual([inflight, probeInFlight], [1, true]);
      const refusal = await bench.refused("a");
      assert.equal(refusal.kind, "breaker");
      assert.equal(refusal.passedOver[0]?.reason, "half_open");
      within(refusal.waitHintMs, 0.001, DEFAULT_TTL_MS + 1, "wait");
      assert.equal((await bench.granted(["a", "z"])).source, "z");
    },
  },
  {
    name: "half-open: exactly one probe among 50 simultaneous wants each time again",
    body: async (open) => {
      const bench = await due(open);
      for (let round = 0; round < 3; round++) {
        const probe = await bench.granted("a");
        assert.equal(await fiftyAtOnce(bench, "a"), 0);
        await bench.settle(probe, "failure");
        await bench.waitOutOpen("a");
      }
      assert.equal(await fiftyAtOnce(bench, "a"), 1);
    },
  },
  {
    name: "half-open: a success closes, and the next wants pass freely",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      assert.equal(await bench.settle(probe, "success"), true);
      await expectState(bench, "closed", probe.epoch);
      assert.equal(await fiftyAtOnce(bench, "a"), 50);
    },
  },
  {
    name: "half-open: a failure reopens at once with the next epoch and the next open time",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      assert.equal(await bench.settle(probe, "failure"), true);
      const { state, epoch, openForMs, probeInFlight, inflight } = await bench.source("a");
      assert.deepEqual([state, probeInFlight, inflight], ["open", false, 0]);
      assert.ok(epoch > probe.epoch);
      within(openForMs, 6_800 * 0.9 - 1e-6, 6_800 * 1.1 + 1e-6, "open time of the second trip");
    },
  },
  {
    name: "half-open: a dead probe forces open with the re-check time of the dead",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      assert.equal(await bench.settle(probe, "dead"), true);
      const { state, dead, openForMs } = await bench.source("a");
      assert.deepEqual([state, dead], ["open", true]);
      near(openForMs, 60_000, 1, "re-check");
    },
  },
  {
    name: "half-open: a rejected request proves life and closes",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      assert.equal(await bench.settle(probe, "alive"), true);
      await expectState(bench, "closed", probe.epoch);
    },
  },
  {
    name: "half-open: a 429 hands the probe back and the next one goes after the cooldown",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      await bench.settle(probe, "alive", { rateLimited: "requests", retryAfterMs: 7_000 });
      const { state, probeInFlight, inflight, coolingMs } = await bench.source("a");
      assert.deepEqual([state, probeInFlight, inflight], ["half_open", false, 0]);
      near(coolingMs, 7_000, 1, "cooling");
      near((await bench.refused("a")).waitHintMs, 7_000, 1, "wait");
      await bench.advance(6_999);
      await bench.refused("a");
      await bench.advance(1);
      const next = await bench.granted("a");
      assert.deepEqual([next.probe, next.epoch], [true, probe.epoch]);
    },
  },
  ...[true, false].map((sent) => ({
    name: `half-open: a cancelled ${sent ? "" : "and unsent "}probe is handed back and the next want probes at once`,
    body: async (open: Open) => {
      const { bench, probe } = await halfOpen(open);
      await bench.settle(probe, "cancelled", { sent });
      await expectState(bench, "half_open", probe.epoch);
      const next = await bench.granted("a");
      assert.deepEqual([next.probe, next.epoch], [true, probe.epoch]);
    },
  })),
];

const firstTokens: ContractTest[] = [
  {
    name: "half-open: the first token closes; the end of that attempt then counts as an ordinary one",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("z")], breaker: { failThreshold: 2 } });
      await bench.attempts("a", "failure", 2);
      const probe = await bench.probe("a");
      assert.equal(await bench.verdict(probe), true);
      await expectState(bench, "closed", probe.epoch);
      const { probeInFlight, inflight } = await bench.source("a");
      assert.deepEqual([probeInFlight, inflight], [false, 1], "the attempt itself goes on");
      assert.equal(await bench.settle(probe, "failure"), true);
      await expectState(bench, "closed", probe.epoch);
      await bench.attempt("a", "failure");
      assert.equal((await bench.source("a")).state, "open", "the failed end was the first of two");
    },
  },
  {
    name: "half-open: after a first token the success of the same attempt changes nothing more",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      await bench.verdict(probe);
      assert.equal(await bench.settle(probe, "success"), true);
      await expectState(bench, "closed", probe.epoch);
      assert.equal((await bench.source("a")).inflight, 0);
    },
  },
  {
    name: "half-open: a probe that closed by its first token is fenced once the source has tripped again",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      await bench.verdict(probe);
      await bench.attempt("a", "failure");
      const opened = await bench.source("a");
      assert.equal(await bench.settle(probe, "success"), false);
      await expectState(bench, "open", opened.epoch);
      assert.equal((await bench.source("a")).inflight, 0);
    },
  },
  {
    name: "a first token and the end in one tick are judged as settle first: applied once, closed",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      const { leaseId, source, epoch } = probe;
      const verdict = { leaseId, source, epoch, probe: true, kind: "first_token" } as const;
      const settle = { ...verdict, windowId: null, reservedTokens: 0, actualTokens: null, sent: true, durationMs: 1 };
      const reply = await bench.tick({ settles: [{ ...settle, outcome: "success" }], verdicts: [verdict] });
      assert.deepEqual(reply.applied, [true, false]);
      await expectState(bench, "closed", probe.epoch);
    },
  },
];

const holders: ContractTest[] = [
  {
    name: "half-open: when the probe's holder dies the next probe goes within TTL + 1 s, under the same epoch",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      await bench.advance(DEFAULT_TTL_MS - 1);
      await bench.refused("a");
      await bench.advance(1 + 1_000);
      const next = await bench.granted("a");
      assert.deepEqual([next.probe, next.epoch], [true, probe.epoch]);
      await bench.refused("a");
    },
  },
  {
    name: "half-open: a stale probe's late verdicts are not applied, whatever they say",
    body: async (open) => {
      for (const outcome of ["success", "failure", "dead", "alive", "cancelled"] as const) {
        const { bench, probe } = await halfOpen(open);
        await bench.advance(DEFAULT_TTL_MS + 1_000);
        const next = await bench.granted("a");
        const before = await bench.source("a");
        assert.equal(await bench.verdict(probe), false);
        assert.equal(await bench.settle(probe, outcome), false);
        assert.deepEqual(await bench.source("a"), before);
        assert.equal(await bench.settle(next, "success"), true);
        await expectState(bench, "closed", probe.epoch);
      }
    },
  },
  {
    name: "half-open: a stale probe is not applied either while nobody holds the probe",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      await bench.advance(DEFAULT_TTL_MS + 1_000);
      assert.equal(await bench.verdict(probe), false);
      assert.equal(await bench.settle(probe, "success"), false);
      assert.notEqual((await bench.source("a")).state, "closed");
      assert.equal((await bench.granted("a")).probe, true);
    },
  },
  {
    name: "half-open: a probe is renewed like every lease and keeps its place",
    body: async (open) => {
      const { bench, probe } = await halfOpen(open);
      for (let step = 0; step < 12; step++) {
        await bench.advance(DEFAULT_TTL_MS / 3);
        assert.equal(await bench.renew(probe), true);
        await bench.refused("a");
      }
      assert.equal(await bench.settle(probe, "success"), true);
      await expectState(bench, "closed", probe.epoch);
    },
  },
  {
    name: "half-open: a probe that a gate refuses is not lost",
    body: async (open) => {
      const sources = [sourceConfig("a", { rpm: 1 }), sourceConfig("z")];
      const bench = await open({ sources, breaker: { failThreshold: 1 } });
      await bench.attempt("a", "failure");
      await bench.waitOutOpen("a");
      const before = await bench.snapshot();
      for (let count = 0; count < 3; count++) assert.equal((await bench.refused("a")).gate, "rpm");
      assert.deepEqual(await bench.snapshot(), before);
      await bench.advance(Math.ceil((await bench.refused("a")).waitHintMs));
      assert.equal((await bench.granted("a")).probe, true);
    },
  },
  {
    name: "half-open: a probe takes its permit and its tokens like every attempt",
    body: async (open) => {
      const bench = await due(open, { tpm: 60_000 });
      const probe = await bench.granted("a", { estTokens: 500 });
      assert.equal(probe.reservedTokens, 500);
      const { inflight, tokensUsed } = await bench.source("a");
      assert.equal(inflight, 1);
      assert.ok(tokensUsed > 0);
    },
  },
];

export const probeTests: readonly ContractTest[] = [...oneProbe, ...firstTokens, ...holders];
