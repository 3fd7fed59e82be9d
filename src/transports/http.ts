import { createRequire } from "node:module";
import type { Dispatcher } from "undici";
import { contentCodings, createInflater, type Inflater } from "./inflate.js";
import {
  type Connection,
  createPool,
  createProxyDispatcher,
  type ProxyEnvironment,
  type TrackedOptions,
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
  readonly body: string;
  /** Cap on the decoded bytes of a compressed answer. */
  readonly maxDecodedBytes: number;
}

export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

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

/** First value of a header, or undefined. */
export function headerValue(headers: HttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that's what is looked for
const FORBIDDEN_IN_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;

/** May this header be sent? Checked before use, so that no library ever quotes a secret in its own error. */
export function isSafeHeader(name: string, value: string): boolean {
  return HEADER_NAME.test(name) && !FORBIDDEN_IN_VALUE.test(value);
}

function readNothing(): null {
  return null;
}

function codeOf(error: Error): string {
  return String((error as NodeJS.ErrnoException).code ?? "");
}

class PooledExchange implements HttpExchange, Dispatcher.DispatchHandler {
  #connectionNow: (() => Connection | undefined) | undefined;
  #connection: Connection | undefined;
  readonly #observer: HttpObserver;
  readonly #maxDecodedBytes: number;
  #controller: Dispatcher.DispatchController | undefined;
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

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) {
      controller.abort(ABORTED);
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

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number, headers: HttpHeaders): void {
    this.#responseStarted = true;
    if (this.#ended || statusCode < 200) return;
    const codings = contentCodings(headerValue(headers, "content-encoding"));
    if (codings.length > 0) this.#inflater = this.#createInflater(codings);
    this.#observer.onHeaders(statusCode, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#ended) return;
    if (this.#inflater === undefined) {
      this.#observer.onData(chunk);
    } else if (!this.#inflater.write(chunk)) {
      this.#inflaterFull = true;
      this.#holdReads();
    }
  }

  onResponseEnd(): void {
    if (this.#ended) return;
    this.#releaseReads();
    // A body that only the end of the connection delimits also "ends" by a reset, says undici. It doesn't.
    const reset = this.#connection?.error;
    if (reset !== undefined) this.#fail(this.#describe(reset));
    else if (this.#inflater === undefined) this.#end();
    else this.#inflater.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
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
    else this.#controller?.abort(ABORTED);
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
  const pools = new Map<string, Dispatcher>();
  const proxied = Boolean(proxyEnv.httpProxy || proxyEnv.httpsProxy);
  let undici: Undici | undefined;
  let closed = false;

  function dispatcherFor(origin: string): Dispatcher {
    const key = proxied ? "proxy" : origin;
    let dispatcher = pools.get(key);
    if (dispatcher === undefined) {
      undici ??= createRequire(import.meta.url)("undici") as Undici;
      dispatcher = proxied ? createProxyDispatcher(undici, proxyEnv) : createPool(undici, origin);
      pools.set(key, dispatcher);
    }
    return dispatcher;
  }

  return {
    send(request, observer) {
      const exchange = new PooledExchange(observer, request.maxDecodedBytes);
      if (closed) {
        observer.onFailure({ code: "network", message: "the transport is closed" });
        return exchange;
      }
      const options: TrackedOptions = {
        origin: request.origin,
        path: request.path,
        method: "POST",
        headers: request.headers,
        body: request.body,
        headersTimeout: 0,
        bodyTimeout: 0,
        exchange,
      };
      dispatcherFor(request.origin).dispatch(options, exchange);
      return exchange;
    },
    async close() {
      closed = true;
      const closing = [...pools.values()].map((dispatcher) => dispatcher.destroy());
      pools.clear();
      await Promise.all(closing);
    },
  };
}
