import { describe, expect, it, test } from "vitest";
import { MemoryGovernor } from "../src/backends/memory/governor.js";
import { SCHEDULING_DEFAULTS, SCHEDULING_OFF, type SchedulingConfig } from "../src/domain/scope.js";
import type { SourceConfig } from "../src/domain/source.js";
import type { GovernorEvent, Grant, Want } from "../src/ports/governor.js";
import { GovernorBench, isRefusal, settleOf, sourceConfig } from "../src/testing/contracts/governor/bench.js";
import { SimulationKernel } from "../src/testing/kernel.js";
import { hi, simulate } from "./loop/harness.js";

/** Each adaptive rule of spec 10 by its name: a decision that it changes, and that is the plain one when it is off. */

type Name = keyof SchedulingConfig;

interface Switch {
  /** The value that switches it on. */
  readonly on: SchedulingConfig[Name];
  readonly decide: (scheduling: SchedulingConfig) => Promise<unknown>;
}

interface Setup {
  readonly scheduling: SchedulingConfig;
  readonly sources?: readonly SourceConfig[];
  readonly prices?: Readonly<Record<string, number>>;
}

const UNTRIPPED = { failThreshold: 1_000, minSamples: 1_000 };

function open({ scheduling, sources = [sourceConfig("a")], prices }: Setup, breaker = UNTRIPPED): GovernorBench {
  const kernel = new SimulationKernel();
  const runtime = kernel.runtime();
  const governor = new MemoryGovernor({
    scope: "SWITCHES",
    sources,
    scheduling,
    breaker,
    prices: prices ?? {},
    runtime,
  });
  return new GovernorBench({
    governor,
    advance: (ms) => kernel.advance(ms),
    now: () => runtime.wallNow(),
    close: () => governor.close(),
  });
}

const FAST = { ttftMs: 1_000, tpotMs: 10, outTokens: 100, durationMs: 2_000 };

async function asWorker(bench: GovernorBench, worker: string, ...wants: Want[]): Promise<(Grant | undefined)[]> {
  const { grants } = await bench.tick({ worker, wants });
  return wants.map(({ leaseId }) => grants.find((grant) => grant.leaseId === leaseId));
}

/** How the source is told to be left when it trips. */
async function evacuation(scheduling: SchedulingConfig): Promise<unknown> {
  const bench = open({ scheduling }, { failThreshold: 3, minSamples: 1_000 });
  const events: GovernorEvent[] = [];
  bench.governor.onEvent((event) => events.push(event));
  await bench.attempts("a", "failure", 3);
  return events.some(({ evacuateAfterMs }) => evacuateAfterMs !== undefined);
}

async function secondSource(options: object, requests: readonly object[], slow: boolean): Promise<unknown> {
  const simulation = simulate({
    sources: [{ maxConcurrency: 50 }, { maxConcurrency: 50 }],
    options: { selector: "least_inflight", ...options },
    script: (_, send) => (slow && send === 11 ? { afterMs: 50_000 } : { firstTokenMs: 100, afterMs: 200 }),
  });
  const { kernel, client, transport } = simulation;
  for (let warm = 0; slow && warm < 10; warm += 1) await kernel.run(client.chat(hi));
  for (const request of requests) await kernel.run(client.chat({ ...hi, ...request }));
  return transport.sends.map(({ source }) => source);
}

