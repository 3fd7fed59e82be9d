import { digestBinaryParts } from "../domain/binary-digest.js";
import { canonicalJson } from "../domain/canonical-json.js";
import { type ChatCompletion, type ChatRequest, SAMPLING_KEYS, type Sampling, type ToolCall } from "../domain/chat.js";
import { estimatePromptTokens, estimateReservation, estimateTextTokens } from "../domain/estimate.js";
import type { OperationKind } from "../domain/record.js";
import type { SourceConfig } from "../domain/source.js";
import { mustStream } from "../domain/thinking.js";
import type { Usage } from "../domain/usage.js";
import { thinkingOf } from "../domain/vendor-thinking.js";
import type { PartialReply } from "../errors.js";
import {
  type Incapable,
  OpenedStream,
  type Operation,
  type PartialFacts,
  type ReleasePermit,
  type ReplyFacts,
} from "../governance/operation.js";
import type { AttemptContext, ChatAttempt } from "../ports/transport.js";
import type { AbleSources } from "./able-sources.js";
import { checkAnswer, judged, undecided } from "./answer-check.js";
import type { AnswerFormat } from "./answer-format.js";
import type { CheckedRequest } from "./chat-request.js";

export type OpenChat<Value> = (attempt: ChatAttempt) => Promise<ChatCompletion | OpenedStream<Value, ChatCompletion>>;

/**
 * States what chat is to the loop: estimate, attempt, telemetry description. A class, because one is made per call
 * and a closure per member would be most of what a waiting call costs.
 */
export class ChatOperation<Value> implements Operation<Value, ChatCompletion> {
  readonly kind: OperationKind;
  readonly #request: CheckedRequest;
  readonly #able: AbleSources;
  readonly #open: OpenChat<Value>;
  readonly #format: AnswerFormat | null;
  #promptTokens = -1;
  #messages: string | null = null;
  /** Messages of the last attempt at each source, where the format added to them. */
  #sentMessages: Map<SourceConfig, string | null> | null = null;

  constructor(
    kind: OperationKind,
    request: CheckedRequest,
    able: AbleSources,
    open: OpenChat<Value>,
    format: AnswerFormat | null = null,
  ) {
    this.kind = kind;
    this.#request = request;
    this.#able = able;
    this.#open = open;
    this.#format = format;
  }

  get sources(): readonly SourceConfig[] {
    return this.#able.sources;
  }

  get candidates(): readonly string[] {
    return this.#able.candidates;
  }

  get incapable(): Incapable | null {
    return this.#able.incapable;
  }

