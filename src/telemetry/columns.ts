import { givenValue } from "../domain/given-value.js";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { TableLayout } from "./table-layout.js";
import { cleanText, limitText } from "./text.js";

export type ColumnValue = string | number | null;

export interface Column {
  readonly name: string;
  readonly type: "TEXT" | "INTEGER" | "REAL";
}

/**
 * The columns of `llm_calls` in the order of spec 05. The order is a contract: new ones are only appended.
 * `created_at` stands between `error` and `cached_prompt_tokens` in the table and is filled by the store.
 */
export const CALL_COLUMNS = [
  { name: "call_id", type: "TEXT" },
  { name: "session_id", type: "TEXT" },
  { name: "parent_call_id", type: "TEXT" },
  { name: "scope", type: "TEXT" },
  { name: "operation", type: "TEXT" },
  { name: "provider", type: "TEXT" },
  { name: "source_name", type: "TEXT" },
  { name: "model", type: "TEXT" },
  { name: "messages", type: "TEXT" },
  { name: "response", type: "TEXT" },
  { name: "thinking", type: "TEXT" },
  { name: "prompt_tokens", type: "INTEGER" },
  { name: "completion_tokens", type: "INTEGER" },
  { name: "usage_source", type: "TEXT" },
  { name: "latency_ms", type: "REAL" },
  { name: "ttft_ms", type: "REAL" },
  { name: "cost", type: "REAL" },
  { name: "error", type: "TEXT" },
  { name: "cached_prompt_tokens", type: "INTEGER" },
  { name: "model_reported", type: "TEXT" },
  { name: "sampling", type: "TEXT" },
  { name: "reasoning_tokens", type: "INTEGER" },
  { name: "outcome", type: "TEXT" },
  { name: "attempt", type: "INTEGER" },
  { name: "request_id", type: "TEXT" },
  { name: "status_code", type: "INTEGER" },
  { name: "finish_reason", type: "TEXT" },
  { name: "worker", type: "TEXT" },
  { name: "waited_ms", type: "REAL" },
  { name: "route", type: "TEXT" },
  { name: "final", type: "INTEGER" },
] as const satisfies readonly Column[];

/** How many of the columns stand before `created_at`. */
export const COLUMNS_BEFORE_CREATED_AT = 18;

export const OPEN_COLUMNS = [
  { name: "call_id", type: "TEXT" },
  { name: "request_id", type: "TEXT" },
  { name: "scope", type: "TEXT" },
  { name: "source_name", type: "TEXT" },
  { name: "worker", type: "TEXT" },
  { name: "started_at", type: "TEXT" },
  { name: "est_tokens", type: "INTEGER" },
  { name: "session_id", type: "TEXT" },
  { name: "parent_call_id", type: "TEXT" },
  { name: "operation", type: "TEXT" },
] as const satisfies readonly Column[];

/** What a row, its call, its session and the step above it are called by. */
export const ID_COLUMNS = ["call_id", "request_id", "session_id", "parent_call_id"] as const;

export const OPEN_TABLE = "open_attempts";
export const DEFAULT_TABLE = "llm_calls";

/** The layout of both tables, as the plain JavaScript of the SQLite side takes it. */
export function tableLayout(table: string): TableLayout {
  return {
    table,
    columns: CALL_COLUMNS,
    createdAtIndex: COLUMNS_BEFORE_CREATED_AT,
    openTable: OPEN_TABLE,
    openColumns: OPEN_COLUMNS,
  };
}

export type CallColumn = (typeof CALL_COLUMNS)[number]["name"];

/** A row as it stands in a store. */
export type StoredRow = Readonly<Record<CallColumn | "created_at", ColumnValue>>;

const NANOS_PER_UNIT = 1e9;

/** Nano-units as a number of the price table's currency; exact to 15 digits. */
export function nanosToNumber(nanos: bigint): number {
  return Number(nanos) / NANOS_PER_UNIT;
}

/** Back from the column: exact below nine million units of currency. */
export function numberToNanos(cost: number): bigint {
  return BigInt(Math.round(cost * NANOS_PER_UNIT));
}

function text(value: string | null | undefined): ColumnValue {
  return value === null || value === undefined ? null : limitText(cleanText(value));
}

/** A count that no integer column can hold (NaN, Infinity, beyond 2^53) is unknown, not a lost row. */
function integer(value: number | null | undefined): ColumnValue {
  if (value === null || value === undefined) return null;
  const rounded = Math.round(value);
  return Number.isSafeInteger(rounded) ? rounded : null;
}

