import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PolyGatewayError } from "../../src/errors.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import type { ScriptedReply } from "../../src/testing/scripted-transport.js";
import {
  deadKey,
  expectNothingLeft,
  GOVERNOR_KINDS,
  hi,
  limited,
  readAll,
  rejected,
  serverError,
  settled,
} from "./harness.js";
import { simulateScheduled } from "./scripted-governor.js";

const stop = new Error("the user pressed stop");

const reply: fc.Arbitrary<ScriptedReply> = fc.oneof(
  fc.record({ firstTokenMs: fc.integer({ min: 0, max: 3_000 }), afterMs: fc.integer({ min: 0, max: 4_000 }) }),
  fc.constant({}),
  fc.record({
    afterMs: fc.integer({ min: 0, max: 3_000 }),
    firstTokenMs: fc.integer({ min: 0, max: 3_000 }),
    error: fc.constantFrom(serverError(), limited(200), limited(), deadKey(500), rejected()),
  }),
);

const grant = fc.record({
  startInMs: fc.constantFrom(0, 0, 1, 300),
  firstTokenDueMs: fc.constantFrom(null, 400, 1_500),
  hedgeAfterMs: fc.constantFrom(null, 0, 300, 1_000),
});

const news = fc.record({
  atMs: fc.integer({ min: 0, max: 5_000 }),
  type: fc.constantFrom("state" as const, "cooling" as const, "capacity" as const),
  source: fc.constantFrom("s_1", "s_2", "s_3"),
  evacuateAfterMs: fc.constantFrom(undefined, 0, 500),
});

const call = fc.record({
  atMs: fc.integer({ min: 0, max: 3_000 }),
  streams: fc.boolean(),
  hedge: fc.boolean(),
  deadlineMs: fc.constantFrom(undefined, 500, 2_000),
  leavesAfterMs: fc.constantFrom(undefined, undefined, 100, 1_200),
});

const world = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  replies: fc.array(reply, { minLength: 1, maxLength: 12 }),
  grants: fc.array(grant, { minLength: 1, maxLength: 12 }),
  news: fc.array(news, { maxLength: 8 }),
  calls: fc.array(call, { minLength: 1, maxLength: 6 }),
  refuses: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
});

/** Whatever is granted ahead, overdue, hedged, evacuated, refused or left, in any order. */
describe.each(GOVERNOR_KINDS)("scheduling (%s governor)", (kind) => {
  it("every permit goes back once, every call ends once with one final row, and nothing is left", async () => {
    await fc.assert(
      fc.asyncProperty(world, async ({ seed, replies, grants, news: events, calls, refuses }) => {
        const kernel = new SimulationKernel({ seed });
        let granted = 0;
        let asked = 0;
        const simulation = simulateScheduled(
          kind,
          {
            grant: () => grants[granted++ % grants.length]!,
            refuse: () =>
              refuses[asked++ % refuses.length]! && asked % 3 === 0 ? { kind: "fairness", waitHintMs: 50 } : null,
          },
          {
            kernel,
            sources: [{ maxConcurrency: 2 }, { maxConcurrency: 3 }, {}].map((source) => ({
              ...source,
              timeoutMs: 5_000,
              ttftTimeoutMs: 2_500,
              interTokenTimeoutMs: 2_500,
            })),
            options: {
              retry: { maxAttempts: 3, backoffBaseMs: 60, maxRateLimited: 4 },
              backpressure: { stallWindowMs: 10_000, whenOpen: "wait" },
            },
            script: (_, n) => replies[n % replies.length]!,
          },
        );
        const { client, heard, emit, recorder } = simulation;
        const timers = kernel.runtime();
        for (const { atMs, ...event } of events) {
          const told = event.evacuateAfterMs === undefined ? { type: event.type, source: event.source } : event;
          timers.setTimer(atMs, () => emit(told as Parameters<typeof emit>[0]));
        }
        const signals: AbortSignal[] = [];
        const work = calls.map(async ({ atMs, streams, hedge, deadlineMs, leavesAfterMs }) => {
          await timers.sleep(atMs);
          const controller = new AbortController();
          signals.push(controller.signal);
          if (leavesAfterMs !== undefined) timers.setTimer(leavesAfterMs, () => controller.abort(stop));
          const request = {
            ...hi,
            hedge,
            signal: controller.signal,
            ...(deadlineMs === undefined ? {} : { deadlineMs }),
          };
          if (!streams) return client.chat(request);
          const stream = client.stream(request);
          const events = await readAll(stream);
          // One attempt is heard, however many were sent.
          expect(events.filter((event) => event.type === "text-delta")).toHaveLength(1);
          return stream.final;
        });
        const ends = await kernel.run(settled(work));
        await kernel.advance(20_000);
        for (const end of ends) {
          if (end.status === "fulfilled" || end.reason === stop) continue;
          expect(PolyGatewayError.isInstance(end.reason), String(end.reason)).toBe(true);
        }
        const ids = heard.grants.map((one) => one.leaseId).sort();
        expect(heard.settles.map((one) => one.leaseId).sort()).toEqual(ids);
        const finals = recorder.rows.filter((row) => row.final).map((row) => row.requestId);
        expect(new Set(finals).size).toBe(finals.length);
        expect(finals).toHaveLength(calls.length);
        await expectNothingLeft(simulation, ...signals);
      }),
      { numRuns: 300 },
    );
  });
});
