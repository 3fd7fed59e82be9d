import type { ChatCompletion, ChatEvent, ChatRequest } from "../domain/chat.js";
import type { EmbeddingCompletion } from "../domain/embedding.js";
import type { OcrHealth, OcrImage, OcrLayoutCompletion, OcrTextCompletion } from "../domain/ocr.js";
import type { SourceConfig } from "../domain/source.js";
import type { PartialReply } from "../errors.js";
import type { Runtime } from "./runtime.js";

/**
 * What one attempt gives its transport. Cancellation is one callback, not a signal:
 * an AbortController per attempt costs memory and its listeners leak (spec reference-performance §8).
 */
export interface AttemptContext {
  readonly callId: string;
  readonly requestId: string;
  readonly operation: string;
  readonly runtime: Runtime;
  /** true once the caller left, the deadline passed or the attempt was evacuated. */
  readonly aborted: boolean;
  /** What `aborted` was fired with; the transport rejects with exactly this. */
  readonly abortReason: unknown;
  /** Called at most once, at once when already aborted. The returned function removes the listener. */
  onAbort(listener: (reason: unknown) => void): () => void;
  /**
   * The first byte is about to leave: from here on the attempt counts as sent. It may be aborted in this very moment, when
   * its permit has run out meanwhile: then nothing may leave.
   */
  markSent(): void;
  /** First content, thinking or tool delta. */
  markFirstToken(): void;
  /**
   * Set by a transport once text may arrive: what has arrived so far. Read when the attempt is aborted from outside,
   * because the abort reason itself carries nothing.
   */
  partialSoFar: (() => PartialReply) | null;
}

/**
 * Receives the events of a stream, all of one read at once. `push` returns false when the consumer is behind:
 * the transport then pauses the socket until `whenReady` calls back, and its timers don't run meanwhile.
 */
export interface ChatSink {
  push(events: readonly ChatEvent[]): boolean;
  whenReady(resume: () => void): void;
}

export interface ChatAttempt {
  readonly source: SourceConfig;
  readonly request: ChatRequest;
  /** `JSON.stringify(request.messages)`, made once per call and shared by all its attempts. */
  readonly messagesJson: string;
  /** Ask the provider to stream. */
  readonly stream: boolean;
  /** Present when a consumer reads the stream; absent for `chat()`, which only needs the whole. */
  readonly sink?: ChatSink;
  /**
   * Words that name what the gateway added to this request: a 400 whose text holds one is told as `unsupported_param`
   * with `details.droppedByUs`, and the next attempt asks otherwise.
   */
  readonly ownFields?: readonly string[] | undefined;
  /** Stands before the label of an error, where chat serves another kind of call. */
  readonly operation?: string | undefined;
  readonly context: AttemptContext;
}

/**
 * Sends one chat attempt and resolves with the complete answer, or rejects with
 * TransientError | SourceDeadError | RequestRejectedError | ResultInvalidError (with `partial` when text had arrived)
 * or with exactly `context.abortReason`. Never resolves with a cut answer; leaves no socket, timer or listener behind.
 */
export interface ChatTransport {
  complete(attempt: ChatAttempt): Promise<ChatCompletion>;
  close(): Promise<void>;
}

export interface EmbeddingAttempt {
  readonly source: SourceConfig;
  /** `JSON.stringify(texts)`, made once per batch and shared by all its attempts. */
  readonly inputJson: string;
  /** How many texts that is. */
  readonly count: number;
  /** Where the first of them stands in the caller's list; errors name texts by that. */
  readonly firstIndex: number;
  /** The width the caller asked for. */
  readonly dimensions: number | undefined;
  readonly context: AttemptContext;
}

/**
 * Sends one batch of texts and resolves with one finite vector for each, all of one width, in their order. Rejects like
 * a ChatTransport; an answer that doesn't hold exactly those vectors is a ResultInvalidError.
 */
export interface EmbeddingTransport {
  embed(attempt: EmbeddingAttempt): Promise<EmbeddingCompletion>;
  close(): Promise<void>;
}

export interface OcrAttempt {
  readonly source: SourceConfig;
  readonly image: OcrImage;
  readonly context: AttemptContext;
}

/** What a look at a source's health needs. */
export interface OcrHealthCheck {
  readonly source: SourceConfig;
  readonly runtime: Runtime;
  /** Longest wait, in ms. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Sends one picture or document to be read. Rejects like a ChatTransport; an answer of a healthy service that can't be
 * used (empty, a broken archive, an error told as text) is a ResultInvalidError. No box leaves it that isn't within its page.
 */
export interface OcrTransport {
  recognizeText(attempt: OcrAttempt): Promise<OcrTextCompletion>;
  parseLayout(attempt: OcrAttempt): Promise<OcrLayoutCompletion>;
  /** Never rejects. */
  checkHealth(check: OcrHealthCheck): Promise<OcrHealth>;
  close(): Promise<void>;
}
