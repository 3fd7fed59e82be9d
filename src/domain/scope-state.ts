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
import { limitsInForce, lowerLimit, newPacer, type PacerRecord } from "./scheduling/pacer.js";
import { newTokenBook, type TokenBook } from "./scheduling/token-learning.js";
import type { BreakerConfig, SchedulingConfig, SelectorName } from "./scope.js";
import type { LimitConfig, SourceConfig } from "./source.js";
import type { SourceName, Want } from "./tick.js";

/** What is remembered of one source. */
export interface SourceRecord {
  readonly gates: GateRecord;
  readonly breaker: BreakerRecord;
  readonly cooldown: CooldownRecord;
  readonly pacer: PacerRecord;
  readonly gradient: GradientRecord;
  readonly evidence: EvidenceRecord;
  readonly health: HealthRecord;
  /** Closed after a trip at this moment; −Infinity = never. */
  reclosedAtMs: number;
  /** Weighted turns taken, for round-robin. */
  turns: number;
  /** Order of the last grant, so that equal sources take turns. */
  lastGrant: number;
  lastError: { readonly code: string; readonly message: string } | null;
}

/** Everything a governor knows of one source. */
export interface SourceState extends SourceRecord {
  readonly config: SourceConfig;
  /** Limits in force: the configured ones, or lower ones that headers told. */
  rules: GateRules;
  readonly sizes: ModelSizes;
  /** What no larger call ever passes, here and over all sources together; 0 = none. */
  readonly mostTokens: number;
  /** (price / lowest price)^κ; 1 without prices. */
  readonly priceFactor: number;
  /** Of the tick that runs, while `ScopeState.keepsFacts`. */
  facts: GateFacts | null;
  /** Of any call that fits; null = not judged yet, or it depends on the call's size. */
  standing: Standing | null;
  score: KeptScore | null;
}

/** What calls of a model use; its sources share it. */
export interface ModelSizes {
  readonly book: TokenBook;
  /** While `ScopeState.keepsFacts`: the call judged last, and what it is believed to use. */
  want: Want | null;
  tokens: number;
}

/** A source's score before demotion and noise: alike for calls of one tag and length. */
export interface KeptScore {
  readonly tag: string | undefined;
  readonly maxTokens: number | undefined;
  readonly waitMs: number;
  readonly value: number;
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
  /** The same in their order: to walk through a list is faster. */
  readonly sourceList: readonly SourceState[];
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
  /** Of the call judged last, while `keepsFacts`. */
  lineup: Lineup | null;
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

export function newSourceRecord(nowMs: number): SourceRecord {
  return {
    gates: emptyGateRecord(),
    breaker: closedBreaker(nowMs),
    cooldown: noCooldown(),
    pacer: newPacer(),
    gradient: newGradient(),
    evidence: noEvidence(),
    health: newHealth(),
    reclosedAtMs: Number.NEGATIVE_INFINITY,
    turns: 0,
    lastGrant: 0,
    lastError: null,
  };
}

/**
 * `bookOf` gives what was learned of the calls of a model, asked once for each; `recordOf` what is remembered of a source.
 */
export function newScopeState(
  setup: ScopeSetup,
  nowMs: number,
  leases: LeaseBook,
  bookOf: (model: string) => TokenBook = newTokenBook,
  recordOf: (source: SourceName) => SourceRecord = () => newSourceRecord(nowMs),
): ScopeState {
  const sources = new Map<SourceName, SourceState>();
  const sourceList: SourceState[] = [];
  const models = new Map<string, ModelSizes>();
  for (const config of setup.sources) {
    const { name, model } = config;
    let sizes = models.get(model);
    if (sizes === undefined) {
      sizes = { book: bookOf(model), want: null, tokens: 0 };
      models.set(model, sizes);
    }
    const record = recordOf(name);
    const source: SourceState = {
      config,
      rules: gateRules(limitsInForce(record.pacer, config)),
      gates: record.gates,
      breaker: record.breaker,
      cooldown: record.cooldown,
      pacer: record.pacer,
      gradient: record.gradient,
      evidence: record.evidence,
      health: record.health,
      sizes,
      mostTokens: lowerLimit(config.tpm, setup.global.tpm),
      reclosedAtMs: record.reclosedAtMs,
      priceFactor: setup.priceFactors?.[name] ?? 1,
      turns: record.turns,
      lastGrant: record.lastGrant,
      lastError: record.lastError,
      facts: null,
      standing: null,
      score: null,
    };
    sources.set(name, source);
    sourceList.push(source);
  }
  return {
    sources,
    sourceList,
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
    lineup: null,
    lastProgressMs: Number.NEGATIVE_INFINITY,
  };
}

/** From here on, until `keepsFacts` ends, what is alike for all calls is found once for each source. */
export function keepFacts(state: ScopeState): void {
  state.keepsFacts = true;
  state.lineup = null;
  for (const source of state.sourceList) {
    forgetFactsOf(source);
    source.sizes.want = null;
  }
}

/** A grant changes what its own gates say, and with limits over all sources what everybody's say. */
export function forgetFacts(state: ScopeState, source: SourceState): void {
  const { lineup } = state;
  const { maxConcurrency, rpm, tpm } = state.globalRules.limits;
  forgetFactsOf(source);
  if (maxConcurrency === 0 && rpm === 0 && tpm === 0) {
    if (lineup === null) return;
    if (lineup.stale === null) lineup.stale = source;
    else if (lineup.stale !== source) state.lineup = null;
    return;
  }
  state.lineup = null;
  for (const other of state.sourceList) {
    other.facts = null;
    other.standing = null;
  }
}

function forgetFactsOf(source: SourceState): void {
  source.facts = null;
  source.standing = null;
  source.score = null;
}

/** How the candidates stand for any call that fits all of them. */
export interface Lineup {
  readonly candidates: readonly SourceName[];
  readonly standings: Standing[];
  /** How many of them can't start at once. */
  waiting: number;
  /** Of sources that calls are believed to use alike, the one with the lowest limit of size. */
  readonly tightest: readonly SourceState[];
  /** Before demotion and noise, for calls of this tag and length; below 0 = not found yet. */
  readonly scores: number[];
  tag: string | undefined;
  maxTokens: number | undefined;
  /** A grant changed how this one stands. */
  stale: SourceState | null;
}

/** How one candidate stands for one want. `waitMs` 0 = may start now; Infinity = never (larger than the token limit). */
export interface Standing {
  readonly source: SourceState;
  /** Lower goes first, whatever the scores. */
  readonly rank: number;
  readonly waitMs: number;
  readonly reason: SourceReason | null;
  readonly probe: boolean;
  /** May be granted now, to start after `waitMs`. */
  readonly startable: boolean;
}
