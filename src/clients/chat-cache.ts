import { cacheKey, isCacheable } from "../domain/cache-key.js";
import type { ChatCompletion, ChatEvent, ChatResponse, ToolCall } from "../domain/chat.js";
import { msText } from "../domain/ms-text.js";
import { isPromiseLike } from "../domain/promise-like.js";
import type { SourceConfig } from "../domain/source.js";
import type { GovernEnvironment } from "../governance/call.js";
import { endWithHit } from "../governance/hit.js";
import type { Answered, Governed, Operation } from "../governance/operation.js";
import { onSignal } from "../governance/signal-hub.js";
import type { AnswerCache, CachedAnswer } from "../ports/cache.js";
import type { Runtime } from "../ports/runtime.js";
import { checkKept } from "./answer-check.js";
import type { AnswerFormat } from "./answer-format.js";
import type { CheckedRequest } from "./chat-request.js";

/** A cache is asked for as long as a person would not notice; then the call goes on without it. */
const ASK_MS = 250;

/** The cache as one client uses it; null where none is configured. */
export interface ChatCache {
  /** The place of this call in the cache; null when it is not to be looked up or kept. */
  keyOf(request: CheckedRequest, sources: readonly SourceConfig[], format: AnswerFormat | null): string | null;
  /** Answers from the cache, with its telemetry row written; null on a miss. A kept answer is judged by `format` anew. */
  answer(
    key: string,
    request: CheckedRequest,
    operation: Operation<unknown, unknown>,
    format: AnswerFormat | null,
  ): Promise<ChatResponse | null>;
  /** Keeps a good answer. Never waits, never throws. */
  keep(
    key: string,
    request: CheckedRequest,
    governed: Governed<unknown, unknown>,
    answered: Answered<ChatCompletion>,
  ): void;
}

export interface ChatCacheOptions {
  readonly namespace: string;
  readonly salt: string;
}

/** What makes two calls the same request; the call's own tenant wins over the client's. */
export function keyOfCall(
  request: CheckedRequest,
  sources: readonly SourceConfig[],
  { namespace, salt }: ChatCacheOptions,
): string | null {
  const { messagesJson, cacheNamespace = namespace, cacheSalt = salt } = request;
  return cacheKey({ request, messagesJson, sources, namespace: cacheNamespace, salt: cacheSalt });
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

  async function read(key: string, request: CheckedRequest): Promise<CachedAnswer | null> {
    try {
      const asked = cache.get(key);
      const found: unknown = isPromiseLike(asked) ? await bounded(runtime, asked, request, ASK_MS) : asked;
      if (found === null || found === undefined || isAnswer(found)) return found ?? null;
      throw new Error("an entry is no answer");
    } catch (error) {
      warn("get", error);
      return null;
    }
  }

  /** A schema may be code of the user's that never ends: the caller can leave it, and the call is then made anew. */
  async function checkedInTime(found: CachedAnswer, format: AnswerFormat, request: CheckedRequest) {
    const limitMs = Math.max(...config.sources.map(({ timeoutMs }) => timeoutMs));
    try {
      return (await bounded(runtime, checkKept(found, format), request, limitMs)) ?? undefined;
    } catch {
      return undefined;
    }
  }

  return {
    keyOf(request, sources, format) {
      if (request.cache === "bypass" || sources.length === 0) return null;
      if (format === null ? asksForSchema(request, sources) : (request.sampling?.n ?? 1) > 1) return null;
      const asked = format?.cacheAs === undefined ? request : { ...request, responseFormat: format.cacheAs };
      return keyOfCall(asked, sources, { namespace, salt });
    },
    async answer(key, request, operation, format) {
      if (request.cache === "refresh" || isOver(request)) return null;
      const askedMs = runtime.now();
      const found = await read(key, request);
      if (found === null) return null;
      const checked = format === null ? NOT_READ : await checkedInTime(found, format, request);
      if (isOver(request)) return null;
      if (checked === undefined) {
        const text = `scope ${config.scope}: a kept answer no longer fits what is asked for; the call is made anew`;
        environment.warn("cache", "unfit", text);
        return null;
      }
      if (isOver(request)) return null;
      const response = responseOf(found, await endWithHit(environment, operation, request, found, askedMs));
      return "parsed" in checked ? { ...response, parsed: checked.parsed } : response;
    },
    keep(key, request, { source }, { completion, facts }) {
      if (!isCacheable(completion, request.sampling?.n)) return;
      const { content, thinking, toolCalls, finishReason, rawFinishReason, modelReported, choices, logprobs } =
        completion;
      const { model, provider, name: sourceName } = source;
      const kept = { content, thinking, toolCalls, finishReason, rawFinishReason, modelReported, choices, logprobs };
      try {
        const writing = cache.set(key, { ...kept, usage: facts.usage, model, provider, sourceName });
        if (isPromiseLike(writing)) Promise.resolve(writing).catch((error: unknown) => warn("set", error));
      } catch (error) {
        warn("set", error);
      }
    },
  };
}

