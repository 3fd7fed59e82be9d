import type { ChatChoice, ChatRequest, ChatResponse } from "../../domain/chat.js";
import type { Usage } from "../../domain/usage.js";
import type { Runtime } from "../../ports/runtime.js";
import type { BatchClient } from "../types.js";
import type { LineAnswer } from "./kinds.js";

/** The slice of GatewayClient that chat lines need. */
export interface ChatLineClient extends Pick<BatchClient, "scope" | "models" | "snapshot" | "leases" | "workers"> {
  chat(request: ChatRequest): Promise<ChatResponse>;
}

/** Chat lines, answered by a client for chat. */
export function chatLines(client: ChatLineClient, runtime: Pick<Runtime, "wallNow">): BatchClient {
  return {
    kind: "chat",
    scope: client.scope,
    models: client.models,
    async call({ request, sessionId, parentCallId }, signal) {
      if (request.kind !== "chat") throw new TypeError(`a line of kind ${request.kind} came to a client for chat`);
      const response = await client.chat({ ...request.request, sessionId, parentCallId, signal });
      return chatAnswer(response, runtime.wallNow());
    },
    snapshot: () => client.snapshot(),
    leases: () => client.leases(),
    ...(client.workers === undefined ? {} : { workers: () => client.workers!() }),
  };
}

export function chatAnswer(response: ChatResponse, createdAtMs: number): LineAnswer {
  const { callId, requestId, sourceName, attempts, cost, latencyMs, usage } = response;
  const body = completionBody(response, createdAtMs);
  return { callId, requestId, sourceName, attempts, cost, latencyMs, usage, body };
}

/** An OpenAI `chat.completion`; thinking stands in `reasoning_content`. */
function completionBody(response: ChatResponse, createdAtMs: number): unknown {
  const choices = response.choices ?? [{ ...response, index: 0 }];
  return {
    id: `chatcmpl-${response.callId}`,
    object: "chat.completion",
    created: Math.floor(createdAtMs / 1000),
    model: response.modelReported ?? response.model,
    choices: choices.map((choice) => choiceBody(choice, response)),
    usage: usageBody(response.usage),
  };
}

function choiceBody(choice: ChatChoice, response: ChatResponse): unknown {
  const { content, thinking, toolCalls, finishReason, rawFinishReason } = choice;
  return {
    index: choice.index,
    message: {
      role: "assistant",
      content: content === "" && toolCalls.length > 0 ? null : content,
      ...(thinking === "" ? {} : { reasoning_content: thinking }),
      ...(response.refusal === undefined || choice.index > 0 ? {} : { refusal: response.refusal }),
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toolCallBody) }),
    },
    ...(response.logprobs === undefined || choice.index > 0 ? {} : { logprobs: response.logprobs }),
    finish_reason: finishReason === "unknown" ? rawFinishReason : finishReason,
  };
}

function toolCallBody({ id, name, arguments: args }: ChatResponse["toolCalls"][number]): unknown {
  return { id, type: "function", function: { name, arguments: args } };
}

function usageBody(usage: Usage): unknown {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.totalTokens,
    ...(usage.cachedPromptTokens === null
      ? {}
      : { prompt_tokens_details: { cached_tokens: usage.cachedPromptTokens } }),
    ...(usage.reasoningTokens === null
      ? {}
      : { completion_tokens_details: { reasoning_tokens: usage.reasoningTokens } }),
  };
}
