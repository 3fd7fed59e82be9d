import { admitAll } from "../../domain/admission.js";
import { describeScope, describeSource } from "../../domain/description.js";
import type { StoreClock } from "../../domain/gates/gate.js";
import { renewLease } from "../../domain/leases.js";
import { type SeededRandom, seededRandom } from "../../domain/random.js";
import { evacuationAgeMs } from "../../domain/scheduling/evacuation.js";
import { wokenBy } from "../../domain/scheduling/wake.js";
import {
  BREAKER_DEFAULTS,
  type BreakerConfig,
  SCHEDULING_DEFAULTS,
  type SchedulingConfig,
  type SelectorName,
} from "../../domain/scope.js";
import { newScopeState, type ScopeState } from "../../domain/scope-state.js";
import { hear, reclaimExpired, type SettleEffect, settle } from "../../domain/settlement.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../../domain/source.js";
import { SourceNotConfiguredError } from "../../errors.js";
import type {
  Governor,
  GovernorEvent,
  Grant,
  Refusal,
  ScopeSnapshot,
  TickBatch,
  TickReply,
} from "../../ports/governor.js";
import type { Runtime } from "../../ports/runtime.js";

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

const DEFAULT_LEASE_TTL_MS = 30_000;
const NO_GRANTS: readonly Grant[] = [];
const NO_REFUSALS: readonly Refusal[] = [];
/** Never added to: nothing is released where nothing is settled. */
const NONE_RELEASED: string[] = [];
const NONE_APPLIED: readonly boolean[] = [];
const CAPACITY_RECLAIMED: GovernorEvent = { type: "capacity", source: "*" };

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
        prices: options.prices,
        leaseTtlMs: options.leaseTtlMs ?? DEFAULT_LEASE_TTL_MS,
      },
      options.runtime.now(),
    );
  }

  tick(batch: TickBatch): TickReply {
    this.#refuseUnknownSources(batch);
    const clock = this.#readClock();
    const events = reclaimExpired(this.#state, clock) > 0 ? [CAPACITY_RECLAIMED] : [];
    const random = seededRandom(batch.seed);
    const released = batch.settles.length === 0 ? NONE_RELEASED : [];
    const applied = this.#applyAccounts(batch, clock, random, events, released);
    const reply = this.#answerWants(batch, clock, random, applied);
    const woken = wokenBy(this.#state, released, batch.worker, clock);
    if (woken !== null) events.push({ type: "capacity", ...woken });
    if (events.length > 0) this.#emit(events);
    return reply;
  }

  /** Settles, then verdicts, then renewals. */
  #applyAccounts(
    { settles, verdicts, renew }: TickBatch,
    clock: StoreClock,
    random: SeededRandom,
    events: GovernorEvent[],
    released: string[],
  ): readonly boolean[] {
    if (settles.length + verdicts.length + renew.length === 0) return NONE_APPLIED;
    const state = this.#state;
    const applied: boolean[] = [];
    for (const s of settles) {
      // Whoever gives back by id alone, because the reply was lost, does not know the source.
      const source = state.leases.byId.get(s.leaseId)?.grant.source ?? s.source;
      applied.push(this.#noteEffect(source, settle(state, s, clock, random), clock, events, released));
    }
    for (const v of verdicts) {
      applied.push(this.#noteEffect(v.source, hear(state, v, clock, random), clock, events, released));
    }
    for (const leaseId of renew) {
      applied.push(renewLease(state.leases, leaseId, clock.nowMs + state.leaseTtlMs));
    }
    return applied;
  }

  /** Notes what the others must know of an effect. */
  #noteEffect(
    source: string,
    effect: SettleEffect,
    clock: StoreClock,
    events: GovernorEvent[],
    released: string[],
  ): boolean {
    if (effect.stateChanged) {
      const evacuateAfterMs = effect.tripped ? evacuationAgeMs(this.#state, source, clock.nowMs) : undefined;
      events.push({ type: "state", source, ...(evacuateAfterMs === undefined ? {} : { evacuateAfterMs }) });
    } else if (effect.released) {
      released.push(source);
    }
    if (effect.cooling && this.#state.scheduling.prefetchMs > 0) events.push({ type: "cooling", source });
    return effect.applied;
  }

  #answerWants(batch: TickBatch, clock: StoreClock, random: SeededRandom, applied: readonly boolean[]): TickReply {
    if (batch.wants.length === 0) return { grants: NO_GRANTS, refusals: NO_REFUSALS, hintMs: null, applied };
    let grants: Grant[] | null = null;
    let refusals: Refusal[] | null = null;
    let hintMs: number | null = null;
    for (const answer of admitAll(this.#state, batch.wants, batch.worker, clock, random)) {
      if ("kind" in answer) {
        refusals ??= [];
        refusals.push(answer);
        if (answer.kind !== "never") hintMs = Math.min(hintMs ?? answer.waitHintMs, answer.waitHintMs);
      } else {
        grants ??= [];
        grants.push(answer);
      }
    }
    return { grants: grants ?? NO_GRANTS, refusals: refusals ?? NO_REFUSALS, hintMs, applied };
  }

  onEvent(listener: (event: GovernorEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  snapshot(): ScopeSnapshot {
    const clock = this.#readClock();
    reclaimExpired(this.#state, clock);
    const sources = [...this.#state.sources.values()].map((source) => describeSource(this.#state, source, clock));
    return { scope: this.scope, ...describeScope(this.#state), sources, backend: { kind: "memory", ok: true } };
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

  /** Before anything is changed: a batch takes effect as a whole or not at all. */
  #refuseUnknownSources(batch: TickBatch): void {
    for (const s of batch.settles) this.#requireSource(s.source);
    for (const v of batch.verdicts) this.#requireSource(v.source);
    for (const want of batch.wants) {
      for (const name of want.candidates) this.#requireSource(name);
    }
  }

  #requireSource(name: string): void {
    if (this.#state.sources.has(name)) return;
    const known = [...this.#state.sources.keys()].join(", ");
    throw new SourceNotConfiguredError(
      `source ${name} is not configured in the governor of scope ${this.scope} (it knows: ${known || "none"}). ` +
        "Give the client and its governor the same sources.",
      { sourceName: name },
    );
  }

  #emit(events: readonly GovernorEvent[]): void {
    for (const event of events) {
      for (const listener of this.#listeners) listener(event);
    }
  }
}
