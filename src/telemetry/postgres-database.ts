import { createRequire } from "node:module";
import { startTimer } from "../backends/system.js";
import { msText } from "../domain/ms-text.js";
import { driverDsn, dsnHider, shownDsn } from "../domain/postgres-dsn.js";
import { isConnectionFault, LateError, PoolError, textOf } from "./postgres-errors.js";
import { type ClientClass, withPasswordFile } from "./postgres-password.js";
import { watchedSockets } from "./postgres-socket.js";

/** What is used of a client of the package `pg`. */
export interface PostgresClient {
  query(config: { text: string; values?: unknown[] }): Promise<{ rows: Record<string, unknown>[] }>;
  release(destroy?: Error | boolean): void;
}

/** What is used of a `Pool` of the package `pg`. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

export interface PostgresPlace {
  readonly dsn?: string | undefined;
  readonly pool?: PostgresPool | undefined;
  readonly statementTimeoutMs: number;
}

/** One statement; answers its rows, every value as text unless the pool is the caller's own. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>;

interface OwnPool extends PostgresPool {
  end(): Promise<void>;
}

export const INSTALL_PG = "npm install pg@8";
const POOL_SIZE = 2;
const CONNECT_TIMEOUT_MS = 5_000;
/** Short: a connection that lay idle for long may be dead without anybody having noticed. */
const IDLE_TIMEOUT_MS = 10_000;
const LATENESS_MS = 1_000;
const LAST_CONNECT_MS = 2_000;
const FAREWELL_MS = 500;

const require = createRequire(import.meta.url);
const listening = new WeakSet<object>();
const watched = new WeakSet<object>();

/** The package, loaded at the first use. Throws PoolError with the command that installs it. */
function loadPg(): { Pool: new (config: object) => OwnPool; Client: ClientClass } {
  try {
    const { Pool, Client } = require("pg");
    return { Pool, Client: withPasswordFile(Client, require.resolve("pg")) };
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND";
    const reason = missing ? "the package pg is not installed" : `the package pg can't be loaded: ${textOf(error)}`;
    throw new PoolError(`${reason}. Install it: ${INSTALL_PG}`);
  }
}

/**
 * A PostgreSQL database, reached when it is first used: every step has a limit, every connection is given back, and one
 * that ended or doesn't answer is thrown away. Errors carry no secret of the address.
 */
export class PostgresDatabase {
  /** How the database is named to people. */
  readonly shown: string;
  readonly #place: PostgresPlace;
  readonly #hide: (text: string) => string;
  readonly #seen = new WeakSet<PostgresClient>();
  /** Of the connections made here. */
  readonly #sockets = watchedSockets();
  #own: OwnPool | null = null;

  constructor(place: PostgresPlace) {
    this.#place = place;
    this.shown = place.dsn === undefined ? "the database of the given pool" : shownDsn(place.dsn);
    this.#hide = place.dsn === undefined ? (text) => text : dsnHider(place.dsn);
  }

  /** An error in words for people. */
  explain(error: unknown): string {
    return this.#hide(textOf(error));
  }

