import type { ChatCompletion, ChatResponse } from "../domain/chat.js";
import type { Usage } from "../domain/usage.js";

/** Answers for tests and scripted transports, whole but for what a test is about. */

export function sampleUsage(promptTokens: number, completionTokens: number, changes: Partial<Usage> = {}): Usage {
  return {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    reasoningTokens: null,
    cachedPromptTokens: null,
    source: "measured",
    ...changes,
  };
}

/** As a transport gives it; without usage, as from a provider that reports none. */
export function sampleCompletion(changes: Partial<ChatCompletion> = {}): ChatCompletion {
  return {
    content: "answer",
    thinking: "",
    toolCalls: [],
    finishReason: "stop",
    rawFinishReason: "stop",
    usage: null,
    modelReported: null,
    statusCode: 200,
    latencyMs: 1,
    ttftMs: null,
    ...changes,
  };
}

/** As a client gives it. */
export function sampleResponse(changes: Partial<ChatResponse> = {}): ChatResponse {
  return {
    content: "answer",
    thinking: "",
    toolCalls: [],
    finishReason: "stop",
    rawFinishReason: "stop",
    usage: sampleUsage(1, 1),
    model: "m",
    modelReported: null,
    provider: "p",
    sourceName: "s_1",
    callId: "call",
    requestId: "request",
    latencyMs: 1,
    ttftMs: null,
    attempts: 1,
    cacheHit: false,
    cost: null,
    ...changes,
  };
}
