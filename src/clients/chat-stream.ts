import type { ChatCompletion, ChatEvent, ChatRequest, ChatResponse } from "../domain/chat.js";
import { PolyGatewayError } from "../errors.js";
import { Cancellation } from "../governance/cancellation.js";
import { OpenedStream } from "../governance/operation.js";
import { onSignal } from "../governance/signal-hub.js";
import type { AttemptContext, ChatAttempt, ChatSink, ChatTransport } from "../ports/transport.js";
import { BlockRhythm, flattened } from "../transports/text-pile.js";
import { checkSignal } from "./chat-request.js";

/**
 * A governed stream. Lazy: nothing is admitted or sent before the first `next()` or `.final` (spec 11).
 * Failover is free until the first event; afterwards a broken stream throws its typed error with `partial`.
 * Leaving the loop closes the upstream socket and gives the permit back.
 */
export interface ChatStream extends AsyncIterableIterator<ChatEvent> {
  /** The whole answer; runs the stream by itself when nobody iterates. Rejections are already handled. */
  readonly final: Promise<ChatResponse>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type OpenAttempt = (
  transport: ChatTransport,
  attempt: ChatAttempt,
) => Promise<OpenedStream<null, ChatCompletion>>;
export type RunStream = (
  open: OpenAttempt,
  cancellation: Cancellation,
) => Promise<{ events: readonly ChatEvent[]; ended: Promise<ChatResponse> }>;

/** Beyond this many unread events the socket is paused. */
const HIGH_WATER_EVENTS = 256;
const ENDED: IteratorResult<ChatEvent> = { done: true, value: undefined };

interface PendingRead {
  resolve(result: IteratorResult<ChatEvent>): void;
  reject(error: unknown): void;
}

export function createChatStream(
  request: ChatRequest,
  lifetime: { enter(): void; leave(): void },
  run: RunStream,
): ChatStream {
  return new GovernedChatStream(request, lifetime, run);
}

/** Usage and finish are told once, from the booked facts; a transport's own wait for nobody. */
const isContent = (event: ChatEvent): boolean => event.type !== "usage" && event.type !== "finish";

class GovernedChatStream implements ChatStream {
  readonly #request: ChatRequest;
  readonly #lifetime: { enter(): void; leave(): void };
  readonly #run: RunStream;
  readonly #cancellation = new Cancellation();
  readonly #queue: ChatEvent[] = [];
  /** Counts the events that were joined with the one before. */
  readonly #joined = new BlockRhythm();
  #head = 0;
  /** Reads that came before their event. */
  readonly #reading: PendingRead[] = [];
  #resume: (() => void) | null = null;
  #started: Promise<ChatResponse> | null = null;
  #state: "open" | "finished" | "failed" | "left" = "open";
  #failure: unknown;
  #iterated = false;
  #sends = 0;
  /** The attempt whose events are handed out; null = none has brought any. One that runs beside it is not heard. */
  #heard: AttemptContext | null = null;
  /** Code of the failure that broke an attempt of which something was handed out; null = nothing is to be taken back. */
  #brokenBy: string | null = null;

  constructor(request: ChatRequest, lifetime: { enter(): void; leave(): void }, run: RunStream) {
    this.#request = request;
    this.#lifetime = lifetime;
    this.#run = run;
  }

  get final(): Promise<ChatResponse> {
    return this.#start();
  }

