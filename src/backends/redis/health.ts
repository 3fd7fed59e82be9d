import { msText } from "../../domain/ms-text.js";
import type { Runtime } from "../../ports/runtime.js";
import { createSystemRuntime } from "../system.js";
import { DEFAULT_TIMEOUT_MS, RedisConnection, type RedisConnectionOptions, redisScript } from "./connection.js";
import { classifyRedisError } from "./failure.js";

/** What a Redis says of itself. `unknown`: it doesn't, or its rights don't let it. */
export interface RedisFacts {
  /** `redis 7.0.15` */
  readonly version: string;
  readonly mode: "standalone" | "cluster" | "sentinel" | "unknown";
  readonly role: "primary" | "replica" | "unknown";
  /** In the middle of several tries, in ms. */
  readonly latencyMs: number;
  readonly maxmemoryPolicy: string;
  /** 0 = none. */
  readonly maxmemoryBytes: number | "unknown";
  readonly usedMemoryBytes: number | "unknown";
  /** What is left after a restart: `none`, `rdb`, `aof` or `rdb and aof`. */
  readonly persistence: string;
}

export interface RedisHealth {
  /** With the user, without the password. */
  readonly address: string;
  /** It answers, and nothing keeps it from being written to. */
  readonly ok: boolean;
  readonly facts: RedisFacts | null;
  /** Why it can't be used; empty when it can. */
  readonly failures: readonly string[];
  readonly warnings: readonly string[];
}

const PINGS = 5;
const PATIENCE_MS = 1_000;
/** Of maxmemory. */
const NEARLY_FULL = 0.9;

/** Asks once and closes the connection. Never rejects for what is wrong with Redis; throws ConfigError for the options. */
export async function redisHealth(
  options: RedisConnectionOptions,
  governedScopes: readonly string[] = [],
): Promise<RedisHealth> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, runtime = createSystemRuntime() } = options;
  // What is too slow for calls is still a finding.
  const connection = new RedisConnection({ ...options, runtime, timeoutMs: Math.max(timeoutMs, PATIENCE_MS) }, "redis");
  const { shown: address } = connection;
  try {
    const latencyMs = await medianPing(connection, runtime);
    const info = readInfo(await asked(connection, "INFO"));
    const facts = factsOf(info, latencyMs, await savePoints(connection));
    const failures = [
      ...failuresOf(info, facts),
      ...(await clusterFailures(connection)),
      ...(await scriptFailures(connection, governedScopes)),
    ];
    return { address, ok: failures.length === 0, facts, failures, warnings: warningsOf(facts, timeoutMs) };
  } catch (error) {
    return { address, ok: false, facts: null, failures: [classifyRedisError(error).message], warnings: [] };
  } finally {
    await connection.close();
  }
}

/** What is kept in such a Redis may go before its time; null = it won't, or nobody knows. */
export function evictionWarning(policy: string): string | null {
  if (policy === "noeviction" || policy === "unknown") return null;
  return `maxmemory-policy is ${policy}: when memory runs out, Redis throws keys away. Answers may go so; limits and breakers must not (noeviction)`;
}

/** What endangers limits in this Redis; empty where it doesn't say. */
export async function dangersOf(connection: RedisConnection): Promise<string[]> {
  const { maxmemory_policy: policy = "unknown" } = readInfo(await asked(connection, "INFO", "memory"));
  const eviction = evictionWarning(policy);
  return eviction === null ? [] : [`Redis at ${connection.shown}: ${eviction}`];
}

const TRY_OUT = redisScript("return redis.call('SET', KEYS[1], '1', 'PX', 1000)");

/** Rights and memory are known only when a script has written where limits are kept. */
async function scriptFailures(connection: RedisConnection, scopes: readonly string[]): Promise<string[]> {
  const failures: string[] = [];
  for (const scope of scopes) {
    try {
      await connection.run(TRY_OUT, [`pgw:{${scope}}:check`], []);
    } catch (error) {
      failures.push(`the limits of scope ${scope} can't be kept there: ${classifyRedisError(error).message}`);
    }
  }
  return failures;
}

