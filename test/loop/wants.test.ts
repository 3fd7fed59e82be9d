import { describe, expect, it } from "vitest";
import { MemoryGovernor } from "../../src/backends/memory/governor.js";
import { createChatClient } from "../../src/clients/chat.js";
import { resolveScope } from "../../src/config/resolve.js";
import { SCHEDULING_DEFAULTS, type SchedulingConfig } from "../../src/domain/scope.js";
import { RequestRejectedError, ResultInvalidError, TransientError } from "../../src/errors.js";
import { Affinity } from "../../src/governance/affinity.js";
import { Dispatcher } from "../../src/governance/dispatcher.js";
import type { Refusal, Want } from "../../src/ports/governor.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { createScriptedTransport, type Script, type ScriptedReply } from "../../src/testing/scripted-transport.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  limited,
  noBreaker,
  type SimulationOptions,
  serverError,
  sourceOptions,
} from "./harness.js";
import { type Scheduled, simulateScheduled } from "./scripted-governor.js";

const outcomeOf = <T>(work: Promise<T>): Promise<unknown> => work.catch((error: unknown) => error);

/** What a call tells the governor beside its candidates (spec 10). */
describe.each(GOVERNOR_KINDS)("what the governor is told (%s governor)", (kind) => {
  type Setup = Omit<SimulationOptions, "governor">;
  const simulate = (
    setup: Setup = {},
    refuse: (want: Want) => Pick<Refusal, "kind" | "waitHintMs"> | null = () => null,
  ) => simulateScheduled(kind, { refuse }, { ...setup, options: { breaker: noBreaker, ...setup.options } });
  const answering = (...replies: ScriptedReply[]): { script: Script } => ({
    script: (_, n) => replies[Math.min(n, replies.length) - 1]!,
  });

  describe("wants", () => {
    it("carry prompt, limit of the answer and tag; without a deadline nothing of one", async () => {
      const { kernel, client, heard } = simulate();
      await kernel.run(client.chat({ ...hi, sampling: { maxTokens: 300, n: 2 } }));
      await kernel.run(client.chat({ ...hi, tag: "summaries" }));
      const [first, second] = heard.wants;
      expect(first).toMatchObject({ maxTokens: 600, tag: "chat", retry: false, hedge: false });
      expect(first!.promptTokens).toBeGreaterThan(0);
      expect(first!.remainingMs).toBeUndefined();
      expect(second).toMatchObject({ tag: "summaries" });
      expect(second!.maxTokens).toBeUndefined();
    });

    it("a tag must be a text of ordinary length, hedge a yes or no; neither is part of what makes two requests the same", async () => {
      const { kernel, client, transport } = simulate({ options: { cache: { backend: "memory" } } });
      for (const wrong of [{ tag: 1 }, { tag: "t".repeat(1_001) }, { hedge: "yes" }]) {
        const error = await failureOf(kernel, client.chat({ ...hi, ...(wrong as object) }));
        expect(error).toBeInstanceOf(RequestRejectedError);
      }
      await kernel.run(client.chat({ ...hi, tag: "a" }));
      expect(await kernel.run(client.chat({ ...hi, tag: "b", hedge: true }))).toMatchObject({ cacheHit: true });
      expect(transport.sends).toHaveLength(1);
    });

    it("tell what is left of the deadline whenever they are asked", async () => {
      const { kernel, client, heard } = simulate({ sources: [{ maxConcurrency: 1 }], ...answering({ afterMs: 400 }) });
      const calls = [client.chat(hi), client.chat({ ...hi, deadlineMs: 1_000 })];
      await kernel.run(Promise.all(calls));
      const asked = heard.wants.filter((want) => want.remainingMs !== undefined);
      expect(asked[0]!.remainingMs).toBe(1_000);
      expect(asked.at(-1)!.remainingMs).toBe(600);
    });

    it("a retry is one after a counted failure, once; after a rate limit it is none", async () => {
      const replies = [{ afterMs: 1, error: serverError() }, { afterMs: 1, error: limited(10) }, { afterMs: 1 }];
      const { kernel, client, heard } = simulate({ sources: [{}, {}, {}], ...answering(...replies) });
      await kernel.run(client.chat(hi));
      expect(heard.wants.map((want) => want.retry)).toEqual([false, true, false]);
    });

    it("a retry that is refused for the budget waits, and holds up nobody who is none", async () => {
      let isEmpty = true;
      const simulation = simulate(answering({ afterMs: 1, error: serverError() }, { afterMs: 10 }), (want) =>
        isEmpty && want.retry === true ? { kind: "fairness", waitHintMs: 500 } : null,
      );
      const { kernel, client, transport } = simulation;
      const retrying = client.chat(hi);
      await kernel.advance(2_000);
      await kernel.run(client.chat(hi));
      expect(transport.sends.map((send) => Math.floor(send.atMs))).toEqual([0, 2_000]);
      isEmpty = false;
      expect(await kernel.run(retrying)).toMatchObject({ attempts: 2 });
      await expectNothingLeft(simulation);
    });
  });

  describe("refusals", () => {
    it("for fairness: even a call with fail_fast waits, until its patience ends", async () => {
      const impatient = { quotaFull: "fail_fast", whenOpen: "fail", stallWindowMs: 60_000 } as const;
      let refusals = 3;
      const simulation = simulate({ options: { backpressure: impatient } }, () =>
        refusals-- > 0 ? { kind: "fairness", waitHintMs: 100 } : null,
      );
      expect(await simulation.kernel.run(simulation.client.chat(hi))).toMatchObject({ attempts: 1 });
      expect(simulation.transport.sends[0]!.atMs).toBe(300);

      const never = simulate({ options: { backpressure: impatient } }, () => ({
        kind: "fairness",
        waitHintMs: 90_000,
      }));
      const error = await failureOf(never.kernel, never.client.chat(hi));
      expect(error).toMatchObject({ reason: "quota_exhausted", retryAfterMs: 90_000 });
      expect((error as Error).message).toContain("it is not this call's turn before 90000 ms");
    });

    it("for the deadline: the call ends at once, and says what is left", async () => {
      const simulation = simulate({}, (want) =>
        want.remainingMs! < 5_000 ? { kind: "deadline", waitHintMs: 0 } : null,
      );
      const { kernel, client, transport, recorder } = simulation;
      const error = await failureOf(kernel, client.chat({ ...hi, deadlineMs: 4_000 }));
      expect(error).toMatchObject({ reason: "deadline_exceeded", retryAfterMs: 0 });
      expect((error as Error).message).toContain("no source is expected to answer within the 4000 ms that are left");
      expect(kernel.runtime().now()).toBe(0);
      expect(transport.sends).toHaveLength(0);
      expect(recorder.rows).toMatchObject([{ outcome: "unavailable", final: true }]);
      await expectNothingLeft(simulation);
    });
  });

  describe("settles", () => {
    async function settleOf({ kernel, heard }: Scheduled, work: Promise<unknown>) {
      await kernel.run(outcomeOf(work));
      await kernel.advance(0);
      return heard.settles.at(-1)!;
    }

    it("of a success carry measured tokens, the time per token and the limits of the headers", async () => {
      const limits = { limitRequests: 60, remainingTokens: 900 };
      const reply = { firstTokenMs: 500, afterMs: 1_000, totalTokens: 60, limits };
      const simulation = simulate(answering(reply));
      const settle = await settleOf(simulation, simulation.client.chat(hi));
      expect(settle).toMatchObject({ inTokens: 10, outTokens: 50, tpotMs: 10, limits, durationMs: 1_000 });
      const whole = simulate(answering({ afterMs: 1_000, totalTokens: 60 }));
      expect(await settleOf(whole, whole.client.chat({ ...hi, stream: false }))).toMatchObject({ tpotMs: 20 });
    });

    it("carry no estimates, and no time of an answer without tokens", async () => {
      const guessed = simulate(answering({ firstTokenMs: 500, afterMs: 1_000, withoutUsage: true }));
      const settle = await settleOf(guessed, guessed.client.chat(hi));
      expect(settle.actualTokens).toBeGreaterThan(0);
      expect(settle).toMatchObject({ inTokens: undefined, outTokens: undefined, tpotMs: undefined });
      const silent = simulate(answering({ afterMs: 1_000, totalTokens: 10 }));
      expect(await settleOf(silent, silent.client.chat(hi))).toMatchObject({ outTokens: 0, tpotMs: undefined });
    });

    it("of an answer that is judged for long carry the same as of any other", async () => {
      const schema = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: async (value: unknown) => {
            await simulation.kernel.runtime().sleep(3_000);
            return { value };
          },
        },
      };
      const reply = { firstTokenMs: 500, afterMs: 1_000, totalTokens: 60, content: "{}", limits: { limitTokens: 5 } };
      const simulation = simulate(answering(reply));
      const call = simulation.client.structured(hi, schema as never, { jsonSchema: { type: "object" } });
      const settle = await settleOf(simulation, call);
      expect(settle).toMatchObject({ inTokens: 10, outTokens: 50, tpotMs: 10, limits: { limitTokens: 5 } });
      // The permit came back while the schema was still at work.
      expect(settle.durationMs).toBeLessThan(1_100);
    });

    it.each(["requests", "tokens", "concurrency", undefined, "weather"])(
      "of a rate limit name what was limited (%s) and the limits that were told",
      async (limitedBy) => {
        const limits = { remainingRequests: 0 };
        const error = new TransientError("429", { rateLimited: true, statusCode: 429, details: { limitedBy, limits } });
        const options = { retry: { maxAttempts: 1 } };
        const simulation = simulate({ ...answering({ afterMs: 1, error }), options });
        const settle = await settleOf(simulation, simulation.client.chat(hi));
        const known = limitedBy === undefined || limitedBy === "weather" ? "unknown" : limitedBy;
        expect(settle).toMatchObject({ outcome: "alive", rateLimited: known, limits });
      },
    );

    it("of a useless but whole answer teach its length; of a failure nothing of the kind", async () => {
      const usage = { ...measured, source: "measured" as const };
      const partial = { content: "x", thinking: "", toolCalls: [], usage };
      const useless = new ResultInvalidError("useless", { code: "schema", statusCode: 200, partial });
      const invalid = simulate(answering({ afterMs: 1, error: useless }));
      const taught = await settleOf(invalid, invalid.client.chat(hi));
      expect(taught).toMatchObject({ outcome: "success", inTokens: 7, outTokens: 5 });
      const cut = new TransientError("cut", { code: "truncated", partial });
      const failed = simulate({ ...answering({ afterMs: 1, error: cut }), options: { retry: { maxAttempts: 1 } } });
      const untaught = await settleOf(failed, failed.client.chat(hi));
      expect(untaught).toMatchObject({ outcome: "failure", actualTokens: 12, inTokens: undefined });
    });
  });

  it("an overdue token is no progress: who waits behind it is not held longer", async () => {
    const times = { ttftTimeoutMs: 3_500, timeoutMs: 900_000, interTokenTimeoutMs: 3_500 };
    const simulation = simulateScheduled(
      kind,
      { grant: () => ({ firstTokenDueMs: 3_000, startInMs: 100 }) },
      {
        sources: [{ ...times, maxConcurrency: 1, stream: true }],
        options: { backpressure: { stallWindowMs: 3_500 } },
        script: () => ({}),
      },
    );
    const { kernel, client } = simulation;
    void outcomeOf(client.chat({ ...hi, deadlineMs: 3_900 }));
    const waiting = outcomeOf(client.chat(hi));
    expect(await kernel.run(waiting)).toMatchObject({ reason: "stalled" });
    expect(kernel.runtime().now()).toBe(3_500);
  });
});

