import type { SourceReason } from "../errors.js";

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
  readonly affinity?: SourceName;
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
  readonly passedOver: readonly Passed[];
}

export interface Refusal {
  readonly leaseId: LeaseId;
  readonly kind: "never" | "breaker" | "cooldown" | "gate" | "fairness";
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
  readonly rateLimited?: "requests" | "tokens" | "unknown";
  readonly durationMs: number;
  readonly tpotMs?: number;
  /** Kept for `snapshot()` and `perSourceReasons` only. */
  readonly lastError?: { readonly code: string; readonly message: string };
}

export interface Passed {
  readonly source: SourceName;
  readonly reason: SourceReason;
  readonly waitMs: number;
  readonly lastError?: { readonly code: string; readonly message: string };
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
}

export interface ScopeSnapshot {
  readonly scope: string;
  readonly sources: readonly SourceSnapshot[];
  readonly backend: { readonly kind: string; readonly ok: boolean };
}
