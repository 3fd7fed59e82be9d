import type { ChatCompletion, ChatEvent, ChatRequest, ChatResponse } from "../domain/chat.js";
import { Cancellation } from "../governance/cancellation.js";
import type { Opened } from "../governance/operation.js";
import { onSignal } from "../governance/signal-hub.js";
import type { ChatAttempt, ChatSink, ChatTransport } from "../ports/transport.js";
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

export type OpenAttempt = (transport: ChatTransport, attempt: ChatAttempt) => Promise<Opened<null, ChatCompletion>>;
export type RunStream = (
  open: OpenAttempt,
  cancellation: Cancellation,
) => Promise<{ value: null; ended: Promise<ChatResponse> }>;

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
  const cancellation = new Cancellation();
  const queue: ChatEvent[] = [];
  let head = 0;
  /** Reads that came before their event. */
  const reading: PendingRead[] = [];
  let resume: (() => void) | null = null;
  let started: Promise<ChatResponse> | null = null;
  let state: "open" | "finished" | "failed" | "left" = "open";
  let failure: unknown;
  let iterated = false;

  function deliver(events: readonly ChatEvent[]): void {
    for (const event of events) queue.push(event);
    while (reading.length > 0 && head < queue.length) reading.shift()!.resolve({ done: false, value: takeEvent() });
  }

  function takeEvent(): ChatEvent {
    const event = queue[head]!;
    head += 1;
    if (head === queue.length) {
      queue.length = 0;
      head = 0;
      const goOn = resume;
      resume = null;
      goOn?.();
    }
    return event;
  }

  /** Usage and finish are told once, from the booked facts; a transport's own wait for nobody. */
  const isContent = (event: ChatEvent): boolean => event.type !== "usage" && event.type !== "finish";

  const open: OpenAttempt = (transport, attempt) =>
    new Promise((resolve, reject) => {
      let isOpen = false;
      const sink: ChatSink = {
        push(events) {
          const content = events.every(isContent) ? events : events.filter(isContent);
          if (content.length === 0) return true;
          // The commit point: before it everything may be retried, after it nothing.
          if (!isOpen) resolve({ value: null, done });
          isOpen = true;
          deliver(content);
          return !iterated || queue.length - head < HIGH_WATER_EVENTS;
        },
        whenReady(goOn) {
          if (queue.length === head) goOn();
          else resume = goOn;
        },
      };
      // One turn later, so that a transport may push at once.
      const done = Promise.resolve().then(() => transport.complete({ ...attempt, sink }));
      done.then(
        () => resolve({ value: null, done }),
        (error) => (isOpen ? undefined : reject(error)),
      );
    });

  function start(): Promise<ChatResponse> {
    if (started === null) {
      started = runToEnd();
      // Nobody may be listening; an unhandled rejection would end the process.
      started.catch(() => {});
    }
    return started;
  }

  async function runToEnd(): Promise<ChatResponse> {
    let leaveSignal: (() => void) | undefined;
    let entered = false;
    try {
      lifetime.enter();
      entered = true;
      checkSignal(request, "chat_stream");
      leaveSignal = followSignal(request.signal);
      const opened = await run(open, cancellation);
      const response = await opened.ended;
      deliver([
        { type: "usage", usage: response.usage },
        { type: "finish", finishReason: response.finishReason, rawFinishReason: response.rawFinishReason },
      ]);
      if (state === "open") state = "finished";
      wakeReaders();
      return response;
    } catch (error) {
      fail(error);
      throw error;
    } finally {
      leaveSignal?.();
      if (entered) lifetime.leave();
    }
  }

  function followSignal(signal: AbortSignal | undefined): (() => void) | undefined {
    if (signal?.aborted === true) cancellation.cancel(signal.reason);
    return signal === undefined || signal.aborted
      ? undefined
      : onSignal(signal, (reason) => cancellation.cancel(reason));
  }

  function fail(error: unknown): void {
    failure = error;
    if (state === "open") state = "failed";
    wakeReaders();
  }

  /** Nothing more will come: readers that still wait get the end, the first of them the failure. */
  function wakeReaders(): void {
    for (const waiting of reading.splice(0)) {
      if (state === "failed") {
        state = "left";
        waiting.reject(failure);
      } else {
        waiting.resolve(ENDED);
      }
    }
  }

  function next(): Promise<IteratorResult<ChatEvent>> {
    if (state === "left") return Promise.resolve(ENDED);
    iterated = true;
    start();
    // A caller that aborted doesn't get what had been buffered; a broken stream first gives what had arrived.
    if (head < queue.length && !(state === "failed" && cancellation.cancelled)) {
      return Promise.resolve({ done: false, value: takeEvent() });
    }
    if (state === "failed") {
      state = "left";
      return Promise.reject(failure);
    }
    if (state === "finished") return Promise.resolve(ENDED);
    return new Promise((resolve, reject) => reading.push({ resolve, reject }));
  }

  async function leave(): Promise<void> {
    const running = started;
    const wasOpen = state === "open";
    state = "left";
    queue.length = 0;
    head = 0;
    if (wasOpen) cancellation.cancel(new DOMException("the consumer left the stream", "AbortError"));
    wakeReaders();
    await running?.catch(() => {});
  }

  return {
    get final() {
      return start();
    },
    next,
    async return() {
      await leave();
      return { done: true, value: undefined };
    },
    async throw(error: unknown) {
      await leave();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    async [Symbol.asyncDispose]() {
      await leave();
    },
  };
}
