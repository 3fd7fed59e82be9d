import type { ChatCompletion } from "../domain/chat.js";
import type { Usage } from "../domain/usage.js";

/** What is kept of an answer (spec 04): plain data, so that any store can hold it as JSON. */
export interface CachedAnswer
  extends Pick<
    ChatCompletion,
    "content" | "thinking" | "toolCalls" | "finishReason" | "rawFinishReason" | "modelReported" | "choices" | "logprobs"
  > {
  readonly usage: Usage;
  /** Who answered when it was asked for real. */
  readonly model: string;
  readonly provider: string;
  readonly sourceName: string;
}

/**
 * Where answers are kept. It is a convenience, never a condition: what throws, rejects, hangs or gives back something
 * unreadable is a miss with a warning, and the call goes on. Implementations pass `cacheContract`.
 */
export interface AnswerCache {
  /** The answer kept under this key, or null. */
  get(key: string): CachedAnswer | null | Promise<CachedAnswer | null>;
  /** Keeps an answer as long as this cache keeps anything. */
  set(key: string, answer: CachedAnswer): void | Promise<void>;
  /** Lets go of connections. A client closes the cache it made itself, never one that it was given. */
  close?(): Promise<void>;
}
