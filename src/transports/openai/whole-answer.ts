import type { SourceConfig } from "../../domain/source.js";
import type { PartialReply, PolyGatewayError } from "../../errors.js";
import type { AttemptContext } from "../../ports/transport.js";
import { BodyBuffer, ERROR_BODY_MS, MAX_ERROR_BODY_BYTES } from "../body-buffer.js";
import { type HttpHeaders, NO_HEADERS } from "../headers.js";
import type { HttpClient, HttpExchange, HttpFailure, HttpObserver } from "../http.js";
import { Watchdog, type WatchdogTimer } from "../watchdog.js";
import { bodyKind } from "./body-kind.js";
import type { Refusal } from "./classify.js";
import { brokenConnection, htmlPage, timedOut, unreadable } from "./failures.js";
import { type FailureInput, transientEnd } from "./judge.js";
import { headersOf, type SourceWire } from "./source-wire.js";

/** Nothing of an answer counts before all of it is there. */
const NOTHING_YET = { deltas: 0, hasChoices: false, partial: () => undefined };
const NO_TEXT: PartialReply = { content: "", thinking: "", toolCalls: [], usage: null };

/** A whole 2xx body with what its reader needs to judge it. */
export interface WholeBody extends FailureInput {
  /** The body as UTF-8. */
  readonly text: string;
  readonly bytes: Buffer;
  /** From the send to the last byte. */
  readonly latencyMs: number;
  readonly headers: HttpHeaders;
}

export interface WholeAnswerSend<T> {
  readonly source: SourceConfig;
  readonly context: AttemptContext;
  readonly wire: SourceWire;
  readonly body: string | Buffer | null;
  /** Default `POST`. */
  readonly method?: "GET" | "POST";
  /** Stands before the label of an error. */
  readonly operation?: string | undefined;
  /** The answer is no text: whatever its first bytes look like, it is read to its end. */
  readonly isBinary?: boolean;
  /** `read` keeps nothing of the bytes, so that they need no memory of their own. */
  readonly dropsBytes?: boolean;
  /** Longest time for this send, in ms. Default: TIMEOUT_S of the source. */
  readonly timeoutMs?: number;
  /** Cap on the decoded bytes of an answer. */
  readonly maxBytes: number;
  /** Makes the result of a 2xx body, or throws the typed error that it is. */
  read(body: WholeBody): T;
  /** The typed error of an answer with an error status. */
  refused(refusal: Refusal): PolyGatewayError;
}

type Phase = "undecided" | "body" | "refused" | "over";

/** One send to one source whose answer is read as a whole: bytes in, a settled promise out. Only the total timer applies. */
export class WholeAnswerExchange<T> implements HttpObserver {
  readonly #send: WholeAnswerSend<T>;
  readonly #resolve: (result: T) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #watchdog: Watchdog;
  readonly #kept = new BodyBuffer();
  #exchange: HttpExchange | undefined;
  #stopListening: () => void = () => {};
  #phase: Phase = "undecided";
  #statusCode = 0;
  #headers: HttpHeaders = NO_HEADERS;

  constructor(send: WholeAnswerSend<T>, resolve: (result: T) => void, reject: (reason: unknown) => void) {
    this.#send = send;
    this.#resolve = resolve;
    this.#reject = reject;
    const limits = { totalMs: send.timeoutMs ?? send.source.timeoutMs, ttftMs: 0, interTokenMs: 0 };
    this.#watchdog = new Watchdog(send.context.runtime, limits, (timer, limitMs) => this.#onExpired(timer, limitMs));
  }

