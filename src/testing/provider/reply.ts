import { type Answer, type ReceivedRequest, resizeTokens, toTokens } from "./answer.js";
import type { Plan } from "./plan.js";

/** An answer ready to be sent: its text in tokens, its end, its usage. */
export interface Reply {
  readonly id: string;
  readonly createdS: number;
  readonly request: ReceivedRequest;
  readonly answer: Answer;
  readonly tokens: readonly string[];
  readonly finishReason: string;
  readonly completionTokens: number;
  /** The whole body of an answer that is no chat completion. */
  readonly json?: string;
}

/** Brings an answer to the planned length and below the request's token limit. */
export function buildReply(
  request: ReceivedRequest,
  answer: Answer,
  plan: Plan,
  made: Pick<Reply, "id" | "createdS">,
): Reply {
  let tokens = toTokens(answer.content);
  if (plan.outputTokens !== null) tokens = resizeTokens(tokens, plan.outputTokens);
  const isCut = request.maxTokens !== undefined && tokens.length > request.maxTokens;
  if (isCut) tokens = tokens.slice(0, request.maxTokens);
  const thinkingTokens = answer.thinking ? toTokens(answer.thinking).length : 0;
  const callTokens = (answer.toolCalls ?? []).reduce((sum, call) => sum + toTokens(call.arguments).length + 1, 0);
  const ownEnd = answer.finishReason ?? (answer.toolCalls?.length ? "tool_calls" : "stop");
  return {
    ...made,
    request,
    answer,
    tokens,
    finishReason: isCut ? "length" : ownEnd,
    completionTokens: tokens.length + thinkingTokens + callTokens,
  };
}
