import type { LimitConfig, SourceConfig } from "./source.js";

export interface RetryConfig {
  /** Sends that count as failures before the call ends; ≥ 1. */
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  /** 429s one call accepts before it ends as quota_exhausted; 0 = unbounded. */
  readonly maxRateLimited: number;
}

export interface BreakerConfig {
  /** Consecutive failures that open the breaker. */
  readonly failThreshold: number;
  /** Failure share over the window that opens it, in (0, 1]. */
  readonly failRate: number;
  readonly minSamples: number;
  readonly windowMs: number;
  /** First open time; grows by 1.7 a trip up to the maximum. 0 = probe at once. */
  readonly cooldownMs: number;
  readonly cooldownMaxMs: number;
}

export interface BackpressureConfig {
  readonly stallWindowMs: number;
  readonly quotaFull: "wait" | "fail_fast";
  readonly whenOpen: "wait" | "fail";
  readonly backendGraceMs: number;
  /** Floor of quota_exhausted's retryAfterMs. Nothing polls. */
  readonly pollIntervalMs: number;
}

/** Where answers are kept and what counts as the same request (spec 04 "Cache"). */
export interface CacheConfig {
  readonly backend: "none" | "memory" | "redis";
  readonly ttlMs: number;
  /** Bytes of answers kept in memory. */
  readonly maxBytes: number;
  readonly namespace: string;
  readonly salt: string;
  /** Identical calls in flight share one chain of attempts. */
  readonly coalesce: boolean;
}

/** Every adaptive rule of spec 10 by its name; each can be switched off. */
export interface SchedulingConfig {
  /** H: a permit may be given this long before it starts. 0 = only what may start now. */
  readonly prefetchMs: number;
  /** Concurrency and rate follow what the source bears (CUBIC), a 429 reopens it paced. */
  readonly pacer: boolean;
  /** Limits and remainders in answer headers are caps and early warnings. */
  readonly headers: boolean;
  /** The evidence score trips the breaker beside the configured channels. */
  readonly evidence: boolean;
  /** A first token that is overdue is evidence at once, and ends a probe. */
  readonly overdue: boolean;
  /** When a source trips, its attempts without a token go elsewhere. */
  readonly evacuate: boolean;
  /** A source that closed again is on probation and gets its load back over 10 s. */
  readonly ramp: boolean;
  readonly sizeMatching: boolean;
  /** Workers of one scope share it evenly. */
  readonly fairness: boolean;
  readonly retryBudget: boolean;
  /** For calls that don't say. */
  readonly hedge: boolean;
  /** A call that no source would answer within its deadline is refused at once. */
  readonly deadlineRefusal: boolean;
  /** Reservations follow what calls of the kind really used. */
  readonly learnTokens: boolean;
  /** Calls of a session prefer the source that served it last. */
  readonly affinity: boolean;
  /** κ: how much a source's price counts against its speed; 1 = as much. */
  readonly priceWeight: number;
}

export type SelectorName = "health_aware" | "least_inflight" | "round_robin";
export type Failover = "on" | "off";

/** Everything one scope is governed by, every default filled in. */
export interface ScopeConfig {
  readonly scope: string;
  readonly sources: readonly SourceConfig[];
  readonly retry: RetryConfig;
  readonly breaker: BreakerConfig;
  readonly backpressure: BackpressureConfig;
  readonly global: LimitConfig;
  readonly selector: SelectorName;
  readonly scheduling: SchedulingConfig;
  readonly failover: Failover;
  /** Length from a call's start; undefined = none. */
  readonly deadlineMs: number | undefined;
  /** Lease time to live. */
  readonly leaseTtlMs: number;
  readonly leaseRenewal: boolean;
}

/** The defaults of spec 07. */
export const CACHE_DEFAULTS: CacheConfig = {
  backend: "none",
  ttlMs: 86_400_000,
  maxBytes: 64 * 1_024 * 1_024,
  namespace: "",
  salt: "",
  coalesce: false,
};

/** `prefetchMs` where asking costs a round trip, unless somebody said otherwise (spec 10 §2). */
export const REMOTE_PREFETCH_MS = 1_000;

export const SCHEDULING_DEFAULTS: SchedulingConfig = {
  prefetchMs: 0,
  pacer: true,
  headers: true,
  evidence: true,
  overdue: true,
  evacuate: true,
  ramp: true,
  sizeMatching: true,
  fairness: true,
  retryBudget: true,
  hedge: false,
  deadlineRefusal: true,
  learnTokens: true,
  affinity: false,
  priceWeight: 0,
};

/** Nothing adaptive at all: the engine as it was before these rules. */
export const SCHEDULING_OFF: SchedulingConfig = {
  prefetchMs: 0,
  pacer: false,
  headers: false,
  evidence: false,
  overdue: false,
  evacuate: false,
  ramp: false,
  sizeMatching: false,
  fairness: false,
  retryBudget: false,
  hedge: false,
  deadlineRefusal: false,
  learnTokens: false,
  affinity: false,
  priceWeight: 0,
};

export const BREAKER_DEFAULTS: BreakerConfig = {
  failThreshold: 5,
  failRate: 0.5,
  minSamples: 20,
  windowMs: 60_000,
  cooldownMs: 4_000,
  cooldownMaxMs: 30_000,
};