const measured = {
  promptTokens: 7,
  completionTokens: 5,
  totalTokens: 12,
  reasoningTokens: null,
  cachedPromptTokens: null,
};

/** A client whose scope has the adaptive rules as the test says. */
function clientWith(scheduling: Partial<SchedulingConfig>, script: Script) {
  const kernel = new SimulationKernel();
  const runtime = kernel.runtime();
  const resolved = resolveScope({ scope: "LLM", sources: sourceOptions([{}, {}]) });
  const config = { ...resolved.config, scheduling: { ...SCHEDULING_DEFAULTS, ...scheduling } };
  const wants: Want[] = [];
  const governor = new MemoryGovernor({ ...config, runtime });
  const tick = governor.tick.bind(governor);
  governor.tick = (batch) => {
    wants.push(...batch.wants);
    return tick(batch);
  };
  const warn = (): boolean => true;
  const { leaseTtlMs, leaseRenewal } = config;
  const dispatcher = new Dispatcher({ governor, runtime, worker: "w", leaseTtlMs, leaseRenewal, warn });
  const affinity = scheduling.affinity === true ? new Affinity() : null;
  const environment = { config, runtime, dispatcher, telemetry: null, pricing: null, selector: null, affinity, warn };
  const lifetime = { enter() {}, leave() {} };
  const plain = { cache: null, sharing: null, zodToJsonSchema: (() => ({})) as never };
  const client = createChatClient(environment, createScriptedTransport(script), lifetime, plain);
  return { kernel, client, wants };
}