  start(http: HttpClient): void {
    const { context, wire, body, method = "POST", maxBytes } = this.#send;
    this.#watchdog.start(false);
    this.#stopListening = context.onAbort((reason) => this.#end(() => this.#reject(reason)));
    if (this.#phase === "over") {
      this.#stopListening();
      return;
    }
    const { origin, path } = wire;
    const headers = headersOf(wire, context.callId);
    const exchange = http.send({ origin, path, headers, body, method, maxDecodedBytes: maxBytes }, this);
    this.#exchange = exchange;
    if (this.#isOver()) exchange.abort();
  }

  onSent(): void {
    const { context } = this.#send;
    this.#watchdog.sent();
    context.markSent();
    // From here on the texts may be billed, whoever ends the attempt.
    context.partialSoFar = () => NO_TEXT;
  }

  onHeaders(statusCode: number, headers: HttpHeaders): void {
    this.#statusCode = statusCode;
    this.#headers = headers;
    if (statusCode >= 200 && statusCode < 300) return;
    this.#phase = "refused";
    this.#watchdog.boundEnd(ERROR_BODY_MS);
  }

  onData(chunk: Buffer): void {
    switch (this.#phase) {
      case "undecided":
        this.#decide(chunk);
        return;
      case "body":
        this.#collect(chunk);
        return;
      case "refused":
        if (!this.#kept.keep(chunk, MAX_ERROR_BODY_BYTES)) this.#refuse(this.#kept.text());
        return;
      case "over":
        return;
    }
  }

  onEnd(): void {
    if (this.#phase === "refused") this.#refuse(this.#kept.text());
    else if (this.#phase === "undecided") {
      this.#fail(transientEnd(this.#failureInput(), "empty", `${this.#statusCode} with an empty body`));
    } else if (this.#phase === "body") this.#conclude();
  }

  onFailure(failure: HttpFailure): void {
    if (this.#phase === "refused") this.#refuse("");
    else this.#fail(brokenConnection(this.#failureInput(), failure));
  }

  /** Blank lines before the answer are skipped; whatever else is no web page is read to its end. */
  #decide(chunk: Buffer): void {
    const kind = this.#send.isBinary === true ? "binary" : bodyKind(chunk, this.#headers);
    if (kind === "blank") return;
    if (kind === "html") {
      this.#fail(htmlPage(this.#failureInput(), chunk));
      return;
    }
    this.#phase = "body";
    this.#collect(chunk);
  }

  #collect(chunk: Buffer): void {
    const { maxBytes } = this.#send;
    if (this.#kept.keep(chunk, maxBytes)) return;
    this.#fail(transientEnd(this.#failureInput(), "malformed", `the answer is larger than ${maxBytes} bytes`));
  }

  #conclude(): void {
    const input = this.#failureInput();
    let result: T;
    try {
      const latencyMs = this.#watchdog.elapsedMs();
      const bytes = this.#send.dropsBytes === true ? this.#kept.sharedBytes() : this.#kept.bytes();
      result = this.#send.read(wholeBody(input, bytes, latencyMs, this.#headers));
    } catch (error) {
      this.#fail(unreadable(input, error));
      return;
    }
    this.#end(() => this.#resolve(result));
  }

  #refuse(text: string): void {
    const header = (name: string) => this.#headers.get(name);
    const limits = this.#headers.limits(this.#send.context.runtime);
    this.#fail(this.#send.refused({ statusCode: this.#statusCode, embedded: false, text, header, limits }));
  }

  /** Runs in a timer of its own: an exception here would end the process. */
  #onExpired(timer: WatchdogTimer, limitMs: number): void {
    try {
      this.#expired(timer, limitMs);
    } catch (error) {
      this.#fail(unreadable(this.#failureInput(), error));
    }
  }

  #expired(timer: WatchdogTimer, limitMs: number): void {
    if (this.#phase === "refused") this.#refuse(this.#kept.text());
    else this.#fail(timedOut(this.#failureInput(), timer, limitMs));
  }

  #fail(error: PolyGatewayError): void {
    this.#end(() => this.#reject(error));
  }

  /** Once: timer and listener are gone, the socket is closed unless its answer has ended. */
  #end(settle: () => void): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#stopListening();
    this.#watchdog.stop();
    this.#exchange?.abort();
    settle();
  }

  #isOver(): boolean {
    return this.#phase === "over";
  }

  #failureInput(): FailureInput {
    const { source, wire, operation } = this.#send;
    return {
      assembler: NOTHING_YET,
      sourceName: source.name,
      operation,
      statusCode: this.#statusCode,
      redact: wire.redact,
    };
  }
}

/** Text is made of the bytes only where it is read: an archive is none. */
function wholeBody(input: FailureInput, bytes: Buffer, latencyMs: number, headers: HttpHeaders): WholeBody {
  let text: string | undefined;
  return {
    ...input,
    bytes,
    get text() {
      text ??= bytes.toString("utf8");
      return text;
    },
    latencyMs,
    headers,
  };
}
