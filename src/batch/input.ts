import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { RawLine } from "./lines.js";

/** A longer line is reported as broken instead of being held in memory. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** The lines of IN, a read at a time, so that one promise serves many lines. */
export interface LineReader {
  /** null at the end. One call at a time; blank lines are left out but counted. */
  next(): Promise<readonly RawLine[] | null>;
  /** Frees the file or stream at once; a pending `next` rejects. */
  close(): void;
}

export interface ReadOptions {
  /** Sees the bytes as they are stored, before inflating. */
  readonly onBytes?: (chunk: Uint8Array) => void;
  /** Reads only so many stored bytes, so that lines appended meanwhile wait for the next run. */
  readonly byteLimit?: number;
  readonly maxLineBytes?: number;
}

export function readFileLines(path: string, options: ReadOptions = {}): LineReader {
  const end = options.byteLimit === undefined ? {} : { end: options.byteLimit - 1 };
  if (options.byteLimit === 0) return readLines(Readable.from([]), options);
  return readLines(createReadStream(path, { highWaterMark: 256 * 1024, ...end }), options);
}

/** Reads any byte stream: plain or gzip (told by its first bytes), with or without a BOM, LF or CRLF. */
export function readLines(stream: NodeJS.ReadableStream, options: ReadOptions = {}): LineReader {
  const lines = splitLines(inflate(tap(stream, options.onBytes)), options.maxLineBytes ?? MAX_LINE_BYTES);
  return {
    async next() {
      const { value, done } = await lines.next();
      return done === true ? null : value;
    },
    close: () => (stream as Readable).destroy(),
  };
}

/** The reader with its first line that isn't blank; undefined when there is none. */
export async function peekFirstLine(reader: LineReader): Promise<{ first: RawLine | undefined; reader: LineReader }> {
  let held: readonly RawLine[] | null | undefined = await reader.next();
  const first = held?.[0];
  return {
    first,
    reader: {
      async next() {
        if (held === undefined) return reader.next();
        const lines = held;
        held = lines === null ? null : undefined;
        return lines;
      },
      close: reader.close,
    },
  };
}

async function* tap(stream: AsyncIterable<string | Buffer>, onBytes: ReadOptions["onBytes"]): AsyncGenerator<Buffer> {
  for await (const chunk of stream) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (bytes.length === 0) continue;
    onBytes?.(bytes);
    yield bytes;
  }
}

async function* inflate(stored: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < 2) {
    const { value, done } = await stored.next();
    if (done === true) break;
    head = head.length === 0 ? value : Buffer.concat([head, value]);
  }
  if (head[0] === 0x1f && head[1] === 0x8b) yield* gunzip(head, stored);
  else {
    if (head.length > 0) yield head;
    yield* stored;
  }
}

async function* gunzip(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const plain = createGunzip({ chunkSize: 256 * 1024 });
  // The iteration below reports the error; pipeline only makes sure that both ends are freed.
  pipeline(Readable.from(prepend(head, rest)), plain, () => {});
  yield* plain;
}

async function* prepend(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* rest;
}

async function* splitLines(chunks: AsyncGenerator<Buffer>, maxLineBytes: number): AsyncGenerator<readonly RawLine[]> {
  const splitter = createSplitter(maxLineBytes);
  let first = true;
  for await (const chunk of chunks) {
    if (first) refuseUtf16(chunk);
    first = false;
    const lines = splitter.push(chunk);
    if (lines.length > 0) yield lines;
  }
  const last = splitter.end();
  if (last !== undefined) yield [last];
}

function refuseUtf16(chunk: Buffer): void {
  const mark = chunk.length < 2 ? 0 : chunk.readUInt16BE(0);
  if (mark === 0xfffe || mark === 0xfeff) throw new Error("the text is UTF-16; save it as UTF-8");
}

function createSplitter(maxLineBytes: number) {
  let parts: Buffer[] = [];
  let held = 0;
  let tooLong = false;
  let number = 0;

  function hold(part: Buffer): void {
    held += part.length;
    if (held > maxLineBytes) {
      tooLong = true;
      parts = [];
    } else if (part.length > 0) parts.push(part);
  }

  function take(part: Buffer): RawLine | undefined {
    number++;
    let line: RawLine | undefined;
    if (held === 0 && part.length <= maxLineBytes) line = decode(part, number);
    else {
      hold(part);
      line = tooLong
        ? { number, problem: `longer than ${Math.floor(maxLineBytes / 1_048_576)} MiB` }
        : decode(Buffer.concat(parts), number);
    }
    parts = [];
    held = 0;
    tooLong = false;
    return line;
  }

  return {
    push(chunk: Buffer): RawLine[] {
      const lines: RawLine[] = [];
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        const line = take(chunk.subarray(start, end));
        if (line !== undefined) lines.push(line);
        start = end + 1;
      }
      // A copy: a slice would keep the whole read alive while a long line is collected.
      if (start < chunk.length) hold(Buffer.from(chunk.subarray(start)));
      return lines;
    },
    end: (): RawLine | undefined => (held === 0 ? undefined : take(Buffer.alloc(0))),
  };
}

/** undefined for a blank line. */
function decode(bytes: Buffer, number: number): RawLine | undefined {
  if (!isUtf8(bytes)) return { number, problem: "not valid UTF-8" };
  const bom = number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const text = bytes.toString("utf8", bom).trim();
  return text === "" ? undefined : { number, text };
}
