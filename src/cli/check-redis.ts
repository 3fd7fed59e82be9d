import { type RedisHealth, redisHealth } from "../backends/redis/health.js";
import { readRedisUrl } from "../domain/redis-address.js";
import { ConfigError } from "../errors.js";
import type { CheckReport } from "./check-report.js";
import { plural } from "./format.js";
import { printable, type Style } from "./terminal.js";

export interface CheckedRedis extends RedisHealth {
  /** What of the configuration is kept there; empty when nothing is. */
  readonly usedFor: readonly string[];
}

/** Asks the Redis that is configured how it is; null where none is. */
export async function checkRedis({ scopes }: CheckReport): Promise<CheckedRedis | null> {
  const settings = scopes[0]?.inspection.process;
  const url = settings?.redisUrl?.reveal();
  // REDIS_URL may be another program's, in another form; where it is used, that is reported as a problem.
  if (settings === undefined || url === undefined || "problem" in readRedisUrl(url)) return null;
  const caching = scopes.filter(({ cache, embedding }) => embedding === null && cache.backend === "redis");
  const governed = settings.limiterBackend === "redis" ? scopes : [];
  const usedFor = [
    ...governed.map(({ config }) => `limits and breakers of scope ${config.scope}`),
    ...caching.map(({ config }) => `the answer cache of scope ${config.scope}`),
  ];
  const names = governed.map(({ config }) => config.scope);
  return { ...(await healthOf(url, settings.redisTimeoutMs, names)), usedFor };
}

async function healthOf(url: string, timeoutMs: number, scopes: readonly string[]): Promise<RedisHealth> {
  try {
    return await redisHealth({ url, timeoutMs }, scopes);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const failures = error.problems.map(({ problem, remedy }) => `${problem}. ${remedy}`);
    return { address: "REDIS_URL", ok: false, facts: null, failures, warnings: [] };
  }
}

export function redisLines(redis: CheckedRedis | null, style: Style): string[] {
  if (redis === null) return [];
  const { address, ok, facts, failures, warnings, usedFor } = redis;
  const use = usedFor.length === 0 ? "not used by this configuration" : `for ${usedFor.join(", ")}`;
  return [
    `${ok ? style.green("✓") : style.red("✗")} ${style.bold(`Redis at ${printable(address)}`)}, ${printable(use)}`,
    ...(facts === null ? [] : [`    ${printable(factsText(facts))}`]),
    ...failures.map((text) => `    ${printable(text)}`),
    ...warnings.map((text) => `    ${style.yellow("warning")}  ${text}`),
    "",
  ];
}

function factsText(facts: NonNullable<RedisHealth["facts"]>): string {
  const { version, mode, role, latencyMs, maxmemoryBytes, maxmemoryPolicy, persistence } = facts;
  const memory =
    typeof maxmemoryBytes === "number" && maxmemoryBytes > 0
      ? plural(maxmemoryBytes, "byte")
      : maxmemoryBytes || "none";
  return [
    version,
    mode,
    role,
    `answers in ${latencyMs.toFixed(1)} ms`,
    `maxmemory ${memory}`,
    `policy ${maxmemoryPolicy}`,
    `persistence ${persistence}`,
  ].join(", ");
}
