/** Columns of short values that people look by. `created_at` and `session_id` have theirs from the beginning. */
export const INDEX_COLUMNS = [
  "request_id",
  "parent_call_id",
  "scope",
  "operation",
  "provider",
  "source_name",
  "model",
  "outcome",
  "status_code",
  "finish_reason",
  "worker",
] as const;
export type IndexColumn = (typeof INDEX_COLUMNS)[number];

/** `trace` looks by these. */
export const TRACE_COLUMNS: readonly IndexColumn[] = ["request_id", "parent_call_id"];

/** Most rows have no value there, and a missing one is never looked for. */
const SPARSE: ReadonlySet<string> = new Set(["session_id", "parent_call_id"]);

export interface ColumnIndex {
  readonly name: string;
  readonly column: string;
  /** Of the rows with a value alone. */
  readonly isPartial: boolean;
}

export function indexOn(table: string, column: string): ColumnIndex {
  return { name: `${table}_${column}`, column, isPartial: SPARSE.has(column) };
}

export interface IndexOptions {
  /** Default: those that `trace` looks by. */
  readonly columns?: readonly IndexColumn[];
  /** Default `llm_calls`. */
  readonly table?: string;
}

export interface IndexResult {
  /** Indexes that were missing. */
  readonly added: readonly string[];
}
