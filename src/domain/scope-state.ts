import type { SourceReason } from "../errors.js";
import { type BreakerRecord, closedBreaker } from "./breaker.js";
import { type CooldownRecord, noCooldown } from "./cooldown.js";
import { emptyGateRecord, type GateRecord, type GateRules, gateRules } from "./gates/gate.js";
import { emptyLeaseBook, type LeaseBook } from "./leases.js";
import type { BreakerConfig, SelectorName } from "./scope.js";
import type { LimitConfig, SourceConfig } from "./source.js";
import type { SourceName } from "./tick.js";

/** Everything a governor knows of one source. */
export interface SourceState {
  readonly config: SourceConfig;
  readonly rules: GateRules;
  readonly gates: GateRecord;
  readonly breaker: BreakerRecord;
  readonly cooldown: CooldownRecord;
  /** Weighted turns taken, for round-robin. */
  turns: number;
  /** Order of the last grant, so that equal sources take turns. */
  lastGrant: number;
  lastError: { readonly code: string; readonly message: string } | null;
}

/** Everything a governor knows of its scope; rules below change it, stores keep it. */
export interface ScopeState {
  readonly sources: Map<SourceName, SourceState>;
  readonly globalRules: GateRules;
  readonly globalGates: GateRecord;
  readonly leases: LeaseBook;
  readonly breaker: BreakerConfig;
  readonly selector: SelectorName;
  readonly leaseTtlMs: number;
  /** Round-robin's common clock: a source that was away does not catch up in one burst. */
  turnFloor: number;
  grantCount: number;
  /** −Infinity when there never was a success or a first token. */
  lastProgressMs: number;
}

export interface ScopeSetup {
  readonly sources: readonly SourceConfig[];
  readonly global: LimitConfig;
  readonly breaker: BreakerConfig;
  readonly selector: SelectorName;
  readonly leaseTtlMs: number;
}

export function newScopeState(setup: ScopeSetup, nowMs: number): ScopeState {
  const sources = new Map<SourceName, SourceState>();
  for (const config of setup.sources) {
    sources.set(config.name, {
      config,
      rules: gateRules(config),
      gates: emptyGateRecord(),
      breaker: closedBreaker(nowMs),
      cooldown: noCooldown(),
      turns: 0,
      lastGrant: 0,
      lastError: null,
    });
  }
  return {
    sources,
    globalRules: gateRules(setup.global),
    globalGates: emptyGateRecord(),
    leases: emptyLeaseBook(),
    breaker: setup.breaker,
    selector: setup.selector,
    leaseTtlMs: setup.leaseTtlMs,
    turnFloor: 0,
    grantCount: 0,
    lastProgressMs: Number.NEGATIVE_INFINITY,
  };
}

/** How one candidate stands for one want. `waitMs` 0 = may start now; Infinity = never (larger than the token limit). */
export interface Standing {
  readonly source: SourceState;
  readonly waitMs: number;
  readonly reason: SourceReason | null;
  readonly probe: boolean;
  readonly tokens: number;
}
