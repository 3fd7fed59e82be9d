import type { ChatCompletion, ChatEvent } from "../../domain/chat.js";
import type { UpstreamLimits } from "../../domain/upstream-limits.js";
import { type PartialReply, PolyGatewayError } from "../../errors.js";
import type { ChatAttempt, ChatSink } from "../../ports/transport.js";
import { BodyBuffer, DRAIN_BYTES, DRAIN_MS, ERROR_BODY_MS, MAX_ERROR_BODY_BYTES } from "../body-buffer.js";
import { type HttpHeaders, NO_HEADERS } from "../headers.js";
import type { HttpClient, HttpExchange, HttpFailure, HttpObserver } from "../http.js";
import { isTooHeavy, textBytes } from "../json-weight.js";
import { SseReader, Utf8Decoder } from "../sse.js";
import { flattened } from "../text-pile.js";
import { Watchdog, type WatchdogTimer } from "../watchdog.js";
import { MAX_ANSWER_BYTES } from "./answer-limits.js";
import { ChatAssembler } from "./assemble.js";
import { bodyKind } from "./body-kind.js";
import type { Refusal } from "./classify.js";
import { brokenConnection, cutStream, htmlPage, parseAnswer, timedOut, tooMuch, unreadable } from "./failures.js";
import { type Fault, findEmbeddedFault, namedFault } from "./fault.js";
import { FrameParser } from "./frame-parser.js";
import { type JudgeInput, judge, transientEnd } from "./judge.js";
import { looksCut } from "./looks-cut.js";
import { refusalError } from "./refuse.js";
import type { WireBody } from "./request.js";
import { headersOf, type SourceWire } from "./source-wire.js";

/** After the last finish_reason: usage and `[DONE]` may take this much longer, then the answer counts as ended. */
const AFTER_FINISH_MS = 1_000;
const DONE = "[DONE]";
const NO_BYTES = Buffer.alloc(0);
/** As for choices (assemble.ts): an array is made when it has something to hold. */
const NO_EVENTS: ChatEvent[] = [];
const OPENING_BRACKET = 0x5b;
const COLON = 0x3a;

const NOTHING: PartialReply = { content: "", thinking: "", toolCalls: [], usage: null };

type Phase = "undecided" | "json" | "sse" | "refused" | "draining" | "over";

/** One send to one source: bytes in, a settled promise out. */
export class ChatExchange implements HttpObserver {
  readonly #attempt: ChatAttempt;
  readonly #wire: SourceWire;
  readonly #body: WireBody;
  readonly #resolve: (completion: ChatCompletion) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #watchdog: Watchdog;
  readonly #assembler: ChatAssembler;
  readonly #sink: ChatSink | undefined;
  #events = NO_EVENTS;
  #exchange: HttpExchange | undefined;
  #stopListening: () => void = () => {};
  #phase: Phase = "undecided";
  #statusCode = 0;
  #headers: HttpHeaders = NO_HEADERS;
  #kept: BodyBuffer | undefined;
  #decoder: Utf8Decoder | undefined;
  #reader: SseReader | undefined;
  #frames: FrameParser | undefined;
  #ttftMs: number | null = null;
  #sawDone = false;
  /** The frames are over: what is left of one can't be completed any more. */
  #framesOver = false;
  /** The response has ended on the wire, one way or the other. */
  #wireEnded = false;
  #paused = false;
  /** This read brought content, thinking, a tool call or usage. */
  #progressed = false;
  #drainedBytes = 0;

  constructor(
    attempt: ChatAttempt,
    wire: SourceWire,
    body: WireBody,
    resolve: (completion: ChatCompletion) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#attempt = attempt;
    this.#wire = wire;
    this.#body = body;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#sink = attempt.sink;
    const { source, context } = attempt;
    const limits = {
      totalMs: source.timeoutMs,
      ttftMs: source.ttftTimeoutMs,
      interTokenMs: source.interTokenTimeoutMs,
    };
    this.#watchdog = new Watchdog(context.runtime, limits, (timer, limitMs) => this.#onExpired(timer, limitMs));
    const emit = this.#sink === undefined ? undefined : (event: ChatEvent) => this.#emit(event);
    this.#assembler = new ChatAssembler(source.profile, `call_${context.callId}_`, emit);
  }

