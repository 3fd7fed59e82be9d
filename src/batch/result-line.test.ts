import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, ResultInvalidError, TransientError } from "../errors.js";
import { sampleResponse, sampleUsage } from "../testing/sample-answers.js";
import { chatAnswer } from "./kinds/chat.js";
import { failureLine, failureOf, successLine } from "./result-line.js";

const response = sampleResponse({
  content: "",
  thinking: "hm",
  toolCalls: [{ id: "t1", name: "f", arguments: "{}" }],
  finishReason: "tool_calls",
  rawFinishReason: "tool_calls",
  usage: sampleUsage(3, 5, { reasoningTokens: 2 }),
  model: "configured",
  modelReported: "reported",
  sourceName: "qwen_1",
  callId: "c1",
  requestId: "r1",
  latencyMs: 12.3456,
  attempts: 2,
  cost: 0.25,
});

describe("lines of OUT", () => {
  it("hold an OpenAI chat.completion with thinking, tool calls and usage", () => {
    expect(JSON.parse(successLine("line-1", chatAnswer(response, 5_999)))).toEqual({
      id: "batch_req_c1",
      custom_id: "line-1",
      response: {
        status_code: 200,
        request_id: "r1",
        body: {
          id: "chatcmpl-c1",
          object: "chat.completion",
          created: 5,
          model: "reported",
          choices: [
            {
              index: 0,
              message: {
                role: "assistant",
                content: null,
                reasoning_content: "hm",
                tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: "{}" } }],
              },
              finish_reason: "tool_calls",
            },
          ],
          usage: {
            prompt_tokens: 3,
            completion_tokens: 5,
            total_tokens: 8,
            completion_tokens_details: { reasoning_tokens: 2 },
          },
        },
      },
      error: null,
      pgw: { source: "qwen_1", attempts: 2, cost: 0.25, latencyMs: 12 },
    });
  });

  it("hold all choices, and never a line break", () => {
    const choice = {
      content: "a\nb\u2028",
      thinking: "",
      toolCalls: [],
      finishReason: "stop",
      rawFinishReason: "stop",
    };
    const choices = [{ ...choice, index: 0 } as const, { ...choice, index: 1 } as const];
    const text = successLine("x", chatAnswer({ ...response, choices: choices as never }, 0));
    expect(text).not.toContain("\n");
    expect(JSON.parse(text).response.body.choices.map((c: { index: number }) => c.index)).toEqual([0, 1]);
  });

  it("show in a failure what the other side answered, and keep model output of an invalid answer out", () => {
    const cause = new TransientError("a: 503", { statusCode: 503, bodyText: "busy" });
    const error = new AllSourcesExhausted("ended", { scope: "LLM", reason: "retry_exhausted", retryAfterMs: 1, cause });
    expect(JSON.parse(failureLine("x", failureOf(error), "u"))).toEqual({
      id: "batch_req_u",
      custom_id: "x",
      response: { status_code: 503, body: "busy" },
      error: { code: "retry_exhausted", message: "ended", class: "AllSourcesExhausted" },
    });
    expect(failureOf(new ResultInvalidError("bad", { statusCode: 200, rawText: "secret" })).response).toBeNull();
    expect(failureOf("thrown text")).toEqual({
      code: "unexpected",
      message: "thrown text",
      class: "string",
      response: null,
    });
  });
});
