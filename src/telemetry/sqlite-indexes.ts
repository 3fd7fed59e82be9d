import { DEFAULT_TABLE, tableLayout } from "./columns.js";
import { type IndexOptions, type IndexResult, indexOn, TRACE_COLUMNS } from "./index-columns.js";
import { requireTable } from "./prune.js";
import { openDatabase } from "./sqlite-driver.js";
import { explained } from "./sqlite-errors.js";
import { addIndex, prepareTables } from "./sqlite-tables.js";
import { type TelemetryFile, TelemetryFileError } from "./store.js";

/**
 * Adds indexes to a telemetry file. What would be written waits until one is built: rows stay in the queues of their
 * processes. Throws TelemetryFileError, also for JSONL.
 */
export function indexTelemetry(file: Pick<TelemetryFile, "kind" | "path">, options: IndexOptions): IndexResult {
  const { path, kind } = file;
  const { columns = TRACE_COLUMNS, table = DEFAULT_TABLE } = options;
  if (kind === "jsonl") {
    throw new TelemetryFileError(path, "is JSONL, which has no indexes", "Record into a SQLite file or PostgreSQL");
  }
  requireTable(path, table);
  return explained(path, () => {
    const database = openDatabase(path, { readOnly: false });
    try {
      // An older file may lack the column.
      prepareTables(database, tableLayout(table));
      const missing = columns
        .map((column) => indexOn(table, column))
        .filter((index) => addIndex(database, table, index));
      return { added: missing.map(({ name }) => `index ${name}`) };
    } finally {
      database.close();
    }
  });
}
