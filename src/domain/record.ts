/** How an attempt, a cache hit or a call without an attempt ended (spec 05, column `outcome`). */
export type RecordOutcome =
  | "success"
  | "transient"
  | "rate_limited"
  | "source_dead"
  | "rejected"
  | "invalid"
  | "cancelled"
  | "cache_hit"
  | "unavailable"
  | "misconfigured"
  | "abandoned"
  | "stale_socket";

export type OperationKind = "chat" | "chat_stream" | "embedding" | "ocr_text" | "ocr_layout";

/** One telemetry row: the 31 columns of spec 05 in their order (`created_at` is the store's own). */
export interface CallRecord {
  /** UUIDv7 of this row; for an attempt also its `callId`. */
  readonly callId: string;
  readonly sessionId: string | null;
  readonly parentCallId: string | null;
  readonly scope: string;
  readonly operation: OperationKind;
  readonly provider: string | null;
  /** null on a hit and on a terminal row. */
  readonly sourceName: string | null;
  readonly model: string | null;
  /** Request summary JSON; binary parts are already replaced by their digest. */
  readonly messages: string | null;
  readonly response: string | null;
  readonly thinking: string | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly usageSource: "measured" | "estimated" | null;
  readonly latencyMs: number | null;
  readonly ttftMs: number | null;
  /** Whole nano-units of the price table's currency; null = unknown. */
  readonly costNanos: bigint | null;
  readonly error: string | null;
  readonly cachedPromptTokens: number | null;
  readonly modelReported: string | null;
  /** Canonical JSON of the caller's sampling joined with the source's EXTRA_BODY; null when empty. */
  readonly sampling: string | null;
  readonly reasoningTokens: number | null;
  readonly outcome: RecordOutcome;
  /** 1-based within the call; null on a hit and on a terminal row. */
  readonly attempt: number | null;
  readonly requestId: string;
  readonly statusCode: number | null;
  readonly finishReason: string | null;
  /** host:pid:random. */
  readonly worker: string;
  /** Admission time before this attempt. */
  readonly waitedMs: number | null;
  /** Compact JSON of the sources passed over; null when the first choice was free. */
  readonly route: string | null;
  /** Exactly one per call. */
  readonly final: boolean;
  /** Machine-readable code of `error`; not a column, kept for capture modes that may not store bodies. */
  readonly errorCode?: string;
}

/** Journal row: an attempt was sent and its end is not known yet. */
export interface OpenAttempt {
  readonly callId: string;
  readonly requestId: string;
  readonly scope: string;
  readonly sourceName: string;
  readonly worker: string;
  /** Wall clock, epoch ms. */
  readonly startedAtMs: number;
  readonly estTokens: number;
  /** As in the record it stands for: an abandoned attempt must be found under its session and its caller's step. */
  readonly sessionId: string | null;
  readonly parentCallId: string | null;
  /** null in a row of an earlier version. */
  readonly operation: string | null;
}
