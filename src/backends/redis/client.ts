import { createRequire } from "node:module";
import type { ClusterNode, ClusterOptions, RedisOptions } from "ioredis";
import { givenValue } from "../../domain/given-value.js";
import { type RedisUrl, readRedisUrl } from "../../domain/redis-address.js";
import { ConfigError } from "../../errors.js";
import type { CleanText } from "./failure.js";
import { quieted } from "./quiet.js";

/** What is used of an ioredis client: `new Redis(...)` or `new Cluster(...)` of version 5 or 6. */
export interface RedisClient {
  readonly status: string;
  call(command: string, ...args: (string | Buffer | number)[]): Promise<unknown>;
  callBuffer(command: string, ...args: (string | Buffer | number)[]): Promise<unknown>;
  connect(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (argument: unknown) => void): unknown;
  off(event: string, listener: (argument: unknown) => void): unknown;
}

/** How Redis is reached: exactly one of `url`, `client`, `cluster`, or `options` alone. */
export interface RedisAddress {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. */
  readonly url?: string;
  /** An ioredis client of your own; it stays yours to close. Its own time-outs hold as well. */
  readonly client?: RedisClient;
  /** Nodes of a Redis Cluster, as `new Cluster(nodes, options)` takes them. */
  readonly cluster?: { readonly nodes: readonly ClusterNode[]; readonly options?: ClusterOptions };
  /** Passed through to ioredis, above what is set here: TLS, Sentinel (`sentinels`, `name`), a database. */
  readonly options?: RedisOptions;
}

export interface OpenedClient {
  readonly client: RedisClient;
  /** Made here, so closed here. */
  readonly isOwn: boolean;
  readonly isCluster: boolean;
  /** For people: with the user, without the password. */
  readonly shown: string;
  readonly clean: CleanText;
}

const INSTALL = "npm install ioredis";

/** Shortest and longest pause before the next connection is tried: it is back within a second of Redis. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;
/** Below this a connection over a long way would never come about. */
const LEAST_CONNECT_MS = 500;
const LEAST_SILENCE_MS = 1_000;
/** The client waits as long for a connection to end, even for one that is gone, and the process with it. */
const LONGEST_FAREWELL_MS = 100;
/** Every write to a replica is refused: not each of them may cost a connection. */
const READONLY_PAUSE_MS = 1_000;

export function retryPauseMs(times: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times - 1, 10));
}

type Ioredis = typeof import("ioredis");

/** Loaded only where Redis is used: it is an optional peer. */
function loadIoredis(key: string): Ioredis {
  const require = createRequire(import.meta.url);
  try {
    return require("ioredis") as Ioredis;
  } catch (error) {
    const missing = (error as { code?: unknown }).code === "MODULE_NOT_FOUND";
    const problem = missing ? "needs the package ioredis, which is not installed" : "can't load the package ioredis";
    throw new ConfigError([{ key, problem, remedy: `Install it: ${INSTALL}` }]);
  }
}

interface ClientTimes {
  /** Longest wait for a command. */
  readonly timeoutMs: number;
  readonly now: () => number;
}

/**
 * Makes the client, or takes the user's, of an address that was judged (address-problems.ts). Connects to nothing. Throws
 * ConfigError; `key` names the option in it.
 */
export function openClient(address: RedisAddress, times: ClientTimes, key: string): OpenedClient {
  const { url, client, cluster, options } = address;
  if (client !== undefined) return takenClient(client);
  const holders = [url, options, cluster?.options?.redisOptions, ...(cluster?.nodes ?? [])];
  const clean = cleanerOf(holders.flatMap(passwordsOf));
  try {
    return madeClient(address, times, key, clean);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    // What ioredis itself says of options that it can't be made of.
    const problem = `can't be used: ${clean(textOf(error))}`;
    throw new ConfigError([{ key, problem, remedy: "Give what ioredis takes" }]);
  }
}

function madeClient(address: RedisAddress, times: ClientTimes, key: string, clean: CleanText): OpenedClient {
  const { url, cluster, options } = address;
  const own = standaloneSettings(times.timeoutMs, times.now);
  const { Cluster, Redis } = loadIoredis(key);
  if (cluster !== undefined) {
    const client = new Cluster([...cluster.nodes], clusterSettings(cluster.options, own));
    // Told before the node is connected.
    client.on("+node", quieted);
    const shown = clean(`cluster of ${shownNodes(cluster.nodes)}`);
    return { client, isOwn: true, isCluster: true, shown, clean };
  }
  const settings = { ...own, ...options };
  const shown = url === undefined ? shownOptions(options) : (readRedisUrl(url) as RedisUrl).shown;
  const client = quieted(url === undefined ? new Redis(settings) : new Redis(url, settings));
  return { client, isOwn: true, isCluster: false, shown, clean };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : givenValue(error);
}

