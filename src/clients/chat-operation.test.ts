import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveScope } from "../config/resolve.js";
import { canonicalJson } from "../domain/canonical-json.js";
import type { ChatCompletion, ChatRequest, Sampling } from "../domain/chat.js";
import type { SourceConfig } from "../domain/source.js";
import { sampleCompletion } from "../testing/sample-answers.js";
import { ChatOperation } from "./chat-operation.js";

const source = (overrides: Partial<SourceConfig> = {}): SourceConfig => ({
  ...resolveScope({
    scope: "LLM",
    sources: [{ name: "s_1", baseUrl: "http://127.0.0.1:9/v1", apiKey: "none", model: "m" }],
  }).config.sources[0]!,
  ...overrides,
});

function operationOf(
  request: Partial<ChatRequest>,
  able: { countsTokens?: boolean; chargesMaximum?: boolean } = {},
  kind: "chat" | "chat_stream" = "chat",
) {
  const whole = { messages: [{ role: "user", content: "x".repeat(400) }], ...request };
  const asked: boolean[] = [];
  const operation = new ChatOperation<null>(
    kind,
    {
      ...whole,
      messagesJson: JSON.stringify(whole.messages),
      cancellation: undefined,
      hasParts: whole.messages.some(({ content }) => Array.isArray(content)),
      images: 0,
    },
    {
      sources: [],
      candidates: [],
      mayHaveToStream: false,
      incapable: null,
      countsTokens: true,
      chargesMaximum: false,
      ...able,
    },
    async (attempt) => {
      asked.push(attempt.stream);
      return null as unknown as ChatCompletion;
    },
  );
  return { operation, asked };
}

const completion = sampleCompletion({ content: "x".repeat(40) });

describe("what a chat call reserves", () => {
  test("its prompt and at most 1,024 tokens for each answer; nothing where no token gate is on", () => {
    expect(operationOf({}).operation.estTokens).toBe(104 + 1_024);
    expect(operationOf({ sampling: { maxTokens: 100 } }).operation.estTokens).toBe(204);
    expect(operationOf({ sampling: { maxTokens: 9_000, n: 2 } }).operation.estTokens).toBe(104 + 2_048);
    expect(operationOf({}, { countsTokens: false }).operation.estTokens).toBe(0);
  });

  test("where the provider charges max_tokens at admission, all of them", () => {
    const able = { chargesMaximum: true };
    expect(operationOf({ sampling: { maxTokens: 9_000, n: 2 } }, able).operation.estTokens).toBe(104 + 18_000);
    expect(operationOf({}, able).operation.estTokens).toBe(104 + 1_024);
  });
});

describe("whether the provider is asked to stream", () => {
  test.each([
    ["the call's wish", { stream: false }, source(), "chat", false],
    ["the call's wish over the source", { stream: true }, source({ stream: false }), "chat", true],
    ["the source", {}, source({ stream: false }), "chat", false],
    ["the default", {}, source(), "chat", true],
    ["a stream streams, whatever is set", { stream: false }, source({ stream: false }), "chat_stream", true],
  ] as const)("%s", async (_, request, to, kind, streams) => {
    const { operation, asked } = operationOf(request, {}, kind);
    await operation.attempt(to, {} as never, () => {});
    expect(asked).toEqual([streams]);
  });
});

describe("column sampling", () => {
  const columnOf = (request: Partial<ChatRequest>, to: SourceConfig | null) =>
    operationOf(request).operation.describeRequest(to).sampling;

  test("the caller's sampling joined with EXTRA_BODY; the caller's alone on a row without a source; null when empty", () => {
    const seeded = source({ extraBody: { seed: 1, top_k: 3 } });
    expect(columnOf({ sampling: { seed: 2 }, extraBody: { user: "u" } }, seeded)).toBe(
      '{"seed":2,"top_k":3,"user":"u"}',
    );
    expect(columnOf({ sampling: { seed: 2 }, extraBody: { user: "u" } }, null)).toBe('{"seed":2,"user":"u"}');
    expect(columnOf({}, seeded)).toBe('{"seed":1,"top_k":3}');
    expect(columnOf({}, source())).toBeNull();
    expect(columnOf({ sampling: {}, extraBody: {} }, source())).toBeNull();
    expect(columnOf({}, null)).toBeNull();
  });

  test("for any sampling the quick way writes what the canonical way does", () => {
    const number = fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: undefined });
    const sampling = fc.record({
      temperature: number,
      topP: number,
      topK: number,
      minP: number,
      maxTokens: number,
      seed: number,
      presencePenalty: number,
      frequencyPenalty: number,
      n: number,
      topLogprobs: number,
      logprobs: fc.option(fc.boolean(), { nil: undefined }),
      stop: fc.option(fc.array(fc.string()), { nil: undefined }),
      unknownToUs: number,
    });
    fc.assert(
      fc.property(sampling, (given) => {
        const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
        const expected = Object.keys(defined).length === 0 ? null : canonicalJson(defined);
        expect(columnOf({ sampling: defined as Sampling }, source())).toBe(expected);
        // Frozen ones are those that the call before had, too.
        const usual = Object.freeze(defined) as Sampling;
        for (let call = 0; call < 2; call += 1) expect(columnOf({ sampling: usual }, source())).toBe(expected);
      }),
    );
  });
});

describe("what is told of an answer", () => {
  test("usage that nobody reported is counted from the texts: content, thinking, tool calls", () => {
    const { operation } = operationOf({});
    const facts = operation.describeReply({
      ...completion,
      thinking: "y".repeat(40),
      toolCalls: [{ id: "1", name: "abcd", arguments: "{}{}" }],
    });
    expect(facts.usage).toEqual({
      promptTokens: 104,
      completionTokens: 10 + 10 + 2,
      totalTokens: 126,
      reasoningTokens: null,
      cachedPromptTokens: null,
      source: "estimated",
    });
    expect(facts.thinking).toBe("y".repeat(40));
  });

  test("an answer that only calls tools is kept as those calls, an empty one as null", () => {
    const { operation } = operationOf({});
    const toolCalls = [{ id: "1", name: "f", arguments: "{}" }];
    expect(operation.describeReply({ ...completion, content: "", toolCalls }).response).toBe(JSON.stringify(toolCalls));
    expect(operation.describeReply({ ...completion, content: "" }).response).toBeNull();
    expect(operation.describePartial({ content: "", thinking: "hm", toolCalls: [], usage: null })).toMatchObject({
      response: null,
      thinking: "hm",
      usage: { source: "estimated" },
    });
  });

  test("a finish reason of the provider's own is told when there is no normalised one", () => {
    const { operation } = operationOf({});
    expect(operation.describeReply({ ...completion, finishReason: null, rawFinishReason: "eos" }).finishReason).toBe(
      "eos",
    );
  });

  test("binary parts of the messages are told as their digest", () => {
    const content = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }];
    const { operation } = operationOf({ messages: [{ role: "user", content }] });
    const { messages } = operation.describeRequest(null);
    expect(messages).toContain("sha256:");
    expect(messages).not.toContain("AAAA");
  });
});