  start(http: HttpClient): void {
    const { context } = this.#attempt;
    context.partialSoFar = partialOf(this.#assembler);
    this.#watchdog.start(this.#attempt.stream);
    this.#stopListening = context.onAbort((reason) => this.#abandon(reason));
    if (this.#settled) {
      this.#stopListening();
      return;
    }
    const { origin, path } = this.#wire;
    const headers = headersOf(this.#wire, context.callId);
    const request = { origin, path, headers, body: this.#body.json, maxDecodedBytes: MAX_ANSWER_BYTES };
    const exchange = http.send(request, this);
    this.#exchange = exchange;
    if (this.#phase === "over") exchange.abort();
  }

  onSent(): void {
    this.#watchdog.sent();
    this.#attempt.context.markSent();
  }

  onHeaders(statusCode: number, headers: HttpHeaders): void {
    this.#statusCode = statusCode;
    this.#headers = headers;
    if (statusCode >= 200 && statusCode < 300) return;
    this.#phase = "refused";
    this.#watchdog.boundEnd(ERROR_BODY_MS);
  }

  onData(chunk: Buffer): void {
    try {
      this.#accept(chunk);
    } catch (error) {
      this.#fail(unreadable(this.#judgeInput(), error));
    }
  }

  onEnd(): void {
    this.#wireEnded = true;
    try {
      this.#ended();
    } catch (error) {
      this.#fail(unreadable(this.#judgeInput(), error));
    }
  }

  onFailure(failure: HttpFailure): void {
    this.#wireEnded = true;
    try {
      this.#broken(failure);
    } catch (error) {
      this.#fail(unreadable(this.#judgeInput(), error));
    }
  }

  #broken(failure: HttpFailure): void {
    if (this.#settled) {
      this.#close();
    } else if (this.#phase === "refused") {
      this.#refuse("");
    } else if (this.#phase === "sse" && this.#isWhole()) {
      this.#conclude();
    } else {
      this.#fail(brokenConnection(this.#judgeInput(), failure));
    }
  }

  get #settled(): boolean {
    return this.#phase === "draining" || this.#phase === "over";
  }

  #accept(chunk: Buffer): void {
    switch (this.#phase) {
      case "undecided":
        this.#decide(chunk);
        return;
      case "json":
        this.#collect(chunk, MAX_ANSWER_BYTES);
        return;
      case "sse":
        this.#readFrames(chunk);
        return;
      case "refused":
        if (!this.#keep(chunk, MAX_ERROR_BODY_BYTES)) this.#refuse(this.#collected());
        return;
      case "draining":
        this.#drainedBytes += chunk.length;
        if (this.#drainedBytes > DRAIN_BYTES) this.#close();
        return;
      case "over":
        return;
    }
  }

  #ended(): void {
    switch (this.#phase) {
      case "undecided":
        this.#fail(transientEnd(this.#judgeInput(), "empty", `${this.#statusCode} with an empty body`));
        return;
      case "json":
        this.#readBody(this.#wholeBody());
        return;
      case "sse":
        this.#endOfFrames();
        return;
      case "refused":
        this.#refuse(this.#collected());
        return;
      default:
        this.#close();
    }
  }

  /** Content type and first byte say what the answer is, not what was asked for. Blank lines before it are skipped. */
  #decide(chunk: Buffer): void {
    const kind = bodyKind(chunk, this.#headers);
    if (kind === "blank") {
      this.#watchdog.touch();
      return;
    }
    if (kind === "html") {
      this.#fail(htmlPage(this.#judgeInput(), chunk));
      return;
    }
    this.#phase = kind;
    this.#watchdog.setStreaming(kind === "sse");
    if (kind === "sse") {
      this.#decoder = new Utf8Decoder();
      this.#frames = new FrameParser();
      this.#reader = new SseReader((data, eventName) => this.#frame(data, eventName));
    }
    this.#accept(chunk);
  }

  #keep(chunk: Buffer, maxBytes: number): boolean {
    this.#kept ??= new BodyBuffer();
    return this.#kept.keep(chunk, maxBytes);
  }

  #collect(chunk: Buffer, maxBytes: number): void {
    if (this.#keep(chunk, maxBytes)) return;
    this.#kept = undefined;
    this.#fail(tooMuch(this.#judgeInput(), `the answer is larger than ${maxBytes} bytes`));
  }

  #wholeBody(): Buffer {
    const bytes = this.#kept?.bytes() ?? NO_BYTES;
    this.#kept = undefined;
    return bytes;
  }

