import { REDIS_URL_FORM, readRedisUrl } from "../domain/redis-address.js";
import type { CacheConfig } from "../domain/scope.js";
import type { AnswerCache } from "../ports/cache.js";
import type { ConfigNote } from "./invariants.js";
import type { Labels } from "./labels.js";
import type { OptionReader } from "./reader.js";
import { CACHE_FIELDS } from "./schema.js";
import type { RedisSettings } from "./schema-process.js";
import { hasMethods, isPlainObject } from "./values.js";

export interface ResolvedCache extends CacheConfig {
  /** The place the user gave; null = one is made by `backend`. */
  readonly store: AnswerCache | null;
}

const METHODS = ["get", "set"];
/** What a store of the user's own decides by itself. */
const OF_THE_STORE = ["backend", "ttlMs", "maxBytes"] as const;

/** `cache` is settings, or a store alone. */
export function readCache(reader: OptionReader, given: unknown): ResolvedCache {
  const isStore = hasMethods(given, METHODS);
  const { store, ...settings } = isPlainObject(given) && !isStore ? given : {};
  const shown = given === undefined || isStore || isPlainObject(given) ? settings : given;
  const config = reader.object("cache", CACHE_FIELDS, shown);
  if (isStore) return { ...config, store: given as AnswerCache };
  if (store === undefined) return { ...config, store: null };
  if (!hasMethods(store, METHODS)) {
    reader.report("cache.store", "can't be used", "Give an answer cache, such as new MemoryCache().");
    return { ...config, store: null };
  }
  for (const option of OF_THE_STORE) {
    if (settings[option] === undefined) continue;
    reader.report(`cache.${option}`, "has no effect beside cache.store", "Give the store alone its size and life.");
  }
  return { ...config, store: store as AnswerCache };
}

/** What may be kept in Redis. */
export interface RedisUsers {
  readonly cache: ResolvedCache;
  readonly limiterBackend: "memory" | "redis";
}

const isInRedis = ({ backend, store }: ResolvedCache): boolean => backend === "redis" && store === null;
const needsRedis = ({ cache, limiterBackend }: RedisUsers): boolean => isInRedis(cache) || limiterBackend === "redis";

/** What is kept in Redis needs to know where that is. */
export function requireRedis(reader: OptionReader, used: RedisUsers, { url }: RedisSettings): void {
  const option = used.limiterBackend === "redis" ? "limiterBackend" : "cache.backend";
  if (!needsRedis(used) || !reader.usable(option) || !reader.usable("redis.url")) return;
  const read = url === undefined ? undefined : readRedisUrl(url.reveal());
  if (read !== undefined && "problem" in read) reader.report("redis.url", read.problem, `Give ${REDIS_URL_FORM}.`);
  if (read !== undefined) return;
  const remedy = "Set REDIS_URL, in a file process.redisUrl, in code redis.url.";
  reader.report(option, "needs the address of Redis, and none is given", remedy);
}

/** Settings that decide nothing, because nothing is kept or shared, or not in such a place. */
export function cacheNotes(
  { cache: given, redis }: Readonly<Record<string, unknown>>,
  used: RedisUsers,
  labels: Labels,
): ConfigNote[] {
  return [...idleNotes(given, used.cache, labels), ...redisNotes(given, redis, used, labels)];
}

/** An address alone is no news: other programs of the same environment use the same name. */
function redisNotes(given: unknown, redis: unknown, used: RedisUsers, labels: Labels): ConfigNote[] {
  const notes: [option: string, text: string][] = [];
  if (isInRedis(used.cache) && isPlainObject(given) && given.maxBytes !== undefined)
    notes.push(["cache.maxBytes", "has no effect on Redis, which has its maxmemory"]);
  if (!needsRedis(used) && isPlainObject(redis) && redis.timeoutMs !== undefined)
    notes.push(["redis.timeoutMs", "has no effect while nothing is kept in Redis"]);
  return notes.map(([option, text]) => ({ key: labels.key(option), level: "warning", text }));
}

function idleNotes(given: unknown, { backend, store, coalesce }: ResolvedCache, labels: Labels): ConfigNote[] {
  if (backend !== "none" || store !== null || !isPlainObject(given)) return [];
  const idle = coalesce ? ["ttlMs", "maxBytes"] : ["ttlMs", "maxBytes", "namespace", "salt"];
  const text = `has no effect while ${labels.key("cache.backend")} is none`;
  return idle
    .filter((option) => given[option] !== undefined)
    .map((option) => ({ key: labels.key(`cache.${option}`), level: "warning", text }));
}
