import type { Socket } from "node:net";
import type { buildConnector, Client, Dispatcher } from "undici";
import { unescaped } from "../domain/percent-escapes.js";

/** undici pools whose clients tell each exchange the socket it runs on. */

export type Undici = typeof import("undici");

/** The proxy variables, read at the edge; undefined or all empty = direct connections. */
export interface ProxyEnvironment {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** The credentials in the addresses of proxies: no error may show them. */
export function proxySecrets({ httpProxy, httpsProxy }: ProxyEnvironment): string[] {
  return [httpProxy, httpsProxy].flatMap((address) => {
    const userinfo = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/@]*)@/i.exec(address ?? "")?.[1];
    if (userinfo === undefined) return [];
    const password = userinfo.slice(userinfo.indexOf(":") + 1);
    return [userinfo, password, unescaped(password)];
  });
}

/** The socket that an exchange runs on. */
export interface Connection {
  readonly socket: Socket;
  /** Requests that it has carried: only a reused socket can be stale. */
  requests: number;
  /** The error that the socket died with. */
  error: Error | undefined;
}

/** A handler that wants to know its socket, which exists only when the request is about to be written. */
export interface TrackedHandler extends Dispatcher.DispatchHandler {
  trackConnection(connectionNow: () => Connection | undefined): void;
  /** It had its end before anything was sent. */
  readonly wasRefused: boolean;
}

/** The connections to one origin, or to all of them through a proxy. */
export interface Connections {
  /** Sends as soon as a connection is free, opening one where none is. Failures reach the handler, never the caller. */
  dispatch(options: Dispatcher.DispatchOptions, handler: TrackedHandler): void;
  /** Destroys every socket; exchanges in flight end as failures. */
  destroy(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const CLIENT_OPTIONS = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 } as const;
const POOL_OPTIONS = { ...CLIENT_OPTIONS, connectTimeout: CONNECT_TIMEOUT_MS } as const;

type ClientOptions = Client.Options & { connect: buildConnector.connector };

function trackedClient(undici: Undici, origin: URL, options: ClientOptions): Client {
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
  client.dispatch = (dispatchOptions, handler: Partial<TrackedHandler>) => {
    handler.trackConnection?.(connectionNow);
    return dispatch(dispatchOptions, handler);
  };
  return client;
}

/** One connection, open or not. */
interface Slot {
  readonly client: Client;
  state: "free" | "busy" | "gone";
}

/**
 * One client per connection. undici's own Pool looks through all of them for a free one at every request; here the free
 * ones lie on a stack. The one used last comes first, so that it is still warm and those that are too many age out.
 */
export function createConnections(undici: Undici, origin: string): Connections {
  const url = new URL(origin);
  const connect = undici.buildConnector({ timeout: CONNECT_TIMEOUT_MS });
  const slots = new Set<Slot>();
  const free: Slot[] = [];

  function release(slot: Slot): void {
    if (slot.state !== "busy") return;
    slot.state = "free";
    free.push(slot);
  }

  function open(): Slot {
    const slot: Slot = { client: trackedClient(undici, url, { ...CLIENT_OPTIONS, connect }), state: "free" };
    slots.add(slot);
    slot.client.on("drain", () => release(slot));
    // A client that could not connect is not used again (undici #3895).
    slot.client.on("connectionError", () => {
      slot.state = "gone";
      slots.delete(slot);
    });
    return slot;
  }

  return {
    dispatch(options, handler) {
      const slot = free.pop() ?? open();
      slot.state = "busy";
      slot.client.dispatch(options, handler);
      // It never became a request, so no drain will follow.
      if (handler.wasRefused) release(slot);
    },
    async destroy() {
      free.length = 0;
      await Promise.all([...slots].map(({ client }) => client.destroy()));
      slots.clear();
    },
  };
}

/** One dispatcher for all origins, which decides by NO_PROXY which of them go through the proxy. */
export function createProxyConnections(
  undici: Undici,
  { httpProxy, httpsProxy, noProxy }: ProxyEnvironment,
): Connections {
  const agent = new undici.EnvHttpProxyAgent({
    ...POOL_OPTIONS,
    // Empty strings, so that the library doesn't read the process environment behind our back.
    httpProxy: httpProxy ?? "",
    httpsProxy: httpsProxy ?? "",
    noProxy: noProxy ?? "",
    factory: (origin: string | URL, options: object) =>
      new undici.Pool(origin, {
        ...options,
        ...POOL_OPTIONS,
        factory: (url: URL, clientOptions: object) => trackedClient(undici, url, clientOptions as ClientOptions),
      }),
  });
  return {
    dispatch: (options, handler) => void agent.dispatch(options, handler),
    destroy: () => agent.destroy(),
  };
}
