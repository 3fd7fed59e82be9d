import type { SourceReason } from "../errors.js";
import { type BreakerRecord, closedBreaker } from "./breaker.js";
import { type CooldownRecord, noCooldown } from "./cooldown.js";
import { emptyGateRecord, type GateRecord, type GateRules, gateRules } from "./gates/gate.js";
import type { LeaseBook } from "./leases.js";
import { type BudgetRecord, newBudgets } from "./scheduling/budgets.js";
import { type EvidenceRecord, noEvidence } from "./scheduling/evidence.js";
import type { PoolTimes } from "./scheduling/expected-time.js";
import type { WorkerBook } from "./scheduling/fairness.js";
import { type GradientRecord, newGradient } from "./scheduling/gradient.js";
import { type HealthRecord, newHealth } from "./scheduling/health.js";
import { newPacer, type PacerRecord } from "./scheduling/pacer.js";
import { newTokenBook, type TokenBook } from "./scheduling/token-learning.js";
import type { BreakerConfig, SchedulingConfig, SelectorName } from "./scope.js";
import type { LimitConfig, SourceConfig } from "./source.js";
import type { SourceName } from "./tick.js";

/** Everything a governor knows of one source. */
export interface SourceState {
  readonly config: SourceConfig;
  /** Limits in force: the configured ones, or lower ones that headers told. */
  rules: GateRules;
  readonly gates: GateRecord;
  readonly breaker: BreakerRecord;
  readonly cooldown: CooldownRecord;
  readonly pacer: PacerRecord;
  readonly gradient: GradientRecord;
  readonly evidence: EvidenceRecord;
  readonly health: HealthRecord;
  /** What calls use; sources of one model share it. */
  readonly tokens: TokenBook;
  /** Closed after a trip at this moment; −Infinity = never. */
  reclosedAtMs: number;
  /** (price / lowest price)^κ; 1 without prices. */
  readonly priceFactor: number;
  /** Weighted turns taken, for round-robin. */
  turns: number;
  /** Order of the last grant, so that equal sources take turns. */
  lastGrant: number;
  lastError: { readonly code: string; readonly message: string } | null;
  /** Of the tick that runs, while `ScopeState.keepsFacts`. */
  facts: GateFacts | null;
  scoreFacts: ScoreFacts | null;
}

/** What a source's score is made of, for calls of one tag and length. */
export interface ScoreFacts {
  readonly tag: string | undefined;
  readonly maxTokens: number | undefined;
  /** T. */
  readonly timeMs: number;
  /** Share of good attempts. */
  readonly good: number;
  /** 1 − u / 2. */
  readonly idleShare: number;
}

/** The part of a standing that is alike for all calls: breaker, cooldown and the gates that count no tokens. */
export interface GateFacts {
  /** By the breaker: the wait is its own, no gate was asked. */
  readonly isBlocked: boolean;
  readonly waitMs: number;
  readonly reason: SourceReason | null;
  readonly needsRelease: boolean;
  readonly probe: boolean;
}

/** Everything a governor knows of its scope; rules below change it, stores keep it. */
export interface ScopeState {
  readonly sources: Map<SourceName, SourceState>;
  readonly globalRules: GateRules;
  readonly globalGates: GateRecord;
  readonly leases: LeaseBook;
  readonly breaker: BreakerConfig;
  readonly selector: SelectorName;
  readonly scheduling: SchedulingConfig;
  readonly budgets: BudgetRecord;
  /** Leases of retries that the budget paid or let through. */
  retriesInFlight: number;
  readonly workers: WorkerBook;
  /** Of what was granted lately; 0 = nothing yet. */
  meanTokens: number;
  meanPromptTokens: number;
  /** Grants since one went to the lower class. */
  grantsOfUpperClass: number;
  /** Medians over the closed sources; null = to be computed anew. */
  pool: Pool | null;
  readonly leaseTtlMs: number;
  /** Round-robin's common clock: a source that was away does not catch up in one burst. */
  turnFloor: number;
  grantCount: number;
  /** A tick judges several calls: facts that are alike for all of them are found once. */
  keepsFacts: boolean;
  /** −Infinity when there never was a success or a first token. */
  lastProgressMs: number;
}

export interface Pool extends PoolTimes {
  readonly measuredAtMs: number;
  /** Median share of failures, 0 where too few sources are there to compare. */
  readonly failShare: number;
}

export interface ScopeSetup {
  readonly sources: readonly SourceConfig[];
  readonly global: LimitConfig;
  readonly breaker: BreakerConfig;
  readonly selector: SelectorName;
  readonly scheduling: SchedulingConfig;
  /** By source (price-factors.ts); 1 where one is absent. */
  readonly priceFactors?: Readonly<Record<SourceName, number>> | undefined;
  readonly leaseTtlMs: number;
}

/** `bookOf` gives what was learned of the calls of a model; asked once for each model. */
export function newScopeState(
  setup: ScopeSetup,
  nowMs: number,
  leases: LeaseBook,
  bookOf: (model: string) => TokenBook = newTokenBook,
): ScopeState {
  const sources = new Map<SourceName, SourceState>();
  const tokens = new Map<string, TokenBook>();
  for (const config of setup.sources) {
    const book = tokens.get(config.model) ?? bookOf(config.model);
    tokens.set(config.model, book);
    sources.set(config.name, {
      config,
      rules: gateRules(config),
      gates: emptyGateRecord(),
      breaker: closedBreaker(nowMs),
      cooldown: noCooldown(),
      pacer: newPacer(),
      gradient: newGradient(),
      evidence: noEvidence(),
      health: newHealth(),
      tokens: book,
      reclosedAtMs: Number.NEGATIVE_INFINITY,
      priceFactor: setup.priceFactors?.[config.name] ?? 1,
      turns: 0,
      lastGrant: 0,
      lastError: null,
      facts: null,
      scoreFacts: null,
    });
  }
  return {
    sources,
    globalRules: gateRules(setup.global),
    globalGates: emptyGateRecord(),
    leases,
    breaker: setup.breaker,
    selector: setup.selector,
    scheduling: setup.scheduling,
    budgets: newBudgets(),
    retriesInFlight: 0,
    workers: new Map(),
    meanTokens: 0,
    meanPromptTokens: 0,
    grantsOfUpperClass: 0,
    pool: null,
    leaseTtlMs: setup.leaseTtlMs,
    turnFloor: 0,
    grantCount: 0,
    keepsFacts: false,
    lastProgressMs: Number.NEGATIVE_INFINITY,
  };
}

/** From here on, until `keepsFacts` ends, what a source's gates say is found once. */
export function keepFacts(state: ScopeState): void {
  state.keepsFacts = true;
  for (const source of state.sources.values()) {
    source.facts = null;
    source.scoreFacts = null;
  }
}

/** A grant changes what its own gates say, and with limits over all sources what everybody's say. */
export function forgetFacts(state: ScopeState, source: SourceState): void {
  const { limits } = state.globalRules;
  source.facts = null;
  source.scoreFacts = null;
  if (limits.maxConcurrency > 0 || limits.rpm > 0) for (const other of state.sources.values()) other.facts = null;
}

/** How one candidate stands for one want. `waitMs` 0 = may start now; Infinity = never (larger than the token limit). */
export interface Standing {
  readonly source: SourceState;
  readonly waitMs: number;
  readonly reason: SourceReason | null;
  readonly probe: boolean;
  /** What is reserved; 0 where no token gate is on. */
  readonly tokens: number;
  /** What the call is believed to use, whether it is reserved or not. */
  readonly estimate: number;
  /** May be granted now, to start after `waitMs`. */
  readonly startable: boolean;
}