function takenClient(client: RedisClient): OpenedClient {
  const { options, isCluster } = client as { options?: RedisOptions & ClusterOptions; isCluster?: boolean };
  const clean = cleanerOf([options, options?.redisOptions].flatMap(passwordsOf));
  const shown = isCluster === true ? "a cluster" : shownOptions(options);
  return { client, isOwn: false, isCluster: isCluster === true, shown, clean };
}

/**
 * No queue while there is no connection, and nothing is sent twice: what was in flight when the connection broke may have
 * run. A silent connection is given up: a way that swallows packets would else hold every command for minutes.
 */
function standaloneSettings(timeoutMs: number, now: () => number): RedisOptions {
  let mayReconnectAtMs = Number.NEGATIVE_INFINITY;
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryPauseMs,
    sentinelRetryStrategy: retryPauseMs,
    // A replica that was a primary: the next connection finds the new one.
    reconnectOnError: ({ message }) => {
      if (!message.startsWith("READONLY") || now() < mayReconnectAtMs) return false;
      mayReconnectAtMs = now() + READONLY_PAUSE_MS;
      return true;
    },
    maxLoadingRetryTime: LONGEST_PAUSE_MS,
    connectTimeout: Math.max(LEAST_CONNECT_MS, 2 * timeoutMs),
    socketTimeout: Math.max(LEAST_SILENCE_MS, 4 * timeoutMs),
    disconnectTimeout: LONGEST_FAREWELL_MS,
    connectionName: "polygateway",
    // Replies look alike in all versions of Redis and of the client.
    protocol: 2,
  };
}

function clusterSettings(given: ClusterOptions | undefined, settings: RedisOptions): ClusterOptions {
  const { lazyConnect: _l, enableOfflineQueue: _o, retryStrategy: _r, ...perNode } = settings;
  return {
    lazyConnect: true,
    // Without it, commands fail while a node of a good cluster is being connected, which each is with its first command.
    // None of them waits longer than its own deadline (connection.ts).
    enableOfflineQueue: true,
    clusterRetryStrategy: retryPauseMs,
    slotsRefreshTimeout: settings.socketTimeout ?? LEAST_SILENCE_MS,
    // 0 = a command whose connection broke is not sent again.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    ...given,
    redisOptions: { ...perNode, ...given?.redisOptions } as NonNullable<ClusterOptions["redisOptions"]>,
  };
}

function passwordsOf(options: unknown): readonly string[] {
  if (typeof options === "string") return secretsInUrl(options);
  const { password, sentinelPassword, url } = (options ?? {}) as Record<string, unknown>;
  const inUrl = typeof url === "string" ? secretsInUrl(url) : [];
  return [...[password, sentinelPassword].filter((text) => typeof text === "string"), ...inUrl];
}

function secretsInUrl(url: string): readonly string[] {
  const read = readRedisUrl(url);
  return "problem" in read ? [] : read.secrets;
}

function shownOptions(options: RedisOptions | undefined): string {
  const { path, host = "localhost", port = 6379, sentinels, name, username, password } = options ?? {};
  if (sentinels !== undefined && sentinels !== null) return `Sentinel master ${name ?? ""}`.trim();
  // Without a password the user may be a key.
  const user = typeof username === "string" && username !== "" && password ? `${username}@` : "";
  return `${user}${path ?? `${host}:${port}`}`;
}

function shownNodes(nodes: readonly ClusterNode[]): string {
  const first = nodes[0];
  if (typeof first === "string") return URL.canParse(first) ? new URL(first).host : "its nodes";
  return typeof first === "object" ? `${first.host ?? "localhost"}:${first.port ?? 6379}` : `port ${first}`;
}

/** Shorter ones are no secrets, and their removal would eat ordinary words. */
const SHORTEST_SECRET = 4;

function cleanerOf(texts: readonly string[]): CleanText {
  const secrets = [...new Set(texts.filter((text) => text.length >= SHORTEST_SECRET))].sort(
    (a, b) => b.length - a.length,
  );
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text);
}
