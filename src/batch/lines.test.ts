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
/** The chat request of a line. */
const requestOf = ({ request }: BatchLine): ChatRequest => {
  if (request.kind !== "chat") throw new Error(request.kind);
  return request.request;
};
const chatOf = (value: unknown): ChatRequest => requestOf(good(value));
const problem = (value: unknown): string => (parse(value) as BrokenLine).problem;

describe("forms of a line", () => {
  it("reads the OpenAI Batch form", () => {
    const line = good({ custom_id: "a", method: "POST", url: "/v1/chat/completions", body: { messages, model: "m" } });
    expect(line).toMatchObject({ id: "a", request: { kind: "chat", request: { messages, model: "m" } } });
  });

  it("reads messages and prompt lines; the rest of the line is the request", () => {
    expect(chatOf({ id: "b", messages, user: "u", temperature: 0 })).toEqual({
      messages,
      sampling: { temperature: 0 },
      extraBody: { user: "u" },
    });
    expect(chatOf({ prompt: "hi", url: "x", method: "POST" })).toEqual({ messages });
  });

  it("reads embedding lines, by their address or by their input", () => {
    const line = { kind: "embedding", texts: ["x"], base64: false };
    expect(good({ url: "/v1/embeddings", body: { input: "x", model: "e" } }).request).toEqual({ ...line, model: "e" });
    expect(good({ body: { input: ["x"], encoding_format: "base64", dimensions: 8 } }).request).toEqual({
      ...line,
      base64: true,
      dimensions: 8,
    });
    expect(good({ id: 1, input: "x" }).request).toEqual(line);
  });

  it("reads OCR lines: a file, or one page of it, as text or as layout", () => {
    const line = { kind: "ocr", operation: "ocr_text", image: "a.pdf" };
    expect(good({ image: "a.pdf" }).request).toEqual(line);
    expect(good({ image: "a.pdf", page: 3, layout: true, model: "m" }).request).toEqual({
      ...line,
      operation: "ocr_layout",
      page: 3,
      model: "m",
    });
    expect(good({ url: "/v1/ocr/layout", body: { image: "a.pdf" } }).request).toMatchObject({
      operation: "ocr_layout",
    });
  });

  it("leaves what is the user's own beside a body alone", () => {
    expect(good({ body: { messages }, page: 3, title: "mine", user: "u" }).request.kind).toBe("chat");
    expect(good({ prompt: null, messages }).request.kind).toBe("chat");
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
    [{ foo: 1 }, /neither body, messages, prompt, input nor image/],
    [{ prompt: 3 }, /prompt must be a text/],
    [{ messages: "hi" }, /messages must be a list/],
    [{ messages: [] }, /messages is empty/],
    [{ messages: [{ role: "user" }, { content: "x" }] }, /messages\[1\]/],
    [{ body: 3 }, /body must be an object/],
    [{ body: {} }, /body has no messages/],
    [{ body: { messages }, method: "GET" }, /method "GET"/],
    [{ body: { messages }, url: "/v1/responses" }, /"\/v1\/responses" is not supported/],
    [{ body: { messages, model: 5 } }, /model must be a text/],
    [{ url: "/v1/embeddings", body: { messages } }, /"messages" is not supported in an embedding line/],
    [{ body: { input: [1, 2] } }, /input must be a text or a list of texts/],
    [{ input: [] }, /input is empty/],
    [{ input: "x", dimensions: 1.5 }, /dimensions must be a whole number/],
    [{ input: "x", encoding_format: "hex" }, /float or base64/],
    [{ image: "" }, /image must be the path/],
    [{ image: "a.pdf", pages: 2 }, /"pages" is not supported in an OCR line; did you mean "page"\?/],
    [{ body: { image: "a.pdf", Page: 2 } }, /did you mean "page"/],
    [{ input: "x", dimension: 8 }, /"dimension" is not supported in an embedding line; did you mean "dimensions"\?/],
    [{ url: "/v1/ocr/text", body: { image: "a.pdf", layout: true } }, /layout contradicts the url/],
    [{ url: "/v1/ocr/text", body: { image: "a.pdf" }, page: 2 }, /"page" stands beside body/],
    [{ body: { messages }, temperature: 0 }, /"temperature" stands beside body/],
    [{ image: "a.pdf", prompt: "read it" }, /has prompt and image: only one/],
    [{ messages, prompt: "hi" }, /has messages and prompt/],
    [{ image: "https://example.org/a.png" }, /pictures by address are not fetched/],
    [{ image: "a.pdf", page: 0 }, /page must be a whole number/],
    [{ image: "a.pdf", layout: "yes" }, /layout must be true or false/],
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
    expect(chatOf({ custom_id: "a", body })).toEqual({
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
    expect(chatOf({ messages, max_completion_tokens: 9, max_tokens: 5 }).sampling).toEqual({ maxTokens: 9 });
    expect(chatOf({ messages, temperature: "hot", stop: 5, tools: {} })).toEqual({
      messages,
      extraBody: { temperature: "hot", stop: 5, tools: {} },
    });
  });

  it("keeps a field named __proto__ a field", () => {
    const line = parseLine({ number: 1, text: '{"prompt":"x","__proto__":{"polluted":true},"constructor":1}' });
    const extra = requestOf(line as BatchLine).extraBody ?? {};
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