  /**
   * Runs `work` on a connection. It may run twice, when a connection that had served before turns out to be dead, and it
   * must leave no transaction open. Throws PoolError, LateError, or what the driver says.
   */
  async run<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const session = await this.session();
    try {
      return await session.use(work);
    } catch (error) {
      if (session.isFresh || !isConnectionFault(error)) throw error;
    }
    return (await this.session()).use(work);
  }

  /** A connection of one's own until its one use ends. Throws as `run`. */
  async session(): Promise<Session> {
    const client = await this.#checkout();
    const isFresh = !this.#seen.has(client);
    return new Session(client, {
      isFresh,
      limitMs: this.#place.statementTimeoutMs,
      prepare: async (query) => {
        if (isFresh && this.#place.pool === undefined) {
          await query(`SET statement_timeout = ${this.#place.statementTimeoutMs}`);
        }
        this.#seen.add(client);
      },
    });
  }

  /** The end is near: a server that doesn't say its first word soon is not waited for. */
  hurry(): void {
    this.#sockets.hurry(LAST_CONNECT_MS);
  }

  /** Closes the connections that are its own; used again, it makes new ones. */
  async close(): Promise<void> {
    const pool = this.#own;
    this.#own = null;
    if (pool === null) return;
    try {
      // A connection that is being made would be waited for.
      await limited(pool.end(), FAREWELL_MS, () => {});
    } catch {
      this.#sockets.destroy();
    }
  }

  async #checkout(): Promise<PostgresClient> {
    const pool = this.#place.pool ?? this.#ownPool();
    listen(pool);
    listenToClients(pool);
    const client = await limited(pool.connect(), CONNECT_TIMEOUT_MS + LATENESS_MS, (late) => late.release(true));
    listen(client);
    return client;
  }

  #ownPool(): OwnPool {
    this.#own ??= this.#buildPool();
    return this.#own;
  }

  #buildPool(): OwnPool {
    const { Pool, Client } = loadPg();
    const config = {
      application_name: "polygateway",
      connectionString: driverDsn(this.#place.dsn ?? ""),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      max: POOL_SIZE,
      keepAlive: true,
      allowExitOnIdle: true,
      types: { getTypeParser: () => String },
    };
    try {
      // Connects to nothing, but reads the address and the files it names, which the pool does too late.
      new Client(config);
      return new Pool({ ...config, Client, stream: this.#sockets.open });
    } catch (error) {
      throw new PoolError(`no connection can be made of the address: ${this.explain(error)}`);
    }
  }
}

interface SessionOptions {
  readonly isFresh: boolean;
  readonly limitMs: number;
  readonly prepare: (query: Query) => Promise<void>;
}

/** One connection that was taken out of the pool; it is given back, or thrown away, when its use ends. */
export class Session {
  /** It had served nobody before. */
  readonly isFresh: boolean;
  readonly #client: PostgresClient;
  readonly #options: SessionOptions;
  #failure: unknown;

  constructor(client: PostgresClient, options: SessionOptions) {
    this.#client = client;
    this.#options = options;
    this.isFresh = options.isFresh;
  }

  readonly query: Query = async (text, values) => {
    try {
      const sent = this.#client.query(values === undefined ? { text } : { text, values: [...values] });
      // The server ends a statement at the limit; later than that it is no server any more.
      return (await limited(sent, this.#options.limitMs + LATENESS_MS, () => {})).rows;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  };

  async begin(): Promise<void> {
    await this.#options.prepare(this.query);
  }

  end(): void {
    const failure = this.#failure;
    this.#client.release(failure !== undefined && (failure instanceof LateError || isConnectionFault(failure)));
  }

  async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    try {
      await this.begin();
      return await work(this.query);
    } finally {
      this.end();
    }
  }
}

/** All or nothing; the connection is left without a transaction. */
export async function inTransaction<T>(query: Query, work: () => Promise<T>): Promise<T> {
  await query("BEGIN");
  try {
    const result = await work();
    await query("COMMIT");
    return result;
  } catch (error) {
    if (!isConnectionFault(error) && !(error instanceof LateError)) await query("ROLLBACK");
    throw error;
  }
}

/** A connection that ends while nobody uses it must not end the process. */
function listen(emitter: object): void {
  const on: unknown = (emitter as { on?: unknown }).on;
  if (listening.has(emitter) || typeof on !== "function") return;
  listening.add(emitter);
  (emitter as { on(event: string, listener: () => void): void }).on("error", () => {});
}

/**
 * The server may end a connection in the same packet that makes it ready: then it ends before whoever waits for it runs, and
 * after the pool has stopped listening.
 */
function listenToClients(pool: object): void {
  const on: unknown = (pool as { on?: unknown }).on;
  if (watched.has(pool) || typeof on !== "function") return;
  watched.add(pool);
  (pool as { on(event: string, listener: (client: object) => void): void }).on("acquire", listen);
}

/** What comes too late is handed to `onLate`. */
function limited<T>(promise: Promise<T>, limitMs: number, onLate: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const cancel = startTimer(
      limitMs,
      () => {
        isLate = true;
        reject(new LateError(`no answer within ${msText(limitMs)}`));
      },
      true,
    );
    promise.then(
      (value) => {
        cancel();
        if (isLate) onLate(value);
        else resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
