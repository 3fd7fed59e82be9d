import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatRequest } from "../domain/chat.js";
import { type BatchLine, type BrokenLine, parseLine } from "./lines.js";

const parse = (value: unknown, number = 1) => parseLine({ number, text: JSON.stringify(value) });
const messages = [{ role: "user", content: "hi" }];
const good = (value: unknown): BatchLine => {
  const line = parse(value);
  if (line.kind === "broken") throw new Error(line.problem);
  return line;
};
const problem = (value: unknown): string => (parse(value) as BrokenLine).problem;

describe("forms of a line", () => {
  it("reads the OpenAI Batch form", () => {
    const line = good({ custom_id: "a", method: "POST", url: "/v1/chat/completions", body: { messages, model: "m" } });
    expect(line).toMatchObject({ id: "a", request: { messages, model: "m" } });
  });

  it("reads messages and prompt lines; the rest of the line is the request", () => {
    expect(good({ id: "b", messages, user: "u", temperature: 0 }).request).toEqual({
      messages,
      sampling: { temperature: 0 },
      extraBody: { user: "u" },
    });
    expect(good({ prompt: "hi", url: "x", method: "POST" }).request).toEqual({ messages });
  });

  it("takes custom_id before id, numbers as text, and the physical line number when there is neither", () => {
    expect(good({ custom_id: "a", id: "b", messages }).id).toBe("a");
    expect(good({ custom_id: null, id: 7, messages }).id).toBe("7");
    expect(parse({ messages }, 12).id).toBe("line-12");
  });

  it.each([
    [[1], /not a JSON object/],
    [{ custom_id: "", messages }, /custom_id must be a text/],
    [{ id: {}, messages }, /id must be a text/],
    [{ foo: 1 }, /neither body, messages nor prompt/],
    [{ prompt: 3 }, /prompt must be a text/],
    [{ messages: "hi" }, /messages must be a list/],
    [{ messages: [] }, /messages is empty/],
    [{ messages: [{ role: "user" }, { content: "x" }] }, /messages\[1\]/],
    [{ body: 3 }, /body must be an object/],
    [{ body: {} }, /body has no messages/],
    [{ body: { messages }, method: "GET" }, /method "GET"/],
    [{ body: { messages }, url: "/v1/responses" }, /"\/v1\/responses" is not supported/],
    [{ body: { messages, model: 5 } }, /model must be a text/],
    [{ url: "/v1/embeddings", body: { input: "x" } }, /an embedding line, and the scope is one for chat/],
    [{ body: { input: ["x"] } }, /an embedding line, and the scope is one for chat/],
    [{ input: "x" }, /an embedding line, and the scope is one for chat/],
    [{ image: "a.png" }, /OCR lines are not supported/],
  ])("refuses %j with the reason", (value, reason) => {
    expect(problem(value)).toMatch(reason);
  });

  it("keeps the line's own id on a broken line where it can be read", () => {
    expect(parse({ custom_id: "mine", body: {} }, 4).id).toBe("mine");
    expect(parseLine({ number: 4, text: "{oops" })).toMatchObject({ kind: "broken", id: "line-4" });
    expect(parseLine({ number: 5, problem: "too long" })).toMatchObject({ id: "line-5", problem: "too long" });
  });
});

describe("wire fields", () => {
  it("maps what the request type names and passes everything else through untouched", () => {
    const body = {
      messages,
      model: "m",
      temperature: 0.5,
      top_p: 1,
      max_tokens: 5,
      stop: ["x"],
      seed: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      logit_bias: { "5": 1 },
      logprobs: true,
      top_logprobs: 2,
      n: 2,
      tools: [{ type: "function" }],
      tool_choice: "auto",
      response_format: { type: "json_object" },
      stream: true,
      stream_options: { include_usage: true },
      enable_thinking: false,
      metadata: { id: 1 },
      id: "kept: a field of the request, not of the line",
    };
    expect(good({ custom_id: "a", body }).request).toEqual({
      messages,
      model: "m",
      sampling: {
        temperature: 0.5,
        topP: 1,
        maxTokens: 5,
        stop: ["x"],
        seed: 1,
        presencePenalty: 0,
        frequencyPenalty: 0,
        logitBias: { "5": 1 },
        logprobs: true,
        topLogprobs: 2,
        n: 2,
      },
      tools: [{ type: "function" }],
      toolChoice: "auto",
      responseFormat: { type: "json_object" },
      extraBody: { enable_thinking: false, metadata: { id: 1 }, id: body.id },
    });
  });

  it("lets max_completion_tokens win and hands a strange value to the provider as given", () => {
    expect((good({ messages, max_completion_tokens: 9, max_tokens: 5 }).request as ChatRequest).sampling).toEqual({
      maxTokens: 9,
    });
    expect(good({ messages, temperature: "hot", stop: 5, tools: {} }).request).toEqual({
      messages,
      extraBody: { temperature: "hot", stop: 5, tools: {} },
    });
  });

  it("keeps a field named __proto__ a field", () => {
    const line = parseLine({ number: 1, text: '{"prompt":"x","__proto__":{"polluted":true},"constructor":1}' });
    const extra = ((line as BatchLine).request as ChatRequest).extraBody ?? {};
    expect(Object.hasOwn(extra, "__proto__")).toBe(true);
    expect(extra.polluted).toBeUndefined();
    expect(extra.constructor).toBe(1);
  });

  it("never throws and always gives a non-empty id, whatever the line holds", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), fc.nat(), (text, number) => {
        const line = parseLine({ number, text });
        expect(line.id).not.toBe("");
        expect(line.number).toBe(number);
      }),
    );
  });
});
