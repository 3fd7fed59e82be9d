import type { OpenAttempt } from "../domain/record.js";
import type { StoredRow } from "./columns.js";

export interface RowFilter {
  /** Only rows made at or after this moment (epoch milliseconds); rows of unknown age are kept. */
  readonly sinceMs?: number;
  readonly sessionId?: string;
  /** Only rows that have one of these as an id: their own, or that of their call, session or parent. */
  readonly ids?: readonly string[];
  /** Leave `messages`, `response`, `thinking` and `sampling` out (null): they are most of the bytes. */
  readonly withoutTexts?: boolean;
}

/** What `reconcile` adds: rows for ends nobody recorded. Rows whose `call_id` is there already change nothing. */
export interface StoreRepair {
  readonly rows: readonly StoredRow[];
  /** Journal rows that are settled by this. */
  readonly closedCallIds: readonly string[];
}

/** Telemetry as it stands in a file or database, read back. Reads stream: memory doesn't grow with what is kept. */
export interface TelemetryFile {
  readonly kind: "sqlite" | "jsonl" | "postgres";
  /** For people too: of a database its address without password. */
  readonly path: string;
  rows(filter?: RowFilter): AsyncIterable<StoredRow>;
  /** Rejects where there is no table to read: nothing was ever recorded there, or under another name. `rows` gives none then. */
  requireTable(): Promise<void>;
  /** Attempts that were sent and whose end is not recorded. */
  openAttempts(): Promise<readonly OpenAttempt[]>;
  /** One transaction (SQLite, PostgreSQL) or one synced append (JSONL). */
  repair(repair: StoreRepair): Promise<void>;
  /** Lines that could not be read; known after the rows were. Always 0 but for JSONL. */
  readonly unreadableLines: number;
  close(): void;
}

/** A telemetry file that can't be used: says which, why and what to do. */
export class TelemetryFileError extends Error {
  readonly path: string;
  /** It is a server, and nobody answers there now. */
  readonly isAway: boolean;

  constructor(
    path: string,
    problem: string,
    remedy: string,
    message = `Telemetry file ${path}: ${problem}`,
    isAway = false,
  ) {
    super(`${message}. ${remedy}`);
    this.name = "TelemetryFileError";
    this.path = path;
    this.isAway = isAway;
  }

  /** It is a database, and holds no such table. */
  static withoutTable(shown: string, table: string): TelemetryFileError {
    const problem = `has no telemetry in a table ${table}`;
    const remedy = "Give another --db or --table NAME, or run something that records telemetry there first";
    return new TelemetryFileError(shown, problem, remedy, `${shown} ${problem}`);
  }

  /** The file can be read and is something else. */
  static foreign(path: string, reason: string): TelemetryFileError {
    const remedy = "Give the file that PGW_TELEMETRY_* or --db names";
    return new TelemetryFileError(path, reason, remedy, `${path} is not a telemetry file: ${reason}`);
  }
}
