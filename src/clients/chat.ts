import type { ChatCompletion, ChatRequest, ChatResponse } from "../domain/chat.js";
import { RequestRejectedError } from "../errors.js";
import type { GovernEnvironment } from "../governance/call.js";
import { govern } from "../governance/govern.js";
import type { Answered, Governed, Operation } from "../governance/operation.js";
import type { ChatTransport } from "../ports/transport.js";
import { createAbleSources } from "./able-sources.js";
import { type ChatCache, replayed } from "./chat-cache.js";
import { ChatOperation, type OpenChat } from "./chat-operation.js";
import { checkRequest } from "./chat-request.js";
import { type ChatStream, createChatStream } from "./chat-stream.js";
import { warnOfUnwantedThinking } from "./unwanted-thinking.js";

export interface ChatClient {
  chat(request: ChatRequest): Promise<ChatResponse>;
  stream(request: ChatRequest): ChatStream;
}

/** Told when a call begins and when everything about it is booked, so that closing can wait. `enter` may throw. */
export interface CallLifetime {
  enter(): void;
  leave(): void;
}

/** Chat on the governed loop: the client only states its operation and builds the response. */
export function createChatClient(
  environment: GovernEnvironment,
  transport: ChatTransport,
  lifetime: CallLifetime,
  cache: ChatCache | null = null,
): ChatClient {
  const able = createAbleSources(environment.config);

  const openPlain: OpenChat<null> = (attempt) => transport.complete(attempt);

  async function chat(request: ChatRequest): Promise<ChatResponse> {
    lifetime.enter();
    try {
      const checked = checkRequest(request, "chat");
      const pool = able(checked);
      const operation = new ChatOperation("chat", checked, pool, openPlain);
      const key = cache === null ? null : cache.keyOf(checked, pool.sources);
      if (key !== null) {
        const hit = await cache!.answer(key, checked, operation as Operation<unknown, unknown>);
        if (hit !== null) return hit;
      }
      const governed = await govern(environment, operation, checked);
      const answered = governed.ended instanceof Promise ? await governed.ended : governed.ended;
      warnOfUnwantedThinking(environment.warn, checked, governed.source, answered.completion);
      if (key !== null) cache!.keep(key, checked, governed, answered);
      return chatResponse(governed, answered);
    } finally {
      lifetime.leave();
    }
  }

  function stream(request: ChatRequest): ChatStream {
    return createChatStream(request, lifetime, async (openChat, cancellation) => {
      const checked = checkRequest(request, "chat_stream", cancellation);
      if ((checked.sampling?.n ?? 1) > 1) {
        throw new RequestRejectedError("stream() answers one choice; use chat() for n > 1", {
          operation: "chat_stream",
        });
      }
      const open: OpenChat<null> = (attempt) => openChat(transport, attempt);
      const pool = able(checked);
      const operation = new ChatOperation("chat_stream", checked, pool, open);
      const key = cache === null ? null : cache.keyOf(checked, pool.sources);
      if (key !== null) {
        const hit = await cache!.answer(key, checked, operation as Operation<unknown, unknown>);
        if (hit !== null) return { events: replayed(hit), ended: Promise.resolve(hit) };
      }
      const governed = await govern(environment, operation, checked);
      const ended = Promise.resolve(governed.ended).then((answered) => {
        warnOfUnwantedThinking(environment.warn, checked, governed.source, answered.completion);
        if (key !== null) cache!.keep(key, checked, governed, answered);
        return chatResponse(governed, answered);
      });
      return { events: [], ended };
    });
  }

  return { chat, stream };
}

const NANOS_PER_UNIT = 1e9;

export function chatResponse(
  governed: Governed<unknown, ChatCompletion>,
  { completion, facts, costNanos }: Answered<ChatCompletion>,
): ChatResponse {
  const response: { -readonly [Field in keyof ChatResponse]: ChatResponse[Field] } = {
    content: completion.content,
    thinking: completion.thinking,
    toolCalls: completion.toolCalls,
    finishReason: completion.finishReason,
    rawFinishReason: completion.rawFinishReason,
    usage: facts.usage,
    model: governed.source.model,
    modelReported: completion.modelReported,
    provider: governed.source.provider,
    sourceName: governed.source.name,
    callId: governed.callId,
    requestId: governed.requestId,
    latencyMs: completion.latencyMs,
    ttftMs: completion.ttftMs,
    attempts: governed.attempts,
    cacheHit: false,
    cost: costNanos === null ? null : Number(costNanos) / NANOS_PER_UNIT,
  };
  if (completion.refusal !== undefined) response.refusal = completion.refusal;
  if (completion.choices !== undefined) response.choices = completion.choices;
  if (completion.logprobs !== undefined) response.logprobs = completion.logprobs;
  return response;
}
