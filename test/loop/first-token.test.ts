import { describe, expect, it } from "vitest";
import { sampleCompletion } from "../../src/testing/sample-answers.js";
import type { ScriptedReply } from "../../src/testing/scripted-transport.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  noBreaker,
  readAll,
  type SimulationOptions,
  serverError,
} from "./harness.js";
import { type Scheduled, simulateScheduled } from "./scripted-governor.js";

const stop = new Error("the user pressed stop");
const outcomeOf = <T>(work: Promise<T>): Promise<unknown> => work.catch((error: unknown) => error);

/** Evidence of a first token that stays away (spec 10 §4). */
describe.each(GOVERNOR_KINDS)("first tokens (%s governor)", (kind) => {
  /** Overdue after 3 s, or as the grant says. */
  function simulate(
    reply: ScriptedReply | ((source: string, n: number) => ScriptedReply),
    setup: Omit<SimulationOptions, "governor" | "script"> = {},
    grant: { firstTokenDueMs?: number | null; probe?: boolean } = {},
  ): Scheduled {
    const script = typeof reply === "function" ? reply : () => reply;
    return simulateScheduled(
      kind,
      { grant: () => ({ firstTokenDueMs: 3_000, ...grant }) },
      { ...setup, script: ({ source }, n) => script(source.name, n) },
    );
  }

  const kinds = ({ heard }: Scheduled) => heard.verdicts.map((verdict) => [verdict.kind, verdict.atMs]);

  it("an overdue one is told at once, and taken back at once when it comes", async () => {
    const simulation = simulate({ firstTokenMs: 5_000, afterMs: 20_000 });
    const { kernel, client } = simulation;
    const call = client.chat(hi);
    await kernel.advance(10_000);
    expect(kinds(simulation)).toEqual([
      ["overdue", 3_000],
      ["overdue_reversed", 5_000],
    ]);
    expect(simulation.heard.verdicts[1]).toMatchObject({ ttftMs: 5_000, probe: false });
    await kernel.run(call);
    await expectNothingLeft(simulation);
  });

  it("one in time is no news: it rides with the settle, and the timer is gone", async () => {
    const simulation = simulate({ firstTokenMs: 2_999, afterMs: 8_000 });
    const { kernel, client } = simulation;
    const call = client.chat(hi);
    await kernel.advance(7_000);
    expect(simulation.heard.verdicts).toEqual([]);
    await kernel.run(call);
    expect(kinds(simulation)).toEqual([["first_token", 8_000]]);
  });

  it("an attempt that fails after its overdue tells nothing more; one that ends before is never overdue", async () => {
    const options = { retry: { maxAttempts: 1 }, breaker: noBreaker };
    const late = simulate({ afterMs: 4_000, error: serverError() }, { options });
    await failureOf(late.kernel, late.client.chat(hi));
    expect(kinds(late)).toEqual([["overdue", 3_000]]);
    const early = simulate({ afterMs: 2_000, error: serverError() }, { options });
    await failureOf(early.kernel, early.client.chat(hi));
    await early.kernel.advance(10_000);
    expect(early.heard.verdicts).toEqual([]);
    const left = simulate({ afterMs: 60_000 });
    const controller = new AbortController();
    const call = outcomeOf(left.client.chat({ ...hi, signal: controller.signal }));
    await left.kernel.advance(1_000);
    controller.abort(stop);
    expect(await left.kernel.run(call)).toBe(stop);
    await left.kernel.advance(10_000);
    expect(left.heard.verdicts).toEqual([]);
    await expectNothingLeft(left, controller.signal);
  });

  it("an answer that comes as a whole takes its overdue back before it is settled", async () => {
    // It marks no token of its own: the provider ignored that it was asked to stream.
    const simulation = simulateScheduled(
      kind,
      { grant: () => ({ firstTokenDueMs: 3_000 }) },
      {
        options: {
          transport: {
            async complete({ context }) {
              context.markSent();
              await context.runtime.sleep(4_000);
              return sampleCompletion({ latencyMs: 4_000 });
            },
            async close() {},
          },
        },
      },
    );
    await simulation.kernel.run(simulation.client.chat(hi));
    await simulation.kernel.advance(0);
    expect(kinds(simulation)).toEqual([
      ["overdue", 3_000],
      ["overdue_reversed", 4_000],
    ]);
  });

  it("nothing is expected of attempts that don't stream, nor before D_ft is known", async () => {
    const whole = simulate({ afterMs: 10_000 });
    await whole.kernel.run(whole.client.chat({ ...hi, stream: false }));
    expect(whole.heard.verdicts.map((verdict) => verdict.kind)).not.toContain("overdue");
    const source = simulate({ afterMs: 10_000 }, { sources: [{ stream: false }] });
    await source.kernel.run(source.client.chat(hi));
    expect(source.heard.verdicts.map((verdict) => verdict.kind)).not.toContain("overdue");
    const unknown = simulate({ afterMs: 10_000 }, {}, { firstTokenDueMs: null });
    await unknown.kernel.run(unknown.client.chat(hi));
    expect(unknown.heard.verdicts.map((verdict) => verdict.kind)).not.toContain("overdue");
  });

  it("stream() is watched too, whatever the source says about streaming", async () => {
    const simulation = simulate({ firstTokenMs: 4_000, afterMs: 5_000 }, { sources: [{ stream: false }] });
    await simulation.kernel.run(readAll(simulation.client.stream(hi)));
    expect(kinds(simulation)[0]).toEqual(["overdue", 3_000]);
  });

  it("a probe fails by it: the attempt is given up, not counted, and its time is refunded", async () => {
    const simulation = simulateScheduled(
      kind,
      { grant: (_, want) => ({ firstTokenDueMs: 3_000, probe: want.failedHere.length < 1 }) },
      {
        sources: [{}, {}],
        options: { retry: { maxAttempts: 2 }, breaker: noBreaker },
        script: (_, n) => (n === 1 ? {} : n === 2 ? { afterMs: 10, error: serverError() } : { afterMs: 10 }),
      },
    );
    const { kernel, client, heard, recorder } = simulation;
    // The probe and the failure after it leave a second counted attempt over.
    const reply = await kernel.run(client.chat(hi).catch((error: unknown) => error));
    expect(heard.settles[0]).toMatchObject({ probe: true, outcome: "failure", sent: true });
    expect(heard.verdicts.map((verdict) => verdict.kind)).not.toContain("overdue");
    expect(recorder.rows[0]).toMatchObject({ outcome: "transient", errorCode: "ttft_timeout", latencyMs: 3_000 });
    expect(recorder.rows[0]!.error).toContain("the probe had no first token after 3000 ms");
    expect(reply).toMatchObject({ attempts: 3 });
    await expectNothingLeft(simulation);
  });

  it("a probe's first token is its verdict, and nothing is given up after it", async () => {
    const simulation = simulate({ firstTokenMs: 2_000, afterMs: 30_000 }, {}, { probe: true });
    const { kernel, client } = simulation;
    await kernel.run(client.chat(hi));
    expect(kinds(simulation)).toEqual([["first_token", 2_000]]);
  });
});
