import { createdAtMs, DEFAULT_TABLE, type StoredRow } from "./columns.js";
import { type Database, openDatabase, rollback } from "./sqlite-driver.js";
import { explained } from "./sqlite-errors.js";
import { columnsOf } from "./sqlite-tables.js";
import { type TelemetryFile, TelemetryFileError } from "./store.js";

export interface PruneOptions {
  /** Rows made before this moment (epoch milliseconds) go; rows of unknown age stay. */
  readonly beforeMs: number;
  /** Default `llm_calls`. */
  readonly table?: string;
  /** Only counts. */
  readonly dryRun?: boolean;
}

export interface PruneResult {
  readonly rows: number;
  readonly kept: number;
}

/** A transaction of this many rows holds writers up for some milliseconds. */
const PAGE_ROWS = 2_000;

/**
 * Deletes old rows of a telemetry database, a page a transaction, so that calls go on recording meanwhile. The journal is
 * left alone: what is open there is `reconcile`'s. The file doesn't shrink, its free pages are used again.
 * Throws TelemetryFileError, also for JSONL: a file that a process may be writing to can't lose its beginning.
 */
export function pruneTelemetry(file: Pick<TelemetryFile, "kind" | "path">, options: PruneOptions): PruneResult {
  const { path, kind } = file;
  if (kind === "jsonl") {
    const remedy = "Move the file away while nothing writes to it, as with any log";
    throw new TelemetryFileError(path, "is JSONL, from which nothing can be taken out while it is written", remedy);
  }
  requireTable(path, options.table ?? DEFAULT_TABLE);
  return explained(path, () => {
    const database = openDatabase(path, { readOnly: options.dryRun === true });
    try {
      return prune(database, options);
    } finally {
      database.close();
    }
  });
}

/** Before anything is opened for writing: a file of something else is not touched. */
export function requireTable(path: string, table: string): void {
  const columns = explained(path, () => {
    const database = openDatabase(path, { readOnly: true });
    try {
      return columnsOf(database, table);
    } finally {
      database.close();
    }
  });
  if (columns.has("call_id")) return;
  throw TelemetryFileError.withoutTable(path, table);
}

function prune(database: Database, { beforeMs, table = DEFAULT_TABLE, dryRun = false }: PruneOptions): PruneResult {
  const columns = columnsOf(database, table);
  const time = columns.has("created_at") ? "created_at" : "NULL AS created_at";
  const page = database.prepare(
    `SELECT rowid AS row_number, call_id, ${time} FROM "${table}" WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE_ROWS}`,
  );
  const remove = dryRun ? null : database.prepare(`DELETE FROM "${table}" WHERE rowid = ?`);
  let rows = 0;
  let kept = 0;
  for (let last = -1; ; ) {
    const read = page.all(last) as (Pick<StoredRow, "call_id" | "created_at"> & { row_number: number })[];
    const old = read.filter((row) => isBefore(row as unknown as StoredRow, beforeMs));
    if (remove !== null && old.length > 0) {
      inTransaction(database, () => {
        for (const { row_number: number } of old) remove.run(number);
      });
    }
    rows += old.length;
    kept += read.length - old.length;
    if (read.length < PAGE_ROWS) return { rows, kept };
    last = Number(read.at(-1)!.row_number);
  }
}

function isBefore(row: StoredRow, beforeMs: number): boolean {
  const madeAtMs = createdAtMs(row);
  return madeAtMs !== null && madeAtMs < beforeMs;
}

function inTransaction(database: Database, work: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    rollback(database);
    throw error;
  }
}
