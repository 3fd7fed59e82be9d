import { checkGovernorOptions, type GovernorKind } from "../../config/governor-options.js";
import { describeScope, describeSource } from "../../domain/description.js";
import type { StoreClock } from "../../domain/gates/gate.js";
import { MemoryLeases } from "../../domain/memory-leases.js";
import { methodProblems, RUNTIME_REMEDY } from "../../domain/option-values.js";
import { priceFactors } from "../../domain/price-factors.js";
import {
  BREAKER_DEFAULTS,
  type BreakerConfig,
  SCHEDULING_DEFAULTS,
  type SchedulingConfig,
  type SelectorName,
} from "../../domain/scope.js";
import { newScopeState, type ScopeState } from "../../domain/scope-state.js";
import { reclaimExpired } from "../../domain/settlement.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../../domain/source.js";
import { runTick } from "../../domain/tick-rules.js";
import type { Governor, GovernorEvent, ScopeSnapshot, TickBatch, TickReply } from "../../ports/governor.js";
import type { Runtime } from "../../ports/runtime.js";
import { refuseUnknownSources } from "../known-sources.js";

export interface MemoryGovernorOptions {
  readonly scope: string;
  readonly sources: readonly SourceConfig[];
  /** Limits over all sources together. Default: off. */
  readonly global?: Partial<LimitConfig>;
  readonly breaker?: Partial<BreakerConfig>;
  /** Default `health_aware`. */
  readonly selector?: SelectorName;
  /** Default 30 s. */
  readonly leaseTtlMs?: number;
  /** Adaptive rules by name (spec 10). Default: all but hedging and affinity. */
  readonly scheduling?: Partial<SchedulingConfig>;
  /** What sources cost, in any unit, for `scheduling.priceWeight`. */
  readonly prices?: Readonly<Record<string, number>>;
  readonly runtime: Runtime;
}

const GOVERNOR: GovernorKind = {
  title: "MemoryGovernor",
  ownOptions: ["runtime"],
  ownProblems: ({ runtime }) => methodProblems("MemoryGovernor.runtime", runtime, ["now", "wallNow"], RUNTIME_REMEDY),
  sourcesRequired: true,
};
const DEFAULT_LEASE_TTL_MS = 30_000;

/**
 * The governor of one process, and the oracle for every other one: all decisions are the rules of `domain/`,
 * this class only keeps their state. Share one instance between clients to share the limits.
 */
export class MemoryGovernor implements Governor {
  readonly scope: string;
  readonly sources: readonly SourceConfig[];
  readonly global: LimitConfig;
  readonly #state: ScopeState;
  readonly #runtime: Runtime;
  readonly #countsMinutes: boolean;
  readonly #listeners = new Set<(event: GovernorEvent) => void>();

  constructor(options: MemoryGovernorOptions) {
    checkGovernorOptions(options, GOVERNOR);
    this.scope = options.scope;
    this.sources = options.sources;
    this.global = { ...NO_LIMITS, ...options.global };
    this.#runtime = options.runtime;
    this.#countsMinutes = [this.global, ...options.sources].some((limits) => limits.limitRule === "window");
    this.#state = newScopeState(
      {
        sources: options.sources,
        global: this.global,
        breaker: { ...BREAKER_DEFAULTS, ...options.breaker },
        selector: options.selector ?? "health_aware",
        scheduling: { ...SCHEDULING_DEFAULTS, ...options.scheduling },
        priceFactors: priceFactors(options.sources, options.prices, options.scheduling?.priceWeight),
        leaseTtlMs: options.leaseTtlMs ?? DEFAULT_LEASE_TTL_MS,
      },
      options.runtime.now(),
      new MemoryLeases(),
    );
  }

  tick(batch: TickBatch): TickReply {
    refuseUnknownSources(this.scope, this.#state.sources, batch);
    const { reply, events } = runTick(this.#state, batch, this.#readClock());
    if (events.length > 0) this.#emit(events);
    return reply;
  }

  onEvent(listener: (event: GovernorEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  snapshot(): ScopeSnapshot {
    const clock = this.#readClock();
    const state = this.#state;
    const { pool } = state;
    reclaimExpired(state, clock);
    const sources = state.sourceList.map((source) => describeSource(state, source, clock));
    // Who looks must not change what the next tick decides by.
    state.pool = pool;
    return { scope: this.scope, ...describeScope(state), sources, backend: { kind: "memory", ok: true } };
  }

  progressAgeMs(): number {
    return this.#runtime.now() - this.#state.lastProgressMs;
  }

  async close(): Promise<void> {
    this.#listeners.clear();
  }

  /** Aligned minutes alone need the wall clock. */
  #readClock(): StoreClock {
    return { nowMs: this.#runtime.now(), wallMs: this.#countsMinutes ? this.#runtime.wallNow() : 0 };
  }

  #emit(events: readonly GovernorEvent[]): void {
    for (const event of events) {
      for (const listener of this.#listeners) listener(event);
    }
  }
}
