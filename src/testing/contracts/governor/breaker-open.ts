import assert from "node:assert/strict";
import { type ContractTest, near, sourceConfig } from "./bench.js";
import { ONE_STRIKE, openForMs, openTime, openWithNeighbour, stateOf } from "./breaker-bench.js";

const openState: ContractTest[] = [
  {
    name: "open: nothing passes until the open time is over, then the first want is the probe",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE);
      await bench.attempt("a", "failure");
      const remaining = await openForMs(bench);
      const refusal = await bench.refused("a");
      assert.equal(refusal.kind, "breaker");
      assert.equal(refusal.passedOver[0]?.reason, "breaker_open");
      near(refusal.waitHintMs, remaining, 0.01, "wait");
      await bench.advance(Math.ceil(remaining) - 1);
      await bench.refused("a");
      await bench.advance(1);
      const probe = await bench.granted("a");
      assert.equal(probe.probe, true);
      const { state, probeInFlight, openForMs: left, epoch } = await bench.source("a");
      assert.deepEqual([state, probeInFlight, left, epoch], ["half_open", true, 0, probe.epoch]);
    },
  },
  {
    name: "open: other sources go on; an open one is passed over",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE);
      await bench.attempt("a", "failure");
      const grant = await bench.granted(["a", "z"]);
      assert.equal(grant.source, "z");
      assert.deepEqual(
        grant.passedOver.map(({ source, reason }) => [source, reason]),
        [["a", "breaker_open"]],
      );
    },
  },
  {
    name: "open time grows by 1.7 a trip, ± 10 %, up to the maximum",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE);
      await bench.attempt("a", "failure");
      for (let trips = 1; trips <= 8; trips++) {
        openTime(await openForMs(bench), trips);
        await bench.settle(await bench.probe("a"), "failure");
      }
    },
  },
  {
    name: "open times are spread by ± 10 %, so that sources broken together don't come back together",
    body: async (open) => {
      const names = Array.from({ length: 24 }, (_, index) => `s${index}`);
      const bench = await open({ sources: [...names, "z"].map((name) => sourceConfig(name)), breaker: ONE_STRIKE });
      for (const name of names) await bench.attempt(name, "failure");
      const times = (await bench.snapshot()).sources.filter(({ state }) => state === "open").map((s) => s.openForMs);
      assert.equal(times.length, names.length);
      for (const time of times) openTime(time, 1);
      assert.ok(Math.max(...times) - Math.min(...times) > 200, `no spread in ${times}`);
    },
  },
  {
    name: "a cooldown of 0 is a value: the next want probes at once",
    body: async (open) => {
      const bench = await openWithNeighbour(open, { failThreshold: 1, cooldownMs: 0 });
      const { epoch } = await bench.attempt("a", "failure");
      const probe = await bench.granted("a");
      assert.equal(probe.probe, true);
      assert.notEqual(probe.epoch, epoch);
    },
  },
  {
    name: "one trip is paid back for every 10 s spent closed",
    body: async (open) => {
      for (const [closedMs, trips] of [
        [9_000, 3],
        [10_100, 2],
        [19_000, 2],
        [20_100, 1],
        [60_000, 1],
      ] as const) {
        const bench = await openWithNeighbour(open, ONE_STRIKE);
        await bench.attempt("a", "failure");
        await bench.settle(await bench.probe("a"), "failure");
        await bench.settle(await bench.probe("a"), "success");
        assert.equal(await stateOf(bench), "closed");
        await bench.advance(closedMs);
        await bench.attempt("a", "failure");
        openTime(await openForMs(bench), trips);
      }
    },
  },
  {
    name: "the epoch grows on entering open and never otherwise",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE);
      const closed = await bench.attempt("a", "success");
      assert.equal((await bench.attempt("a", "alive")).epoch, closed.epoch);
      await bench.attempt("a", "failure");
      const first = (await bench.source("a")).epoch;
      assert.ok(first > closed.epoch, `epoch ${first} after ${closed.epoch}`);
      const failed = await bench.probe("a");
      assert.equal(failed.epoch, first, "half-open keeps the epoch");
      await bench.settle(failed, "failure");
      const second = (await bench.source("a")).epoch;
      assert.ok(second > first, `epoch ${second} after ${first}`);
      const healed = await bench.probe("a");
      assert.equal(healed.epoch, second);
      await bench.settle(healed, "success");
      assert.equal((await bench.granted("a")).epoch, second, "closing keeps the epoch");
    },
  },
];

