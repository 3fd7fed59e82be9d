import type { OpenAttempt } from "../domain/record.js";
import {
  CALL_COLUMNS,
  type ColumnValue,
  DEFAULT_TABLE,
  ID_COLUMNS,
  isoTime,
  isSince,
  OPEN_COLUMNS,
  OPEN_TABLE,
  type StoredRow,
  tableLayout,
} from "./columns.js";
import { completeRow, openFromRow } from "./json-lines.js";
import { type Database, findDriver, openDatabase, rollback } from "./sqlite-driver.js";
import { explained } from "./sqlite-errors.js";
import { columnsOf, deleteOpenSql, insertSql, prepareTables } from "./sqlite-tables.js";
import { type RowFilter, type StoreRepair, type TelemetryFile, TelemetryFileError } from "./store.js";

const PAGE_ROWS = 2_000;
const TEXT_COLUMNS: ReadonlySet<string> = new Set(["messages", "response", "thinking", "sampling"]);

/** Reads a telemetry database, without changing it unless `repair` is called. Throws TelemetryFileError. */
export function openSqliteFile(path: string, table = DEFAULT_TABLE): TelemetryFile {
  const driver = findDriver();
  if (!driver.ok) throw new TelemetryFileError(path, `can't be read: ${driver.reason}`, `Install it: ${driver.remedy}`);
  const database = explained(path, () => openDatabase(path, { readOnly: true }));
  try {
    const existing = explained(path, () => columnsOf(database, table));
    if (existing.size > 0 && !existing.has("call_id")) {
      throw new TelemetryFileError(path, `table ${table} holds no telemetry`, "Give another file");
    }
    return {
      kind: "sqlite",
      path,
      unreadableLines: 0,
      rows: (filter = {}) => readRows({ database, path, table, existing }, filter),
      requireTable: async () => {
        if (existing.size === 0) throw TelemetryFileError.withoutTable(path, table);
      },
      openAttempts: async () => explained(path, () => readOpen(database)),
      repair: async (repair) => explained(path, () => writeRepair(path, table, repair)),
      close: () => database.close(),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

interface OpenTable {
  readonly database: Database;
  readonly path: string;
  readonly table: string;
  readonly existing: ReadonlySet<string>;
}

/** Pages instead of one cursor: a report must not hold a read lock while it works. */
async function* readRows({ database, path, table, existing }: OpenTable, filter: RowFilter): AsyncGenerator<StoredRow> {
  if (existing.size === 0) return;
  const statement = explained(path, () => {
    const { sql, values } = selectRows(database, table, filter, existing);
    const prepared = database.prepare(sql);
    return { all: (last: number) => prepared.all(last, ...values) };
  });
  for (let last = -1; ; ) {
    const page = explained(path, () => statement.all(last)) as Record<string, unknown>[];
    for (const raw of page) {
      const row = completeRow(raw);
      if (isSince(row, filter.sinceMs)) yield row;
    }
    const end = page.at(-1);
    if (end === undefined || page.length < PAGE_ROWS) return;
    last = Number(end.row_number);
  }
}

/** The first value is the row to go on from. */
export function selectRows(
  database: Database,
  table: string,
  filter: RowFilter,
  existing: ReadonlySet<string> = columnsOf(database, table),
): { readonly sql: string; readonly values: readonly ColumnValue[] } {
  const names = [...CALL_COLUMNS.map((column) => column.name), "created_at"].filter(
    (name) => existing.has(name) && !(filter.withoutTexts && TEXT_COLUMNS.has(name)),
  );
  const conditions = ["rowid > ?"];
  const values: ColumnValue[] = [];
  if (filter.sessionId !== undefined) {
    conditions.push("session_id = ?");
    values.push(filter.sessionId);
  }
  if (filter.ids !== undefined) {
    const places = filter.ids.map(() => "?").join(", ");
    const known = ID_COLUMNS.filter((name) => existing.has(name));
    conditions.push(`(${known.map((name) => `${name} IN (${places})`).join(" OR ")})`);
    for (const _ of known) values.push(...filter.ids);
  }
  const day = dayBefore(filter.sinceMs);
  if (day !== null && hasTextTimes(database, table, existing)) {
    conditions.push("(created_at >= ? OR created_at IS NULL)");
    values.push(day);
  }
  const where = conditions.join(" AND ");
  const sql = `SELECT rowid AS row_number, ${names.join(", ")} FROM "${table}" WHERE ${where} ORDER BY rowid LIMIT ${PAGE_ROWS}`;
  return { sql, values };
}

/** Text times are compared by their day only: there are two ways to write one. */
function dayBefore(sinceMs: number | undefined): string | null {
  return sinceMs === undefined ? null : (isoTime(sinceMs)?.slice(0, "YYYY-MM-DD".length) ?? null);
}

function hasTextTimes(database: Database, table: string, existing: ReadonlySet<string>): boolean {
  if (!existing.has("created_at")) return false;
  const row = database.prepare(`SELECT typeof(created_at) AS kind FROM "${table}" LIMIT 1`).get();
  return (row as { kind?: string } | undefined)?.kind === "text";
}

function readOpen(database: Database): OpenAttempt[] {
  const existing = columnsOf(database, OPEN_TABLE);
  if (existing.size === 0) return [];
  // An earlier version made fewer of them.
  const known = OPEN_COLUMNS.filter(({ name }) => existing.has(name));
  const names = known.map(({ name }) => name).join(", ");
  const rows = database.prepare(`SELECT ${names} FROM ${OPEN_TABLE} ORDER BY started_at`).all();
  return rows.map((row) => openFromRow(row as Record<string, unknown>));
}

function writeRepair(path: string, table: string, { rows, closedCallIds }: StoreRepair): void {
  const database = openDatabase(path, { readOnly: false });
  try {
    prepareTables(database, tableLayout(table));
    database.exec("BEGIN IMMEDIATE");
    const insert = database.prepare(insertSql(table, [...CALL_COLUMNS, { name: "created_at", type: "TEXT" }]));
    const remove = database.prepare(deleteOpenSql(OPEN_TABLE));
    for (const row of rows) insert.run(...CALL_COLUMNS.map((column) => row[column.name]), row.created_at);
    for (const callId of closedCallIds) remove.run(callId);
    database.exec("COMMIT");
  } catch (error) {
    rollback(database);
    throw error;
  } finally {
    database.close();
  }
}
