import { createReadStream } from "node:fs";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import {
  CALL_COLUMNS,
  COLUMNS_BEFORE_CREATED_AT,
  type ColumnValue,
  callValues,
  isoTime,
  OPEN_COLUMNS,
  openValues,
  type StoredRow,
  uuidTimeMs,
} from "./columns.js";

/**
 * The JSONL form of telemetry: one object a line with the columns of `llm_calls`;
 * a journal row is a line `{"open": {…}}` in the same file.
 */
export type TelemetryLine =
  | { readonly kind: "record"; readonly row: StoredRow }
  | { readonly kind: "open"; readonly open: OpenAttempt }
  /** Torn by a kill, or not ours: passed over and counted. */
  | { readonly kind: "unreadable" };

const COLUMN_ORDER: readonly string[] = [
  ...CALL_COLUMNS.slice(0, COLUMNS_BEFORE_CREATED_AT).map((column) => column.name),
  "created_at",
  ...CALL_COLUMNS.slice(COLUMNS_BEFORE_CREATED_AT).map((column) => column.name),
];

/** `created_at` = the moment the row's id was made plus the time the attempt took: a file has no clock of its own. */
export function recordLine(record: CallRecord): string {
  const values = callValues(record);
  const startedAtMs = uuidTimeMs(record.callId);
  const createdAt = startedAtMs === null ? null : isoTime(startedAtMs + (record.latencyMs ?? 0));
  values.splice(COLUMNS_BEFORE_CREATED_AT, 0, createdAt);
  return `${JSON.stringify(Object.fromEntries(COLUMN_ORDER.map((name, index) => [name, values[index]])))}\n`;
}

export function rowLine(row: StoredRow): string {
  const values = row as Record<string, ColumnValue>;
  return `${JSON.stringify(Object.fromEntries(COLUMN_ORDER.map((name) => [name, values[name] ?? null])))}\n`;
}

export function openLine(entry: OpenAttempt): string {
  const values = openValues(entry);
  return `${JSON.stringify({ open: Object.fromEntries(OPEN_COLUMNS.map(({ name }, index) => [name, values[index]])) })}\n`;
}

export function parseTelemetryLine(line: string): TelemetryLine {
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed !== "object" || parsed === null) return { kind: "unreadable" };
    const { open, call_id: callId } = parsed as Record<string, unknown>;
    if (typeof open === "object" && open !== null && typeof (open as { call_id?: unknown }).call_id === "string") {
      return { kind: "open", open: openFromRow(open as Record<string, ColumnValue>) };
    }
    if (typeof callId !== "string") return { kind: "unreadable" };
    return { kind: "record", row: completeRow(parsed as Record<string, ColumnValue>) };
  } catch {
    return { kind: "unreadable" };
  }
}

/** Does an unreadable line look like the beginning of one of ours, which a kill cut off? */
export function isTornLine(line: string): boolean {
  return line.startsWith(`{"call_id":`) || line.startsWith(`{"open":{"call_id":`);
}

/** A row with every column, whatever an older store has. */
export function completeRow(partial: Record<string, unknown>): StoredRow {
  const row: Record<string, ColumnValue> = {};
  for (const name of COLUMN_ORDER) row[name] = columnValue(partial[name]);
  return row as StoredRow;
}

function columnValue(value: unknown): ColumnValue {
  if (typeof value === "string" || typeof value === "number") return value;
  return typeof value === "bigint" || typeof value === "boolean" ? Number(value) : null;
}

export function openFromRow(row: Record<string, unknown>): OpenAttempt {
  const startedAtMs = typeof row.started_at === "number" ? row.started_at : Date.parse(String(row.started_at));
  return {
    callId: String(row.call_id),
    requestId: String(row.request_id),
    scope: String(row.scope ?? ""),
    sourceName: String(row.source_name ?? ""),
    worker: String(row.worker ?? ""),
    startedAtMs: Number.isFinite(startedAtMs) ? startedAtMs : 0,
    estTokens: Number(row.est_tokens ?? 0),
    sessionId: textOrNull(row.session_id),
    parentCallId: textOrNull(row.parent_call_id),
    operation: textOrNull(row.operation),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

const NEWLINE = 0x0a;

/**
 * Lines of a file without ever holding more than one of them, line ends removed.
 * A last line without line end is given too: it may be whole.
 */
export async function* readLines(path: string): AsyncGenerator<string> {
  const pieces: Buffer[] = [];
  for await (const chunk of createReadStream(path)) {
    const bytes = chunk as Buffer;
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      pieces.push(bytes.subarray(start, end));
      start = end + 1;
      yield joined(pieces);
    }
    if (start < bytes.length) pieces.push(bytes.subarray(start));
  }
  if (pieces.length > 0) yield joined(pieces);
}

function joined(pieces: Buffer[]): string {
  const line = pieces.length === 1 ? (pieces[0] as Buffer).toString("utf8") : Buffer.concat(pieces).toString("utf8");
  pieces.length = 0;
  return line;
}
