import { createRequire } from "node:module";
import type { LRUCache } from "lru-cache";
import { noOptions, unknownOptions } from "../../domain/option-names.js";
import { countProblems, methodProblems, RUNTIME_REMEDY } from "../../domain/option-values.js";
import { CACHE_DEFAULTS } from "../../domain/scope.js";
import { ConfigError } from "../../errors.js";
import type { AnswerCache, CachedAnswer } from "../../ports/cache.js";
import type { Runtime } from "../../ports/runtime.js";
import { answerText, requireKey } from "../cache-arguments.js";
import { createSystemRuntime } from "../system.js";

export interface MemoryCacheOptions {
  /** Bytes of answers kept; those not asked for longest go first. Default 64 MiB. */
  readonly maxBytes?: number;
  /** How long an answer is good for, in ms. Default one day. */
  readonly ttlMs?: number;
  /** Its clock, for tests. */
  readonly runtime?: Pick<Runtime, "now">;
}

interface Entry {
  /** As text: nobody can change what others will be given. */
  readonly json: string;
  readonly expiresAtMs: number;
}

/** What a key and the bookkeeping of an entry take. */
const OVERHEAD_BYTES = 256;

/** Keeps answers in this process. Give one to several clients to share it. Throws ConfigError for options out of range. */
export class MemoryCache implements AnswerCache {
  readonly #entries: LRUCache<string, Entry>;
  readonly #ttlMs: number;
  readonly #runtime: Pick<Runtime, "now">;

  constructor(options: MemoryCacheOptions = {}) {
    const none = noOptions("MemoryCache", options);
    if (none !== null) throw new ConfigError([none]);
    const {
      maxBytes = CACHE_DEFAULTS.maxBytes,
      ttlMs = CACHE_DEFAULTS.ttlMs,
      runtime = createSystemRuntime(),
    } = options;
    const problems = [
      ...unknownOptions("MemoryCache", options, ["maxBytes", "ttlMs", "runtime"]),
      ...countProblems("MemoryCache.maxBytes", maxBytes, Number.MAX_SAFE_INTEGER, "bytes"),
      ...countProblems("MemoryCache.ttlMs", ttlMs, Number.MAX_SAFE_INTEGER, "milliseconds"),
      ...methodProblems("MemoryCache.runtime", runtime, ["now"], RUNTIME_REMEDY),
    ];
    if (problems.length > 0) throw new ConfigError(problems);
    this.#ttlMs = ttlMs;
    this.#runtime = runtime;
    // Loaded only where a cache is used: the core's import stays quick.
    const { LRUCache: Lru } = createRequire(import.meta.url)("lru-cache") as typeof import("lru-cache");
    this.#entries = new Lru<string, Entry>({
      maxSize: maxBytes,
      sizeCalculation: ({ json }) => OVERHEAD_BYTES + Buffer.byteLength(json),
    });
  }

  get(key: string): CachedAnswer | null {
    requireKey(key, "get");
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    if (entry.expiresAtMs > this.#runtime.now()) return JSON.parse(entry.json) as CachedAnswer;
    this.#entries.delete(key);
    return null;
  }

  /** An answer larger than the whole cache is not kept. */
  set(key: string, answer: CachedAnswer): void {
    requireKey(key, "set");
    this.#entries.set(key, { json: answerText(answer), expiresAtMs: this.#runtime.now() + this.#ttlMs });
  }

  /** Answers and their bytes held now. */
  stats(): { readonly answers: number; readonly bytes: number } {
    return { answers: this.#entries.size, bytes: this.#entries.calculatedSize };
  }

  clear(): void {
    this.#entries.clear();
  }
}
