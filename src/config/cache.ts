import type { CacheConfig } from "../domain/scope.js";
import type { AnswerCache } from "../ports/cache.js";
import type { ConfigNote } from "./invariants.js";
import type { Labels } from "./labels.js";
import type { OptionReader } from "./reader.js";
import { CACHE_FIELDS } from "./schema.js";
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

/** Settings that decide nothing, because nothing is kept or shared. */
export function cacheNotes(given: unknown, { backend, store, coalesce }: ResolvedCache, labels: Labels): ConfigNote[] {
  if (backend !== "none" || store !== null || !isPlainObject(given)) return [];
  const idle = coalesce ? ["ttlMs", "maxBytes"] : ["ttlMs", "maxBytes", "namespace", "salt"];
  const text = `has no effect while ${labels.key("cache.backend")} is none`;
  return idle
    .filter((option) => given[option] !== undefined)
    .map((option) => ({ key: labels.key(`cache.${option}`), level: "warning", text }));
}
