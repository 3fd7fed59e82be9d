import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { startSimulatedProvider } from "./server.js";

describe("POST /v1/embeddings", () => {
  it("is what the official SDK reads, as base64 and as floats", async () => {
    await using provider = await startSimulatedProvider();
    const openai = new OpenAI({ baseURL: provider.baseUrl, apiKey: "k", maxRetries: 0 });
    const asked = { model: "e", input: ["a", "b", "a"], dimensions: 5 };
    const packed = await openai.embeddings.create(asked);
    const floats = await openai.embeddings.create({ ...asked, encoding_format: "float" });
    expect(packed.data.map(({ embedding }) => embedding.length)).toEqual([5, 5, 5]);
    expect(packed.data).toEqual(floats.data);
    const [a, b, again] = floats.data.map(({ embedding }) => embedding);
    expect(a).toEqual(again);
    expect(a).not.toEqual(b);
    expect(Math.hypot(...a!)).toBeCloseTo(1, 6);
    expect(floats.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
    expect((await openai.embeddings.create({ model: "e", input: "one" })).data[0]?.embedding.length).toBe(16);
  });

  it.each([
    { input: ["a"] },
    { model: "e", input: [] },
    { model: "e", input: [""] },
    { model: "e", input: ["a"], dimensions: 0 },
    { model: "e", input: ["a"], encoding_format: "hex" },
  ])("refuses %j", async (body) => {
    await using provider = await startSimulatedProvider();
    const reply = await fetch(`${provider.baseUrl}/embeddings`, { method: "POST", body: JSON.stringify(body) });
    expect(reply.status).toBe(400);
    expect(provider.ledger()[0]?.outcome).toBe("bad_request");
  });

  it("has the limits and faults of everything else, and the ledger knows its tokens", async () => {
    await using provider = await startSimulatedProvider({ limits: { rpm: 1, rule: "window" } });
    const body = JSON.stringify({ model: "e", input: ["x".repeat(40)] });
    const send = async () => (await fetch(`${provider.baseUrl}/embeddings`, { method: "POST", body })).status;
    expect([await send(), await send()]).toEqual([200, 429]);
    expect(provider.ledger()[0]).toMatchObject({ promptTokens: 10, completionTokens: 0, outcome: "answered" });
  });
});