describe("session affinity", () => {
  it("names the source that served the session last; calls without a session and other sessions name none", async () => {
    const { kernel, client, wants } = clientWith({ affinity: true }, (_, n) =>
      n === 3 ? { afterMs: 1, error: limited(60_000) } : { afterMs: 1 },
    );
    const first = await kernel.run(client.chat({ ...hi, sessionId: "a" }));
    await kernel.run(client.chat({ ...hi, sessionId: "b" }));
    const moved = await kernel.run(client.chat({ ...hi, sessionId: "a" }));
    await kernel.run(client.chat({ ...hi, sessionId: "a" }));
    await kernel.run(client.chat(hi));
    expect(wants[0]!.affinity).toBeUndefined();
    expect(wants[1]!.affinity).toBeUndefined();
    // A failure moves nothing: only who served it counts.
    expect(wants.slice(2, 5).map((want) => want.affinity)).toEqual([
      first.sourceName,
      first.sourceName,
      moved.sourceName,
    ]);
    expect(moved.sourceName).not.toBe(first.sourceName);
    expect(wants[5]!.affinity).toBeUndefined();
  });

  it("is off by default", async () => {
    const { kernel, client, wants } = clientWith({}, () => ({ afterMs: 1 }));
    await kernel.run(client.chat({ ...hi, sessionId: "a" }));
    await kernel.run(client.chat({ ...hi, sessionId: "a" }));
    expect(wants.map((want) => want.affinity)).toEqual([undefined, undefined]);
  });

  it("is bounded: the sessions served longest ago are forgotten first", () => {
    const affinity = new Affinity(2);
    affinity.served("a", "s_1");
    affinity.served("b", "s_1");
    affinity.served("a", "s_2");
    affinity.served("c", "s_1");
    expect(["a", "b", "c"].map((session) => affinity.sourceOf(session))).toEqual(["s_2", undefined, "s_1"]);
  });
});
