/**
 * A small HTTP/1.1 request reader over raw sockets: scripts must be replayed byte for byte and a response may be cut
 * anywhere, which a full HTTP server hides.
 */
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const HEAD_END = "\r\n\r\n";
const EMPTY = Buffer.alloc(0);

export interface RequestHead {
  readonly method: string;
  /** Without the query string. */
  readonly path: string;
  /** Names in lower case; the last of a repeated header wins. */
  readonly headers: Readonly<Record<string, string>>;
  readonly keepAlive: boolean;
}

export interface ReaderEvents {
  /** The head is complete, the body perhaps not yet. */
  onHead(head: RequestHead): void;
  /** The request is complete. Nothing more is read before `release()`. */
  onRequest(head: RequestHead, body: Buffer): void;
  /** Unreadable input: answer with this status and close. */
  onError(status: number, message: string): void;
}

export interface RequestReader {
  push(chunk: Buffer): void;
  /** The current request was answered: the next one may be read. */
  release(): void;
}

type BodyLength = number | "chunked";

interface Parsed {
  head: RequestHead;
  length: BodyLength;
}

const MALFORMED = "malformed request line";

/** null = it is none. */
function requestLine(line: string): { method: string; url: string; version: string } | null {
  const [method, url, version] = line.split(" ");
  return method && url && version?.startsWith("HTTP/1.") ? { method, url, version } : null;
}

/** Parses the head without its final empty line; a string is the problem. */
function parseHead(text: string): Parsed | string {
  const lines = text.split("\r\n");
  const first = requestLine(lines[0] ?? "");
  if (first === null) return MALFORMED;
  const { method, url, version } = first;
  const headers: Record<string, string> = Object.create(null);
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] as string;
    const colon = line.indexOf(":");
    if (colon <= 0) return "malformed header";
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const length = bodyLength(headers);
  if (typeof length === "string" && length !== "chunked") return length;
  const connection = headers.connection?.toLowerCase();
  const keepAlive = version === "HTTP/1.0" ? connection === "keep-alive" : connection !== "close";
  const query = url.indexOf("?");
  return {
    head: { method, path: query < 0 ? url : url.slice(0, query), headers, keepAlive },
    length: length as BodyLength,
  };
}

function bodyLength(headers: Record<string, string>): number | "chunked" | "malformed content-length" {
  if (headers["transfer-encoding"] !== undefined) return "chunked";
  const given = headers["content-length"];
  if (given === undefined) return 0;
  return /^\d{1,15}$/.test(given) ? Number(given) : "malformed content-length";
}

export function createRequestReader(events: ReaderEvents): RequestReader {
  let unread: Buffer = EMPTY;
  let current: Parsed | null = null;
  let parts: Buffer[] = [];
  let bodyBytes = 0;
  let stopped: "no" | "answering" | "failed" = "no";

  function fail(status: number, message: string): false {
    stopped = "failed";
    unread = EMPTY;
    events.onError(status, message);
    return false;
  }

  /** Whoever speaks another protocol never sends the end of a head; a server of HTTP answers its first line. */
  function refuseForeign(): false {
    const lineEnd = unread.indexOf("\r\n");
    if (lineEnd < 0 || requestLine(unread.toString("latin1", 0, lineEnd)) !== null) return false;
    return fail(400, MALFORMED);
  }

  function readHead(): boolean {
    const end = unread.indexOf(HEAD_END);
    if (end < 0) return unread.length > MAX_HEAD_BYTES ? fail(431, "request head too large") : refuseForeign();
    const parsed = parseHead(unread.toString("latin1", 0, end));
    if (typeof parsed === "string") return fail(400, parsed);
    if (parsed.length !== "chunked" && parsed.length > MAX_BODY_BYTES) return fail(413, "request body too large");
    unread = unread.subarray(end + HEAD_END.length);
    current = parsed;
    parts = [];
    bodyBytes = 0;
    events.onHead(parsed.head);
    return true;
  }

  function keep(bytes: number): void {
    if (bytes === 0) return;
    parts.push(unread.subarray(0, bytes));
    bodyBytes += bytes;
    unread = unread.subarray(bytes);
  }

  function readChunks(): boolean {
    for (;;) {
      const lineEnd = unread.indexOf("\r\n");
      if (lineEnd < 0) return false;
      const size = Number.parseInt(unread.toString("latin1", 0, lineEnd), 16);
      if (!(size >= 0)) return fail(400, "malformed chunk size");
      if (bodyBytes + size > MAX_BODY_BYTES) return fail(413, "request body too large");
      if (size === 0) return skipTrailers(lineEnd);
      if (unread.length < lineEnd + 2 + size + 2) return false;
      unread = unread.subarray(lineEnd + 2);
      keep(size);
      unread = unread.subarray(2);
    }
  }

  function skipTrailers(lineEnd: number): boolean {
    const end = unread.indexOf(HEAD_END, lineEnd);
    if (end < 0) return false;
    unread = unread.subarray(end + HEAD_END.length);
    return true;
  }

  function readBody(length: BodyLength): boolean {
    if (length === "chunked") return readChunks();
    keep(Math.min(length - bodyBytes, unread.length));
    return bodyBytes === length;
  }

  function deliver({ head }: Parsed): void {
    const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bodyBytes);
    current = null;
    parts = [];
    stopped = "answering";
    events.onRequest(head, body);
  }

  function advance(): void {
    while (stopped === "no") {
      if (current === null && !readHead()) return;
      const parsed = current as Parsed | null;
      if (parsed === null || !readBody(parsed.length)) return;
      deliver(parsed);
    }
  }

  return {
    push(chunk) {
      if (stopped === "failed") return;
      unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
      if (stopped === "answering" && unread.length > MAX_BODY_BYTES) fail(413, "too much pipelined input");
      else advance();
    },
    release() {
      if (stopped !== "answering") return;
      stopped = "no";
      if (unread.length > 0) advance();
    },
  };
}
