import { checkGovernorOptions, type GovernorKind } from "../../config/governor-options.js";
import type { BreakerConfig, SchedulingConfig, SelectorName } from "../../domain/scope.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../../domain/source.js";
import { ConfigError, type GovernanceBackendError } from "../../errors.js";
import type { Governor, GovernorEvent, ScopeSnapshot, TickBatch, TickReply } from "../../ports/governor.js";
import { refuseUnknownSources } from "../known-sources.js";
import {
  CONNECTION_OPTIONS,
  connectionProblems,
  RedisConnection,
  type RedisConnectionOptions,
  redisScript,
} from "./connection.js";
import {
  classifyRedisError,
  closedError,
  governanceError,
  type RedisFailure,
  type RedisFailureKind,
  untakenError,
} from "./failure.js";
import { type GovernedScope, type GovernedSettings, governedScope } from "./governed-scope.js";
import { batchText, readSources, readTickAnswer } from "./governor-messages.js";
import { dangersOf } from "./health.js";
import { createNews, type News } from "./news.js";
import { scopeKeys } from "./script/keys.js";
import { TICK_SCRIPT } from "./tick-script.js";

export interface RedisGovernorOptions extends RedisConnectionOptions {
  readonly scope: string;
  /** Default: those of the first client that it is given to, with all of that client's settings. */
  readonly sources?: readonly SourceConfig[];
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

const GOVERNOR: GovernorKind = {
  title: "RedisGovernor",
  ownOptions: CONNECTION_OPTIONS,
  ownProblems: (given) => connectionProblems(given as RedisConnectionOptions, "RedisGovernor"),
  sourcesRequired: false,
};

/** For the contract suite alone: a clock in place of the server's, under keys of its own. */
export interface RedisGovernorTesting {
  readonly nowMs: () => number;
}

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
  /** Asking costs a round trip: permits are worth giving ahead. */
  readonly isRemote = true;
  readonly #connection: RedisConnection;
  readonly #prefix: string;
  #scope: GovernedScope | null;
  /** Of that scope; made with the first ask. */
  #keys: readonly string[] | null = null;
  readonly #testing: RedisGovernorTesting | undefined;
  readonly #news: News;
  /** Its name is a hash of the whole text: made where it is used. */
  readonly #script = redisScript(TICK_SCRIPT);
  readonly #listeners = new Set<(event: GovernorEvent) => void>();
  readonly #finishers = new Set<() => Promise<void>>();
  #closing: Promise<void> | null = null;

  /** Connects with the first tick. Throws ConfigError for an address that can't be one. */
  constructor(options: RedisGovernorOptions, testing?: RedisGovernorTesting) {
    checkGovernorOptions(options, GOVERNOR);
    const { scope, sources } = options;
    this.scope = scope;
    this.#prefix = `${testing === undefined ? "pgw" : "pgw-test"}:{${scope}}:`;
    this.#testing = testing;
    this.#scope = sources === undefined ? null : governedScope({ ...options, sources });
    this.#connection = new RedisConnection(options, "RedisGovernor");
    this.#news = createNews(this.#connection, this.#prefix, (event) => this.#emit(event));
  }

  /** Empty until a client has given its own. */
  get sources(): readonly SourceConfig[] {
    return this.#scope?.sources ?? [];
  }

  get global(): LimitConfig {
    return this.#scope?.global ?? NO_LIMITS;
  }

  /** Takes a client's sources and settings, unless it has some. */
  adopt(settings: GovernedSettings): void {
    this.#scope ??= governedScope(settings);
  }

  async tick(batch: TickBatch): Promise<TickReply> {
    refuseUnknownSources(this.scope, this.#governed().names, batch);
    if (this.#closing !== null && batch.wants.length > 0) throw closedError(this.scope);
    this.#news.follow(batch.worker);
    const { reply, events } = readTickAnswer(await this.#run("tick", sentText(batch)));
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

  /** An evicting `maxmemory-policy`. Nothing where Redis doesn't say. */
  dangers(): Promise<readonly string[]> {
    return dangersOf(this.#connection);
  }

  onClose(finish: () => Promise<void>): () => void {
    this.#finishers.add(finish);
    return () => this.#finishers.delete(finish);
  }

  /**
   * Gives no more permits, waits for the calls that have one, in this process, and gives their permits back; then closes the
   * connection. While Redis doesn't answer it waits until they end or their leases do. Permits taken by `tick` itself, not by a client, end with their lease.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#finishers].map((finish) => finish()));
    this.#listeners.clear();
    this.#news.close();
    await this.#connection.close();
  }

  async #run(verb: string, input: string): Promise<string> {
    try {
      return await this.#ask(verb, input);
    } catch (error) {
      const failure = classifyRedisError(error);
      if (!OVER_THE_STATE.has(failure.kind)) throw this.#failure(failure);
      return await this.#askRepaired(verb, input, failure);
    }
  }

  /** Nothing was written. What no tick can have written counts as never written: with it every tick would fail. */
  async #askRepaired(verb: string, input: string, first: RedisFailure): Promise<string> {
    let failure = first;
    try {
      if (Number(await this.#ask("repair", "")) > 0) {
        this.#emit({ type: "capacity", source: "*" });
        return await this.#ask(verb, input);
      }
    } catch (error) {
      failure = classifyRedisError(error);
    }
    if (verb === "tick" && OVER_THE_STATE.has(failure.kind) && (await this.#isWell())) throw untakenError(failure);
    throw this.#failure(failure);
  }

  /** A snapshot reads what a tick reads, and asks of every source whether it would take a usual call. */
  async #isWell(): Promise<boolean> {
    try {
      await this.#ask("snapshot", "");
      return true;
    } catch {
      return false;
    }
  }

  async #ask(verb: string, input: string): Promise<string> {
    const moment = this.#testing === undefined ? "" : String(this.#testing.nowMs());
    const { setup, names } = this.#governed();
    this.#keys ??= scopeKeys(this.#prefix, names.keys());
    // How old progress is stands in the state alone, whatever the sources are.
    const [keys, configuration] = verb === "progress" ? [this.#keys.slice(0, 1), ""] : [this.#keys, setup];
    return String(await this.#connection.run(this.#script, keys, [verb, this.#prefix, configuration, input, moment]));
  }

  #governed(): GovernedScope {
    if (this.#scope !== null) return this.#scope;
    const remedy = "Give it sources, or give it to a client.";
    throw new ConfigError([{ key: "RedisGovernor.sources", problem: "are missing", remedy }]);
  }

  #failure(failure: RedisFailure): GovernanceBackendError {
    return governanceError(this.scope, this.#connection.shown, failure);
  }

  #emit(event: GovernorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

function sentText(batch: TickBatch): string {
  try {
    return batchText(batch);
  } catch (error) {
    throw untakenError(error instanceof Error ? error : new Error(String(error)));
  }
}