  next(): Promise<IteratorResult<ChatEvent>> {
    if (this.#state === "left") return Promise.resolve(ENDED);
    this.#iterated = true;
    this.#start();
    // A caller that aborted doesn't get what had been buffered; a broken stream first gives what had arrived.
    if (this.#head < this.#queue.length && !(this.#state === "failed" && this.#cancellation.cancelled)) {
      return Promise.resolve({ done: false, value: this.#takeEvent() });
    }
    if (this.#state === "failed") {
      this.#state = "left";
      return Promise.reject(this.#failure);
    }
    if (this.#state === "finished") return Promise.resolve(ENDED);
    return new Promise((resolve, reject) => this.#reading.push({ resolve, reject }));
  }

  async return(): Promise<IteratorResult<ChatEvent>> {
    await this.#leave();
    return ENDED;
  }

  async throw(error: unknown): Promise<IteratorResult<ChatEvent>> {
    await this.#leave();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leave();
  }

  #deliver(events: readonly ChatEvent[]): void {
    for (const event of events) if (!this.#joinsLast(event)) this.#queue.push(event);
    while (this.#reading.length > 0 && this.#head < this.#queue.length) {
      this.#reading.shift()!.resolve({ done: false, value: this.#takeEvent() });
    }
  }

  /** While nobody reads, nothing holds the provider back: texts that follow each other are kept as one. */
  #joinsLast(event: ChatEvent): boolean {
    if (this.#iterated || (event.type !== "text-delta" && event.type !== "thinking-delta")) return false;
    const last = this.#queue.length - 1;
    const before = this.#queue[last];
    if (before?.type !== event.type) return false;
    const text = before.text + event.text;
    this.#queue[last] = { type: event.type, text: this.#joined.isDue(event.text.length) ? flattened(text) : text };
    return true;
  }

  #takeEvent(): ChatEvent {
    const event = this.#queue[this.#head]!;
    this.#head += 1;
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0;
      this.#head = 0;
      const goOn = this.#resume;
      this.#resume = null;
      goOn?.();
    }
    return event;
  }

  #open(transport: ChatTransport, attempt: ChatAttempt): Promise<OpenedStream<null, ChatCompletion>> {
    this.#sends += 1;
    this.#resume = null;
    if (this.#brokenBy !== null) {
      this.#deliver([{ type: "restart", attempt: this.#sends, reason: this.#brokenBy }]);
      this.#brokenBy = null;
    }
    const { context } = attempt;
    const isOutrun = (): boolean => this.#heard !== null && this.#heard !== context;
    return new Promise((resolve, reject) => {
      let isOpen = false;
      const sink: ChatSink = {
        push: (events) => {
          const content = events.every(isContent) ? events : events.filter(isContent);
          if (content.length === 0 || isOutrun()) return true;
          // The commit point: before it everything may be retried, after it nothing.
          if (!isOpen) resolve(new OpenedStream(null, done));
          isOpen = true;
          this.#heard = context;
          this.#deliver(content);
          return !this.#iterated || this.#queue.length - this.#head < HIGH_WATER_EVENTS;
        },
        whenReady: (goOn) => {
          if (this.#queue.length === this.#head) goOn();
          else this.#resume = goOn;
        },
      };
      const { source, request, messagesJson, stream, ownFields } = attempt;
      // One turn later, so that a transport may push at once.
      const done = Promise.resolve().then(() =>
        transport.complete({ source, request, messagesJson, stream, sink, ownFields, context }),
      );
      done.then(
        () => {
          // The loop has the answer of the other one already.
          if (isOutrun()) return;
          this.#heard = context;
          resolve(new OpenedStream(null, done));
        },
        (error: unknown) => {
          if (this.#heard === context) this.#heard = null;
          if (!isOpen) reject(error);
          else this.#brokenBy = PolyGatewayError.isInstance(error) ? error.code : "upstream_error";
        },
      );
    });
  }

  #start(): Promise<ChatResponse> {
    if (this.#started === null) {
      this.#started = this.#runToEnd();
      // Nobody may be listening; an unhandled rejection would end the process.
      this.#started.catch(() => {});
    }
    return this.#started;
  }

  async #runToEnd(): Promise<ChatResponse> {
    let leaveSignal: (() => void) | undefined;
    let entered = false;
    try {
      this.#lifetime.enter();
      entered = true;
      checkSignal(this.#request, "chat_stream");
      leaveSignal = this.#followSignal(this.#request.signal);
      const opened = await this.#run((transport, attempt) => this.#open(transport, attempt), this.#cancellation);
      // From the cache: all of them are there at once.
      if (opened.events.length > 0) this.#deliver(opened.events);
      const response = await opened.ended;
      this.#deliver([
        { type: "usage", usage: response.usage },
        { type: "finish", finishReason: response.finishReason, rawFinishReason: response.rawFinishReason },
      ]);
      if (this.#state === "open") this.#state = "finished";
      this.#wakeReaders();
      return response;
    } catch (error) {
      this.#fail(error);
      throw error;
    } finally {
      leaveSignal?.();
      if (entered) this.#lifetime.leave();
    }
  }

  #followSignal(signal: AbortSignal | undefined): (() => void) | undefined {
    if (signal === undefined) return undefined;
    if (!signal.aborted) return onSignal(signal, (reason) => this.#cancellation.cancel(reason));
    this.#cancellation.cancel(signal.reason);
    return undefined;
  }

  #fail(error: unknown): void {
    this.#failure = error;
    if (this.#state === "open") this.#state = "failed";
    this.#wakeReaders();
  }

  /** Nothing more will come: readers that still wait get the end, the first of them the failure. */
  #wakeReaders(): void {
    for (const waiting of this.#reading.splice(0)) {
      if (this.#state === "failed") {
        this.#state = "left";
        waiting.reject(this.#failure);
      } else {
        waiting.resolve(ENDED);
      }
    }
  }

  async #leave(): Promise<void> {
    const running = this.#started;
    const wasOpen = this.#state === "open";
    this.#state = "left";
    this.#queue.length = 0;
    this.#head = 0;
    if (wasOpen) this.#cancellation.cancel(new DOMException("the consumer left the stream", "AbortError"));
    this.#wakeReaders();
    await running?.catch(() => {});
  }
}
