import type { ChatCompletion, ChatRequest, ChatResponse } from "../domain/chat.js";
import type { OperationKind } from "../domain/record.js";
import type { StructuredCall } from "../domain/structured.js";
import { RequestRejectedError } from "../errors.js";
import type { GovernEnvironment } from "../governance/call.js";
import { govern } from "../governance/govern.js";
import type { Answered, Governed, Operation } from "../governance/operation.js";
import type { ChatTransport } from "../ports/transport.js";
import type { ZodConverter } from "../structured/standard.js";
import { type AbleSources, createAbleSources } from "./able-sources.js";
import { type AnswerFormat, createFormatShelf, plainFormat } from "./answer-format.js";
import type { CallLifetime } from "./call-lifetime.js";
import { type ChatCache, replayed } from "./chat-cache.js";
import { ChatOperation, type OpenChat } from "./chat-operation.js";
import { type CheckedRequest, checkRequest } from "./chat-request.js";
import { type ChatSharing, sharedResponse } from "./chat-sharing.js";
import { type ChatStream, createChatStream } from "./chat-stream.js";
import { createStructured } from "./structured.js";
import { warnOfUnwantedThinking } from "./unwanted-thinking.js";

export interface ChatClient {
  chat(request: ChatRequest): Promise<ChatResponse>;
  stream(request: ChatRequest): ChatStream;
  readonly structured: StructuredCall;
}

export interface ChatClientOptions {
  readonly cache: ChatCache | null;
  readonly sharing: ChatSharing | null;
  readonly zodToJsonSchema: ZodConverter;
}

type AnyOperation = Operation<unknown, unknown>;
type Asked = Governed<null, ChatCompletion>;

/** Chat on the governed loop: the client only states its operation and builds the response. */
export function createChatClient(
  environment: GovernEnvironment,
  transport: ChatTransport,
  lifetime: CallLifetime,
  { cache, sharing, zodToJsonSchema }: ChatClientOptions,
): ChatClient {
  const able = createAbleSources(environment.config);
  const shelf = createFormatShelf(zodToJsonSchema);
  const openPlain: OpenChat<null> = (attempt) => transport.complete(attempt);

  /** One governed call: from the cache where it may, kept where it may. */
  async function answer(
    checked: CheckedRequest,
    pool: AbleSources,
    format: AnswerFormat | null,
    key: string | null,
    shared: string | null = null,
  ): Promise<ChatResponse> {
    const operation = new ChatOperation("chat", checked, pool, openPlain, format);
    const hit = key === null ? null : await cache!.answer(key, checked, operation as AnyOperation, format);
    if (hit !== null) return hit;
    if (shared !== null) return answerShared(shared, operation, checked, key);
    const governed = await govern(environment, operation, checked);
    return concluded(checked, governed, governed.ended instanceof Promise ? await governed.ended : governed.ended, key);
  }

  /** Once for every answer that a provider gave. */
  function concluded(
    checked: CheckedRequest,
    governed: Asked,
    answered: Answered<ChatCompletion>,
    key: string | null,
  ): ChatResponse {
    warnOfUnwantedThinking(environment.warn, checked, governed.source, answered.completion);
    if (key !== null) cache!.keep(key, checked, governed, answered);
    return chatResponse(governed, answered);
  }

  /** The same, with the attempts of whoever asks the same at this moment. */
  async function answerShared(
    shared: string,
    operation: ChatOperation<null>,
    checked: CheckedRequest,
    key: string | null,
  ): Promise<ChatResponse> {
    const { governed, answered, hit } = await sharing!.run(shared, operation, checked);
    const response = hit === null ? concluded(checked, governed, answered, key) : chatResponse(governed, answered);
    return sharedResponse(response, hit);
  }

  async function chat(request: ChatRequest): Promise<ChatResponse> {
    lifetime.enter();
    try {
      const checked = checkRequest(request, "chat");
      const pool = able(checked);
      const format = formatOf(checked, "chat");
      const key = cache === null ? null : cache.keyOf(checked, pool.sources, format);
      const shared = sharing === null ? null : sharing.keyOf(checked, pool.sources, key);
      if (key !== null || shared !== null) return await answer(checked, pool, format, key, shared);
      // As in answer(), which would be one asynchronous function more for nearly every call.
      const governed = await govern(environment, new ChatOperation("chat", checked, pool, openPlain, format), checked);
      return concluded(
        checked,
        governed,
        governed.ended instanceof Promise ? await governed.ended : governed.ended,
        null,
      );
    } finally {
      lifetime.leave();
    }
  }

  /** Nearly every call has none, and pays nothing for it. */
  function formatOf(checked: CheckedRequest, operation: OperationKind): AnswerFormat | null {
    return checked.responseFormat === undefined ? null : plainFormat(checked.responseFormat, shelf, operation);
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
      const format = formatOf(checked, "chat_stream");
      const operation = new ChatOperation("chat_stream", checked, pool, open, format);
      const key = cache === null ? null : cache.keyOf(checked, pool.sources, format);
      const hit = key === null ? null : await cache!.answer(key, checked, operation as AnyOperation, format);
      if (hit !== null) return { events: replayed(hit), ended: Promise.resolve(hit) };
      const governed = await govern(environment, operation, checked);
      const ended = Promise.resolve(governed.ended).then((answered) => concluded(checked, governed, answered, key));
      return { events: [], ended };
    });
  }

  const structured = createStructured({ environment, lifetime, able, shelf, cache, answer });
  return { chat, stream, structured };
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
  if ("parsed" in completion) response.parsed = completion.parsed;
  return response;
}
