import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, type ChatRequest, type ChatResponse, MemoryCache } from "../../src/index.js";
import type { Script } from "../../src/testing/scripted-transport.js";
import {
  expectNothingLeft,
  GOVERNOR_KINDS,
  hi,
  rejected,
  type SimulationOptions,
  serverError,
  settled,
  simulateOn,
} from "./harness.js";

const counted: Script = (_, n) => ({ afterMs: 100, content: `answer ${n}` });

describe.each(GOVERNOR_KINDS)("identical calls in flight (%s governor)", (governor) => {
  const simulate = (setup: SimulationOptions = {}) =>
    simulateOn(governor)({ script: counted, ...setup, options: { cache: { coalesce: true }, ...setup.options } });

  it("share one chain: one send, one answer, a row for each call, the cost once", async () => {
    const simulation = simulate({ options: { pricing: { costNanos: () => 5_000_000_000n } } });
    const { kernel, client, transport, recorder } = simulation;
    const asked = ["a", "b", "c"].map((sessionId) => client.chat({ ...hi, sessionId }));
    const [first, ...others] = (await kernel.run(Promise.all(asked))) as [ChatResponse, ...ChatResponse[]];
    expect(transport.sends).toHaveLength(1);
    expect(first).toMatchObject({ content: "answer 1", cacheHit: false, attempts: 1, cost: 5 });
    for (const other of others) {
      expect(other).toMatchObject({ content: "answer 1", cacheHit: true, attempts: 0, cost: 0, sourceName: "s_1" });
    }
    expect(new Set([first, ...others].map(({ requestId }) => requestId)).size).toBe(3);
    expect(recorder.rows.map(({ outcome, sessionId }) => [outcome, sessionId]).sort()).toEqual([
      ["cache_hit", "b"],
      ["cache_hit", "c"],
      ["success", "a"],
    ]);
    for (const row of recorder.rows.filter(({ outcome }) => outcome === "cache_hit")) {
      expect(row).toMatchObject({ final: true, attempt: null, costNanos: 0n, promptTokens: null, sourceName: null });
      expect(JSON.parse(row.route!)).toEqual({ sharedWith: first.requestId });
      expect(others.map(({ callId }) => callId)).toContain(row.callId);
    }
    // It is over: the next one asks anew.
    expect(await kernel.run(client.chat(hi))).toMatchObject({ content: "answer 2", cacheHit: false });
    await expectNothingLeft(simulation);
  });

  it("F79 five hundred of them are one request, whoever leaves, with a row for each", async () => {
    const simulation = simulate();
    const { kernel, client, transport, recorder } = simulation;
    const leaving = new AbortController();
    const asked = Array.from({ length: 500 }, (_, n) =>
      client.chat({ ...hi, sessionId: `${n}`, ...(n % 5 === 0 ? { signal: leaving.signal } : {}) }),
    );
    kernel.runtime().setTimer(50, () => leaving.abort());
    const ends = await kernel.run(settled<unknown>(asked));
    expect(transport.sends).toHaveLength(1);
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(400);
    expect(new Set(recorder.rows.map(({ sessionId }) => sessionId)).size).toBe(500);
    expect(recorder.rows).toHaveLength(500);
    await expectNothingLeft(simulation, leaving.signal);
  });

  it("nobody can change what others are given, not even at once", async () => {
    const { kernel, client } = simulate({ script: () => ({ afterMs: 10, content: '{"a":1}' }) });
    const json = { ...hi, responseFormat: { type: "json_object" } };
    const spoilt = client.chat(json).then((reply) => {
      (reply.usage as { promptTokens: number }).promptTokens = -1;
      (reply.parsed as { a: number }).a = 99;
      return reply;
    });
    const [, two] = await kernel.run(Promise.all([spoilt, client.chat(json)]));
    expect(two!.usage.promptTokens).toBeGreaterThanOrEqual(0);
    expect(two!.parsed).toEqual({ a: 1 });
  });

  it("a joiner that leaves only detaches, with a row of its own", async () => {
    const simulation = simulate();
    const { kernel, client, transport, recorder } = simulation;
    const leaving = new AbortController();
    const reason = new Error("changed my mind");
    const staying = client.chat(hi);
    const left = client.chat({ ...hi, sessionId: "left", signal: leaving.signal });
    kernel.runtime().setTimer(50, () => leaving.abort(reason));
    const [stayed, gone] = await kernel.run(settled<unknown>([staying, left]));
    expect(stayed).toMatchObject({ status: "fulfilled", value: { content: "answer 1", cacheHit: false } });
    expect(gone).toEqual({ status: "rejected", reason });
    expect(transport.sends).toHaveLength(1);
    expect(recorder.rows.map(({ outcome, final }) => [outcome, final]).sort()).toEqual([
      ["cancelled", true],
      ["success", true],
    ]);
    expect(recorder.rows.find(({ outcome }) => outcome === "cancelled")).toMatchObject({ sessionId: "left" });
    await expectNothingLeft(simulation, leaving.signal);
  });

  it("there is no leader: the one that began may leave, and the next in line owns the answer", async () => {
    const simulation = simulate();
    const { kernel, client, transport, recorder } = simulation;
    const leaving = new AbortController();
    const reason = new Error("left");
    const began = client.chat({ ...hi, sessionId: "first", signal: leaving.signal });
    const second = client.chat({ ...hi, sessionId: "second", parentCallId: "step" });
    const third = client.chat({ ...hi, sessionId: "third" });
    kernel.runtime().setTimer(50, () => leaving.abort(reason));
    const [gone, heir, other] = await kernel.run(settled<unknown>([began, second, third]));
    expect(gone).toEqual({ status: "rejected", reason });
    expect(heir).toMatchObject({ value: { content: "answer 1", cacheHit: false, attempts: 1 } });
    expect(other).toMatchObject({ value: { content: "answer 1", cacheHit: true } });
    expect(transport.sends).toHaveLength(1);
    // The rows tell of those they stand for.
    expect(
      recorder.rows.map(({ outcome, sessionId, parentCallId }) => [outcome, sessionId, parentCallId]).sort(),
    ).toEqual([
      ["cache_hit", "third", null],
      ["cancelled", "first", null],
      ["success", "second", "step"],
    ]);
    // One final row a call, and no request id without one.
    expect(recorder.rows.map(({ outcome }) => outcome).sort()).toEqual(["cache_hit", "cancelled", "success"]);
    expect(new Set(recorder.rows.map(({ requestId }) => requestId)).size).toBe(3);
    await expectNothingLeft(simulation, leaving.signal);
  });

  it("the last one to leave ends the chain", async () => {
    const simulation = simulate({ script: () => ({}) });
    const { kernel, client, transport, recorder } = simulation;
    const controllers = [new AbortController(), new AbortController()];
    const asked = controllers.map(({ signal }) => client.chat({ ...hi, signal }));
    const runtime = kernel.runtime();
    for (const [n, controller] of controllers.entries()) {
      runtime.setTimer(50 + n, () => controller.abort(`reason ${n}`));
    }
    const ends = await kernel.run(settled<unknown>(asked));
    expect(ends).toEqual([0, 1].map((n) => ({ status: "rejected", reason: `reason ${n}` })));
    expect(transport.sends).toHaveLength(1);
    expect(transport.inflight()).toBe(0);
    expect(recorder.rows.map(({ outcome, final, attempt }) => [outcome, final, attempt])).toEqual([
      ["cancelled", true, null],
      ["cancelled", true, 1],
    ]);
    await expectNothingLeft(simulation, ...controllers.map(({ signal }) => signal));
  });

  it("one signal for all ends them all; who comes after the end begins a chain of its own", async () => {
    const simulation = simulate();
    const { kernel, client, transport } = simulation;
    const all = new AbortController();
    const asked = [1, 2, 3].map(() => client.chat({ ...hi, signal: all.signal }));
    let late: Promise<ChatResponse> | undefined;
    kernel.runtime().setTimer(50, () => {
      all.abort("over");
      late = client.chat(hi);
    });
    const ends = await kernel.run(settled<unknown>(asked));
    expect(ends).toEqual(Array(3).fill({ status: "rejected", reason: "over" }));
    expect(await kernel.run(late!)).toMatchObject({ content: "answer 2", cacheHit: false });
    expect(transport.sends).toHaveLength(2);
    await expectNothingLeft(simulation, all.signal);
  });

  it("each keeps its own deadline", async () => {
    const simulation = simulate({ script: () => ({ afterMs: 300, content: "late" }) });
    const { kernel, client, transport, recorder } = simulation;
    const hurried = client.chat({ ...hi, deadlineMs: 100 });
    const patient = client.chat({ ...hi, deadlineMs: 10_000 });
    const [early, whole] = await kernel.run(settled<unknown>([hurried, patient]));
    expect((early as PromiseRejectedResult).reason).toBeInstanceOf(AllSourcesExhausted);
    expect((early as PromiseRejectedResult).reason).toMatchObject({ reason: "deadline_exceeded" });
    expect(whole).toMatchObject({ value: { content: "late", cacheHit: false } });
    expect(transport.sends).toHaveLength(1);
    expect(recorder.rows.map(({ outcome }) => outcome).sort()).toEqual(["success", "unavailable"]);
    const both = await kernel.run(
      settled<unknown>([client.chat({ ...hi, deadlineMs: 50 }), client.chat({ ...hi, deadlineMs: 150 })]),
    );
    expect(both.map((end) => (end as PromiseRejectedResult).reason.message)).toEqual([
      expect.stringContaining("50 ms"),
      expect.stringContaining("150 ms"),
    ]);
    const alone = await kernel.run(settled<unknown>([client.chat({ ...hi, deadlineMs: 100 })]));
    expect(alone[0]).toMatchObject({ reason: { reason: "deadline_exceeded" } });
    await expectNothingLeft(simulation);
  });

  it("the chain's error goes to all, each with its final row", async () => {
    const simulation = simulate({ script: () => ({ afterMs: 10, error: rejected() }) });
    const { kernel, client, transport, recorder } = simulation;
    const ends = await kernel.run(settled<unknown>([client.chat(hi), client.chat(hi)]));
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const [one, two] = ends as PromiseRejectedResult[];
    expect(two!.reason).toBe(one!.reason);
    expect(transport.sends).toHaveLength(1);
    expect(recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([
      ["rejected", true],
      ["rejected", true],
    ]);
    await expectNothingLeft(simulation);
  });

  it("retries of the chain are shared too", async () => {
    const script: Script = (_, n) => (n === 1 ? { afterMs: 10, error: serverError() } : { afterMs: 10, content: "ok" });
    const simulation = simulate({ script });
    const { kernel, client, transport } = simulation;
    const replies = await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    expect(replies.map(({ content, attempts }) => [content, attempts])).toEqual([
      ["ok", 2],
      ["ok", 0],
    ]);
    expect(transport.sends).toHaveLength(2);
    await expectNothingLeft(simulation);
  });

  const APART: readonly (readonly [string, Partial<ChatRequest>, Partial<ChatRequest>])[] = [
    ["bypass", { cache: "bypass" }, { cache: "bypass" }],
    ["chance", { sampling: { temperature: 0.7 } }, { sampling: { temperature: 0.7 } }],
    ["chance in extraBody", { extraBody: { temperature: 1 } }, { extraBody: { temperature: 1 } }],
    ["other words", {}, { messages: [{ role: "user", content: "ho" }] }],
    ["other tenants", { cacheNamespace: "a" }, { cacheNamespace: "b" }],
    ["a wish to ask anew", {}, { cache: "refresh" }],
    ["another failover", {}, { failover: "off" }],
  ];

  it.each(APART)("%s keeps calls apart", async (_, one, two) => {
    const { kernel, client, transport } = simulate();
    await kernel.run(Promise.all([client.chat({ ...hi, ...one }), client.chat({ ...hi, ...two })]));
    expect(transport.sends).toHaveLength(2);
  });

  const TOGETHER: readonly (readonly [string, Partial<ChatRequest>])[] = [
    ["a temperature of 0", { sampling: { temperature: 0 } }],
    ["a seed", { sampling: { temperature: 0.7, seed: 1 } }],
    ["another way of delivery", { stream: false }],
    ["another user", { extraBody: { user: "u" } }],
  ];

  it.each(TOGETHER)("%s keeps them together", async (_, more) => {
    const { kernel, client, transport } = simulate();
    await kernel.run(Promise.all([client.chat({ ...hi, ...more }), client.chat({ ...hi, ...more })]));
    expect(transport.sends).toHaveLength(1);
  });

  it("a source's own temperature counts as well, streams never share, and off is the default", async () => {
    const warm = simulate({ sources: [{ extraBody: { temperature: 1 } }] });
    await warm.kernel.run(Promise.all([warm.client.chat(hi), warm.client.chat(hi)]));
    expect(warm.transport.sends).toHaveLength(2);
    const unset = { ...hi, sampling: { temperature: undefined } } as unknown as ChatRequest;
    await warm.kernel.run(Promise.all([warm.client.chat(unset), warm.client.chat(unset)]));
    expect(warm.transport.sends).toHaveLength(4);
    const streams = simulate();
    await streams.kernel.run(Promise.all([streams.client.stream(hi).final, streams.client.stream(hi).final]));
    expect(streams.transport.sends).toHaveLength(2);
    const off = simulate({ options: { cache: {} } });
    await off.kernel.run(Promise.all([off.client.chat(hi), off.client.chat(hi)]));
    expect(off.transport.sends).toHaveLength(2);
  });

  it("with a cache, the answer is kept once and found later", async () => {
    const cache = { store: new MemoryCache(), coalesce: true };
    const { kernel, client, transport } = simulate({ options: { cache } });
    await kernel.run(Promise.all([client.chat(hi), client.chat(hi)]));
    expect(await kernel.run(client.chat(hi))).toMatchObject({ content: "answer 1", cacheHit: true });
    expect(transport.sends).toHaveLength(1);
  });

  it("what was read out of a structured answer is shared with it, and structured() asks for itself", async () => {
    const { kernel, client, transport } = simulate({ script: () => ({ afterMs: 10, content: '{"a":1}' }) });
    const json = { ...hi, responseFormat: { type: "json_object" } };
    const replies = await kernel.run(Promise.all([client.chat(json), client.chat(json)]));
    expect(replies.map(({ parsed, cacheHit }) => [parsed, cacheHit])).toEqual([
      [{ a: 1 }, false],
      [{ a: 1 }, true],
    ]);
    expect(transport.sends).toHaveLength(1);
    const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
    const values = await kernel.run(Promise.all([client.structured(hi, schema), client.structured(hi, schema)]));
    expect(values.map(({ value }) => value)).toEqual([{ a: 1 }, { a: 1 }]);
    expect(transport.sends).toHaveLength(3);
  });

  it("close() waits for everyone, also when the one that began is gone", async () => {
    const { kernel, client, transport } = simulate();
    const leaving = new AbortController();
    const began = client.chat({ ...hi, signal: leaving.signal });
    const second = client.chat(hi);
    kernel.runtime().setTimer(50, () => leaving.abort("left"));
    const [, reply] = await kernel.run(settled<unknown>([began, second, client.close()]));
    expect(reply).toMatchObject({ value: { content: "answer 1" } });
    expect(transport.inflight()).toBe(0);
  });
});
