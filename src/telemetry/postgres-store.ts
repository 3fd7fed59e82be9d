import { dsnProblem } from "../domain/postgres-dsn.js";
import {
  CALL_COLUMNS,
  type Column,
  DEFAULT_TABLE,
  ID_COLUMNS,
  isoTime,
  isSince,
  OPEN_COLUMNS,
  type StoredRow,
} from "./columns.js";
import { completeRow, openFromRow } from "./json-lines.js";
import { inTransaction, PostgresDatabase, type Query } from "./postgres-database.js";
import { HopelessError, isDenied, LateError, PoolError, sqlState } from "./postgres-errors.js";
import { openTarget, targetOf, writeStatement } from "./postgres-statement.js";
import { columnsOf, prepareCalls, type TableColumns, type TableNames, tableNames } from "./postgres-tables.js";
import { type RowFilter, type StoreRepair, type TelemetryFile, TelemetryFileError } from "./store.js";

const PAGE_ROWS = 2_000;
/** Reading a large table takes its time, and nobody waits behind it. */
const READ_TIMEOUT_MS = 300_000;
const TEXT_COLUMNS: ReadonlySet<string> = new Set(["messages", "response", "thinking", "sampling"]);
const CREATED_AT: Column = { name: "created_at", type: "TEXT" };

/** A database that was opened for reading back or for care; every error is a TelemetryFileError in plain words. */
export interface OpenedDatabase {
  readonly database: PostgresDatabase;
  readonly names: TableNames;
  run<T>(work: (query: Query) => Promise<T>): Promise<T>;
  explained(error: unknown): TelemetryFileError;
}

export function openDatabaseOf(
  dsn: string,
  table = DEFAULT_TABLE,
  statementTimeoutMs = READ_TIMEOUT_MS,
): OpenedDatabase {
  const problem = dsnProblem(dsn);
  const remedy = "Give it like postgres://user:password@host:5432/database";
  if (problem !== null) throw new TelemetryFileError("postgres://…", problem, remedy, `The address ${problem}`);
  const database = new PostgresDatabase({ dsn, statementTimeoutMs });
  const explained = (error: unknown): TelemetryFileError => explain(database, error);
  return {
    database,
    names: tableNames(table),
    explained,
    async run(work) {
      try {
        return await database.run(work);
      } catch (error) {
        throw explained(error);
      }
    },
  };
}

function explain(database: PostgresDatabase, error: unknown): TelemetryFileError {
  if (error instanceof TelemetryFileError) return error;
  const reason = error instanceof HopelessError ? error.message : database.explain(error);
  const say = (what: string, remedy: string, isAway = false) =>
    new TelemetryFileError(database.shown, what, remedy, `${database.shown} ${what}`, isAway);
  if (error instanceof PoolError) return say(`can't be used: ${reason}`, "Then try again");
  if (/must be owner/.test(reason)) {
    return say(`refuses: ${reason}`, "Only the table's owner may do that: give an address with that role");
  }
  if (isDenied(error)) return say(`refuses: ${reason}`, "GRANT that right to the role: docs/guide/telemetry-rights.md");
  if (error instanceof HopelessError || (sqlState(error) !== null && !(error instanceof LateError))) {
    return say(`says: ${reason}`, "Check the address and its role");
  }
  return say(`can't be reached (${reason})`, "Check the address, and that the server runs", true);
}

/** Reads telemetry out of PostgreSQL, without changing it unless `repair` is called. Throws TelemetryFileError. */
export function openPostgresStore(dsn: string, table = DEFAULT_TABLE): TelemetryFile {
  const opened = openDatabaseOf(dsn, table);
  return {
    kind: "postgres",
    path: opened.database.shown,
    unreadableLines: 0,
    rows: (filter = {}) => readRows(opened, filter),
    requireTable: async () => void (await opened.run((query) => requireCalls(opened, query))),
    openAttempts: () =>
      opened.run(async (query) => {
        const columns = await columnsOf(query, opened.names.open);
        if (columns.size === 0) return [];
        const selected = OPEN_COLUMNS.filter(({ name }) => columns.has(name)).map(({ name }) => `"${name}"`);
        const rows = await query(`SELECT ${selected.join(", ")} FROM ${opened.names.open} ORDER BY started_at`);
        return rows.map(openFromRow);
      }),
    repair: (repair) => opened.run((query) => writeRepair(query, opened.names, repair)),
    close: () => void opened.database.close(),
  };
}

/** The columns of the table of calls. */
export async function requireCalls({ database, names }: OpenedDatabase, query: Query): Promise<TableColumns> {
  const columns = await columnsOf(query, names.calls);
  if (columns.has("call_id")) return columns;
  throw TelemetryFileError.withoutTable(database.shown, names.calls.replaceAll('"', ""));
}

