import { digestBinaryParts } from "../domain/binary-digest.js";
import { canonicalJson } from "../domain/canonical-json.js";
import type { ChatCompletion, ChatRequest, ToolCall } from "../domain/chat.js";
import { estimatePromptTokens, estimateReservation, estimateTextTokens } from "../domain/estimate.js";
import type { OperationKind } from "../domain/record.js";
import type { SourceConfig } from "../domain/source.js";
import type { Usage } from "../domain/usage.js";
import type { PartialReply } from "../errors.js";
import type { Opened, Operation, PartialFacts, ReplyFacts } from "../governance/operation.js";
import type { AttemptContext, ChatAttempt } from "../ports/transport.js";

/** The sources a request may go to; one object per client and model, so that its arrays keep their identity. */
export interface AbleSources {
  readonly sources: readonly SourceConfig[];
  readonly candidates: readonly string[];
  /** Some token gate is on, so that an estimate is needed at admission. */
  readonly countsTokens: boolean;
  readonly chargesMaximum: boolean;
}

export type OpenChat<Value> = (attempt: ChatAttempt, context: AttemptContext) => Promise<Opened<Value, ChatCompletion>>;

/** States what chat is to the loop: estimate, attempt, telemetry description. */
export function chatOperation<Value>(
  kind: OperationKind,
  request: ChatRequest,
  messagesJson: string,
  able: AbleSources,
  open: OpenChat<Value>,
): Operation<Value, ChatCompletion> {
  let promptTokens = -1;
  const prompt = (): number => {
    if (promptTokens < 0) promptTokens = estimatePromptTokens(request.messages, request.tools);
    return promptTokens;
  };
  let messages: string | null = null;
  return {
    kind,
    sources: able.sources,
    candidates: able.candidates,
    get promptTokens() {
      return prompt();
    },
    get estTokens() {
      return able.countsTokens ? reservation(request, prompt(), able.chargesMaximum) : 0;
    },
    attempt(source, context) {
      const stream = kind === "chat_stream" || (request.stream ?? source.stream);
      return open({ source, request, messagesJson, stream, context }, context);
    },
    describeRequest(source) {
      messages ??= digestBinaryParts(messagesJson);
      return { messages, sampling: samplingColumn(request, source) };
    },
    describeReply: (completion) => describeReply(completion, prompt),
    describePartial: (partial) => describePartial(partial, prompt),
  };
}

function reservation(request: ChatRequest, promptTokens: number, chargesMaximum: boolean): number {
  const { maxTokens, n } = request.sampling ?? {};
  const usual = estimateReservation(promptTokens, request.sampling);
  return chargesMaximum && maxTokens !== undefined ? Math.max(usual, promptTokens + maxTokens * (n ?? 1)) : usual;
}

function samplingColumn(request: ChatRequest, source: SourceConfig | null): string | null {
  const { sampling, extraBody } = request;
  if (sampling === undefined && extraBody === undefined && source === null) return null;
  const joined = { ...source?.extraBody, ...extraBody, ...sampling };
  return Object.keys(joined).length === 0 ? null : canonicalJson(joined);
}

function describeReply(completion: ChatCompletion, prompt: () => number): ReplyFacts {
  return {
    usage: completion.usage ?? estimatedUsage(prompt(), completion),
    response: responseText(completion.content, completion.toolCalls),
    thinking: completion.thinking === "" ? null : completion.thinking,
    modelReported: completion.modelReported,
    statusCode: completion.statusCode,
    finishReason: completion.finishReason ?? completion.rawFinishReason,
    latencyMs: completion.latencyMs,
    ttftMs: completion.ttftMs,
  };
}

function describePartial(partial: PartialReply, prompt: () => number): PartialFacts {
  return {
    usage: (partial.usage as Usage | null | undefined) ?? estimatedUsage(prompt(), partial),
    response: responseText(partial.content, partial.toolCalls),
    thinking: partial.thinking === "" ? null : partial.thinking,
  };
}

/** An answer that only calls tools is kept as those calls. */
function responseText(content: string, toolCalls: readonly ToolCall[]): string | null {
  if (content !== "") return content;
  return toolCalls.length === 0 ? null : JSON.stringify(toolCalls);
}

/** The provider reported no usage: counted from the actual texts and marked (spec 02 §3). EST_TOKENS never gets here. */
function estimatedUsage(
  promptTokens: number,
  reply: { content: string; thinking: string; toolCalls: readonly ToolCall[] },
): Usage {
  let completionTokens = estimateTextTokens(reply.content) + estimateTextTokens(reply.thinking);
  for (const call of reply.toolCalls) completionTokens += estimateTextTokens(call.name + call.arguments);
  return {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    reasoningTokens: null,
    cachedPromptTokens: null,
    source: "estimated",
  };
}
