import { connect } from "node:net";
import type { Runtime } from "../../ports/runtime.js";
import type { RedisClient } from "./client.js";
import { RedisFailure } from "./failure.js";

/** What is used of a client of one server, to know who closed its connection. */
interface ConnectingClient extends RedisClient {
  readonly stream?: { readonly bytesRead?: number };
  readonly options?: { readonly host?: string; readonly port?: number; readonly sentinels?: unknown };
}

/** "Do you speak TLS?" in PostgreSQL's protocol: it answers with one letter, and a Redis waits for the end of a line. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const POSTGRES_SAYS = new Set(["S", "N"]);

const SILENT = "it takes the connection and closes it without a word";
const POSTGRES = "PostgreSQL answers there (correct host and port)";

interface WatchOptions {
  readonly runtime: Pick<Runtime, "setTimer">;
  /** Longest wait for who is asked what it is. */
  readonly timeoutMs: number;
  /** The connection is being closed by its owner. */
  readonly isOver: () => boolean;
  readonly tell: (failure: RedisFailure) => void;
}

/**
 * Tells of connections that end before a word was said. The client has no error for that. PostgreSQL does so with whoever
 * doesn't speak its protocol, and then no waiting helps; a proxy does so too while the Redis behind it is away.
 */
export function watchForStrangers(
  client: RedisClient,
  { runtime, timeoutMs, isOver, tell }: WatchOptions,
): readonly (readonly [string, (argument: unknown) => void])[] {
  const { options = {} } = client as ConnectingClient;
  let isConnected = false;
  let asked: Promise<RedisFailure> | null = null;

  async function diagnose(): Promise<RedisFailure> {
    const isOneServer = options.host !== undefined && !options.sentinels;
    const isPostgres = isOneServer && (await isItPostgres(options, runtime, timeoutMs));
    return isPostgres ? new RedisFailure("foreign", POSTGRES) : new RedisFailure("unreachable", SILENT);
  }

  return [
    [
      "connect",
      () => {
        isConnected = true;
      },
    ],
    [
      "error",
      (error) => {
        // The client has waited for an answer long enough and ends the connection itself.
        if (/Socket timeout/.test(String(error))) isConnected = false;
      },
    ],
    [
      "close",
      () => {
        const wasSilent = isConnected && (client as ConnectingClient).stream?.bytesRead === 0;
        isConnected = false;
        if (!wasSilent || isOver()) return;
        asked ??= diagnose();
        void asked.then(tell);
      },
    ],
  ];
}

/** Never rejects. */
function isItPostgres(
  { host, port }: { readonly host?: string; readonly port?: number },
  runtime: Pick<Runtime, "setTimer">,
  timeoutMs: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: host ?? "localhost", port: port ?? 6379 });
    const end = (isPostgres: boolean): void => {
      cancel();
      socket.destroy();
      resolve(isPostgres);
    };
    const cancel = runtime.setTimer(timeoutMs, () => end(false));
    socket.once("connect", () => socket.write(SSL_REQUEST));
    socket.once("data", (said) => end(POSTGRES_SAYS.has(said.toString("latin1"))));
    socket.once("close", () => end(false));
    socket.on("error", () => end(false));
  });
}