  #collected(): string {
    return this.#wholeBody().toString("utf8");
  }

  #readFrames(chunk: Buffer): void {
    const reader = this.#reader!;
    this.#progressed = false;
    reader.feed(this.#decoder!.decode(chunk));
    if (this.#progressed) this.#watchdog.progress();
    else this.#watchdog.touch();
    if (reader.overflowed && !this.#settled) {
      this.#fail(tooMuch(this.#judgeInput(), "one event of the stream is larger than 8 MiB"));
    }
    if (!this.#settled) this.#deliver();
  }

  /** One event. Returns false when the rest of the stream no longer matters. */
  #frame(data: string, eventName: string): boolean {
    if (data.charCodeAt(0) === OPENING_BRACKET && data.trim() === DONE) {
      this.#sawDone = true;
      if (this.#isWhole()) this.#conclude();
      else this.#fail(cutStream(this.#judgeInput()));
      return false;
    }
    // A broken proxy may wrap a comment as data.
    if (data === "" || data.charCodeAt(0) === COLON) return true;
    if (isTooHeavy(data)) {
      this.#fail(tooMuch(this.#judgeInput(), "one event of the stream holds too many values"));
      return false;
    }
    let frame: unknown;
    try {
      frame = this.#frames!.parse(data);
    } catch {
      return this.#unreadableFrame(data, eventName);
    }
    const fault = findEmbeddedFault(frame) ?? (eventName === "error" ? namedFault(frame) : undefined);
    if (fault !== undefined) {
      this.#refuseEmbedded(data, fault);
      return false;
    }
    if (typeof frame === "object" && frame !== null) this.#progress(frame as Record<string, unknown>, data);
    return !this.#settled;
  }

  #progress(frame: Record<string, unknown>, data: string): void {
    const brought = this.#assembler.acceptFrame(frame, data);
    if (this.#isExcessive() || brought === "nothing") return;
    if (brought === "token" && this.#ttftMs === null) {
      this.#ttftMs = this.#watchdog.elapsedMs();
      this.#watchdog.firstToken();
      this.#attempt.context.markFirstToken();
    }
    this.#progressed = true;
    if (this.#assembler.isFinished && this.#isWhole() && this.#hasAllChoices()) {
      this.#watchdog.boundEnd(AFTER_FINISH_MS);
    }
  }

  #isExcessive(): boolean {
    const { excess } = this.#assembler;
    if (excess !== undefined) this.#fail(tooMuch(this.#judgeInput(), `the answer has ${excess}`));
    return excess !== undefined;
  }

  #hasAllChoices(): boolean {
    return this.#assembler.choiceCount >= (this.#attempt.request.sampling?.n ?? 1);
  }

  #unreadableFrame(data: string, eventName: string): boolean {
    if (eventName === "error") {
      this.#refuseEmbedded(data, { codes: [], message: data.trim(), isApiError: true });
    } else if (this.#framesOver && this.#isWhole()) {
      // Cut behind the last finish_reason: only usage or `[DONE]` is lost.
      return true;
    } else if (looksCut(data)) {
      this.#fail(cutStream(this.#judgeInput()));
    } else {
      this.#fail(transientEnd(this.#judgeInput(), "malformed", "a frame of the stream is no JSON"));
    }
    return false;
  }

  #endOfFrames(): void {
    this.#framesOver = true;
    const rest = this.#decoder!.end();
    if (rest !== "") this.#reader!.feed(rest);
    this.#reader!.end();
    if (this.#settled) this.#close();
    else if (this.#isWhole()) this.#conclude();
    else this.#fail(cutStream(this.#judgeInput()));
  }

  /** May the stream end here? A finish_reason for every choice, or `[DONE]` where that is proof. */
  #isWhole(): boolean {
    const { isFinished, hasChoices } = this.#assembler;
    if (this.#attempt.source.requireDone && !this.#sawDone) return false;
    return isFinished || (this.#sawDone && this.#attempt.source.profile.doneIsProof && hasChoices);
  }

  #readBody(bytes: Buffer): void {
    if (textBytes(bytes) > MAX_ANSWER_BYTES) {
      this.#fail(tooMuch(this.#judgeInput(), `the text of the answer takes more than ${MAX_ANSWER_BYTES} bytes`));
      return;
    }
    const text = bytes.toString("utf8");
    if (isTooHeavy(text)) {
      this.#fail(tooMuch(this.#judgeInput(), "the JSON answer holds too many values"));
      return;
    }
    const body = parseAnswer(this.#judgeInput(), text);
    const fault = findEmbeddedFault(body);
    if (fault !== undefined) {
      this.#refuseEmbedded(text, fault);
      return;
    }
    const fields = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
    if (!Array.isArray(fields.choices)) {
      this.#fail(
        transientEnd(this.#judgeInput(), "malformed", `${this.#statusCode} with neither choices nor an error`),
      );
      return;
    }
    this.#assembler.acceptBody(fields);
    if (!this.#isExcessive()) this.#conclude();
  }

  /** The provider ended its answer properly: judge it, settle, and leave the socket fit for reuse. */
  #conclude(): void {
    const judged = judge(this.#judgeInput());
    if (PolyGatewayError.isInstance(judged)) {
      this.#fail(judged);
      return;
    }
    const { primary, choices, usage } = judged;
    const { refusal, logprobs, modelReported } = this.#assembler;
    this.#assembler.emitEnd(primary.finishReason, primary.rawFinishReason, usage);
    const latencyMs = this.#watchdog.elapsedMs();
    this.#settle();
    this.#deliver();
    this.#resolve({
      content: primary.content,
      thinking: primary.thinking,
      toolCalls: primary.toolCalls,
      finishReason: primary.finishReason,
      rawFinishReason: primary.rawFinishReason,
      refusal: refusal === "" ? undefined : refusal,
      usage,
      modelReported,
      choices: choices.length > 1 ? choices : undefined,
      logprobs,
      statusCode: this.#statusCode,
      latencyMs,
      ttftMs: this.#ttftMs,
      limits: this.#limits(),
    });
  }

  #refuse(text: string): void {
    this.#refuseWith({
      statusCode: this.#statusCode,
      embedded: false,
      text,
      header: (name) => this.#headers.get(name),
      limits: this.#limits(),
    });
  }

  #refuseEmbedded(text: string, fault: Fault): void {
    const header = (name: string) => this.#headers.get(name);
    const limits = this.#limits();
    this.#refuseWith({ statusCode: this.#statusCode, embedded: true, text, fault, header, limits });
  }

  #limits(): UpstreamLimits | undefined {
    return this.#headers.limits(this.#attempt.context.runtime);
  }

  #refuseWith(refusal: Refusal): void {
    const { source, context, ownFields, operation } = this.#attempt;
    const partial = this.#assembler.partial();
    const send = { source, context, wire: this.#wire, body: this.#body, ownFields, partial, operation };
    this.#fail(refusalError(refusal, send));
  }

  /** Runs in a timer of its own: an exception here would end the process. */
  #onExpired(timer: WatchdogTimer, limitMs: number): void {
    try {
      this.#expired(timer, limitMs);
    } catch (error) {
      this.#fail(unreadable(this.#judgeInput(), error));
    }
  }

  #expired(timer: WatchdogTimer, limitMs: number): void {
    if (this.#phase === "refused") {
      this.#refuse(this.#collected());
    } else if (this.#settled) {
      this.#close();
    } else if (this.#phase === "sse" && this.#isWhole()) {
      this.#conclude();
      this.#close();
    } else {
      this.#fail(timedOut(this.#judgeInput(), timer, limitMs));
    }
  }

  #emit(event: ChatEvent): void {
    if (this.#events === NO_EVENTS) this.#events = [event];
    else addEvent(this.#events, event);
  }

  /** Hands the events of this read to the consumer, all at once; a consumer that is behind pauses the socket and the timers. */
  #deliver(): void {
    const events = this.#events;
    const sink = this.#sink;
    if (sink === undefined || events.length === 0) return;
    this.#events = NO_EVENTS;
    // Joined deltas are a chain of pieces: a consumer that keeps them would keep each of the pieces.
    for (const event of events) if ("text" in event) flattened(event.text);
    if (sink.push(events) || this.#settled || this.#paused) return;
    this.#paused = true;
    this.#watchdog.pause();
    this.#exchange?.pause();
    sink.whenReady(() => this.#resume());
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#phase === "over") return;
    this.#watchdog.resume();
    this.#exchange?.resume();
  }

  /** The caller left or the attempt was evacuated: the socket is closed at once, the reason passes untouched. */
  #abandon(reason: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#close();
    this.#reject(reason);
  }

  #fail(error: PolyGatewayError): void {
    if (this.#settled) return;
    this.#settle();
    this.#close();
    this.#reject(error);
  }

  /** From here on nothing but the socket's own end matters. */
  #settle(): void {
    this.#phase = this.#wireEnded ? "over" : "draining";
    this.#kept = undefined;
    this.#stopListening();
    this.#watchdog.stop();
    if (this.#wireEnded) return;
    this.#watchdog.boundEnd(DRAIN_MS);
    this.#resume();
  }

  #close(): void {
    this.#phase = "over";
    this.#watchdog.stop();
    this.#exchange?.abort();
  }

  #judgeInput(): JudgeInput {
    const { source, operation } = this.#attempt;
    return {
      assembler: this.#assembler,
      sourceName: source.name,
      operation,
      statusCode: this.#statusCode,
      redact: this.#wire.redact,
    };
  }
}

/**
 * Holds the assembler alone: a closure over the exchange would tie it to its attempt in a cycle, which V8 moves to the
 * old heap with every collection of the young one (6 KB a call, measured on Node 20).
 */
function partialOf(assembler: ChatAssembler): () => PartialReply {
  return () => assembler.partial() ?? NOTHING;
}

/** Deltas of one kind that arrive in one read go to the consumer as one: handing over an event costs more than reading it. */
function addEvent(events: ChatEvent[], event: ChatEvent): void {
  const last = events.length - 1;
  const before = events[last];
  if ((event.type === "text-delta" || event.type === "thinking-delta") && before?.type === event.type) {
    events[last] = { type: event.type, text: before.text + event.text };
  } else {
    events.push(event);
  }
}