const rechecks: ContractTest[] = [
  {
    name: "dead: forced open at once, re-checked after 60 s · 2^(n−1), at most 30 min",
    body: async (open) => {
      const bench = await openWithNeighbour(open, {});
      const { epoch } = await bench.attempt("a", "dead");
      for (const minutes of [1, 2, 4, 8, 16, 30, 30]) {
        const now = await bench.source("a");
        assert.equal(now.state, "open");
        assert.equal(now.dead, true);
        near(now.openForMs, minutes * 60_000, 1, "re-check");
        const refusal = await bench.refused("a");
        assert.equal(refusal.kind, "breaker");
        assert.equal(refusal.passedOver[0]?.reason, "dead");
        near(refusal.waitHintMs, minutes * 60_000, 1, "wait");
        const probe = await bench.probe("a");
        assert.notEqual(probe.epoch, epoch);
        assert.equal(await bench.settle(probe, "dead"), true);
      }
    },
  },
  {
    name: "dead with Retry-After: re-checked at that moment, at most after 30 min",
    body: async (open) => {
      for (const [retryAfterMs, expectedMs] of [
        [5_000, 5_000],
        [600_000, 600_000],
        [86_400_000, 1_800_000],
      ] as const) {
        const bench = await openWithNeighbour(open, {});
        await bench.attempt("a", "dead", { retryAfterMs });
        near(await openForMs(bench), expectedMs, 1, "re-check");
        await bench.advance(expectedMs - 1);
        await bench.refused("a");
        await bench.advance(1);
        assert.equal((await bench.granted("a")).probe, true);
      }
    },
  },
  {
    name: "dead: a successful re-check brings the source back, and the next death starts at 60 s again",
    body: async (open) => {
      const bench = await openWithNeighbour(open, {});
      await bench.attempt("a", "dead");
      await bench.settle(await bench.probe("a"), "dead");
      await bench.settle(await bench.probe("a"), "success");
      const back = await bench.source("a");
      assert.deepEqual([back.state, back.dead], ["closed", false]);
      await bench.advance(600_000);
      await bench.attempt("a", "dead");
      near(await openForMs(bench), 60_000, 1, "re-check");
    },
  },
  {
    name: "dead: time spent closed pays trips back although the closed time ended by a death",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE);
      await bench.attempt("a", "failure");
      await bench.settle(await bench.probe("a"), "failure");
      await bench.settle(await bench.probe("a"), "success");
      await bench.advance(60_000);
      await bench.attempt("a", "dead");
      await bench.settle(await bench.probe("a"), "success");
      await bench.attempt("a", "failure");
      openTime(await openForMs(bench), 1);
    },
  },
];

const fencing: ContractTest[] = [
  {
    name: "fencing: a late success of the closed time doesn't close an open or half-open source",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE, 60_000);
      const [late, later] = [
        await bench.granted("a", { estTokens: 300 }),
        await bench.granted("a", { estTokens: 300 }),
      ];
      await bench.attempt("a", "failure", { actualTokens: 0 });
      const opened = await bench.source("a");
      assert.equal(await bench.settle(late, "success", { actualTokens: 0 }), false);
      const after = await bench.source("a");
      assert.deepEqual([after.state, after.epoch, after.openForMs], ["open", opened.epoch, opened.openForMs]);
      assert.equal(after.inflight, opened.inflight - 1, "the permit comes back all the same");
      assert.ok(after.tokensUsed < opened.tokensUsed, "the tokens are settled all the same");
      const probe = await bench.probe("a");
      assert.equal(await bench.settle(later, "success"), false);
      assert.equal(await stateOf(bench), "half_open");
      assert.equal(await bench.settle(probe, "success"), true);
      assert.equal(await stateOf(bench), "closed");
    },
  },
  {
    name: "fencing: late failures and deaths from before the trip neither prolong, reopen nor count",
    body: async (open) => {
      for (const outcome of ["failure", "dead"] as const) {
        const bench = await openWithNeighbour(open, ONE_STRIKE);
        const late = [await bench.granted("a"), await bench.granted("a"), await bench.granted("a")];
        await bench.attempt("a", "failure");
        const opened = await bench.source("a");
        assert.equal(await bench.settle(late[0]!, outcome), false);
        assert.equal((await bench.source("a")).openForMs, opened.openForMs);
        const probe = await bench.probe("a");
        assert.equal(await bench.settle(late[1]!, outcome), false);
        assert.equal(await stateOf(bench), "half_open");
        await bench.settle(probe, "success");
        assert.equal(await bench.settle(late[2]!, outcome), false);
        const { state, epoch, dead } = await bench.source("a");
        assert.deepEqual([state, epoch, dead], ["closed", opened.epoch, false]);
      }
    },
  },
  {
    name: "fencing: a late first token of the closed time doesn't close an open or half-open source",
    body: async (open) => {
      const bench = await openWithNeighbour(open, ONE_STRIKE);
      const late = await bench.granted("a");
      await bench.attempt("a", "failure");
      await bench.verdict(late);
      assert.equal(await stateOf(bench), "open");
      await bench.probe("a");
      await bench.verdict(late);
      assert.equal(await stateOf(bench), "half_open");
    },
  },
];

export const openTests: readonly ContractTest[] = [...openState, ...rechecks, ...fencing];
