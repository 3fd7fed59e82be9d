import { createHash } from "node:crypto";
import { noOptions, unknownOptions } from "../../domain/option-names.js";
import { countProblems } from "../../domain/option-values.js";
import { CACHE_DEFAULTS } from "../../domain/scope.js";
import { ConfigError, type ConfigProblem } from "../../errors.js";
import type { AnswerCache, CachedAnswer } from "../../ports/cache.js";
import type { Runtime } from "../../ports/runtime.js";
import { answerText, requireKey } from "../cache-arguments.js";
import { createSystemRuntime } from "../system.js";
import { type EntryTerms, packEntry, readLimit, unpackEntry } from "./cache-entry.js";
import { CONNECTION_OPTIONS, connectionProblems, RedisConnection, type RedisConnectionOptions } from "./connection.js";

export interface RedisCacheOptions extends RedisConnectionOptions {
  /** How long an answer is good for, in ms; every key in Redis has this life. Default one day. */
  readonly ttlMs?: number;
  /** Part of every key in Redis, so that several programs can share one server. Default "". */
  readonly namespace?: string;
  /** Secret that entries are sealed with: who can write to this Redis but doesn't know it can't plant an answer. Default "". */
  readonly salt?: string;
  /** Longest answer that is kept, as JSON, in bytes. Default 4 MiB. */
  readonly maxValueBytes?: number;
}

const DEFAULT_MAX_VALUE_BYTES = 4 * 1_024 * 1_024;
/** Of milliseconds and bytes. */
const MOST = 2 ** 40;
/** In its name, so that another layout is never read as this one. */
const KEY_PREFIX = "pgw:cache:1:";
/** After an answer that did not come in time, calls go on without the cache for as long, instead of waiting each. */
const REST_MS = 500;

/**
 * Keeps answers in Redis, for all processes that share it. One command a look, one to keep; Redis out of reach is a
 * rejection at once, which the client counts as a miss. What lies in Redis is believed only as far as it can be proven.
 *
 * Connects with the first call. Throws ConfigError for options out of range, or without the package ioredis.
 */
export class RedisCache implements AnswerCache {
  readonly #connection: RedisConnection;
  readonly #runtime: Pick<Runtime, "now">;
  readonly #ttlMs: number;
  readonly #maxBytes: number;
  readonly #salt: string;
  readonly #prefix: string;
  readonly #writing = new Set<Promise<void>>();
  #restUntilMs = Number.NEGATIVE_INFINITY;
  #lastFailure: unknown = null;

  constructor(options: RedisCacheOptions) {
    const none = noOptions("RedisCache", options);
    if (none !== null) throw new ConfigError([none]);
    const { ttlMs = CACHE_DEFAULTS.ttlMs, maxValueBytes = DEFAULT_MAX_VALUE_BYTES } = options;
    const { namespace = "", salt = "" } = options;
    const runtime = options.runtime ?? createSystemRuntime();
    const problems = [
      ...unknownOptions("RedisCache", options, CACHE_OPTIONS),
      ...connectionProblems(options, "RedisCache"),
      ...countProblems("RedisCache.ttlMs", ttlMs, MOST, "milliseconds"),
      ...countProblems("RedisCache.maxValueBytes", maxValueBytes, MOST, "bytes"),
      ...Object.entries({ namespace, salt }).flatMap(([field, value]) => noText(field, value)),
    ];
    if (problems.length > 0) throw new ConfigError(problems);
    this.#ttlMs = ttlMs;
    this.#maxBytes = maxValueBytes;
    this.#salt = salt;
    this.#prefix = `${KEY_PREFIX}${namespace === "" ? "" : `${plain(namespace)}:`}`;
    this.#runtime = runtime;
    this.#connection = new RedisConnection({ ...options, runtime }, "RedisCache");
  }

  /** Rejects when Redis doesn't answer, and for an entry that is no answer of this cache. */
  async get(key: string): Promise<CachedAnswer | null> {
    requireKey(key, "get");
    const terms = this.#terms(key);
    const bytes = await this.#timed(() =>
      this.#connection.commandBuffer("GETRANGE", this.#keyOf(key), 0, readLimit(terms) - 1),
    );
    if (!Buffer.isBuffer(bytes) || bytes.length === 0) return null;
    return JSON.parse(await unpackEntry(bytes, terms)) as CachedAnswer;
  }

  /** An answer longer than `maxValueBytes` is not kept, and nothing else under its key. Rejects when Redis doesn't answer. */
  async set(key: string, answer: CachedAnswer): Promise<void> {
    requireKey(key, "set");
    // As text at once: what the caller does with the answer later is not kept.
    const writing = this.#write(key, answerText(answer)).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    return writing;
  }

  /** Waits for what is being written and closes the connection, unless it is the user's own client. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#writing);
    await this.#connection.close();
  }

  async #write(key: string, text: string): Promise<void> {
    const name = this.#keyOf(key);
    const entry = await packEntry(text, this.#terms(key));
    await this.#timed(() =>
      entry === null
        ? this.#connection.command("DEL", name)
        : this.#connection.command("SET", name, entry, "PX", this.#ttlMs),
    );
  }

  #terms(key: string): EntryTerms {
    return { key, salt: this.#salt, maxBytes: this.#maxBytes };
  }

  /** The tag in braces keeps a namespace with braces from putting all keys of a cluster on one node. */
  #keyOf(key: string): string {
    return `${this.#prefix}{${plain(key)}}`;
  }

  async #timed(ask: () => Promise<unknown>): Promise<unknown> {
    const askedMs = this.#runtime.now();
    if (askedMs < this.#restUntilMs) throw this.#lastFailure;
    try {
      return await ask();
    } catch (error) {
      // A refusal that came at once costs the calls nothing.
      const tookTime = this.#runtime.now() - askedMs >= this.#connection.timeoutMs / 2;
      if (tookTime) this.#restUntilMs = this.#runtime.now() + REST_MS;
      this.#lastFailure = error;
      throw error;
    }
  }
}

/** Part of a key in Redis: plain texts as they are, any other by its hash, so that distinct ones stay distinct. */
function plain(text: string): string {
  if (/^[A-Za-z0-9_.-]{1,64}$/.test(text)) return text;
  return `sha256-${createHash("sha256").update(text).digest("hex")}`;
}

const CACHE_OPTIONS = [...CONNECTION_OPTIONS, "ttlMs", "namespace", "salt", "maxValueBytes"];

/** The salt is a secret: what was given is not told. */
function noText(field: string, value: unknown): ConfigProblem[] {
  if (typeof value === "string") return [];
  return [{ key: `RedisCache.${field}`, problem: "is no text", remedy: 'Give a text, or leave it out for "".' }];
}
