import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, type AnswerCache, type ChatRequest, ConfigError, MemoryCache } from "../../src/index.js";
import type { ChatAttempt } from "../../src/ports/transport.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { createScriptedTransport } from "../../src/testing/scripted-transport.js";
import {
  expectNothingLeft,
  failureOf,
  GOVERNOR_KINDS,
  hi,
  readAll,
  type SimulationOptions,
  simulateOn,
} from "./harness.js";

describe.each(GOVERNOR_KINDS)("the answer cache (%s governor)", (governor) => {
  const simulate = (cache: AnswerCache, setup: SimulationOptions = {}) =>
    simulateOn(governor)({
      script: (_, n) => ({ afterMs: 100, content: `answer ${n}` }),
      ...setup,
      options: { cache, ...setup.options },
    });

  it("gives the same answer again: nothing sent, a row of its own, no cost", async () => {
    const { kernel, client, transport, recorder } = simulate(new MemoryCache(), {
      options: { pricing: { costNanos: () => 5n } },
    });
    const first = await kernel.run(client.chat(hi));
    const second = await kernel.run(client.chat({ ...hi, sessionId: "s", parentCallId: "p" }));
    expect(transport.sends).toHaveLength(1);
    expect(first).toMatchObject({ content: "answer 1", cacheHit: false, attempts: 1 });
    const { callId, requestId, latencyMs, ttftMs, ...same } = first;
    expect(second).toMatchObject({ ...same, cacheHit: true, attempts: 0, cost: 0, ttftMs: null });
    expect(new Set([callId, requestId, second.callId, second.requestId]).size).toBe(4);
    expect(recorder.rows[1]).toMatchObject({
      callId: second.callId,
      requestId: second.requestId,
      outcome: "cache_hit",
      final: true,
      attempt: null,
      sourceName: null,
      model: "m",
      costNanos: 0n,
      promptTokens: null,
      response: "answer 1",
      sessionId: "s",
      parentCallId: "p",
    });
    await expectNothingLeft({ kernel, client, transport });
  });

  it("a call and a stream share answers, in both directions; a hit is a stream like any other", async () => {
    const { kernel, client, transport } = simulate(new MemoryCache());
    await kernel.run(client.chat(hi));
    const stream = client.stream(hi);
    const events = await kernel.run(readAll(stream));
    const final = await kernel.run(stream.final);
    expect(events.map((event) => event.type)).toEqual(["text-delta", "usage", "finish"]);
    expect(final).toMatchObject({ content: "answer 1", cacheHit: true });
    const other = { messages: [{ role: "user", content: "ho" }] };
    await kernel.run(readAll(client.stream(other)));
    expect(await kernel.run(client.chat(other))).toMatchObject({ content: "answer 2", cacheHit: true });
    expect(transport.sends).toHaveLength(2);
    await expectNothingLeft({ kernel, client, transport });
  });

  it("bypass neither reads nor writes, refresh writes, use is the default", async () => {
    const { kernel, client } = simulate(new MemoryCache());
    const ask = async (cache?: ChatRequest["cache"]) => (await kernel.run(client.chat({ ...hi, cache }))).content;
    expect(await ask("bypass")).toBe("answer 1");
    expect(await ask()).toBe("answer 2");
    expect(await ask("bypass")).toBe("answer 3");
    expect(await ask("use")).toBe("answer 2");
    expect(await ask("refresh")).toBe("answer 4");
    expect(await ask()).toBe("answer 4");
  });

  it("tenants don't see each other's answers: namespace and salt of the call win over the client's", async () => {
    const { kernel, client } = simulate(new MemoryCache(), {
      options: { cache: { store: new MemoryCache(), namespace: "a", salt: "s" } },
    });
    const ask = async (more: Partial<ChatRequest> = {}) => (await kernel.run(client.chat({ ...hi, ...more }))).content;
    expect(await ask()).toBe("answer 1");
    expect(await ask({ cacheNamespace: "b" })).toBe("answer 2");
    expect(await ask({ cacheSalt: "t" })).toBe("answer 3");
    expect(await ask({ cacheNamespace: "a", cacheSalt: "s" })).toBe("answer 1");
  });

  it("two clients may share one cache; another model is another pool", async () => {
    const cache = new MemoryCache();
    const first = simulate(cache, { sources: [{}] });
    await first.kernel.run(first.client.chat(hi));
    const same = simulate(cache, { sources: [{ name: "other_name" }] });
    expect(await same.kernel.run(same.client.chat(hi))).toMatchObject({ cacheHit: true, sourceName: "s_1" });
    const different = simulate(cache, { sources: [{ model: "m2" }] });
    expect(await different.kernel.run(different.client.chat(hi))).toMatchObject({ cacheHit: false });
  });

  it("failures are not kept", async () => {
    const { kernel, client, transport } = simulate(new MemoryCache(), {
      script: (_, n) => (n === 1 ? { afterMs: 10, error: new Error("cut") } : { afterMs: 10 }),
      options: { retry: { maxAttempts: 1 } },
    });
    expect(await failureOf(kernel, client.chat(hi))).toBeInstanceOf(AllSourcesExhausted);
    expect(await kernel.run(client.chat(hi))).toMatchObject({ cacheHit: false });
    expect(transport.sends).toHaveLength(2);
  });

  it("a stream that its consumer left is not kept", async () => {
    const { kernel, client } = simulate(new MemoryCache(), {
      script: (_, n) => ({ firstTokenMs: 10, afterMs: 1_000, content: `answer ${n}` }),
    });
    await kernel.run(
      (async () => {
        for await (const _ of client.stream(hi)) break;
      })(),
    );
    expect(await kernel.run(client.chat(hi))).toMatchObject({ cacheHit: false });
  });

  it.each<[string, AnswerCache]>([
    [
      "throws",
      {
        get: () => {
          throw new Error("down");
        },
        set: () => {
          throw new Error("down");
        },
      },
    ],
    ["rejects", { get: () => Promise.reject(new Error("down")), set: () => Promise.reject(new Error("down")) }],
    ["hangs", { get: () => new Promise(() => {}), set: () => new Promise(() => {}) }],
    ["gives back rubbish", { get: () => ({ content: 7 }) as never, set: () => {} }],
    ["gives back nothing", { get: () => undefined as never, set: () => {} }],
  ])("a cache that %s is a miss, never an error", async (_, cache) => {
    const { kernel, client, transport } = simulate(cache);
    const reply = await kernel.run(client.chat(hi));
    expect(reply).toMatchObject({ content: "answer 1", cacheHit: false });
    expect(await kernel.run(client.chat(hi))).toMatchObject({ content: "answer 2" });
    await expectNothingLeft({ kernel, client, transport });
  });

  it("a caller who left gets the reason, not the answer", async () => {
    const { kernel, client, transport, recorder } = simulate(new MemoryCache());
    await kernel.run(client.chat(hi));
    const left = new Error("left");
    expect(await failureOf(kernel, client.chat({ ...hi, signal: AbortSignal.abort(left) }))).toBe(left);
    expect(recorder.rows.map((row) => [row.outcome, row.final])).toEqual([
      ["success", true],
      ["cancelled", true],
    ]);
    await expectNothingLeft({ kernel, client, transport });
  });

  it("a caller who leaves while the cache is asked gets the reason, and the answer is not sent for", async () => {
    const slowKernel = new SimulationKernel();
    const runtime = slowKernel.runtime();
    const kept = new MemoryCache({ runtime });
    const slow: AnswerCache = {
      get: (key) => runtime.sleep(50).then(() => kept.get(key)),
      set: (key, answer) => kept.set(key, answer),
    };
    const { kernel, client, transport, recorder } = simulate(slow, { kernel: slowKernel });
    await kernel.run(client.chat(hi));
    const controller = new AbortController();
    const left = new Error("left");
    const askedAtMs = runtime.now();
    runtime.setTimer(10, () => controller.abort(left));
    expect(await failureOf(kernel, client.chat({ ...hi, signal: controller.signal }))).toBe(left);
    expect(runtime.now() - askedAtMs).toBe(10);
    expect(recorder.rows.map((row) => row.outcome)).toEqual(["success", "cancelled"]);
    expect(transport.sends).toHaveLength(1);
    expect(await kernel.run(client.chat(hi))).toMatchObject({ cacheHit: true, latencyMs: 50 });
    await expectNothingLeft({ kernel, client, transport }, controller.signal);
  });

  it("an answer that was cut at the output limit is not kept", async () => {
    const whole = createScriptedTransport(() => ({ afterMs: 10 }));
    const transport = {
      complete: async (attempt: ChatAttempt) => ({
        ...(await whole.complete(attempt)),
        finishReason: "length" as const,
      }),
      close: async () => {},
    };
    const cache = new MemoryCache();
    const { kernel, client } = simulate(cache, { options: { transport } });
    await kernel.run(client.chat(hi));
    expect(cache.stats().answers).toBe(0);
    expect(await kernel.run(client.chat(hi))).toMatchObject({ cacheHit: false, finishReason: "length" });
  });

  const whole = { content: "kept", thinking: "", toolCalls: [], finishReason: "stop", rawFinishReason: "stop" };
  const entry = {
    ...whole,
    modelReported: null,
    usage: { totalTokens: 1 },
    model: "m",
    provider: "p",
    sourceName: "s",
  };

  it.each<[string, object]>([
    ["no tool call", { toolCalls: [null] }],
    ["half a tool call", { toolCalls: [{ id: "1", name: "f" }] }],
    ["an end that is none", { finishReason: {} }],
    ["an end that is never kept", { finishReason: "length" }],
    ["choices that are none", { choices: [null] }],
    ["a provider that is none", { provider: 5 }],
    ["a model that is none", { modelReported: {} }],
  ])("an entry with %s is a miss", async (_, fault) => {
    const cache: AnswerCache = { get: () => ({ ...entry, ...fault }) as never, set: () => {} };
    const { kernel, client } = simulate(cache);
    expect(await kernel.run(client.chat(hi))).toMatchObject({ content: "answer 1", cacheHit: false });
    expect((await kernel.run(readAll(client.stream(hi)))).length).toBeGreaterThan(0);
    const good = simulate({ get: () => entry as never, set: () => {} });
    expect(await good.kernel.run(good.client.chat(hi))).toMatchObject({ content: "kept", cacheHit: true });
  });

  describe("answers of a response format", () => {
    const format = (more: object = {}) => ({
      type: "json_schema",
      json_schema: { name: "x", schema: { type: "object", required: ["a"] } },
      ...more,
    });
    const answering = (...contents: string[]) =>
      simulate(new MemoryCache(), {
        script: (_, n) => ({ afterMs: 100, content: contents[n - 1] ?? contents.at(-1)! }),
      });

    it("are kept once they fit, and read anew when they are given again", async () => {
      const { kernel, client, transport } = answering('{"b":1}', '```\n{"a":1}\n```');
      const request = { ...hi, responseFormat: format() };
      expect(await failureOf(kernel, client.chat(request))).toMatchObject({ code: "schema" });
      expect(await kernel.run(client.chat(request))).toMatchObject({ parsed: { a: 1 }, cacheHit: false });
      expect(await kernel.run(client.chat(request))).toMatchObject({ parsed: { a: 1 }, cacheHit: true });
      const stream = client.stream(request);
      expect((await kernel.run(readAll(stream))).map(({ type }) => type)).toEqual(["text-delta", "usage", "finish"]);
      expect(await kernel.run(stream.final)).toMatchObject({ parsed: { a: 1 }, cacheHit: true });
      expect(transport.sends).toHaveLength(2);
      await expectNothingLeft({ kernel, client, transport });
    });

    it("are not kept where nobody reads them", async () => {
      const { kernel, client, transport } = answering('{"a":1}');
      const unread = { ...hi, responseFormat: format({ validate: false }) };
      const inExtra = { ...hi, extraBody: { response_format: { type: "json_schema" } } };
      const several = { ...hi, responseFormat: format(), sampling: { n: 2 } };
      for (const request of [unread, unread, inExtra, inExtra, several, several])
        await kernel.run(client.chat(request));
      expect(transport.sends).toHaveLength(6);
    });

    it("that no longer fit are a miss with a warning", async () => {
      const kernel = new SimulationKernel();
      const logs: string[] = [];
      const runtime = { ...kernel.runtime(), log: (_level: string, text: string) => void logs.push(text) };
      const kept = { content: '{"b":1}', thinking: "", toolCalls: [], finishReason: "stop", rawFinishReason: "stop" };
      const usage = { promptTokens: 1, completionTokens: 1, totalTokens: 2, source: "measured" };
      const entry = { ...kept, usage, modelReported: null, model: "m", provider: "p", sourceName: "s_1" };
      const cache: AnswerCache = { get: () => entry as never, set: () => {} };
      const { client } = simulate(cache, {
        kernel,
        options: { runtime },
        script: () => ({ afterMs: 100, content: '{"a":2}' }),
      });
      const reply = await kernel.run(client.chat({ ...hi, responseFormat: format() }));
      expect(reply).toMatchObject({ parsed: { a: 2 }, cacheHit: false });
      expect(logs.join("\n")).toContain("no longer fits");
    });

    it("of structured() too: found by what was asked first, whatever it took", async () => {
      const { kernel, client, transport } = answering("no", '{"a":3}', '{"a":4}');
      const schema = { type: "object", required: ["a"] };
      const first = await kernel.run(client.structured(hi, schema));
      expect(first).toMatchObject({ value: { a: 3 }, asks: 2 });
      const again = await kernel.run(client.structured(hi, schema));
      expect(again).toMatchObject({ value: { a: 3 }, asks: 1, cost: 0, usage: { totalTokens: 0 } });
      expect(again.reply).toMatchObject({ cacheHit: true, parsed: { a: 3 } });
      expect(transport.sends).toHaveLength(2);
      const others = [{ strategy: "prompt" as const }, { name: "other" }];
      for (const options of others) expect((await kernel.run(client.structured(hi, schema, options))).asks).toBe(1);
      await kernel.run(client.structured(hi, { ...schema, title: "another" }));
      expect(transport.sends).toHaveLength(5);
    });
  });

  it("a store may answer with promises of its own kind", async () => {
    const later = <T>(settle: (resolve: (value: T) => void, reject: (error: Error) => void) => void) => ({
      // biome-ignore lint/suspicious/noThenProperty: it is what other libraries' promises are
      then: (resolve: (value: T) => void, reject: (error: Error) => void) => settle(resolve, reject),
    });
    const kept = new MemoryCache();
    const foreign = {
      get: (key: string) => later((resolve) => resolve(kept.get(key))),
      set: (key: string, answer: never) =>
        later((_, reject) => {
          kept.set(key, answer);
          reject(new Error("disk full"));
        }),
    } as unknown as AnswerCache;
    const { kernel, client, transport } = simulate(foreign);
    await kernel.run(client.chat(hi));
    expect(await kernel.run(client.chat(hi))).toMatchObject({ content: "answer 1", cacheHit: true });
    expect(transport.sends).toHaveLength(1);
  });

  it("a wish that is none is refused", async () => {
    const { kernel, client } = simulate(new MemoryCache());
    for (const more of [{ cache: "off" }, { cacheSalt: 7 }, { cacheNamespace: null }]) {
      const error = await failureOf(kernel, client.chat({ ...hi, ...more } as unknown as ChatRequest));
      expect(error).toMatchObject({ code: "bad_request" });
    }
    for (const options of [
      { cache: 7 },
      { cache: { store: {} } },
      { cache: { namespace: 7 } },
      { cache: { salt: {} } },
      { cache: { backend: "redis" } },
      { cache: { store: new MemoryCache(), ttlMs: 5 } },
      { cache: { ttl: 5 } },
    ]) {
      expect(() => simulateOn(governor)({ options: options as never })).toThrow(ConfigError);
    }
  });
});
