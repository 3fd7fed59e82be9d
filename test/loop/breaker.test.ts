import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, CircuitOpenError } from "../../src/errors.js";
import type { SourceSnapshot } from "../../src/ports/governor.js";
import type { ScriptedReply } from "../../src/testing/scripted-transport.js";
import {
  deadKey,
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  limited,
  noPacer,
  patient,
  readAll,
  rejected,
  type Simulation,
  serverError,
  settled,
  simulateOn,
} from "./harness.js";

async function firstSource({ kernel, client }: Simulation): Promise<SourceSnapshot> {
  await kernel.advance(0);
  return (await kernel.run(client.snapshot())).sources[0]!;
}

const stop = new Error("the user pressed stop");

/** Breaker, probes and fencing through the client (spec 02 §4). */
describe.each(GOVERNOR_KINDS)("the breaker (%s governor)", (governor) => {
  const simulate = simulateOn(governor);

  /** A source whose breaker is open, just before its probe is due. What it answers then is up to `mode`. */
  async function opened(mode: { reply: ScriptedReply }, whenOpen: "wait" | "fail" = "fail"): Promise<Simulation> {
    let broken = true;
    const simulation = simulate({
      sources: [patient],
      options: {
        breaker: { failThreshold: 1, cooldownMs: 1_000, cooldownMaxMs: 1_000 },
        retry: { maxAttempts: 2, backoffBaseMs: 60 },
        backpressure: { whenOpen },
      },
      script: () => (broken ? { afterMs: 1, error: serverError() } : mode.reply),
    });
    const { kernel, client } = simulation;
    await failureOf(kernel, client.chat({ ...hi, deadlineMs: 50 }));
    broken = false;
    expect(await firstSource(simulation)).toMatchObject({ state: "open", epoch: 1 });
    await kernel.advance(1_200);
    return simulation;
  }

  it("opens after failThreshold failures in a row over all calls; a success between starts the count anew", async () => {
    const simulation = simulate({
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 3 } },
      script: (_, n) => (n === 3 ? { afterMs: 1 } : { afterMs: 1, error: serverError() }),
    });
    const { kernel, client } = simulation;
    for (let i = 0; i < 5; i += 1) await kernel.run(settled([client.chat(hi)]));
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 0 });
    await failureOf(kernel, client.chat(hi));
    expect(await firstSource(simulation)).toMatchObject({ state: "open", epoch: 1 });
  });

  it("rate limits, rejections and cancellations never open it, and clear the count of failures in a row", async () => {
    const failures = [
      serverError(),
      serverError(),
      rejected(),
      serverError(),
      serverError(),
      limited(1),
      serverError(),
    ];
    const simulation = simulate({
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 3 }, scheduling: { evidence: false } },
      script: (_, n) => (n <= failures.length ? { afterMs: 1, error: failures[n - 1]! } : { afterMs: 10_000 }),
    });
    const { kernel, client } = simulation;
    for (const _ of failures) await kernel.run(settled([client.chat(hi)])).then(() => kernel.advance(1_000));
    for (let i = 0; i < 5; i += 1) {
      const controller = new AbortController();
      const call = client.chat({ ...hi, signal: controller.signal });
      await kernel.advance(500);
      controller.abort(stop);
      await failureOf(kernel, call);
    }
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 0 });
  });

  it("exactly one probe among 50 simultaneous callers; its success lets the others go on", async () => {
    const simulation = await opened({ reply: { afterMs: 500 } }, "wait");
    const { kernel, client, transport } = simulation;
    const before = transport.sends.length;
    const calls = Promise.all(Array.from({ length: 50 }, () => client.chat(hi)));
    await kernel.advance(400);
    expect(transport.sends.length - before).toBe(1);
    expect(await firstSource(simulation)).toMatchObject({ state: "half_open", probeInFlight: true, inflight: 1 });
    const replies = await kernel.run(calls);
    expect(replies).toHaveLength(50);
    expect(transport.sends.length - before).toBe(50);
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 1 });
    await expectNothingLeft(simulation);
  });

  it("with WHEN_OPEN fail the 49 others are told at once", async () => {
    const simulation = await opened({ reply: { afterMs: 500 } });
    const { kernel, client, transport } = simulation;
    const before = transport.sends.length;
    const ends = await kernel.run(settled(Array.from({ length: 50 }, () => client.chat(hi))));
    expect(ends.filter((end) => end.status === "fulfilled")).toHaveLength(1);
    for (const end of ends) {
      if (end.status === "rejected") {
        expect(end.reason).toBeInstanceOf(CircuitOpenError);
        expect(end.reason.perSourceReasons.s_1.reason).toBe("half_open");
      }
    }
    expect(transport.sends.length - before).toBe(1);
  });

  it("a failed probe reopens at once and costs the call no attempt", async () => {
    let failures = 5;
    const mode: { reply: ScriptedReply } = { reply: { afterMs: 1, error: serverError() } };
    const simulation = await opened(mode, "wait");
    const { kernel, client, transport } = simulation;
    const before = transport.sends.length;
    const call = client.chat(hi);
    while (failures > 0) {
      await kernel.advance(50);
      failures = 5 - (transport.sends.length - before);
    }
    mode.reply = { afterMs: 1 };
    // maxAttempts is 2, and five probes have failed.
    expect((await kernel.run(call)).attempts).toBe(6);
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 6 });
  });

  it("failed probes are paid by the stall budget: a source that never recovers ends the call", async () => {
    const simulation = await opened({ reply: { afterMs: 1, error: serverError() } }, "wait");
    const { kernel, client } = simulation;
    const error = (await failureOf(kernel, client.chat(hi))) as AllSourcesExhausted;
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect(kernel.now()).toBeLessThan(310_000);
    expect(error.cause).toMatchObject({ statusCode: 500 });
  });

  it("the first token of a stream is the probe's verdict", async () => {
    const simulation = await opened({ reply: { firstTokenMs: 100, afterMs: 60_000 } });
    const { kernel, client, transport } = simulation;
    const before = transport.sends.length;
    const reading = readAll(client.stream({ ...hi, stream: true }));
    await kernel.advance(150);
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", probeInFlight: false, inflight: 1 });
    const other = client.chat(hi);
    await kernel.advance(0);
    expect(transport.sends.length - before).toBe(2);
    await kernel.run(Promise.all([reading, other]));
  });

  it("a rate-limited probe: stays half-open, handed back, the next one after the cooldown", async () => {
    const mode: { reply: ScriptedReply } = { reply: { afterMs: 1, error: limited(5_000) } };
    const simulation = await opened(mode);
    const { kernel, client, transport } = simulation;
    const before = transport.sends.length;
    await failureOf(kernel, client.chat({ ...hi, deadlineMs: 1_000 }));
    expect(await firstSource(simulation)).toMatchObject({ state: "half_open", probeInFlight: false, epoch: 1 });
    expect(transport.sends.length - before).toBe(1);
    mode.reply = { afterMs: 1 };
    const waiting = client.chat(hi);
    await kernel.advance(4_000);
    expect(transport.sends.length - before).toBe(1);
    await kernel.run(waiting);
    expect(await firstSource(simulation)).toMatchObject({ state: "closed" });
  });

  it("a rejected request closes it: the service answers", async () => {
    const simulation = await opened({ reply: { afterMs: 1, error: rejected() } });
    await failureOf(simulation.kernel, simulation.client.chat(hi));
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", probeInFlight: false, epoch: 1 });
  });

  it("a dead probe keeps it open, as dead", async () => {
    const simulation = await opened({ reply: { afterMs: 1, error: deadKey() } });
    expect(await failureOf(simulation.kernel, simulation.client.chat(hi))).toMatchObject({
      reason: "all_sources_dead",
    });
    expect(await firstSource(simulation)).toMatchObject({ state: "open", dead: true, epoch: 2 });
  });

  it.each([
    ["its caller leaves", (controller: AbortController) => controller.abort(stop)],
    ["its deadline passes", () => {}],
  ])("a probe is handed back when %s, and a waiting call probes at once", async (_, end) => {
    const mode: { reply: ScriptedReply } = { reply: {} };
    const simulation = await opened(mode, "wait");
    const { kernel, client, transport } = simulation;
    const controller = new AbortController();
    const probe = client.chat({ ...hi, signal: controller.signal, deadlineMs: 500 });
    await kernel.advance(10);
    mode.reply = { afterMs: 1 };
    const waiting = client.chat(hi);
    await kernel.advance(10);
    const before = transport.sends.length;
    end(controller);
    await failureOf(kernel, probe);
    const endedMs = kernel.now();
    await kernel.run(waiting);
    expect(transport.sends.length - before).toBe(1);
    expect(transport.sends.at(-1)!.atMs).toBe(endedMs);
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 1 });
    await expectNothingLeft(simulation, controller.signal);
  });

  it("a late success from before it opened doesn't close it; its answer is not lost", async () => {
    const simulation = simulate({
      sources: [patient],
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 1, cooldownMs: 30_000 } },
      script: (_, n) => (n === 1 ? { afterMs: 10_000 } : { afterMs: 1, error: serverError() }),
    });
    const { kernel, client } = simulation;
    const late = client.chat(hi);
    await kernel.advance(100);
    await failureOf(kernel, client.chat(hi));
    expect((await kernel.run(late)).content).toBe("answer");
    expect(await firstSource(simulation)).toMatchObject({ state: "open", epoch: 1, inflight: 0 });
  });

  it("a late failure from before it opened doesn't count against the closed source", async () => {
    const simulation = simulate({
      sources: [patient],
      options: { retry: { maxAttempts: 1 }, breaker: { failThreshold: 1, cooldownMs: 1_000 } },
      script: (_, n) =>
        n === 1
          ? { afterMs: 20_000, error: serverError() }
          : n === 2
            ? { afterMs: 1, error: serverError() }
            : { afterMs: 1 },
    });
    const { kernel, client } = simulation;
    const late = client.chat(hi).catch((error: unknown) => error);
    await kernel.advance(10);
    await failureOf(kernel, client.chat(hi));
    await kernel.advance(1_500);
    await kernel.run(client.chat(hi));
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 1 });
    expect(await kernel.run(late)).toBeInstanceOf(AllSourcesExhausted);
    expect(await firstSource(simulation)).toMatchObject({ state: "closed", epoch: 1, inflight: 0 });
  });

  it("what is told as the last error explains why the source is out, not what a late attempt met", async () => {
    const simulation = simulate({
      sources: [patient],
      options: { retry: { maxAttempts: 1 } },
      script: (_, n) =>
        n === 1
          ? { afterMs: 5_000, error: serverError() }
          : n === 2
            ? { afterMs: 6_000 }
            : { afterMs: 1, error: deadKey() },
    });
    const { kernel, client } = simulation;
    const late = settled([client.chat(hi), client.chat(hi)]);
    await kernel.advance(10);
    await failureOf(kernel, client.chat(hi));
    await kernel.run(late);
    expect(await firstSource(simulation)).toMatchObject({ dead: true, lastError: { code: "auth" } });
  });

  it("stays open for cooldown · 1.7^(trips − 1) ± 10 %, capped", async () => {
    const simulation = simulate({
      options: {
        retry: { maxAttempts: 1 },
        breaker: { failThreshold: 1, cooldownMs: 4_000, cooldownMaxMs: 30_000 },
      },
      script: () => ({ afterMs: 0, error: serverError() }),
    });
    const { kernel, client } = simulation;
    for (const expectedMs of [4_000, 6_800, 11_560, 19_652, 30_000, 30_000]) {
      await failureOf(kernel, client.chat(hi));
      const { openForMs } = await firstSource(simulation);
      expect(openForMs).toBeGreaterThanOrEqual(Math.min(30_000, expectedMs) * 0.9);
      expect(openForMs).toBeLessThanOrEqual(Math.min(30_000, expectedMs * 1.1));
      await kernel.advance(openForMs);
    }
  });

  it("calls that wait for an open source wake by themselves when its probe is due", async () => {
    const simulation = await opened({ reply: { afterMs: 10 } }, "wait");
    const { kernel, client } = simulation;
    expect((await kernel.run(client.chat(hi))).content).toBe("answer");
    expect(kernel.now()).toBeLessThan(2_000);
  });

  it("a cooling source is not sent to before its Retry-After by anybody, and the first success ends the row of 429s", async () => {
    const simulation = simulate({
      options: noPacer,
      script: (_, n) => (n === 1 ? { afterMs: 0, error: limited(6_000) } : { afterMs: 10 }),
    });
    const { kernel, client, transport } = simulation;
    const calls = [client.chat(hi)];
    await kernel.advance(10);
    for (let i = 0; i < 5; i += 1) calls.push(client.chat(hi));
    expect(await firstSource(simulation)).toMatchObject({ coolingMs: 5_990, state: "closed" });
    await kernel.run(Promise.all(calls));
    for (const send of transport.sends.slice(1)) expect(send.atMs).toBeGreaterThanOrEqual(6_000);
    await kernel.advance(1_000);
    const quick = Array.from({ length: 5 }, () => client.chat(hi));
    await kernel.advance(0);
    expect(transport.inflight()).toBe(5);
    await kernel.run(Promise.all(quick));
  });

  it("without a Retry-After the cooldown doubles from 400 ms up to 15 s, ± 25 %", async () => {
    const simulation = simulate({
      options: { retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 0, error: limited() }),
    });
    const { kernel, client } = simulation;
    for (const expectedMs of [400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000]) {
      await failureOf(kernel, client.chat(hi));
      const { coolingMs } = await firstSource(simulation);
      expect(coolingMs).toBeGreaterThanOrEqual(expectedMs * 0.75);
      expect(coolingMs).toBeLessThanOrEqual(expectedMs * 1.25);
      await kernel.advance(coolingMs);
    }
  });

  it("a Retry-After beyond ten minutes cools for ten; the error carries it uncapped", async () => {
    const simulation = simulate({
      options: { retry: { maxAttempts: 1 } },
      script: () => ({ afterMs: 0, error: limited(3_600_000) }),
    });
    const error = (await failureOf(simulation.kernel, simulation.client.chat(hi))) as AllSourcesExhausted;
    expect(error.cause).toMatchObject({ retryAfterMs: 3_600_000 });
    expect(error.retryAfterMs).toBe(3_600_000);
    expect((await firstSource(simulation)).coolingMs).toBe(600_000);
  });
});
