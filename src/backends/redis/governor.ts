import { priceFactors } from "../../domain/price-factors.js";
import {
  BREAKER_DEFAULTS,
  type BreakerConfig,
  REMOTE_PREFETCH_MS,
  SCHEDULING_DEFAULTS,
  type SchedulingConfig,
  type SelectorName,
} from "../../domain/scope.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../../domain/source.js";
import type { Governor, GovernorEvent, ScopeSnapshot, TickBatch, TickReply } from "../../ports/governor.js";
import { refuseUnknownSources } from "../known-sources.js";
import { RedisConnection, type RedisConnectionOptions, redisScript } from "./connection.js";
import { classifyRedisError, governanceError, type RedisFailure, type RedisFailureKind } from "./failure.js";
import { batchText, readSources, readTickAnswer, setupText } from "./governor-messages.js";
import { createNews, type News } from "./news.js";
import { TICK_SCRIPT } from "./tick-script.js";

export interface RedisGovernorOptions extends RedisConnectionOptions {
  readonly scope: string;
  readonly sources: readonly SourceConfig[];
  /** Limits over all sources together. Default: off. */
  readonly global?: Partial<LimitConfig>;
  readonly breaker?: Partial<BreakerConfig>;
  /** Default `health_aware`. */
  readonly selector?: SelectorName;
  /** Default 30 s. */
  readonly leaseTtlMs?: number;
  /** Adaptive rules by name (spec 10). Default: all but hedging and affinity, permits up to 1 s ahead. */
  readonly scheduling?: Partial<SchedulingConfig>;
  /** What sources cost, in any unit, for `scheduling.priceWeight`. */
  readonly prices?: Readonly<Record<string, number>>;
}

/** For the contract suite alone: a clock in place of the server's, under keys of its own. */
export interface RedisGovernorTesting {
  readonly nowMs: () => number;
}

const DEFAULT_LEASE_TTL_MS = 30_000;
/** A tick that failed so read something that it could not make sense of. */
const OVER_THE_STATE: ReadonlySet<RedisFailureKind> = new Set(["wrongtype", "script"]);

/**
 * The governor of a fleet: every process with the same scope on the same Redis shares limits, breakers and what was learned.
 * One script is one atomic step by the server's clock; it runs the rules that the memory governor runs, compiled.
 *
 * Ticks reject with GovernanceBackendError when Redis does not answer within `timeoutMs`.
 */
export class RedisGovernor implements Governor {
  readonly scope: string;
  readonly sources: readonly SourceConfig[];
  readonly global: LimitConfig;
  readonly #connection: RedisConnection;
  readonly #names: ReadonlyMap<string, SourceConfig>;
  readonly #prefix: string;
  readonly #setup: string;
  readonly #testing: RedisGovernorTesting | undefined;
  readonly #news: News;
  /** Its name is a hash of the whole text: made where it is used. */
  readonly #script = redisScript(TICK_SCRIPT);
  readonly #listeners = new Set<(event: GovernorEvent) => void>();

  /** Connects with the first tick. Throws ConfigError for an address that can't be one. */
  constructor(options: RedisGovernorOptions, testing?: RedisGovernorTesting) {
    const { scope, sources, scheduling } = options;
    this.scope = scope;
    this.sources = sources;
    this.global = { ...NO_LIMITS, ...options.global };
    this.#names = new Map(sources.map((source) => [source.name, source]));
    this.#prefix = `${testing === undefined ? "pgw" : "pgw-test"}:{${scope}}:`;
    this.#testing = testing;
    this.#setup = setupText({
      sources,
      global: this.global,
      breaker: { ...BREAKER_DEFAULTS, ...options.breaker },
      selector: options.selector ?? "health_aware",
      scheduling: { ...SCHEDULING_DEFAULTS, prefetchMs: REMOTE_PREFETCH_MS, ...scheduling },
      priceFactors: priceFactors(sources, options.prices, scheduling?.priceWeight),
      leaseTtlMs: options.leaseTtlMs ?? DEFAULT_LEASE_TTL_MS,
    });
    this.#connection = new RedisConnection(options, "RedisGovernor");
    this.#news = createNews(this.#connection, this.#prefix, (event) => this.#emit(event));
  }

  async tick(batch: TickBatch): Promise<TickReply> {
    refuseUnknownSources(this.scope, this.#names, batch);
    this.#news.follow(batch.worker);
    const { reply, events } = readTickAnswer(await this.#run("tick", batchText(batch)));
    for (const event of events) this.#emit(event);
    return reply;
  }

  onEvent(listener: (event: GovernorEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async snapshot(): Promise<ScopeSnapshot> {
    const { sources, budgets, workers } = JSON.parse(await this.#run("snapshot", "")) as ScopeSnapshot;
    return {
      scope: this.scope,
      ...(budgets === undefined ? {} : { budgets }),
      workers: Array.isArray(workers) ? workers : [],
      sources: readSources(sources),
      backend: { kind: "redis", ok: true },
    };
  }

  async progressAgeMs(): Promise<number> {
    const age = await this.#run("progress", "");
    return age === "" ? Infinity : Number(age);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    this.#news.close();
    await this.#connection.close();
  }

  async #run(verb: string, input: string): Promise<string> {
    try {
      return await this.#ask(verb, input);
    } catch (error) {
      const failure = classifyRedisError(error);
      if (!OVER_THE_STATE.has(failure.kind)) throw governanceError(this.scope, verb, failure);
      return await this.#askRepaired(verb, input, failure);
    }
  }

  /** Nothing was written. What no tick can have written counts as never written: with it every tick would fail. */
  async #askRepaired(verb: string, input: string, failure: RedisFailure): Promise<string> {
    try {
      if (Number(await this.#ask("repair", "")) === 0) throw failure;
      this.#emit({ type: "capacity", source: "*" });
      return await this.#ask(verb, input);
    } catch (error) {
      throw governanceError(this.scope, verb, classifyRedisError(error));
    }
  }

  async #ask(verb: string, input: string): Promise<string> {
    const moment = this.#testing === undefined ? "" : String(this.#testing.nowMs());
    // The key names the slot; all others begin alike.
    const keys = [`${this.#prefix}s`];
    return String(await this.#connection.run(this.#script, keys, [verb, this.#prefix, this.#setup, input, moment]));
  }

  #emit(event: GovernorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}
