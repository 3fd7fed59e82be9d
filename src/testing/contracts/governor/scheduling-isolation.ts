import assert from "node:assert/strict";
import type { Grant } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, near, sourceConfig, within } from "./bench.js";

/** A trip needs more than the classic channels allow here: only the evidence score can do it. */
const CLASSIC_OFF = { failThreshold: 1_000, minSamples: 1_000 };
const TIMED_OUT = { code: "ttft_timeout", message: "no first token" };

async function learnTtft(bench: GovernorBench, source: string, ttftMs: number): Promise<void> {
  for (let n = 0; n < 20; n += 1) {
    await bench.attempt(source, "success", { durationMs: ttftMs + 1_000, ttftMs, tpotMs: 10, outTokens: 100 });
  }
}

async function inFlight(bench: GovernorBench, source: string, count: number): Promise<Grant[]> {
  const grants: Grant[] = [];
  for (let n = 0; n < count; n += 1) grants.push(await bench.granted(source));
  return grants;
}

/** Evidence, overdue first tokens, evacuation, probes after hangs, ramp (spec 10 §4). */
export const isolationTests: readonly ContractTest[] = [
  {
    name: "evidence: four failures in a row trip, interleaved successes need more; off, the classic channels alone do",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")], breaker: CLASSIC_OFF, scheduling: { evidence: true } });
      await bench.attempts("a", "failure", 3);
      assert.equal((await bench.source("a")).state, "closed");
      await bench.attempts("a", "failure", 1);
      assert.equal((await bench.source("a")).state, "open");
      const healthy = await open({
        sources: [sourceConfig("a")],
        breaker: CLASSIC_OFF,
        scheduling: { evidence: true },
      });
      for (let n = 0; n < 40; n += 1) {
        await healthy.attempts("a", "failure", 1);
        await healthy.attempts("a", "success", 9);
      }
      assert.equal((await healthy.source("a")).state, "closed");
      const plain = await open({ sources: [sourceConfig("a")], breaker: CLASSIC_OFF });
      await plain.attempts("a", "failure", 40);
      assert.equal((await plain.source("a")).state, "closed");
    },
  },
  {
    name: "evidence: 429s, rejections and cancellations never count",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")], breaker: CLASSIC_OFF, scheduling: { evidence: true } });
      for (let n = 0; n < 30; n += 1) {
        for (const outcome of ["alive", "cancelled"] as const) {
          await bench.attempt("a", outcome);
          await bench.advance(200);
        }
        await bench.attempt("a", "alive", { rateLimited: "unknown", retryAfterMs: 1 });
        await bench.advance(200);
      }
      assert.equal((await bench.source("a")).adaptive?.evidence, 0);
    },
  },
  {
    name: "first token: overdue is 4.7 times what was learned, at least 3 s, never beyond the timeout; unknown, null",
    body: async (open) => {
      const sources = [sourceConfig("a"), sourceConfig("b"), sourceConfig("c")];
      const bench = await open({ sources, scheduling: { overdue: true } });
      assert.equal((await bench.granted("a")).firstTokenDueMs ?? null, null);
      await learnTtft(bench, "a", 1_000);
      near((await bench.granted("a")).firstTokenDueMs ?? 0, 4_700, 1, "4.7 times a second");
      await learnTtft(bench, "b", 100);
      within((await bench.granted("b")).firstTokenDueMs ?? 0, 3_000, 5_600, "the pool is slower than b");
      await learnTtft(bench, "c", 30_000);
      assert.equal((await bench.granted("c")).firstTokenDueMs ?? null, null);
      assert.equal((await bench.granted("b")).source, "b");
    },
  },
  {
    name: "overdue: counts at once, is taken back by a first token, and not counted twice by the failure",
    body: async (open) => {
      const scheduling = { evidence: true, overdue: true };
      const bench = await open({ sources: [sourceConfig("a")], breaker: CLASSIC_OFF, scheduling });
      const [late, dead, again] = await inFlight(bench, "a", 3);
      assert.equal(await bench.verdict(late!, "overdue"), true);
      assert.equal(await bench.verdict(late!, "overdue"), false, "told once");
      const one = (await bench.source("a")).adaptive!.evidence;
      await bench.verdict(dead!, "overdue");
      near((await bench.source("a")).adaptive!.evidence, 2 * one, 0.01, "two of them");
      await bench.settle(dead!, "failure", { lastError: TIMED_OUT });
      near((await bench.source("a")).adaptive!.evidence, 2 * one, 0.01, "the failure says nothing new");
      await bench.verdict(late!, "overdue_reversed");
      within((await bench.source("a")).adaptive!.evidence, one, 2 * one - 1, "two successes' worth less");
      await bench.verdict(again!, "overdue");
      assert.equal((await bench.source("a")).state, "closed");
    },
  },
  {
    name: "overdue: four of them trip the source, and its attempts are told to leave",
    body: async (open) => {
      const scheduling = { evidence: true, overdue: true, evacuate: true };
      const bench = await open({ sources: [sourceConfig("a")], breaker: CLASSIC_OFF, scheduling });
      await learnTtft(bench, "a", 1_000);
      const events: { evacuateAfterMs?: number; source: string; type: string }[] = [];
      const stop = bench.governor.onEvent((event) => events.push(event));
      for (let n = 0; n < 12 && (await bench.source("a")).state === "closed"; n += 1) {
        await bench.verdict(await bench.granted("a"), "overdue");
      }
      stop();
      assert.equal((await bench.source("a")).state, "open");
      await bench.eventually(events as never, (event) => event.type === "state" && event.evacuateAfterMs !== undefined);
      const told = events.find((event) => event.evacuateAfterMs !== undefined)!;
      near(told.evacuateAfterMs!, 2_350, 1, "half of when a first token is due");
    },
  },
  {
    name: "evacuation off, or a dead source: nobody is told to leave",
    body: async (open) => {
      for (const [evacuate, outcome] of [
        [false, "failure"],
        [true, "dead"],
      ] as const) {
        const bench = await open({ sources: [sourceConfig("a")], scheduling: { evidence: true, evacuate } });
        const events: { evacuateAfterMs?: number }[] = [];
        bench.governor.onEvent((event) => events.push(event));
        const grants = await inFlight(bench, "a", 6);
        for (const grant of grants) await bench.settle(grant, outcome);
        assert.equal((await bench.source("a")).state, "open");
        assert.ok(events.every((event) => event.evacuateAfterMs === undefined));
      }
    },
  },
  {
    name: "probes after hangs: as many good ones as it tripped, at most three; after failures one",
    body: async (open) => {
      const scheduling = { evidence: true };
      for (const [lastError, needed] of [
        [TIMED_OUT, [1, 2, 3, 3]],
        [{ code: "upstream_error", message: "500" }, [1, 1, 1, 1]],
      ] as const) {
        const bench = await open({ sources: [sourceConfig("a")], breaker: CLASSIC_OFF, scheduling });
        for (const good of needed) {
          while ((await bench.source("a")).state === "closed") await bench.attempt("a", "failure", { lastError });
          for (let n = 1; n <= good; n += 1) {
            const probe = await bench.probe("a");
            await bench.verdict(probe);
            await bench.settle(probe, "success");
            assert.equal((await bench.source("a")).state, n < good ? "half_open" : "closed");
          }
        }
      }
    },
  },
  {
    name: "panic: while no other source is closed the open time doesn't grow",
    body: async (open) => {
      for (const evidence of [true, false]) {
        const sources = [sourceConfig("a"), sourceConfig("b")];
        const bench = await open({ sources, breaker: { failThreshold: 3 }, scheduling: { evidence } });
        await bench.attempts("b", "failure", 3);
        await bench.attempts("a", "failure", 3);
        for (let n = 0; n < 4; n += 1) await bench.settle(await bench.probe("a"), "failure");
        const { openForMs } = await bench.source("a");
        if (evidence) within(openForMs, 3_600, 4_400, "still the first open time");
        else assert.ok(openForMs > 10_000, `grew to ${openForMs}`);
      }
    },
  },
  {
    name: "ramp: a source that closed again gets its load back over 10 s, on probation; off, at once",
    body: async (open) => {
      const sources = [sourceConfig("a", { maxConcurrency: 50 })];
      const breaker = { failThreshold: 3, minSamples: 1_000 };
      const bench = await open({ sources, breaker, scheduling: { evidence: true, ramp: true } });
      await bench.attempts("a", "failure", 3);
      await bench.settle(await bench.probe("a"), "success");
      assert.deepEqual(
        await Promise.all([bench.source("a")]).then(([a]) => [a?.adaptive?.window, a?.adaptive?.ramping]),
        [5, true],
      );
      near((await bench.source("a")).adaptive!.evidence, 4.6, 0.01, "half way to a trip");
      await bench.advance(5_000);
      near((await bench.source("a")).adaptive!.window!, 25, 1, "half of it after 5 s");
      await bench.advance(5_000);
      assert.equal((await bench.source("a")).adaptive?.window, 50);
      const plain = await open({ sources, breaker });
      await plain.attempts("a", "failure", 3);
      await plain.settle(await plain.probe("a"), "success");
      assert.equal((await plain.source("a")).adaptive?.window, 50);
    },
  },
];