/** A cursor: one picture of the table however long its reader takes, and never more than a page of it in memory. */
async function* readRows(opened: OpenedDatabase, filter: RowFilter): AsyncGenerator<StoredRow> {
  const session = await opened.database.session().catch((error) => {
    throw opened.explained(error);
  });
  const { query } = session;
  try {
    await session.begin();
    const columns = await columnsOf(query, opened.names.calls);
    if (columns.size === 0) return;
    await query("BEGIN READ ONLY");
    const { text, values } = selectRows(opened.names, columns, filter);
    await query(`DECLARE kept NO SCROLL CURSOR FOR ${text}`, values);
    for (;;) {
      const page = await query(`FETCH ${PAGE_ROWS} FROM kept`);
      for (const raw of page) {
        const row = rowOf(raw);
        if (isSince(row, filter.sinceMs)) yield row;
      }
      if (page.length < PAGE_ROWS) break;
    }
  } catch (error) {
    throw opened.explained(error);
  } finally {
    // Also where the reader stops early.
    await query("ROLLBACK").catch(() => {});
    session.end();
  }
}

const ISO_FORMAT = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

export function timeColumn(columns: TableColumns): "zoned" | "plain" | null {
  const type = columns.get("created_at") ?? "";
  if (!type.startsWith("timestamp")) return null;
  return type.includes("with time zone") ? "zoned" : "plain";
}

function selectRows(names: TableNames, columns: TableColumns, filter: RowFilter) {
  const wanted = CALL_COLUMNS.filter(
    ({ name }) => columns.has(name) && !(filter.withoutTexts && TEXT_COLUMNS.has(name)),
  );
  const selected = wanted.map(({ name }) => `"${name}"`);
  const time = timeColumn(columns);
  if (time === "zoned") selected.push(`to_char(created_at AT TIME ZONE 'UTC', ${ISO_FORMAT}) AS created_at`);
  else if (time === "plain") selected.push(`to_char(created_at, ${ISO_FORMAT}) AS created_at`);
  else if (columns.has("created_at")) selected.push("created_at");
  const conditions: string[] = [];
  const values: unknown[] = [];
  if (filter.sessionId !== undefined) {
    values.push(filter.sessionId);
    conditions.push(`session_id::text = $${values.length}`);
  }
  if (filter.ids !== undefined) {
    values.push(filter.ids);
    const known = ID_COLUMNS.filter((name) => columns.has(name));
    conditions.push(`(${known.map((name) => `${name}::text = ANY($${values.length}::text[])`).join(" OR ")})`);
  }
  const since = filter.sinceMs === undefined ? null : isoTime(filter.sinceMs);
  if (since !== null && time !== null) {
    values.push(since);
    conditions.push(`(created_at >= $${values.length}::${columns.get("created_at")} OR created_at IS NULL)`);
  }
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  return { text: `SELECT ${selected.join(", ")} FROM ${names.calls}${where} ORDER BY call_id`, values };
}

const NUMBERS: ReadonlySet<string> = new Set(
  CALL_COLUMNS.filter(({ type }) => type !== "TEXT").map(({ name }) => name),
);

/** The driver gives every value as its text. */
function rowOf(raw: Record<string, unknown>): StoredRow {
  const entries = Object.entries(raw).map(([name, value]) => {
    if (typeof value !== "string" || !NUMBERS.has(name)) return [name, value] as const;
    const number = value === "t" ? 1 : value === "f" ? 0 : Number(value);
    return [name, Number.isNaN(number) ? null : number] as const;
  });
  return completeRow(Object.fromEntries(entries));
}

const REPAIR_ROWS = 500;

async function writeRepair(query: Query, names: TableNames, { rows, closedCallIds }: StoreRepair): Promise<void> {
  const { columns } = await prepareCalls(query, names);
  const wanted = [...CALL_COLUMNS, CREATED_AT];
  const opens = openTarget(await columnsOf(query, names.open));
  const targets = { calls: targetOf(columns, wanted), opens: opens.length === 0 ? null : opens };
  await inTransaction(query, async () => {
    // First, because it waits for a last statement of a dead process that the server is still at.
    const closed = writeStatement(names, targets, { calls: [], opens: [], closed: closedCallIds });
    await query(closed.text, closed.values);
    const ended = await endedAmong(query, names, columns, rows);
    const owed = rows.filter((row) => row.final !== 1 || !ended.has(String(row.request_id)));
    const values = owed.map((row) => wanted.map(({ name }) => row[name as keyof StoredRow]));
    for (let start = 0; start < values.length; start += REPAIR_ROWS) {
      const page = { calls: values.slice(start, start + REPAIR_ROWS), opens: [], closed: [] };
      const { text, values: sent } = writeStatement(names, targets, page);
      await query(text, sent);
    }
  });
}

/** Calls that have ended since the rows were read. */
async function endedAmong(query: Query, names: TableNames, columns: TableColumns, rows: readonly StoredRow[]) {
  const requestIds = rows.flatMap((row) => (row.final === 1 ? [row.request_id] : []));
  if (requestIds.length === 0 || !columns.has("request_id") || !columns.has("final")) return new Set<string>();
  const text = `SELECT request_id::text AS id FROM ${names.calls} WHERE request_id::text = ANY($1::text[]) AND final::int = 1`;
  return new Set((await query(text, [requestIds])).map(({ id }) => String(id)));
}
