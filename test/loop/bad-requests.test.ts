import { describe, expect, it } from "vitest";
import type { ChatRequest } from "../../src/domain/chat.js";
import { RequestRejectedError, TransientError } from "../../src/errors.js";
import { failureOf, hi, simulate } from "./harness.js";

const cycle: unknown[] = [];
cycle.push(cycle);

const bad: readonly [string, unknown][] = [
  ["no request", undefined],
  ["null", null],
  ["no messages", {}],
  ["signal null", { ...hi, signal: null }],
  ["signal {}", { ...hi, signal: {} }],
  ["sampling null", { ...hi, sampling: null }],
  ["sampling.n BigInt", { ...hi, sampling: { n: 1n } }],
  ["sampling.maxTokens text", { ...hi, sampling: { maxTokens: "100" } }],
  ["sampling.temperature NaN", { ...hi, sampling: { temperature: Number.NaN } }],
  ["sampling.stop cyclic", { ...hi, sampling: { stop: cycle } }],
  ["tools null", { ...hi, tools: null }],
  ["extraBody text", { ...hi, extraBody: "x" }],
  ["model BigInt", { ...hi, model: 1n }],
  ["sessionId object", { ...hi, sessionId: { a: 1 } }],
  ["part null", { messages: [{ role: "user", content: [null] }] }],
  ["toJSON of nothing", { messages: Object.assign([...hi.messages], { toJSON: () => undefined }) }],
  ["a misspelt field", { ...hi, temperature: 0 }],
];

describe("a request that can't be right", () => {
  it.each(bad)("%s: rejected by name before anything is sent, by chat() and by stream()", async (_, request) => {
    const { kernel, client, transport } = simulate();
    expect(await failureOf(kernel, client.chat(request as ChatRequest))).toBeInstanceOf(RequestRejectedError);
    const stream = client.stream(request as ChatRequest);
    expect(await failureOf(kernel, stream.next())).toBeInstanceOf(RequestRejectedError);
    expect(await failureOf(kernel, stream.final)).toBeInstanceOf(RequestRejectedError);
    expect(transport.sends).toHaveLength(0);
    await kernel.run(client.close());
  });

  it("extra fields nested deeper than the canonical form allows are sent and recorded all the same", async () => {
    const { kernel, client, recorder } = simulate();
    let deep: unknown = 1;
    for (let i = 0; i < 300; i += 1) deep = { deep };
    await kernel.run(client.chat({ ...hi, extraBody: { deep } }));
    expect(recorder.rows[0]?.sampling).toContain('"deep"');
  });

  it("a source that can't be reached shows its reason in the snapshot", async () => {
    const { kernel, client } = simulate({
      options: {
        retry: { maxAttempts: 1 },
        transport: {
          complete: () =>
            Promise.reject(new TransientError("s_1 transient failure: ECONNREFUSED", { code: "network" })),
          close: async () => {},
        },
      },
    });
    await failureOf(kernel, client.chat(hi));
    expect((await client.snapshot()).sources[0]?.lastError).toMatchObject({ code: "network" });
  });
});