const SWITCHES: Readonly<Record<Name, Switch>> = {
  prefetchMs: {
    on: 1_000,
    async decide(scheduling) {
      const bench = open({ scheduling, sources: [sourceConfig("a", { rpm: 600, maxConcurrency: 100 })] });
      const { grants } = await bench.fill("a");
      return grants.some(({ startInMs }) => startInMs > 0);
    },
  },
  pacer: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling });
      let granted = 0;
      for (let n = 0; n < 20; n += 1) if (!isRefusal(await bench.want("a"))) granted += 1;
      return granted;
    },
  },
  headers: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling });
      await bench.attempt("a", "success", { limits: { limitRequests: 60 } });
      return (await bench.source("a")).adaptive?.learnedRpm;
    },
  },
  evidence: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling });
      await bench.attempts("a", "failure", 4);
      return (await bench.source("a")).state;
    },
  },
  overdue: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling });
      await bench.attempt("a", "success", FAST);
      return (await bench.granted("a")).firstTokenDueMs;
    },
  },
  evacuate: { on: true, decide: evacuation },
  ramp: {
    on: true,
    async decide(scheduling) {
      const bench = open(
        { scheduling, sources: [sourceConfig("a", { maxConcurrency: 50 })] },
        { failThreshold: 3, minSamples: 1_000 },
      );
      await bench.attempts("a", "failure", 3);
      await bench.settle(await bench.probe("a"), "success");
      return (await bench.fill("a")).grants.length;
    },
  },
  sizeMatching: {
    on: true,
    async decide(scheduling) {
      const sources = [
        sourceConfig("heavy", { rpm: 60, tpm: 600_000, maxConcurrency: 2 }),
        sourceConfig("light", { rpm: 600, tpm: 60_000, maxConcurrency: 2 }),
      ];
      const bench = open({ scheduling, sources });
      // What calls usually weigh has to be known first.
      for (const estTokens of [1_000, 1_000])
        await bench.settle(await bench.granted("heavy", { estTokens }), "success");
      await bench.advance(10_000);
      const wants = [50, 5_000, 60, 6_000].map((estTokens) => bench.newWant("heavy", { estTokens }));
      return (await asWorker(bench, "contract:1:a", ...wants)).map((grant) => grant !== undefined);
    },
  },
  fairness: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling, sources: [sourceConfig("a", { maxConcurrency: 1 })] });
      const [held] = await asWorker(bench, "one", bench.newWant("a"));
      await asWorker(bench, "urgent", bench.newWant("a", { priority: -1 }));
      await bench.tick({ worker: "one", settles: [settleOf(held!, "success")] });
      return (await asWorker(bench, "one", bench.newWant("a")))[0] !== undefined;
    },
  },
  retryBudget: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling, sources: [sourceConfig("a", { maxConcurrency: 100 })] });
      let granted = 0;
      for (let n = 0; n < 30; n += 1) if (!isRefusal(await bench.want("a", { retry: true }))) granted += 1;
      return granted;
    },
  },
  hedge: {
    on: true,
    decide: (scheduling) => secondSource({ scheduling }, [{}], true),
  },
  deadlineRefusal: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling });
      for (let n = 0; n < 20; n += 1) await bench.attempt("a", "success", { ...FAST, durationMs: 8_000 });
      const answer = await bench.want("a", { remainingMs: 3_000 });
      return isRefusal(answer) ? answer.kind : "granted";
    },
  },
  learnTokens: {
    on: true,
    async decide(scheduling) {
      const bench = open({ scheduling, sources: [sourceConfig("a", { tpm: 1_000_000 })] });
      const want = { promptTokens: 1_000, estTokens: 2_024 };
      for (let n = 0; n < 20; n += 1) {
        await bench.settle(await bench.granted("a", want), "success", { inTokens: 1_200, outTokens: 100 });
        await bench.advance(2_000);
      }
      return (await bench.granted("a", want)).reservedTokens;
    },
  },
  affinity: {
    on: true,
    decide: (scheduling) =>
      secondSource({ scheduling }, [{ sessionId: "s" }, { sessionId: "s" }, { sessionId: "s" }], false),
  },
  priceWeight: {
    on: 1,
    async decide(scheduling) {
      const sources = [sourceConfig("dear", { maxConcurrency: 50 }), sourceConfig("cheap", { maxConcurrency: 50 })];
      const bench = open({ scheduling, sources, prices: { dear: 5, cheap: 1 } });
      const taken = [];
      for (let n = 0; n < 10; n += 1) taken.push((await bench.granted(["dear", "cheap"])).source);
      return taken.includes("dear");
    },
  },
};

const NAMES = Object.keys(SWITCHES) as Name[];
const withRule = (base: SchedulingConfig, name: Name, value: unknown): SchedulingConfig => ({ ...base, [name]: value });

test("every rule that can be switched has its row", () => {
  expect([...NAMES].sort()).toEqual(Object.keys(SCHEDULING_DEFAULTS).sort());
  expect(Object.keys(SCHEDULING_OFF).sort()).toEqual(Object.keys(SCHEDULING_DEFAULTS).sort());
});

describe.each(NAMES)("%s", (name) => {
  const { on, decide } = SWITCHES[name];

  it("changes a decision by itself", async () => {
    expect(await decide(withRule(SCHEDULING_OFF, name, on))).not.toEqual(await decide(SCHEDULING_OFF));
  });

  it("switched off among all the others, brings the plain decision back", async () => {
    const all = { ...SCHEDULING_DEFAULTS, [name]: on };
    const plain = await decide(SCHEDULING_OFF);
    expect(await decide(all)).not.toEqual(plain);
    expect(await decide(withRule(all, name, SCHEDULING_OFF[name]))).toEqual(plain);
  });
});
