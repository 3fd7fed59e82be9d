import { createRequire } from "node:module";
import { type HttpHeaders, rawHeaders } from "./headers.js";
import { contentCodings, createInflater, type Inflater } from "./inflate.js";
import {
  type Connection,
  type Connections,
  createConnections,
  createProxyConnections,
  type ProxyEnvironment,
  type TrackedHandler,
  type Undici,
} from "./pool.js";

/**
 * HTTP for all transports: undici `dispatch` with a handler object, one pool per origin, keep-alive.
 * undici's own header and body timeouts are off (the watchdog rules), redirects are never followed,
 * and compressed answers are inflated by our own zlib, because a gzip body cut in half otherwise ends cleanly.
 */

export interface HttpRequest {
  readonly origin: string;
  readonly path: string;
  /** Name, value, name, value… */
  readonly headers: string[];
  readonly body: string | Buffer | null;
  /** Default `POST`. */
  readonly method?: "GET" | "POST";
  /** Cap on the decoded bytes of a compressed answer. */
  readonly maxDecodedBytes: number;
}

export interface HttpFailure {
  /** `refused`: undici would not send the request at all. */
  readonly code: "network" | "stale_socket" | "truncated" | "malformed" | "refused";
  readonly message: string;
  readonly cause?: Error;
}

/** Called synchronously as bytes arrive. Exactly one of `onEnd` and `onFailure` ends it, and nothing comes after `abort()`. */
export interface HttpObserver {
  /** The first byte is about to leave. */
  onSent(): void;
  onHeaders(statusCode: number, headers: HttpHeaders): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  onFailure(failure: HttpFailure): void;
}

export interface HttpExchange {
  /** Closes the socket at once. */
  abort(): void;
  pause(): void;
  resume(): void;
}

export interface HttpClient {
  send(request: HttpRequest, observer: HttpObserver): HttpExchange;
  /** Destroys every socket; exchanges in flight end as failures. */
  close(): Promise<void>;
}

const ABORTED = new Error("the attempt ended");

// biome-ignore lint/suspicious/noControlCharactersInRegex: that's what is looked for
const FORBIDDEN_IN_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;

/** May this header be sent? Checked before use, so that no library ever quotes a secret in its own error. */
export function isSafeHeader(name: string, value: string): boolean {
  return HEADER_NAME.test(name) && !FORBIDDEN_IN_VALUE.test(value);
}

const UNUSABLE_PROXY =
  "the proxy in HTTP_PROXY or HTTPS_PROXY (proxyEnv) is no address like http://user:password@host:port; nothing was sent";

function readNothing(): null {
  return null;
}

function codeOf(error: Error): string {
  return String((error as NodeJS.ErrnoException).code ?? "");
}

/**
 * Implements undici's first handler interface, the one its own API methods use: the later one costs three objects
 * and a parsed copy of all headers per answer, of which we read two.
 */
class PooledExchange implements HttpExchange, TrackedHandler {
  #connectionNow: (() => Connection | undefined) | undefined;
  #connection: Connection | undefined;
  readonly #observer: HttpObserver;
  readonly #maxDecodedBytes: number;
  #abortRequest: ((reason?: Error) => void) | undefined;
  #inflater: Inflater | undefined;
  #ended = false;
  #sent = false;
  #reused = false;
  #responseStarted = false;
  #consumerPaused = false;
  #inflaterFull = false;

  constructor(observer: HttpObserver, maxDecodedBytes: number) {
    this.#observer = observer;
    this.#maxDecodedBytes = maxDecodedBytes;
  }

  /** The socket is known only when the request is about to be written. */
  trackConnection(connectionNow: () => Connection | undefined): void {
    this.#connectionNow = connectionNow;
  }

  abort(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#inflater?.destroy();
    this.#closeSocket();
  }