async function medianPing(connection: RedisConnection, runtime: Pick<Runtime, "now">): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < PINGS; n += 1) {
    const fromMs = runtime.now();
    await connection.command("PING");
    took.push(runtime.now() - fromMs);
  }
  return took.sort((a, b) => a - b)[Math.floor(PINGS / 2)] ?? 0;
}

/** Its text; "" where the rights don't reach. */
async function asked(connection: RedisConnection, name: string, ...args: string[]): Promise<string> {
  try {
    return String(await connection.command(name, ...args));
  } catch (error) {
    const failure = classifyRedisError(error);
    if (failure.kind === "noperm" || failure.kind === "other") return "";
    throw failure;
  }
}

/** `""` = it saves nothing by itself; undefined = it doesn't say. */
async function savePoints(connection: RedisConnection): Promise<string | undefined> {
  try {
    const reply = await connection.command("CONFIG", "GET", "save");
    return Array.isArray(reply) && reply.length === 2 ? String(reply[1]) : undefined;
  } catch {
    return undefined;
  }
}

async function clusterFailures(connection: RedisConnection): Promise<string[]> {
  if (!connection.isCluster) return [];
  const { cluster_state: state = "ok" } = readInfo(await asked(connection, "CLUSTER", "INFO"));
  return state === "ok" ? [] : [`the cluster's state is ${state}: a part of its keys can't be reached`];
}

type Info = Readonly<Record<string, string>>;

function readInfo(text: string): Info {
  const pairs = text.split(/\r?\n/).flatMap((line) => {
    const [, name, value] = /^([a-z_]+):(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value ?? ""]];
  });
  return Object.fromEntries(pairs);
}

function factsOf(info: Info, latencyMs: number, save: string | undefined): RedisFacts {
  const { server_name: server = "redis", valkey_version: valkey, redis_version: redis = "unknown" } = info;
  return {
    version: `${server} ${valkey ?? redis}`,
    mode: MODES.find((mode) => mode === info.redis_mode) ?? "unknown",
    role: info.role === "master" ? "primary" : info.role === "slave" ? "replica" : "unknown",
    latencyMs,
    maxmemoryPolicy: info.maxmemory_policy ?? "unknown",
    maxmemoryBytes: numberOf(info.maxmemory),
    usedMemoryBytes: numberOf(info.used_memory),
    persistence: persistenceOf(info.aof_enabled, save),
  };
}

const MODES = ["standalone", "cluster", "sentinel"] as const;
const numberOf = (text: string | undefined): number | "unknown" => (text === undefined ? "unknown" : Number(text));

function persistenceOf(aof: string | undefined, save: string | undefined): string {
  const kinds = [...(save !== undefined && save !== "" ? ["rdb"] : []), ...(aof === "1" ? ["aof"] : [])];
  if (kinds.length > 0) return kinds.join(" and ");
  return aof === undefined || save === undefined ? "unknown" : "none";
}

function failuresOf(info: Info, { mode, role }: RedisFacts): string[] {
  return [
    ...(mode === "sentinel" ? ["this is a Sentinel, not the Redis it watches: give it as `sentinels`"] : []),
    ...(role === "replica" ? ["this is a replica, which can't be written to: give the primary's address"] : []),
    ...(info.loading === "1" ? ["it is still loading its data"] : []),
  ];
}

function warningsOf(facts: RedisFacts, timeoutMs: number): string[] {
  const { maxmemoryPolicy, maxmemoryBytes, usedMemoryBytes, latencyMs } = facts;
  const eviction = evictionWarning(maxmemoryPolicy);
  const isBounded = typeof maxmemoryBytes === "number" && maxmemoryBytes > 0 && typeof usedMemoryBytes === "number";
  return [
    ...(eviction === null ? [] : [eviction]),
    ...(isBounded && usedMemoryBytes > NEARLY_FULL * maxmemoryBytes
      ? ["its memory is nearly used up (maxmemory)"]
      : []),
    ...(latencyMs > timeoutMs / 4 ? [`it answers slowly for a time-out of ${msText(timeoutMs)}`] : []),
  ];
}
