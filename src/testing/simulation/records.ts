export type AttemptOutcome = "running" | "success" | "rate_limited" | "failed" | "aborted";

/** One attempt as the provider saw it. */
export interface AttemptRecord {
  readonly leaseId: string;
  readonly callIndex: number;
  readonly worker: number;
  readonly source: string;
  readonly startMs: number;
  endMs: number;
  outcome: AttemptOutcome;
  /** The provider's own count; 0 = it answered nothing. */
  tokens: number;
  /** Answered with an error status, and so with nothing to pay for. */
  refused: boolean;
}

/** One call as its caller saw it. */
export interface CallEnd {
  readonly index: number;
  readonly worker: number;
  readonly priority: number;
  readonly startMs: number;
  readonly endMs: number;
  /** null = answered. */
  readonly failure: string | null;
  /** From the call's start to the first token of the answer. */
  readonly firstTokenMs: number | null;
}
