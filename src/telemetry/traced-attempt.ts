import type { OpenAttempt } from "../domain/record.js";
import { createdAtMs, nanosToNumber, numberToNanos, type StoredRow, uuidTimeMs } from "./columns.js";
import { countPrice, type PriceCount } from "./priced.js";

/** One row of a call: an attempt, a hit or the end of a call without an answer. */
export interface TracedAttempt {
  readonly callId: string;
  /** 1-based; null on a hit and on a terminal row. */
  readonly attempt: number | null;
  readonly sourceName: string | null;
  readonly model: string | null;
  /** As recorded; `in_flight` = only the journal knows of it. */
  readonly outcome: string;
  readonly startedAtMs: number | null;
  readonly latencyMs: number | null;
  readonly ttftMs: number | null;
  readonly waitedMs: number | null;
  readonly tokens: number;
  readonly cost: number | null;
  readonly error: string | null;
  readonly statusCode: number | null;
  readonly finishReason: string | null;
  /** Sources passed over, with the reason of each. */
  readonly route: readonly PassedOver[];
  /** The call whose attempts brought this answer, where it is another one's. */
  readonly sharedWith: string | null;
  readonly final: boolean;
}

export interface PassedOver {
  readonly source: string;
  readonly reason: string;
  readonly waitMs: number;
}

export function attemptOf(row: StoredRow): TracedAttempt {
  const callId = String(row.call_id);
  return {
    callId,
    attempt: numberOf(row.attempt),
    sourceName: textOf(row.source_name),
    model: textOf(row.model),
    outcome: textOf(row.outcome) ?? (row.error === null ? "success" : "failed"),
    startedAtMs: uuidTimeMs(callId) ?? createdAtMs(row),
    latencyMs: numberOf(row.latency_ms),
    ttftMs: numberOf(row.ttft_ms),
    waitedMs: numberOf(row.waited_ms),
    tokens: (numberOf(row.prompt_tokens) ?? 0) + (numberOf(row.completion_tokens) ?? 0),
    cost: numberOf(row.cost),
    error: textOf(row.error),
    statusCode: numberOf(row.status_code),
    finishReason: textOf(row.finish_reason),
    route: routeOf(row.route),
    sharedWith: sharedWithOf(row.route),
    final: row.final === 1,
  };
}

export function attemptInFlight({ callId, sourceName, startedAtMs }: OpenAttempt): TracedAttempt {
  return {
    callId,
    attempt: null,
    sourceName,
    model: null,
    outcome: "in_flight",
    startedAtMs,
    latencyMs: null,
    ttftMs: null,
    waitedMs: null,
    tokens: 0,
    cost: null,
    error: null,
    statusCode: null,
    finishReason: null,
    route: [],
    sharedWith: null,
    final: false,
  };
}

export interface TracedCost extends PriceCount {
  /** Sum of the known costs. */
  readonly cost: number;
}

/** What attempts cost together. A hit used no tokens of its own, whatever its row repeats of the answer's. */
export function tracedCost(attempts: readonly TracedAttempt[]): TracedCost {
  const count: PriceCount = { attemptsWithPrice: 0, attemptsWithoutPrice: 0 };
  let nanos = 0n;
  for (const { tokens, cost, outcome } of attempts) {
    if (cost !== null) nanos += numberToNanos(cost);
    if (outcome !== "cache_hit") countPrice(count, { prompt_tokens: tokens, completion_tokens: 0, cost, outcome });
  }
  return { ...count, cost: nanosToNumber(nanos) };
}

function routeOf(json: unknown): PassedOver[] {
  const entries = parsed(json);
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry: Partial<PassedOver> | null) =>
    typeof entry?.source === "string" && typeof entry.reason === "string"
      ? [{ source: entry.source, reason: entry.reason, waitMs: Number(entry.waitMs) || 0 }]
      : [],
  );
}

function sharedWithOf(json: unknown): string | null {
  const route = parsed(json) as { sharedWith?: unknown } | null | undefined;
  return textOf(route?.sharedWith);
}

/** Rows of other writers may hold anything. */
function parsed(json: unknown): unknown {
  if (typeof json !== "string") return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
