import { cacheKey, isCacheable } from "../domain/cache-key.js";
import type { ChatCompletion, ChatEvent, ChatResponse } from "../domain/chat.js";
import type { SourceConfig } from "../domain/source.js";
import type { GovernEnvironment } from "../governance/call.js";
import { endWithHit } from "../governance/hit.js";
import type { Answered, CallOptions, Governed, Operation } from "../governance/operation.js";
import type { AnswerCache, CachedAnswer } from "../ports/cache.js";
import type { CheckedRequest } from "./chat-request.js";

/** A cache is asked for as long as a person would not notice; then the call goes on without it. */
const ASK_MS = 250;

/** The cache as one client uses it; null where none is configured. */
export interface ChatCache {
  /** The place of this call in the cache; null when it is not to be looked up or kept. */
  keyOf(request: CheckedRequest, sources: readonly SourceConfig[]): string | null;
  /** Answers from the cache, with its telemetry row written; null on a miss. */
  answer(key: string, request: CheckedRequest, operation: Operation<unknown, unknown>): Promise<ChatResponse | null>;
  /** Keeps a good answer. Never waits, never throws. */
  keep(key: string, governed: Governed<unknown, unknown>, answered: Answered<ChatCompletion>): void;
}

export interface ChatCacheOptions {
  readonly namespace: string;
  readonly salt: string;
}

export function createChatCache(
  environment: GovernEnvironment,
  cache: AnswerCache,
  { namespace, salt }: ChatCacheOptions,
): ChatCache {
  const { runtime, config } = environment;
  const warn = (what: string, error: unknown): void => {
    const text = error instanceof Error ? error.message : String(error);
    environment.warn("cache", what, `scope ${config.scope}: the answer cache failed (${text}); calls go on without it`);
  };

  async function read(key: string, options: CallOptions): Promise<CachedAnswer | null> {
    try {
      const asked = cache.get(key);
      const found: unknown = asked instanceof Promise ? await bounded(environment, asked, options) : asked;
      if (found === null || found === undefined || isAnswer(found)) return found ?? null;
      throw new Error("an entry is no answer");
    } catch (error) {
      warn("get", error);
      return null;
    }
  }

  return {
    keyOf(request, sources) {
      if (request.cache === "bypass" || sources.length === 0 || asksForSchema(request)) return null;
      return cacheKey({
        request,
        messagesJson: request.messagesJson,
        sources,
        namespace: request.cacheNamespace ?? namespace,
        salt: request.cacheSalt ?? salt,
      });
    },
    async answer(key, request, operation) {
      if (request.cache === "refresh" || isOver(request)) return null;
      const askedMs = runtime.now();
      const found = await read(key, request);
      if (found === null || isOver(request)) return null;
      return responseOf(found, await endWithHit(environment, operation, request, found, askedMs));
    },
    keep(key, { source }, { completion, facts }) {
      if (!isCacheable(completion)) return;
      const { content, thinking, toolCalls, finishReason, rawFinishReason, modelReported, choices, logprobs } =
        completion;
      const { model, provider, name: sourceName } = source;
      const kept = { content, thinking, toolCalls, finishReason, rawFinishReason, modelReported, choices, logprobs };
      try {
        const writing = cache.set(key, { ...kept, usage: facts.usage, model, provider, sourceName });
        if (writing instanceof Promise) writing.catch((error: unknown) => warn("set", error));
      } catch (error) {
        warn("set", error);
      }
    },
  };
}

/** Whether the answer fits its schema isn't checked in this version, and only what fits may be kept. */
function asksForSchema({ responseFormat }: CheckedRequest): boolean {
  return (responseFormat as { type?: unknown } | undefined)?.type === "json_schema";
}

/** The caller left already: the loop says so, with a row. */
function isOver({ signal, cancellation }: CheckedRequest): boolean {
  return signal?.aborted === true || cancellation?.cancelled === true;
}

function bounded<T>({ runtime }: GovernEnvironment, asked: Promise<T>, { deadlineMs }: CallOptions): Promise<T> {
  return new Promise((resolve, reject) => {
    const limitMs = Math.min(ASK_MS, deadlineMs ?? ASK_MS);
    const cancel = runtime.setTimer(limitMs, () => reject(new Error(`no answer within ${limitMs} ms`)));
    asked.finally(cancel).then(resolve, reject);
  });
}

function isAnswer(value: unknown): value is CachedAnswer {
  if (typeof value !== "object" || value === null) return false;
  const { content, thinking, toolCalls, usage, model, sourceName } = value as Partial<CachedAnswer>;
  const texts = [content, thinking, model, sourceName].every((text) => typeof text === "string");
  return texts && Array.isArray(toolCalls) && typeof usage?.totalTokens === "number";
}

function responseOf(
  answer: CachedAnswer,
  hit: { readonly callId: string; readonly requestId: string; readonly latencyMs: number },
): ChatResponse {
  const { choices, logprobs, ...kept } = answer;
  return {
    ...kept,
    ...(choices === undefined ? {} : { choices }),
    ...(logprobs === undefined ? {} : { logprobs }),
    callId: hit.callId,
    requestId: hit.requestId,
    latencyMs: hit.latencyMs,
    ttftMs: null,
    attempts: 0,
    cacheHit: true,
    cost: 0,
  };
}

/** A hit as a stream: what a provider's stream would have brought, in one go; usage and end are told by the stream. */
export function replayed({ thinking, content, toolCalls }: ChatResponse): ChatEvent[] {
  const events: ChatEvent[] = [];
  if (thinking !== "") events.push({ type: "thinking-delta", text: thinking });
  if (content !== "") events.push({ type: "text-delta", text: content });
  for (const [index, { id, name, arguments: text }] of toolCalls.entries()) {
    events.push({ type: "tool-call-delta", index, id, name, argumentsDelta: text });
    events.push({ type: "tool-call", index, id, name, arguments: text });
  }
  return events;
}
