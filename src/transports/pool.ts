import type { Socket } from "node:net";
import type { buildConnector, Client, Dispatcher, Pool } from "undici";

/** undici pools whose clients tell each exchange the socket it runs on. */

export type Undici = typeof import("undici");

/** The proxy variables, read at the edge; undefined or all empty = direct connections. */
export interface ProxyEnvironment {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** The socket that an exchange runs on. */
export interface Connection {
  readonly socket: Socket;
  /** Requests that it has carried: only a reused socket can be stale. */
  requests: number;
  /** The error that the socket died with. */
  error: Error | undefined;
}

/** Dispatch options of an exchange that wants to know its socket. It exists only when the request is about to be written. */
export interface TrackedOptions extends Dispatcher.DispatchOptions {
  exchange?: { trackConnection(connectionNow: () => Connection | undefined): void };
}

const CONNECT_TIMEOUT_MS = 10_000;
const POOL_OPTIONS = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connectTimeout: CONNECT_TIMEOUT_MS } as const;

type ClientOptions = Client.Options & { connect: buildConnector.connector };

function trackedClient(undici: Undici, origin: URL, options: ClientOptions): Dispatcher {
  let connection: Connection | undefined;
  const connect: buildConnector.connector = (target, done) => {
    options.connect(target, (error, socket) => {
      if (error !== null) {
        done(error, null);
        return;
      }
      const opened: Connection = { socket, requests: 0, error: undefined };
      socket.on("error", (cause: Error) => {
        opened.error = cause;
      });
      connection = opened;
      done(null, socket);
    });
  };
  const client = new undici.Client(origin, { ...options, connect });
  const connectionNow = () => connection;
  const dispatch = client.dispatch.bind(client);
  client.dispatch = (dispatchOptions: TrackedOptions, handler) => {
    dispatchOptions.exchange?.trackConnection(connectionNow);
    return dispatch(dispatchOptions, handler);
  };
  return client;
}

export function createPool(undici: Undici, origin: string | URL, options: object = {}): Pool {
  const factory = (url: URL, clientOptions: object) => trackedClient(undici, url, clientOptions as ClientOptions);
  return new undici.Pool(origin, { ...options, ...POOL_OPTIONS, factory });
}

/** One dispatcher for all origins, which decides by NO_PROXY which of them go through the proxy. */
export function createProxyDispatcher(
  undici: Undici,
  { httpProxy, httpsProxy, noProxy }: ProxyEnvironment,
): Dispatcher {
  return new undici.EnvHttpProxyAgent({
    ...POOL_OPTIONS,
    // Empty strings, so that the library doesn't read the process environment behind our back.
    httpProxy: httpProxy ?? "",
    httpsProxy: httpsProxy ?? "",
    noProxy: noProxy ?? "",
    factory: (origin: string | URL, options: object) => createPool(undici, origin, options),
  });
}