  get promptTokens(): number {
    if (this.#promptTokens < 0) {
      this.#promptTokens = estimatePromptTokens(this.#request.messages, this.#request.tools);
      if (this.#format !== null) this.#promptTokens += estimateTextTokens(this.#format.ladder.instruction);
    }
    return this.#promptTokens;
  }

  get estTokens(): number {
    const { countsTokens, chargesMaximum } = this.#able;
    return countsTokens ? reservation(this.#request, this.promptTokens, chargesMaximum) : 0;
  }

  /** Of all choices together. */
  get maxTokens(): number | undefined {
    const { sampling } = this.#request;
    return sampling?.maxTokens === undefined ? undefined : sampling.maxTokens * (sampling.n ?? 1);
  }

  get mayRestart(): boolean {
    return this.#request.onBreak === "restart";
  }

  get images(): number {
    return this.#request.images;
  }

  streams(source: SourceConfig): boolean {
    if (this.kind === "chat_stream" || (this.#request.stream ?? source.stream)) return true;
    // Some models answer nothing but a stream while they think; the reply is the same.
    return this.#able.mayHaveToStream && mustStream(source, thinkingOf(this.#request, source));
  }

  attempt(
    source: SourceConfig,
    context: AttemptContext,
    release: ReleasePermit,
  ): Promise<ChatCompletion | OpenedStream<Value, ChatCompletion>> {
    const stream = this.streams(source);
    if (this.#format !== null) return this.#formatted(this.#format, source, stream, context, release);
    const { messagesJson } = this.#request;
    return this.#open({ source, request: this.#request, messagesJson, stream, context });
  }

  /** Asked in the way that this source can, and judged before the attempt is settled. */
  async #formatted(
    format: AnswerFormat,
    source: SourceConfig,
    stream: boolean,
    context: AttemptContext,
    release: ReleasePermit,
  ): Promise<ChatCompletion | OpenedStream<Value, ChatCompletion>> {
    const { request, messagesJson, ownFields } = format.ladder.formatted(source, this.#request);
    this.#sentMessages ??= new Map();
    this.#sentMessages.set(source, messagesJson);
    const check = (completion: ChatCompletion): Promise<ChatCompletion> =>
      judged(context, checkAnswer(completion, format, source), {
        release: () => release(context, this.describeReply(completion)),
        limitMs: source.timeoutMs,
        undecided: (limitMs) => undecided(completion, source, limitMs),
      });
    try {
      const json = messagesJson ?? this.#request.messagesJson;
      const opened = await this.#open({ source, request, messagesJson: json, stream, ownFields, context });
      return opened instanceof OpenedStream
        ? new OpenedStream(opened.value, opened.done.then(check))
        : await check(opened);
    } catch (error) {
      format.ladder.failed(source, error);
      throw error;
    }
  }

  describeRequest(source: SourceConfig | null): { messages: string | null; sampling: string | null } {
    const { hasParts, messagesJson } = this.#request;
    const sampling = samplingColumn(this.#request, source);
    const sent = source === null ? null : (this.#sentMessages?.get(source) ?? null);
    if (sent !== null) return { messages: hasParts ? digestBinaryParts(sent) : sent, sampling };
    this.#messages ??= hasParts ? digestBinaryParts(messagesJson) : messagesJson;
    return { messages: this.#messages, sampling };
  }

  describeReply(completion: ChatCompletion): ReplyFacts {
    return {
      usage: completion.usage ?? estimatedUsage(this.promptTokens, completion),
      response: responseText(completion.content, completion.toolCalls),
      thinking: completion.thinking === "" ? null : completion.thinking,
      modelReported: completion.modelReported,
      statusCode: completion.statusCode,
      finishReason: completion.finishReason ?? completion.rawFinishReason,
      latencyMs: completion.latencyMs,
      ttftMs: completion.ttftMs,
      limits: completion.limits,
    };
  }

  describePartial(partial: PartialReply): PartialFacts {
    return {
      usage: (partial.usage as Usage | null | undefined) ?? estimatedUsage(this.promptTokens, partial),
      response: responseText(partial.content, partial.toolCalls),
      thinking: partial.thinking === "" ? null : partial.thinking,
    };
  }
}

function reservation(request: ChatRequest, promptTokens: number, chargesMaximum: boolean): number {
  const { maxTokens, n } = request.sampling ?? {};
  const usual = estimateReservation(promptTokens, request.sampling);
  return chargesMaximum && maxTokens !== undefined ? Math.max(usual, promptTokens + maxTokens * (n ?? 1)) : usual;
}

function samplingColumn(request: ChatRequest, source: SourceConfig | null): string | null {
  const { sampling, extraBody } = request;
  const thinking = source === null ? request.thinking : thinkingOf(request, source);
  if (thinking !== undefined) {
    return canonicalOrNull({ ...source?.extraBody, ...extraBody, ...sampling, thinking });
  }
  if (extraBody === undefined && !hasKeys(source?.extraBody)) {
    return sampling === undefined ? null : (numbersOnly(sampling) ?? canonicalOrNull(sampling));
  }
  return canonicalOrNull({ ...source?.extraBody, ...extraBody, ...sampling });
}

function hasKeys(value: object | undefined): boolean {
  for (const _ in value) return true;
  return false;
}

function canonicalOrNull(value: object): string | null {
  if (!hasKeys(value)) return null;
  try {
    return canonicalJson(value);
  } catch {
    // A description must never fail a call: what is nested deeper than the canonical form allows is kept as it is.
    return JSON.stringify(value);
  }
}

let usual: Sampling | null = null;
let usualNumbers: string | null = null;

/** The text of the same parameters as before is that text; which are the same, the check of the request tells. */
function numbersOnly(sampling: Sampling): string | null {
  if (sampling === usual) return usualNumbers;
  const text = writtenNumbers(sampling);
  if (Object.isFrozen(sampling)) {
    usual = sampling;
    usualNumbers = text;
  }
  return text;
}

/** What nearly every call has, written directly: the general way would cost more than the admission. null = not that simple. */
function writtenNumbers(sampling: Sampling): string | null {
  let left = 0;
  for (const _ in sampling) left += 1;
  let json = "";
  for (const key of SAMPLING_KEYS) {
    const value = sampling[key];
    if (value === undefined) continue;
    if (typeof value !== "number") return null;
    json += `${json === "" ? "{" : ","}"${key}":${value}`;
    left -= 1;
  }
  return left === 0 && json !== "" ? `${json}}` : null;
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
