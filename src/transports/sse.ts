import { TextPile } from "./text-pile.js";

/**
 * Server-sent events by the WHATWG grammar (https://html.spec.whatwg.org/multipage/server-sent-events.html):
 * LF, CR and CRLF split anywhere, optional space, one BOM, comments, multi-line data, event names.
 * An event is handed over with the read that completes it; a line end at the very end of a read never waits for the next.
 */

/** One event, and so one line, may hold at most 8 MiB. */
export const MAX_EVENT_UNITS = 8 * 1_024 * 1_024;

const LF = 10;
const SPACE = 32;
const COLON = 58;

/** Return false to stop: the rest of the stream is then ignored. */
export type SseHandler = (data: string, eventName: string) => boolean;

/** Bytes → text; a character split between two reads is kept whole. */
export class Utf8Decoder {
  #carry: Buffer | undefined;

  decode(chunk: Buffer): string {
    const bytes = this.#carry === undefined ? chunk : Buffer.concat([this.#carry, chunk]);
    this.#carry = undefined;
    const end = completeUtf8Length(bytes);
    if (end === bytes.length) return bytes.toString("utf8");
    this.#carry = bytes.subarray(end);
    return bytes.toString("utf8", 0, end);
  }

  /** What is left when the bytes ended inside a character. */
  end(): string {
    return this.#carry === undefined ? "" : this.#carry.toString("utf8");
  }
}

/** Length of `bytes` without an unfinished character at its end. */
function completeUtf8Length(bytes: Buffer): number {
  const { length } = bytes;
  if (length === 0 || bytes[length - 1]! < 0x80) return length;
  for (let back = 1; back <= Math.min(4, length); back += 1) {
    const byte = bytes[length - back]!;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? length - back : length;
    }
    if (byte < 0x80) return length;
  }
  return length;
}

export class SseReader {
  readonly #onEvent: SseHandler;
  readonly #maxEventUnits: number;
  /** Pieces of a line whose end hasn't arrived: joined once, so that many small reads stay linear. */
  readonly #fragments = new TextPile();
  #data = "";
  /** Data lines before the last one of this event; nearly every event has one line only. */
  #earlier: TextPile | undefined;
  #earlierUnits = 0;
  #hasData = false;
  #eventName = "";
  #skipLf = false;
  #started = false;
  #stopped = false;
  /** True once one event outgrew the cap; nothing more is read. */
  overflowed = false;

  constructor(onEvent: SseHandler, maxEventUnits = MAX_EVENT_UNITS) {
    this.#onEvent = onEvent;
    this.#maxEventUnits = maxEventUnits;
  }

  feed(text: string): void {
    if (this.#stopped || text === "") return;
    let start = 0;
    if (!this.#started) {
      this.#started = true;
      if (text.charCodeAt(0) === 0xfeff) start = 1;
    }
    if (this.#skipLf && start < text.length) {
      this.#skipLf = false;
      if (text.charCodeAt(start) === LF) start += 1;
    }
    const rest = text.indexOf("\r", start) === -1 ? this.#readLfLines(text, start) : this.#readAnyLines(text, start);
    if (this.#stopped) return;
    if (rest < text.length) {
      this.#fragments.add(rest === 0 ? text : text.slice(rest));
    }
    if (this.#fragments.length + this.#dataUnits > this.#maxEventUnits) this.#overflow();
  }

  /** The stream ended: hands over a last event whose blank line is missing (the reader of its JSON judges whether it is whole). */
  end(): void {
    if (this.#stopped) return;
    if (!this.#fragments.isEmpty) this.#line("", 0, 0);
    if (!this.#stopped && this.#hasData) this.#dispatch();
    this.#stop();
  }

  get #dataUnits(): number {
    return this.#earlierUnits + this.#data.length;
  }

  #overflow(): void {
    this.overflowed = true;
    this.#stop();
  }

  #stop(): void {
    this.#stopped = true;
    this.#fragments.take();
    this.#data = "";
    this.#earlier = undefined;
    this.#earlierUnits = 0;
  }

  /** The usual case: no CR anywhere in this read. Returns where the unfinished line starts. */
  #readLfLines(text: string, from: number): number {
    let start = from;
    for (let end = text.indexOf("\n", start); end !== -1; end = text.indexOf("\n", start)) {
      this.#line(text, start, end);
      if (this.#stopped) return text.length;
      start = end + 1;
    }
    return start;
  }

  #readAnyLines(text: string, from: number): number {
    let start = from;
    let nextCr = text.indexOf("\r", start);
    let nextLf = text.indexOf("\n", start);
    while (nextCr !== -1 || nextLf !== -1) {
      const end = nextCr === -1 ? nextLf : nextLf === -1 ? nextCr : Math.min(nextCr, nextLf);
      this.#line(text, start, end);
      if (this.#stopped) return text.length;
      start = end + 1;
      if (end === nextCr) {
        if (start === text.length) this.#skipLf = true;
        else if (nextLf === start) start += 1;
      }
      if (nextCr !== -1 && nextCr < start) nextCr = text.indexOf("\r", start);
      if (nextLf !== -1 && nextLf < start) nextLf = text.indexOf("\n", start);
    }
    return start;
  }

  #line(text: string, from: number, to: number): void {
    let line = text;
    let start = from;
    let end = to;
    if (!this.#fragments.isEmpty) {
      this.#fragments.add(text.slice(from, to));
      line = this.#fragments.take();
      start = 0;
      end = line.length;
    }
    if (start === end) {
      if (this.#hasData) this.#dispatch();
      this.#eventName = "";
      return;
    }
    if (line.startsWith("data:", start)) {
      this.#addData(line.slice(line.charCodeAt(start + 5) === SPACE ? start + 6 : start + 5, end));
    } else if (line.charCodeAt(start) !== COLON) {
      this.#field(line.slice(start, end));
    }
  }

  #addData(value: string): void {
    if (this.#hasData) this.#keepEarlier(this.#data);
    this.#data = value;
    this.#hasData = true;
    if (this.#dataUnits > this.#maxEventUnits) this.#overflow();
  }

  #keepEarlier(line: string): void {
    this.#earlier ??= new TextPile();
    this.#earlier.add(`${line}\n`);
    this.#earlierUnits = this.#earlier.length;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    if (name === "event") this.#eventName = value;
    else if (name === "data") this.#addData(value);
  }

  #dispatch(): void {
    const data = this.#earlierUnits === 0 ? this.#data : this.#earlier!.take() + this.#data;
    const eventName = this.#eventName;
    this.#data = "";
    this.#earlierUnits = 0;
    this.#hasData = false;
    this.#eventName = "";
    if (!this.#onEvent(data, eventName)) this.#stop();
  }
}
