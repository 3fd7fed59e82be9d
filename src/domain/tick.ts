import type { SourceReason } from "../errors.js";
import type { RateLimitDimension, UpstreamLimits } from "./upstream-limits.js";

/**
 * The messages between a process and its governor (spec 10 "One port"). Relative times only: two clocks are never mixed.
 * Room for the scheduling rules is left in the types; the engine fills what it uses.
 */
export type LeaseId = string;
export type SourceName = string;

/** The six gates in the order in which they are asked (spec 02 §3). */
export const GATE_NAMES = ["global_concurrency", "concurrency", "global_rpm", "rpm", "global_tpm", "tpm"] as const;
export type GateName = (typeof GATE_NAMES)[number];

/** What an attempt taught about its source. */
export type Outcome = "success" | "failure" | "alive" | "dead" | "cancelled";

export interface TickBatch {
  readonly worker: string;
  /** The one source of randomness of this tick, uint32. */
  readonly seed: number;
  readonly settles: readonly Settle[];
  readonly verdicts: readonly Verdict[];
  readonly renew: readonly LeaseId[];
  /** At most 32. */
  readonly wants: readonly Want[];
}

export interface TickReply {
  readonly grants: readonly Grant[];
  readonly refusals: readonly Refusal[];
  /** Smallest wait over the refused wants; null when nothing was refused. */
  readonly hintMs: number | null;
  /** For settles, then verdicts, then renewals: did it take effect? */
  readonly applied: readonly boolean[];
}

export interface Want {
  /** Made by the caller: asking again with the same id answers the same grant. */
  readonly leaseId: LeaseId;
  readonly callId: string;
  readonly candidates: readonly SourceName[];
  /** true: a user's selector ordered the candidates, the first with a free slot is taken. */
  readonly ordered?: boolean;
  /** Sources that failed in this call: used only while no other closed one is able. */
  readonly failedHere: readonly SourceName[];
  /** Sources that rate-limited this call: softly demoted. */
  readonly limitedHere: readonly SourceName[];
  readonly estTokens: number;
  /** Lower goes first. */
  readonly priority: number;
  readonly waitedMs: number;
  /** Affinity: the source that served this session last. */
  readonly affinity?: SourceName | undefined;
  /** Estimated tokens of the prompt alone; with them the governor learns better reservations (spec 10 §8). */
  readonly promptTokens?: number;
  /** Most tokens the answer may have; absent = no limit is known. */
  readonly maxTokens?: number | undefined;
  /** Calls whose lengths are alike are learned together. */
  readonly tag?: string;
  /** It follows a failure that was counted: paid by the fleet's retry budget. */
  readonly retry?: boolean;
  /** A second attempt beside one that shows no token: paid by the hedge budget, never queued. */
  readonly hedge?: boolean;
  /** What is left of the call's deadline. */
  readonly remainingMs?: number | undefined;
  /** How often a later call was served first because its size fitted better; counted by the dispatcher. */
  skips?: number;
}

export interface Grant {
  readonly leaseId: LeaseId;
  readonly source: SourceName;
  /** 0 = at once. */
  readonly startInMs: number;
  readonly epoch: number;
  readonly probe: boolean;
  /** Minute of the `window` rule; null under `smooth`. */
  readonly windowId: number | null;
  readonly reservedTokens: number;
  readonly leaseTtlMs: number;
  /**
   * D_ft, from the send: without a first token by then the attempt is overdue (a probe: failed). null = not known yet, the
   * source's own first-token timeout alone decides.
   */
  readonly firstTokenDueMs?: number | null;
  /** How long a second attempt may be put off where hedging is on: this long after the send. null = never. */
  readonly hedgeAfterMs?: number | null;
  readonly passedOver: readonly Passed[];
}

export interface Refusal {
  readonly leaseId: LeaseId;
  /**
   * `fairness` also stands for what the fleet as a whole may not do now: its retry or hedge budget is used up.
   * `deadline`: no source would answer within what is left of the call's deadline.
   */
  readonly kind: "never" | "breaker" | "cooldown" | "gate" | "fairness" | "deadline";
  readonly gate?: GateName;
  readonly waitHintMs: number;
  readonly passedOver: readonly Passed[];
}

/** Evidence during an attempt. */
export interface Verdict {
  readonly leaseId: LeaseId;
  readonly source: SourceName;
  readonly epoch: number;
  readonly probe: boolean;
  readonly kind: "first_token" | "overdue" | "overdue_reversed";
  readonly ttftMs?: number;
}