function milliseconds(value: number | null | undefined): ColumnValue {
  if (value === null || value === undefined || !Number.isFinite(value)) return null;
  return Math.round(value * 1000) / 1000;
}

function money(nanos: bigint | null | undefined): ColumnValue {
  const cost = nanos === null || nanos === undefined ? Number.NaN : nanosToNumber(nanos);
  return Number.isFinite(cost) ? cost : null;
}

/** A text that the renderer has made safe (capture.ts): looking through a long one a second time costs as much. */
function rendered(value: string | null | undefined): ColumnValue {
  return value ?? null;
}

/** What is neither text nor number would take the rows beside it along: its row alone is lost. */
function storable(values: ColumnValue[], columns: readonly Column[]): ColumnValue[] {
  for (let at = 0; at < values.length; at += 1) {
    const value: unknown = values[at];
    if (typeof value === "string" || typeof value === "number" || value === null) continue;
    throw new TypeError(`${columns[at]?.name} is ${givenValue(value)}, which is neither a text nor a number`);
  }
  return values;
}

/** The values of one rendered record in the order of CALL_COLUMNS, safe for any store. */
export function callValues(record: CallRecord): ColumnValue[] {
  const values = [
    text(record.callId),
    rendered(record.sessionId),
    rendered(record.parentCallId),
    text(record.scope),
    text(record.operation),
    text(record.provider),
    text(record.sourceName),
    text(record.model),
    rendered(record.messages),
    rendered(record.response),
    rendered(record.thinking),
    integer(record.promptTokens),
    integer(record.completionTokens),
    text(record.usageSource),
    milliseconds(record.latencyMs),
    milliseconds(record.ttftMs),
    money(record.costNanos),
    rendered(record.error),
    integer(record.cachedPromptTokens),
    rendered(record.modelReported),
    rendered(record.sampling),
    integer(record.reasoningTokens),
    text(record.outcome),
    integer(record.attempt),
    text(record.requestId),
    integer(record.statusCode),
    rendered(record.finishReason),
    text(record.worker),
    milliseconds(record.waitedMs),
    rendered(record.route),
    record.final ? 1 : 0,
  ];
  return storable(values, CALL_COLUMNS);
}

/** The values of one journal row in the order of OPEN_COLUMNS. */
export function openValues(entry: OpenAttempt): ColumnValue[] {
  const values = [
    text(entry.callId),
    text(entry.requestId),
    text(entry.scope),
    text(entry.sourceName),
    text(entry.worker),
    isoTime(entry.startedAtMs),
    integer(entry.estTokens),
    text(entry.sessionId),
    text(entry.parentCallId),
    text(entry.operation),
  ];
  return storable(values, OPEN_COLUMNS);
}

const MAX_DATE_MS = 8.64e15;

/** ISO 8601 in UTC with milliseconds; null for a moment no calendar has. */
export function isoTime(epochMs: number): string | null {
  return Math.abs(epochMs) <= MAX_DATE_MS ? new Date(epochMs).toISOString() : null;
}

const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7/i;

/** The moment a UUIDv7 was made, in epoch milliseconds; null for other ids. */
export function uuidTimeMs(id: string): number | null {
  const match = UUID_V7.exec(id);
  return match === null ? null : Number.parseInt(`${match[1]}${match[2]}`, 16);
}

const SECONDS_BELOW = 1e11;

/** When a row was made, in epoch milliseconds: `created_at` in any form a store may hold, else the id's own time. */
export function createdAtMs(row: StoredRow): number | null {
  // A text column keeps the number that another writer gave it as its digits.
  const value = isNumeric(row.created_at) ? Number(row.created_at) : row.created_at;
  if (typeof value === "number") return value < SECONDS_BELOW ? value * 1000 : value;
  const parsed = typeof value === "string" ? Date.parse(withZone(value)) : Number.NaN;
  if (Number.isFinite(parsed)) return parsed;
  return typeof row.call_id === "string" ? uuidTimeMs(row.call_id) : null;
}

function isNumeric(value: ColumnValue): boolean {
  return typeof value === "string" && /^\d{9,}(?:\.\d+)?$/.test(value);
}

/** SQLite's `datetime('now')` is UTC without saying so. */
function withZone(value: string): string {
  const iso = value.replace(" ", "T");
  return /(?:Z|[+-]\d\d:?\d\d)$/.test(iso) || !iso.includes("T") ? iso : `${iso}Z`;
}

/** Rows of unknown age are kept. */
export function isSince(row: StoredRow, sinceMs: number | undefined): boolean {
  if (sinceMs === undefined) return true;
  const madeAtMs = createdAtMs(row);
  return madeAtMs === null || madeAtMs >= sinceMs;
}
