import { type ColumnIndex, type IndexOptions, type IndexResult, indexOn, TRACE_COLUMNS } from "./index-columns.js";
import type { Query } from "./postgres-database.js";
import { type OpenedDatabase, openDatabaseOf, requireCalls } from "./postgres-store.js";
import { baseIndexes, indexDefinition, type TableNames } from "./postgres-tables.js";
import { TelemetryFileError } from "./store.js";

/** An index of a large table takes its time, and nobody waits behind it. */
export const BUILD_TIMEOUT_MS = 86_400_000;

/** Adds indexes, as the owner of the table, without holding writers up. Throws TelemetryFileError. */
export async function indexPostgres(dsn: string, options: IndexOptions): Promise<IndexResult> {
  const { columns = TRACE_COLUMNS, table } = options;
  const opened = openDatabaseOf(dsn, table, BUILD_TIMEOUT_MS);
  const { names } = opened;
  try {
    return await opened.run(async (query) => {
      const existing = await requireCalls(opened, query);
      for (const column of columns) if (!existing.has(column)) throw noColumn(opened, column);
      const before = await indexNamesOf(query, names);
      await buildIndexes(opened, query, [
        ...baseIndexes(names),
        ...columns.map((column) => indexOn(names.table, column)),
      ]);
      const after = await indexNamesOf(query, names);
      return { added: [...after].filter((name) => !before.has(name)) };
    });
  } finally {
    await opened.database.close();
  }
}

/** In the order of their making; one that can't be used counts as missing. */
export async function indexNamesOf(query: Query, names: TableNames): Promise<Set<string>> {
  const text = `SELECT indexrelid::regclass::text AS name FROM pg_index
    WHERE indrelid = to_regclass($1) AND NOT indisprimary AND indisvalid ORDER BY indexrelid`;
  const found = await query(text, [names.calls]);
  return new Set(found.map(({ name }) => `index ${name}`));
}

/** Builds what is missing, one after the other. Beside another builder it would find half an index and take it away. */
export async function buildIndexes(
  opened: OpenedDatabase,
  query: Query,
  indexes: readonly ColumnIndex[],
): Promise<void> {
  const { names } = opened;
  // Tried, not waited for: a builder waits for every statement that began before it, this one too.
  const lock = "hashtext('polygateway index'), hashtext($1)";
  const [locked] = await query(`SELECT pg_try_advisory_lock(${lock})::text AS mine`, [names.calls]);
  if (locked?.mine !== "true") throw busy(opened);
  try {
    await dropBroken(query, names, indexes);
    for (const index of indexes) {
      await query(`CREATE INDEX CONCURRENTLY IF NOT EXISTS ${indexDefinition(names, index)}`);
    }
  } finally {
    await query(`SELECT pg_advisory_unlock(${lock})`, [names.calls]).catch(() => {});
  }
}

/** A build that was broken off leaves its index behind: it takes its name and is used for nothing. */
async function dropBroken(query: Query, { calls }: TableNames, indexes: readonly ColumnIndex[]): Promise<void> {
  const text = `SELECT indexrelid::regclass::text AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = to_regclass($1) AND NOT indisvalid AND relname = ANY($2::text[])`;
  const broken = await query(text, [calls, indexes.map(({ name }) => name)]);
  for (const { name } of broken) await query(`DROP INDEX CONCURRENTLY ${name}`);
}

function noColumn({ database, names }: OpenedDatabase, column: string): TelemetryFileError {
  const problem = `table ${names.table} lacks the column ${column}`;
  return new TelemetryFileError(database.shown, problem, "`polygateway telemetry migrate` adds it");
}

function busy({ database }: OpenedDatabase): TelemetryFileError {
  return new TelemetryFileError(
    database.shown,
    "somebody else is building indexes there",
    "Try again when they are done",
  );
}