const NOT_READ: { readonly parsed?: unknown } = {};

/** Nobody reads this answer, and only what fits its schema may be kept. */
function asksForSchema({ responseFormat, extraBody }: CheckedRequest, sources: readonly SourceConfig[]): boolean {
  const formats = [responseFormat, extraBody?.response_format, ...sources.map((s) => s.extraBody.response_format)];
  return formats.some((format) => (format as { type?: unknown } | null | undefined)?.type === "json_schema");
}

/** The caller left already: the loop says so, with a row. */
function isOver({ signal, cancellation }: CheckedRequest): boolean {
  return signal?.aborted === true || cancellation?.cancelled === true;
}

/** The answer of the cache, or null when the caller leaves first: the loop then says so. */
function bounded<T>(
  runtime: Runtime,
  asked: PromiseLike<T>,
  request: CheckedRequest,
  mostMs: number,
): Promise<T | null> {
  const { signal, cancellation, deadlineMs } = request;
  return new Promise((resolve, reject) => {
    const limitMs = Math.min(mostMs, deadlineMs ?? mostMs);
    const cancel = runtime.setTimer(limitMs, () => end(() => reject(new Error(`no answer within ${msText(limitMs)}`))));
    const leave = (): void => end(() => resolve(null));
    const stopSignal = signal === undefined ? undefined : onSignal(signal, leave);
    const stopCancellation = cancellation?.onCancel(leave);
    const end = (settle: () => void): void => {
      cancel();
      stopSignal?.();
      stopCancellation?.();
      settle();
    };
    asked.then(
      (answer) => end(() => resolve(answer)),
      (error: unknown) => end(() => reject(error)),
    );
  });
}

const ENDS: ReadonlySet<unknown> = new Set(["stop", "tool_calls"]);

/** What comes from a store is believed only as far as it has the shape of what was put there. */
function isAnswer(value: unknown): value is CachedAnswer {
  if (!isChoice(value)) return false;
  const { usage, model, provider, sourceName, modelReported, choices } = value as Partial<CachedAnswer>;
  if (![model, provider, sourceName].every((text) => typeof text === "string")) return false;
  if (modelReported !== null && typeof modelReported !== "string") return false;
  if (choices !== undefined && !(Array.isArray(choices) && choices.every(isChoice))) return false;
  return typeof usage?.totalTokens === "number";
}

function isChoice(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { content, thinking, toolCalls, finishReason, rawFinishReason } = value as Partial<CachedAnswer>;
  if (typeof content !== "string" || typeof thinking !== "string" || !ENDS.has(finishReason)) return false;
  if (rawFinishReason !== null && typeof rawFinishReason !== "string") return false;
  return Array.isArray(toolCalls) && toolCalls.every(isToolCall);
}

function isToolCall(value: unknown): boolean {
  const { id, name, arguments: text } = (value ?? {}) as Partial<ToolCall>;
  return [id, name, text].every((part) => typeof part === "string");
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
