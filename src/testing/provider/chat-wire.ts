import type { Answer } from "./answer.js";
import type { Reply } from "./reply.js";

function usageJson({ request, completionTokens }: Reply): string {
  const { promptTokens } = request;
  return `{"prompt_tokens":${promptTokens},"completion_tokens":${completionTokens},"total_tokens":${promptTokens + completionTokens}}`;
}

function wireToolCalls(calls: NonNullable<Answer["toolCalls"]>): unknown[] {
  return calls.map(({ id, name, arguments: text }, index) => ({
    index,
    id,
    type: "function",
    function: { name, arguments: text },
  }));
}

/** Body of a plain (not streamed) answer. */
export function plainBody(reply: Reply): string {
  const { id, createdS, request, answer, tokens, finishReason } = reply;
  const message: Record<string, unknown> = { role: "assistant", content: tokens.join("") };
  if (answer.thinking) message.reasoning_content = answer.thinking;
  if (answer.toolCalls?.length) message.tool_calls = wireToolCalls(answer.toolCalls);
  return `{"id":"${id}","object":"chat.completion","created":${createdS},"model":${JSON.stringify(request.model)},"choices":[{"index":0,"message":${JSON.stringify(message)},"finish_reason":${JSON.stringify(finishReason)}}],"usage":${usageJson(reply)}}`;
}

export interface StreamEvents {
  /** How many of `delta` come before the first text token. */
  readonly beforeTokens: number;
  /** Role, thinking, text and tool calls: what may be cut anywhere. */
  readonly delta: readonly string[];
  /** Finish reason, usage when asked for, and `[DONE]`. */
  readonly end: string;
}

/** All events of a streamed answer, in order, one token each. */
export function streamEvents(reply: Reply): StreamEvents {
  const { id, createdS, request, answer, tokens, finishReason } = reply;
  const open = `data: {"id":"${id}","object":"chat.completion.chunk","created":${createdS},"model":${JSON.stringify(request.model)},`;
  const deltaOpen = `${open}"choices":[{"index":0,"delta":`;
  const deltaEnd = `,"finish_reason":null}]}\n\n`;
  const delta = [`${deltaOpen}{"role":"assistant","content":""}${deltaEnd}`];
  if (answer.thinking) delta.push(`${deltaOpen}${JSON.stringify({ reasoning_content: answer.thinking })}${deltaEnd}`);
  const beforeTokens = delta.length;
  for (const token of tokens) delta.push(`${deltaOpen}{"content":${JSON.stringify(token)}}${deltaEnd}`);
  if (answer.toolCalls?.length) {
    delta.push(`${deltaOpen}${JSON.stringify({ tool_calls: wireToolCalls(answer.toolCalls) })}${deltaEnd}`);
  }
  const finish = `${deltaOpen}{},"finish_reason":${JSON.stringify(finishReason)}}]}\n\n`;
  const usage = request.includeUsage ? `${open}"choices":[],"usage":${usageJson(reply)}}\n\n` : "";
  return { beforeTokens, delta, end: `${finish}${usage}data: [DONE]\n\n` };
}
