import type { UpstreamLimits } from "./upstream-limits.js";
import type { Usage } from "./usage.js";

/** Message, tool and format objects have OpenAI's wire shape; unknown fields pass through untouched. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null;
  readonly name?: string;
  readonly tool_calls?: readonly unknown[];
  readonly tool_call_id?: string;
  readonly [field: string]: unknown;
}

export interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly [field: string]: unknown;
}

export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly maxTokens?: number;
  readonly stop?: string | readonly string[];
  readonly seed?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly logitBias?: Readonly<Record<string, number>>;
  readonly logprobs?: boolean;
  readonly topLogprobs?: number;
  /** Number of choices; `stream()` refuses more than 1. */
  readonly n?: number;
}

/** All of them, sorted: the order of canonical JSON. */
export const SAMPLING_KEYS = [
  "frequencyPenalty",
  "logitBias",
  "logprobs",
  "maxTokens",
  "minP",
  "n",
  "presencePenalty",
  "seed",
  "stop",
  "temperature",
  "topK",
  "topLogprobs",
  "topP",
] as const satisfies readonly (keyof Sampling)[];

/** false = don't think, true = think; a level such as "low", "medium" or "high"; or a number of tokens to think with. */
export type Thinking = boolean | string | { readonly budgetTokens: number };

/** What may be done when a source lacks the level or budget asked for. */
export type ThinkingFallback = "nearest";

/** One call, as the caller writes it. Never mutated. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** Narrows the call to sources with this configured model. */
  readonly model?: string;
  readonly sampling?: Sampling;
  /**
   * Translated by the source's profile; sources that can't do it are left out. Default: the source's own `thinking`,
   * else nothing is said and the model does what it does.
   */
  readonly thinking?: Thinking;
  /** `nearest`: another level or budget will do. Never thinking instead of none, nor none instead of thinking. */
  readonly thinkingFallback?: ThinkingFallback;
  readonly tools?: readonly unknown[];
  readonly toolChoice?: unknown;
  /**
   * OpenAI's `response_format`. With `json_schema` or `json_object` the answer is read and checked: `reply.parsed`, or
   * ResultInvalidError. `{ …, validate: false }` switches that off.
   */
  readonly responseFormat?: unknown;
  /** Further wire fields for this call; they win over the source's EXTRA_BODY. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  readonly sessionId?: string;
  readonly parentCallId?: string;
  /**
   * A name for calls whose lengths are alike, for token estimates: what such calls really used is learned together.
   * Neither sent nor part of the cache's key. Default: the kind of operation.
   */
  readonly tag?: string;
  /** Lower goes first in the queue. Default 0. */
  readonly priority?: number;
  readonly failover?: "on" | "off";
  /** Length from the call's start: queue, attempts, backoff and an open stream together. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /** `bypass`: neither looked up nor kept; `refresh`: asked anew and kept. Default `use`, where a cache is configured. */
  readonly cache?: "use" | "bypass" | "refresh";
  /** Answers are shared only among calls with the same salt and namespace. Default: those of the client. */
  readonly cacheSalt?: string;
  readonly cacheNamespace?: string;
  /**
   * What a stream does that breaks after its first event: `throw` (default) its typed error with `partial`; `restart`:
   * tell a `restart` event and begin again, as long as the call's budgets let it. `chat()` always begins again.
   */
  readonly onBreak?: "throw" | "restart";
  /** `chat()` streams from the provider by default, so that a hang is noticed early; false asks for one JSON body. */
  readonly stream?: boolean;
  /**
   * When a streamed attempt shows no token for long, a second one may be sent to another source; the first success wins
   * and the other one is given up, which may be billed. At most once a call and for few calls of the scope. Default:
   * HEDGE of the scope, which is off.
   */
  readonly hedge?: boolean;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Normalised end of an answer; null = the stream ended by `[DONE]` alone. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "unknown" | null;

export interface ChatChoice {
  readonly index: number;
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly rawFinishReason: string | null;
}

/** What a chat transport makes of one 2xx answer. */
export interface ChatCompletion {
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly rawFinishReason: string | null;
  readonly refusal?: string;
  /** null = the provider reported none; the client then estimates from the texts. */
  readonly usage: Usage | null;
  readonly modelReported: string | null;
  /** Only when more than one choice was answered. */
  readonly choices?: readonly ChatChoice[];
  readonly logprobs?: unknown;
  /** What the text means under the response format of the call. */
  readonly parsed?: unknown;
  readonly statusCode: number;
  /** Send to last byte, time paused by the consumer excluded. */
  readonly latencyMs: number;
  readonly ttftMs: number | null;
  /** What the answer's headers said of the account's limits. */
  readonly limits?: UpstreamLimits | undefined;
}

export interface ChatResponse {
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly rawFinishReason: string | null;
  readonly refusal?: string;
  readonly usage: Usage;
  /** The model as configured. */
  readonly model: string;
  /** The model the provider says it used. */
  readonly modelReported: string | null;
  readonly provider: string;
  readonly sourceName: string;
  /** Id of the attempt that answered = id of its telemetry row. */
  readonly callId: string;
  /** Id of the call, shared by all its rows. */
  readonly requestId: string;
  readonly latencyMs: number;
  readonly ttftMs: number | null;
  /** Sends this call needed, the successful one included. */
  readonly attempts: number;
  readonly cacheHit: boolean;
  /** In the price table's currency; null = price or usage unknown. */
  readonly cost: number | null;
  readonly choices?: readonly ChatChoice[];
  readonly logprobs?: unknown;
  /** What `content` means, checked: with a `responseFormat`, and from `structured()`. */
  readonly parsed?: unknown;
}

export type ChatEvent =
  | { readonly type: "thinking-delta"; readonly text: string }
  | { readonly type: "text-delta"; readonly text: string }
  | {
      readonly type: "tool-call-delta";
      readonly index: number;
      readonly id: string;
      readonly name: string;
      readonly argumentsDelta: string;
    }
  | {
      readonly type: "tool-call";
      readonly index: number;
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
    }
  /** The stream broke: what came so far is void, another attempt begins (only with `onBreak: "restart"`). `reason` = code of the failure. */
  | { readonly type: "restart"; readonly attempt: number; readonly reason: string }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "finish"; readonly finishReason: FinishReason; readonly rawFinishReason: string | null };