  pause(): void {
    if (this.#ended) return;
    this.#consumerPaused = true;
    this.#inflater?.pause();
    this.#holdReads();
  }

  resume(): void {
    this.#consumerPaused = false;
    this.#inflater?.resume();
    if (!this.#inflaterFull) this.#releaseReads();
  }

  get wasRefused(): boolean {
    return this.#ended && !this.#sent;
  }

  onConnect(abortRequest: (reason?: Error) => void): void {
    this.#abortRequest = abortRequest;
    if (this.#ended) {
      abortRequest(ABORTED);
      return;
    }
    this.#connection = this.#connectionNow?.();
    if (this.#connection !== undefined) {
      this.#reused = this.#connection.requests > 0;
      this.#connection.requests += 1;
    }
    this.#sent = true;
    this.#observer.onSent();
  }

  onResponseStarted(): void {
    this.#responseStarted = true;
  }

  onHeaders(statusCode: number, raw: Buffer[]): boolean {
    this.#responseStarted = true;
    if (this.#ended || statusCode < 200) return true;
    const headers = rawHeaders(raw);
    const codings = contentCodings(headers.get("content-encoding"));
    if (codings.length > 0) this.#inflater = this.#createInflater(codings);
    this.#observer.onHeaders(statusCode, headers);
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#ended) return true;
    if (this.#inflater === undefined) {
      this.#observer.onData(chunk);
    } else if (!this.#inflater.write(chunk)) {
      this.#inflaterFull = true;
      this.#holdReads();
    }
    return true;
  }

  onComplete(): void {
    if (this.#ended) return;
    this.#releaseReads();
    // A body that only the end of the connection delimits also "ends" by a reset, says undici. It doesn't.
    const reset = this.#connection?.error;
    if (reset !== undefined) this.#fail(this.#describe(reset));
    else if (this.#inflater === undefined) this.#end();
    else this.#inflater.end();
  }

  onError(error: Error): void {
    this.#fail(this.#describe(error));
  }

  #createInflater(codings: readonly string[]): Inflater {
    return createInflater(
      codings,
      this.#maxDecodedBytes,
      {
        onData: (chunk) => {
          if (!this.#ended) this.#observer.onData(chunk);
        },
        onEnd: () => this.#end(),
        onError: (kind, message) => {
          if (this.#ended) return;
          this.#fail({ code: kind === "cut" ? "truncated" : "malformed", message });
          this.#closeSocket();
        },
      },
      () => {
        this.#inflaterFull = false;
        if (!this.#consumerPaused) this.#releaseReads();
      },
    );
  }

  /**
   * Backpressure at the socket, not by `controller.pause()`: a parser that is paused when a connection ends hits an
   * assertion of undici's outside of any caller, which takes the process down.
   */
  #holdReads(): void {
    if (this.#connection !== undefined) this.#connection.socket.read = readNothing;
  }

  #releaseReads(): void {
    const socket = this.#connection?.socket;
    if (socket === undefined || socket.read !== readNothing) return;
    Reflect.deleteProperty(socket, "read");
    // Later, because this may run inside undici's parser, which must not be entered twice.
    queueMicrotask(() => socket.emit("readable"));
  }

  /** Not by the controller where it can be helped: undici then opens a new connection for nothing. */
  #closeSocket(): void {
    if (this.#sent && this.#connection !== undefined) this.#connection.socket.destroy(ABORTED);
    else this.#abortRequest?.(ABORTED);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#observer.onEnd();
  }

  #fail(failure: HttpFailure): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#inflater?.destroy();
    this.#observer.onFailure(failure);
  }

  #describe(cause: Error): HttpFailure {
    const code = codeOf(cause);
    if (code === "UND_ERR_INVALID_ARG") return { code: "refused", message: cause.message, cause };
    if (!this.#sent) return { code: "network", message: `no connection: ${cause.message}`, cause };
    const closed = code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
    if (!this.#responseStarted) {
      if (closed && this.#reused) {
        return {
          code: "stale_socket",
          message: "the kept-alive connection had died before the request reached it",
          cause,
        };
      }
      return { code: "network", message: `the connection broke before any answer: ${cause.message}`, cause };
    }
    if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" || cause.message === "other side closed") {
      return { code: "truncated", message: "the connection was closed in the middle of the answer", cause };
    }
    if (code.startsWith("HPE_") || code === "UND_ERR_HEADERS_OVERFLOW") {
      return { code: "malformed", message: `the answer violates HTTP: ${cause.message}`, cause };
    }
    return { code: "network", message: `the connection broke in the middle of the answer: ${cause.message}`, cause };
  }
}

/** undici is loaded at the first request. */
export function createHttpClient(proxyEnv: ProxyEnvironment = {}): HttpClient {
  const origins = new Map<string, Connections>();
  const proxied = Boolean(proxyEnv.httpProxy || proxyEnv.httpsProxy);
  let undici: Undici | undefined;
  let closed = false;

  function connectionsTo(origin: string): Connections {
    const key = proxied ? "proxy" : origin;
    let connections = origins.get(key);
    if (connections === undefined) {
      undici ??= createRequire(import.meta.url)("undici") as Undici;
      connections = proxied ? createProxyConnections(undici, proxyEnv) : createConnections(undici, origin);
      origins.set(key, connections);
    }
    return connections;
  }

  return {
    send(request, observer) {
      const exchange = new PooledExchange(observer, request.maxDecodedBytes);
      if (closed) {
        observer.onFailure({ code: "network", message: "the transport is closed" });
        return exchange;
      }
      const { origin, path, headers, body, method = "POST" } = request;
      let connections: Connections;
      try {
        connections = connectionsTo(origin);
      } catch {
        // The library's own error quotes the address, and with it the proxy's password.
        observer.onFailure({ code: "network", message: UNUSABLE_PROXY });
        return exchange;
      }
      const options = { origin, path, method, headers, body, headersTimeout: 0, bodyTimeout: 0 } as const;
      connections.dispatch(options, exchange);
      return exchange;
    },
    async close() {
      closed = true;
      const closing = [...origins.values()].map((connections) => connections.destroy());
      origins.clear();
      await Promise.all(closing);
    },
  };
}
