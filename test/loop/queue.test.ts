import { describe, expect, it } from "vitest";
import type { TickBatch } from "../../src/ports/governor.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { failingGovernor } from "./governors.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  type GovernorKind,
  hi,
  limited,
  noBreaker,
  patient,
  type SimulationOptions,
  serverError,
  settled,
  simulate as simulateAny,
  simulateOn,
  storeFor,
} from "./harness.js";

/** A governor of this kind for several clients, and its ticks. */
function shared(kind: GovernorKind, kernel: SimulationKernel, setup: SimulationOptions) {
  const store = storeFor(kernel, setup);
  const runtime = kernel.runtime();
  let ticks = 0;
  const governor =
    kind === "async"
      ? store.connect(runtime, { onTick: () => (ticks += 1) })
      : failingGovernor(store.inner, () => {
          ticks += 1;
          return null;
        });
  return { governor, runtime, ticks: () => ticks };
}

/** Queue order, priority and sharing (spec 02 §2, 12 answer 5). */
describe.each(GOVERNOR_KINDS)("the queue (%s governor)", (kind) => {
  const simulate = simulateOn(kind);

  it("is first come, first served", async () => {
    const { kernel, client } = simulate({ sources: [{ maxConcurrency: 1 }] });
    const order: number[] = [];
    await kernel.run(Promise.all(Array.from({ length: 30 }, (_, i) => client.chat(hi).then(() => order.push(i)))));
    expect(order).toEqual(Array.from({ length: 30 }, (_, i) => i));
  });

  it("a lower priority number goes first, whenever it came", async () => {
    const { kernel, client } = simulate({ sources: [{ maxConcurrency: 1 }] });
    const order: string[] = [];
    const call = (name: string, priority?: number) =>
      client.chat({ ...hi, ...(priority === undefined ? {} : { priority }) }).then(() => order.push(name));
    const calls = [call("holder"), call("late", 5), call("normal 1"), call("normal 2", 0)];
    await kernel.advance(10);
    calls.push(call("urgent", -1), call("late 2", 5), call("normal 3"));
    await kernel.run(Promise.all(calls));
    expect(order).toEqual(["holder", "urgent", "normal 1", "normal 2", "normal 3", "late", "late 2"]);
  });

  it("a call that a 429 sent back keeps its position", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ maxConcurrency: 1 }],
      script: (_, n) => (n === 1 ? { afterMs: 10, error: limited(1_000) } : { afterMs: 100 }),
    });
    const order: number[] = [];
    await kernel.run(Promise.all(Array.from({ length: 5 }, (_, i) => client.chat(hi).then(() => order.push(i)))));
    expect(order).toEqual([0, 1, 2, 3, 4]);
    expect(transport.sends[1]!.atMs).toBeGreaterThanOrEqual(1_010);
  });

  it("a call that failed keeps its position through the backoff", async () => {
    const { kernel, client } = simulate({
      sources: [{ maxConcurrency: 1 }],
      options: { breaker: noBreaker, retry: { backoffBaseMs: 100, backoffMaxMs: 200 } },
      script: (_, n) => (n === 1 ? { afterMs: 10, error: serverError() } : { afterMs: 1_000 }),
    });
    const order: number[] = [];
    await kernel.run(Promise.all(Array.from({ length: 4 }, (_, i) => client.chat(hi).then(() => order.push(i)))));
    expect(order).toEqual([1, 0, 2, 3]);
  });

  it("a want that can't be placed doesn't block later ones with other candidates", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ ...patient, model: "full", maxConcurrency: 1 }, { model: "free" }],
      script: ({ source }) => ({ afterMs: source.model === "full" ? 60_000 : 10 }),
    });
    const holder = client.chat({ ...hi, model: "full" });
    const stuck = Array.from({ length: 5 }, () => client.chat({ ...hi, model: "full", deadlineMs: 30_000 }));
    const free = Array.from({ length: 5 }, () => client.chat({ ...hi, model: "free" }));
    await kernel.run(Promise.all(free));
    expect(kernel.now()).toBe(10);
    expect((await kernel.run(settled(stuck))).every((end) => end.status === "rejected")).toBe(true);
    await kernel.run(holder);
    expect(transport.sends).toHaveLength(6);
  });

  it("a large call is not overtaken by small ones for ever", async () => {
    const sent: string[] = [];
    const { kernel, client } = simulate({
      sources: [{ limitRule: "window", tpm: 3_000 }],
      script: ({ request }) => {
        sent.push(String(request.sessionId));
        return { afterMs: 10, totalTokens: 1_000 };
      },
    });
    const call = (sessionId: string, maxTokens: number, n = 1) =>
      client.chat({ ...hi, sessionId, sampling: { maxTokens, n } });
    await kernel.run(Promise.all([call("first", 1_000), call("second", 1_000)]));
    const rest = [call("large", 1_000, 2)];
    for (let i = 0; i < 5; i += 1) rest.push(call(`small ${i}`, 10));
    await kernel.run(Promise.all(rest));
    expect(sent.slice(0, 3)).toEqual(["first", "second", "large"]);
  });

  it("a large call that a 429 sent back is not overtaken by small ones that came after it", async () => {
    const sent: string[] = [];
    const { kernel, client } = simulate({
      sources: [{ limitRule: "window", tpm: 3_000 }],
      script: ({ request }, n) => {
        sent.push(String(request.sessionId));
        return n === 1 ? { afterMs: 10, error: limited(1_000) } : { afterMs: 50_000, totalTokens: 1_000 };
      },
    });
    const call = (sessionId: string, n = 1) =>
      client.chat({ ...hi, sessionId, sampling: { maxTokens: sessionId === "small" ? 10 : 900, n }, stream: false });
    const calls = [call("large", 2)];
    await kernel.advance(5);
    calls.push(call("middle"));
    await kernel.advance(2_000);
    // The cooldown is over; the rest of the minute is too small for the large one, not for the small ones.
    for (let i = 0; i < 3; i += 1) calls.push(call("small"));
    await kernel.run(Promise.all(calls));
    expect(sent).toEqual(["large", "middle", "large", "small", "small", "small"]);
  });

  it("a governor may serve later calls first, and sees how often it has passed somebody over", async () => {
    const kernel = new SimulationKernel();
    const setup = { sources: [{ maxConcurrency: 1 }] };
    const { governor, runtime } = shared(kind, kernel, setup);
    const order: number[] = [];
    let mostWants = 0;
    // Serves the newest it is shown, unless an old one has been passed over too often.
    const newestFirst = {
      ...governor,
      tick(batch: TickBatch) {
        mostWants = Math.max(mostWants, batch.wants.length);
        const due = batch.wants.filter((want) => (want.skips ?? 0) >= 24);
        return governor.tick({ ...batch, wants: [...due, ...batch.wants.filter((w) => !due.includes(w)).reverse()] });
      },
    };
    const simulation = simulateAny({ kernel, ...setup, options: { governor: newestFirst, runtime } });
    const calls = Array.from({ length: 80 }, (_, i) => simulation.client.chat(hi).then(() => order.push(i)));
    await kernel.run(Promise.all(calls));
    expect(mostWants).toBe(kind === "sync" ? 8 : 32);
    expect(new Set(order).size).toBe(80);
    expect(order[1]).toBe(mostWants);
    // The one that waited longest had 24 after it served before it, and those that were as old as it.
    expect(order.indexOf(1)).toBeGreaterThanOrEqual(24);
    expect(order.indexOf(1)).toBeLessThanOrEqual(24 + 2);
    await expectNothingLeft(simulation);
  });

  it("no polling storm: about two ticks a call however many wait, and none while nothing changes", async () => {
    const kernel = new SimulationKernel();
    const setup = { sources: [{ maxConcurrency: 4 }] };
    const { governor, runtime, ticks } = shared(kind, kernel, setup);
    const { client } = simulateAny({
      kernel,
      ...setup,
      options: { governor, runtime },
      script: () => ({ afterMs: 20_000 }),
    });
    const calls = Array.from({ length: 200 }, () => client.chat({ ...hi, stream: false }));
    await kernel.advance(5_000);
    const idle = ticks();
    await kernel.advance(4_000);
    expect(ticks()).toBe(idle);
    await kernel.run(Promise.all(calls));
    const renewals = 50 * 2;
    expect(ticks()).toBeLessThanOrEqual(2.2 * 200 + 2 * renewals);
  });

  it("without waiting calls a call needs two ticks", async () => {
    const kernel = new SimulationKernel();
    const { governor, runtime, ticks } = shared(kind, kernel, {});
    const { client } = simulateAny({ kernel, options: { governor, runtime } });
    for (let i = 0; i < 20; i += 1) await kernel.run(client.chat(hi));
    await kernel.advance(0);
    expect(ticks()).toBeLessThanOrEqual(2.2 * 20);
  });

  it("clients of one governor share its limits and its order", async () => {
    const kernel = new SimulationKernel();
    const setup = { sources: [{ maxConcurrency: 2 }] };
    const { governor, runtime } = shared(kind, kernel, setup);
    const order: string[] = [];
    let inflight = 0;
    let most = 0;
    const clients = ["a", "b", "c"].map((name) => {
      const { client } = simulateAny({
        kernel,
        ...setup,
        options: { governor, runtime },
        script: ({ context }) => {
          inflight += 1;
          most = Math.max(most, inflight);
          kernel.runtime().setTimer(100, () => (inflight -= 1));
          expect(context.aborted).toBe(false);
          return { afterMs: 100.5 };
        },
      });
      return { name, client };
    });
    const calls = [];
    for (let i = 0; i < 5; i += 1) {
      for (const { name, client } of clients) calls.push(client.chat(hi).then(() => order.push(`${name}${i}`)));
    }
    await kernel.run(Promise.all(calls));
    expect(most).toBe(2);
    const rounds = Array.from({ length: 5 }, (_, i) => ["a", "b", "c"].map((name) => `${name}${i}`)).flat();
    // Two go at a time; within a pair the seed decides.
    expect(order.map((name) => Math.floor(rounds.indexOf(name) / 2))).toEqual(rounds.map((_, i) => Math.floor(i / 2)));
  });

  it("closing one client leaves the other alive, also while it waits", async () => {
    const kernel = new SimulationKernel();
    const setup = { sources: [{ maxConcurrency: 1 }] };
    const { governor, runtime } = shared(kind, kernel, setup);
    const first = simulateAny({ kernel, ...setup, options: { governor, runtime } });
    const second = simulateAny({ kernel, ...setup, options: { governor, runtime } });
    const mine = first.client.chat(hi);
    const theirs = [second.client.chat(hi), second.client.chat(hi)];
    await kernel.run(first.client.close());
    expect((await kernel.run(mine)).content).toBe("answer");
    expect(await kernel.run(Promise.all(theirs))).toHaveLength(2);
    expect((await kernel.run(second.client.chat(hi))).content).toBe("answer");
    await kernel.run(second.client.close());
    await kernel.advance(0);
    expect(kernel.pendingTimers()).toBe(0);
    // Both gone: a later client of the same governor starts afresh.
    const third = simulateAny({ kernel, ...setup, options: { governor, runtime } });
    expect((await kernel.run(third.client.chat(hi))).content).toBe("answer");
  });

  it("snapshot() tells how many wait, how long the oldest has, and what is used", async () => {
    const simulation = simulate({ sources: [{ maxConcurrency: 2, rpm: 600 }], script: () => ({ afterMs: 10_000 }) });
    const { kernel, client } = simulation;
    const calls = [client.chat(hi), client.chat(hi), client.chat(hi)];
    await kernel.advance(1_000);
    calls.push(client.chat(hi));
    await kernel.advance(500);
    const snapshot = await kernel.run(client.snapshot());
    expect(snapshot).toMatchObject({
      scope: "LLM",
      waiting: { count: 2, oldestMs: 1_500, reasons: { concurrency: 2 }, byPriority: { 0: 2 } },
      leases: { live: 2, lost: 0 },
      backend: { kind: "memory", ok: true },
    });
    expect(snapshot.sources[0]).toMatchObject({
      name: "s_1",
      state: "closed",
      inflight: 2,
      maxConcurrency: 2,
      coolingMs: 0,
    });
    await kernel.run(Promise.all(calls));
    await expectNothingLeft(simulation);
  });

  it("fail_fast never waits for a gate, not even behind others, and a free slot is still taken", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ maxConcurrency: 2 }],
      options: { backpressure: { quotaFull: "fail_fast" } },
      script: () => ({ afterMs: 1_000 }),
    });
    const ends = settled(Array.from({ length: 10 }, () => client.chat(hi)));
    await kernel.advance(0);
    const results = await kernel.run(ends);
    expect(results.filter((end) => end.status === "fulfilled")).toHaveLength(2);
    expect(transport.sends).toHaveLength(2);
    for (const end of results) {
      if (end.status === "rejected") expect(end.reason).toMatchObject({ reason: "quota_exhausted" });
    }
  });

  it("fail_fast and a cooldown: told at once with the Retry-After", async () => {
    const { kernel, client } = simulate({
      options: { backpressure: { quotaFull: "fail_fast" } },
      script: () => ({ afterMs: 0, error: limited(30_000) }),
    });
    const error = await failureOf(kernel, client.chat(hi));
    expect(error).toMatchObject({
      reason: "quota_exhausted",
      retryAfterMs: 30_000,
      perSourceReasons: { s_1: { reason: "cooling" } },
      cause: { code: "rate_limit" },
    });
  });

  it("a source of a higher tier is used only when no lower one has a free slot", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ priority: 1 }, { priority: 0, maxConcurrency: 2 }],
      script: () => ({ afterMs: 1_000 }),
    });
    await kernel.run(Promise.all(Array.from({ length: 4 }, () => client.chat(hi))));
    expect(transport.sends.map((send) => send.source)).toEqual(["s_2", "s_2", "s_1", "s_1"]);
  });

  it("round_robin takes turns by weight", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ weight: 2 }, { weight: 1 }],
      options: { selector: "round_robin" },
      script: () => ({ afterMs: 10 }),
    });
    for (let i = 0; i < 30; i += 1) await kernel.run(client.chat(hi));
    expect(transport.sends.filter((send) => send.source === "s_1")).toHaveLength(20);
  });

  it("least inflight compares the used fraction of each capacity", async () => {
    const { kernel, client, transport } = simulate({
      sources: [{ maxConcurrency: 8 }, { maxConcurrency: 2 }],
      script: () => ({ afterMs: 1_000 }),
    });
    await kernel.run(Promise.all(Array.from({ length: 5 }, () => client.chat(hi))));
    expect(transport.sends.filter((send) => send.source === "s_1")).toHaveLength(4);
  });
});