/** The end of an attempt; once-only by its lease. */
export interface Settle {
  readonly leaseId: LeaseId;
  readonly source: SourceName;
  readonly epoch: number;
  readonly probe: boolean;
  readonly windowId: number | null;
  readonly reservedTokens: number;
  /** null = the reservation stands. */
  readonly actualTokens: number | null;
  /** false = no byte left: the request slot may be returned. */
  readonly sent: boolean;
  readonly outcome: Outcome;
  readonly retryAfterMs?: number;
  readonly rateLimited?: RateLimitDimension;
  readonly durationMs: number;
  /** Send to first token, for an end that comes in the same tick as its verdict. */
  readonly ttftMs?: number | undefined;
  /** Time per output token after the first one. */
  readonly tpotMs?: number | undefined;
  /** Measured by the provider, for learning. */
  readonly inTokens?: number | undefined;
  readonly outTokens?: number | undefined;
  /** What the answer's headers said of the account. */
  readonly limits?: UpstreamLimits | undefined;
  /** Kept for `snapshot()` and `perSourceReasons` only. */
  readonly lastError?: { readonly code: string; readonly message: string };
}

export interface Passed {
  readonly source: SourceName;
  readonly reason: SourceReason;
  readonly waitMs: number;
  readonly lastError?: { readonly code: string; readonly message: string };
}

/**
 * Something changed that may let a waiting call go (`capacity`, `state`), or that grants not started yet must know
 * (`state`, `cooling`).
 */
export interface GovernorEvent {
  readonly type: "capacity" | "state" | "cooling";
  readonly source: string;
  /** Only this worker need ask; absent = all. */
  readonly worker?: string;
  /**
   * The breaker opened on evidence: attempts of this source without a first token that are older than this give up
   * (spec 10 §4 "Evacuation"). Absent = nobody does.
   */
  readonly evacuateAfterMs?: number;
}

export type BreakerState = "closed" | "open" | "half_open";

export interface SourceSnapshot {
  readonly name: SourceName;
  readonly state: BreakerState;
  readonly epoch: number;
  /** How long it stays open from now; 0 when not open. */
  readonly openForMs: number;
  readonly probeInFlight: boolean;
  readonly inflight: number;
  readonly maxConcurrency: number;
  /** Requests booked in the current window (rule `window`) or still ahead of the clock (rule `smooth`). */
  readonly requestsUsed: number;
  readonly tokensUsed: number;
  readonly coolingMs: number;
  readonly dead: boolean;
  readonly lastError: { readonly code: string; readonly message: string } | null;
  /**
   * Why a call of the usual size would be passed over here at this moment, and for how long; 0 = that may end at any
   * moment. null = it would be let through. Absent where a store doesn't tell.
   */
  readonly passedOver?: { readonly reason: SourceReason; readonly waitMs: number } | null;
  /** What the adaptive rules think of this source (spec 10); absent where a store doesn't tell. */
  readonly adaptive?: AdaptiveSnapshot;
}

export interface AdaptiveSnapshot {
  /** W(t): calls in flight let through now, configured limit and ramp included; null = unlimited. */
  readonly window: number | null;
  /** R(t): requests per second let through now; null = unlimited. */
  readonly ratePerS: number | null;
  /** Limits per minute learned from headers; null = none. */
  readonly learnedRpm: number | null;
  readonly learnedTpm: number | null;
  /** Since the pacer's last cut; null = never cut. */
  readonly lastCutAgoMs: number | null;
  /** Evidence of being broken; trips at `tripsAt`. */
  readonly evidence: number;
  readonly tripsAt: number;
  /** Share of good attempts, older ones weighing less. */
  readonly successShare: number;
  /** Learned; null = not yet. */
  readonly ttftMs: number | null;
  readonly tpotMs: number | null;
  /** D_ft; null = not known yet. */
  readonly firstTokenDueMs: number | null;
  /** Closed less than 10 s ago and still ramping up. */
  readonly ramping: boolean;
}

export interface ScopeSnapshot {
  readonly scope: string;
  /** Fleet-wide budgets; absent where a store doesn't tell. */
  readonly budgets?: { readonly retryTokens: number; readonly hedgeTokens: number; readonly retriesInFlight: number };
  /** Processes with waiting calls, and their virtual time. */
  readonly workers?: readonly { readonly worker: string; readonly waiting: boolean; readonly virtualTime: number }[];
  readonly sources: readonly SourceSnapshot[];
  readonly backend: { readonly kind: string; readonly ok: boolean };
}
