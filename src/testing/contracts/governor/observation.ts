import assert from "node:assert/strict";
import type { GovernorEvent } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, near, sourceConfig } from "./bench.js";

function listen(bench: GovernorBench): { events: GovernorEvent[]; stop: () => void } {
  const events: GovernorEvent[] = [];
  const stop = bench.governor.onEvent((event) => events.push(event));
  return { events, stop };
}

const progress: ContractTest[] = [
  {
    name: "progress: Infinity until something succeeded anywhere in the scope",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")], breaker: { failThreshold: 1_000 } });
      assert.equal(await bench.progressAgeMs(), Number.POSITIVE_INFINITY);
      for (const outcome of ["failure", "alive", "cancelled"] as const) await bench.attempt("a", outcome);
      await bench.attempt("a", "alive", { rateLimited: "requests", retryAfterMs: 100 });
      await bench.advance(1_000);
      await bench.attempt("a", "dead");
      assert.equal(await bench.progressAgeMs(), Number.POSITIVE_INFINITY);
    },
  },
  {
    name: "progress: a success on any source counts, and its age grows with the clock",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")] });
      await bench.attempt("a", "success");
      near(await bench.progressAgeMs(), 0, 0.01, "age");
      await bench.advance(90_000);
      near(await bench.progressAgeMs(), 90_000, 0.01, "age");
      await bench.attempt("b", "failure");
      near(await bench.progressAgeMs(), 90_000, 0.01, "age");
      await bench.attempt("b", "success");
      near(await bench.progressAgeMs(), 0, 0.01, "age");
    },
  },
  {
    name: "progress: a first token counts",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")] });
      const grant = await bench.granted("a");
      assert.equal(await bench.progressAgeMs(), Number.POSITIVE_INFINITY);
      assert.equal(await bench.verdict(grant), true);
      near(await bench.progressAgeMs(), 0, 0.01, "age");
      await bench.advance(5_000);
      near(await bench.progressAgeMs(), 5_000, 0.01, "age");
    },
  },
];

const snapshots: ContractTest[] = [
  {
    name: "snapshot: a fresh scope",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 7 }), sourceConfig("b")] });
      const { scope, sources, backend } = await bench.snapshot();
      assert.equal(scope, bench.governor.scope);
      assert.equal(backend.ok, true);
      assert.ok(typeof backend.kind === "string" && backend.kind.length > 0);
      assert.deepEqual(
        sources.map((source) => source.name),
        ["a", "b"],
      );
      const { epoch, adaptive: _, passedOver = null, ...rest } = sources[0]!;
      assert.ok(Number.isFinite(epoch));
      assert.equal(passedOver, null);
      assert.deepEqual(rest, {
        name: "a",
        state: "closed",
        openForMs: 0,
        probeInFlight: false,
        inflight: 0,
        maxConcurrency: 7,
        requestsUsed: 0,
        tokensUsed: 0,
        coolingMs: 0,
        dead: false,
        lastError: null,
      });
    },
  },
  {
    name: "snapshot: what is booked shows, and is gone when its time has passed",
    body: async (open) => {
      for (const limitRule of ["smooth", "window"] as const) {
        const bench = await open({ sources: [sourceConfig("a", { rpm: 60, tpm: 60_000, limitRule })] });
        await bench.alignToMinute();
        const grant = await bench.granted("a", { estTokens: 5_000 });
        const used = await bench.source("a");
        assert.equal(used.inflight, 1);
        assert.ok(used.requestsUsed > 0 && used.tokensUsed > 0);
        if (limitRule === "window") assert.deepEqual([used.requestsUsed, used.tokensUsed], [1, 5_000]);
        await bench.settle(grant, "success", { actualTokens: 5_000 });
        await bench.advance(60_000);
        const idle = await bench.source("a");
        assert.deepEqual([idle.inflight, idle.requestsUsed, idle.tokensUsed], [0, 0, 0]);
      }
    },
  },
  {
    name: "snapshot: the last error of a source is kept with its code and message",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")] });
      const lastError = { code: "overloaded", message: "a transient failure: 503" };
      await bench.attempt("a", "failure", { lastError });
      assert.deepEqual((await bench.source("a")).lastError, lastError);
      assert.equal((await bench.source("b")).lastError, null);
    },
  },
  {
    name: "snapshot: open and cooling times run down to 0 and never below",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], breaker: { failThreshold: 1 } });
      await bench.attempt("a", "failure");
      await bench.attempt("b", "alive", { rateLimited: "requests", retryAfterMs: 2_000 });
      const opened = (await bench.source("a")).openForMs;
      await bench.advance(1_000);
      near((await bench.source("a")).openForMs, opened - 1_000, 0.01, "open");
      near((await bench.source("b")).coolingMs, 1_000, 0.01, "cooling");
      await bench.advance(60_000);
      assert.equal((await bench.source("a")).openForMs, 0);
      assert.equal((await bench.source("b")).coolingMs, 0);
    },
  },
  {
    name: "refusals carry the last error of the source they passed over",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")], breaker: { failThreshold: 1 } });
      const lastError = { code: "network", message: "a transient failure: connection reset" };
      await bench.attempt("a", "failure", { lastError });
      assert.deepEqual((await bench.refused("a")).passedOver[0]?.lastError, lastError);
    },
  },
];

const events: ContractTest[] = [
  {
    name: "events: a settle tells waiting calls that capacity came back",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 }), sourceConfig("b")] });
      const held = await bench.granted("a");
      const { events } = listen(bench);
      await bench.settle(held, "success");
      await bench.eventually(events, ({ type, source }) => type === "capacity" && source === "a");
    },
  },
  {
    name: "events: a permit given back by its id alone is told of the source it was for",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 }), sourceConfig("b")] });
      await bench.granted("a");
      const held = await bench.granted(["a", "b"]);
      assert.equal(held.source, "b");
      const { events } = listen(bench);
      // The reply was lost: whoever asked knows only whom it asked first.
      await bench.settle({ ...held, source: "a" }, "cancelled", { sent: false, actualTokens: 0 });
      await bench.eventually(events, ({ type, source }) => type === "capacity" && source === "b");
    },
  },
  {
    name: "events: opening and closing of a breaker are told",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], breaker: { failThreshold: 1 } });
      const opening = listen(bench);
      await bench.attempt("a", "failure");
      await bench.eventually(opening.events, ({ type, source }) => type === "state" && source === "a");
      opening.stop();
      const probe = await bench.probe("a");
      const closing = listen(bench);
      await bench.verdict(probe);
      await bench.eventually(closing.events, ({ type, source }) => type === "state" && source === "a");
    },
  },
  {
    name: "events: a probe handed back is told, so that the next call may probe at once",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], breaker: { failThreshold: 1 } });
      await bench.attempt("a", "failure");
      const probe = await bench.probe("a");
      const { events } = listen(bench);
      await bench.settle(probe, "cancelled", { sent: false });
      await bench.eventually(events, ({ source }) => source === "a");
    },
  },
  {
    name: "events: a refused tick tells nothing, and an ended subscription hears nothing",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 }), sourceConfig("b")] });
      const held = await bench.granted("a");
      const ended = listen(bench);
      const kept = listen(bench);
      ended.stop();
      ended.stop();
      for (let count = 0; count < 5; count++) await bench.refused("a");
      assert.deepEqual(kept.events, []);
      await bench.settle(held, "success");
      await bench.eventually(kept.events, ({ type }) => type === "capacity");
      assert.deepEqual(ended.events, []);
    },
  },
];

export const observationTests: readonly ContractTest[] = [...progress, ...snapshots, ...events];
