import type { Connection } from "./connection.js";
import { LAST_CHUNK, statusLine } from "./http-response.js";

/** One piece of a scripted body, sent `delayMs` after the piece before it. */
export interface ScriptChunk {
  readonly delayMs?: number;
  readonly utf8?: string;
  readonly base64?: string;
}

/**
 * A response replayed byte for byte. Without `content-length` or `transfer-encoding` among the headers, each chunk
 * becomes one HTTP chunk of its own. Without `status` not a single byte is answered before the end.
 */
export interface ResponseScript {
  readonly status?: number;
  /** A list repeats the header. `{{httpdate+7}}` = the HTTP date 7 s from now (also negative). */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly headersDelayMs?: number;
  readonly chunks?: readonly ScriptChunk[];
  /** `close`: properly ended · `reset`: RST, body unfinished · `hang`: nothing more, socket open. */
  readonly end: "close" | "reset" | "hang";
  /** The socket stays usable after a proper end. Default: it is closed. */
  readonly keepAlive?: boolean;
  /** With `keepAlive`: the idle socket is closed after this long. */
  readonly closeIdleAfterMs?: number;
}

/** A socket that served a request before is reset before any response byte; a fresh one gets the script. */
export interface SocketScript {
  readonly reusedSocket: "reset-before-response";
  readonly freshSocket: ResponseScript;
}

export type UpstreamScript = ResponseScript | SocketScript;

export interface ReplayHost {
  wallNow(): number;
  /** Everything that will be sent was sent. Called before the connection is released. */
  onEnd(): void;
}

function isSocketScript(script: UpstreamScript): script is SocketScript {
  return "reusedSocket" in script;
}

/** Chooses what a request on this socket gets; null = reset it and keep the script for the fresh socket. */
export function scriptForSocket(script: UpstreamScript, earlierRequests: number): ResponseScript | null {
  if (!isSocketScript(script)) return script;
  return earlierRequests > 0 ? null : script.freshSocket;
}

function fillPlaceholders(value: string, wallNowMs: number): string {
  return value.replace(/\{\{httpdate([+-]\d+)\}\}/g, (_all, seconds: string) =>
    new Date(wallNowMs + Number(seconds) * 1000).toUTCString(),
  );
}

type Framing = "chunked" | "as_given";

function framingOf(script: ResponseScript): Framing {
  const names = Object.keys(script.headers ?? {}).map((name) => name.toLowerCase());
  const given = names.includes("content-length") || names.includes("transfer-encoding");
  return given || script.status === 204 || script.status === 304 ? "as_given" : "chunked";
}

function headOf(script: ResponseScript, status: number, framing: Framing, wallNowMs: number): string {
  let head = statusLine(status);
  let hasConnection = false;
  for (const [name, value] of Object.entries(script.headers ?? {})) {
    if (name.toLowerCase() === "connection") hasConnection = true;
    for (const one of typeof value === "string" ? [value] : value) {
      head += `${name}: ${fillPlaceholders(one, wallNowMs)}\r\n`;
    }
  }
  if (framing === "chunked") head += "transfer-encoding: chunked\r\n";
  if (!hasConnection) head += script.keepAlive ? "connection: keep-alive\r\n" : "connection: close\r\n";
  return `${head}\r\n`;
}

/** The bytes of one chunk in their framing; an empty one would end a chunked body, so it sends nothing. */
function frame(chunk: ScriptChunk, framing: Framing): Buffer {
  const bytes = chunk.base64 === undefined ? Buffer.from(chunk.utf8 ?? "") : Buffer.from(chunk.base64, "base64");
  if (framing === "as_given" || bytes.length === 0) return bytes;
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

/** Plays one script on a connection. Everything pending dies with the connection. */
export function replay(script: ResponseScript, connection: Connection, host: ReplayHost): void {
  const { status } = script;
  const framing = framingOf(script);
  const chunks = status === undefined ? [] : (script.chunks ?? []);

  function finish(): void {
    if (script.end === "hang") return;
    if (script.end === "reset") {
      host.onEnd();
      connection.reset(status === undefined ? "now" : "after_flush");
      return;
    }
    if (status !== undefined && framing === "chunked") connection.write(LAST_CHUNK);
    host.onEnd();
    const keepAlive = status !== undefined && script.keepAlive === true;
    if (keepAlive && script.closeIdleAfterMs !== undefined) {
      connection.after(script.closeIdleAfterMs, () => connection.end());
    }
    connection.finish(keepAlive);
  }

  function playFrom(index: number): void {
    for (let i = index; i < chunks.length; i++) {
      const chunk = chunks[i] as ScriptChunk;
      const delayMs = i === index ? 0 : (chunk.delayMs ?? 0);
      if (delayMs > 0) {
        connection.after(delayMs, () => playFrom(i));
        return;
      }
      connection.write(frame(chunk, framing));
    }
    finish();
  }

  connection.after(script.headersDelayMs ?? 0, () => {
    if (status === undefined) return finish();
    connection.write(headOf(script, status, framing, host.wallNow()));
    connection.after(chunks[0]?.delayMs ?? 0, () => playFrom(0));
  });
}
