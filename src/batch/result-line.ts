import type { ChatChoice, ChatResponse } from "../domain/chat.js";
import type { Usage } from "../domain/usage.js";
import { PolyGatewayError, ResultInvalidError } from "../errors.js";
import type { EmbeddingResponse } from "./embedding-lines.js";
import { LineKillsWorkersError } from "./workers/restarts.js";

/** The OUT line of an answer (spec 08), without the line end. */
export function successLine(lineId: string, response: ChatResponse, createdAtMs: number): string {
  return JSON.stringify({
    id: `batch_req_${response.callId}`,
    custom_id: lineId,
    response: { status_code: 200, request_id: response.requestId, body: completionBody(response, createdAtMs) },
    error: null,
    pgw: {
      source: response.sourceName,
      attempts: response.attempts,
      cost: response.cost,
      latencyMs: Math.round(response.latencyMs),
    },
  });
}

/** The same for vectors; several calls may have made them, each with a row of its own. */
export function embeddingSuccess(lineId: string, response: EmbeddingResponse, body: unknown): string {
  const { callId, calls, sourceName, attempts, cost, latencyMs } = response;
  return JSON.stringify({
    id: `batch_req_${callId}`,
    custom_id: lineId,
    response: { status_code: 200, request_id: callId, body },
    error: null,
    pgw: { source: sourceName, attempts, cost, latencyMs: Math.round(latencyMs), ...(calls > 1 ? { calls } : {}) },
  });
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

export interface LineFailure {
  readonly code: string;
  readonly message: string;
  readonly class: string;
  /** What the other side answered, when it answered: digest of its body. */
  readonly response: { readonly status_code: number; readonly body: string } | null;
  /** What is wrong with an answer that doesn't fit its response format. */
  readonly issues?: readonly unknown[];
}

/** The OUT line of a failure (spec 08), without the line end. `uuid` only makes the line's `id` unique. */
export function failureLine(lineId: string, failure: LineFailure, uuid: string): string {
  const { response, ...error } = failure;
  return JSON.stringify({ id: `batch_req_${uuid}`, custom_id: lineId, response, error });
}

export function failureOf(error: unknown): LineFailure {
  if (error instanceof LineKillsWorkersError) {
    return { code: "kills_workers", message: error.message, class: error.name, response: null };
  }
  if (!PolyGatewayError.isInstance(error)) {
    const known = error instanceof Error;
    return {
      code: "unexpected",
      message: known ? error.message : String(error),
      class: known ? error.name : typeof error,
      response: null,
    };
  }
  const failure = { code: error.code, message: error.message, class: error.name, response: refusedBody(error) };
  return ResultInvalidError.isInstance(error) && error.issues.length > 0
    ? { ...failure, issues: error.issues }
    : failure;
}

/** A scope-level error carries no body itself: the last attempt's is its cause. */
function refusedBody(error: PolyGatewayError): LineFailure["response"] {
  if (ResultInvalidError.isInstance(error)) return null;
  if (error.statusCode !== undefined) return { status_code: error.statusCode, body: error.bodyText };
  return PolyGatewayError.isInstance(error.cause) ? refusedBody(error.cause) : null;
}

/** A line that was never sent because it can't be read. */
export function brokenLineFailure(message: string): LineFailure {
  return { code: "bad_line", message, class: "RequestRejectedError", response: null };
}
