import { CALL_COLUMNS, COLUMNS_BEFORE_CREATED_AT, type Column, OPEN_COLUMNS, OPEN_TABLE } from "./columns.js";
import { type ColumnIndex, indexOn } from "./index-columns.js";
import { inTransaction, type Query } from "./postgres-database.js";
import { HopelessError, isDenied, isRace, isStructural, sqlState, textOf } from "./postgres-errors.js";

/** Names of the two tables, quoted for a statement, with their schema where one is given. */
export interface TableNames {
  readonly calls: string;
  readonly open: string;
  /** Without quotes, for people and for the names of indexes. */
  readonly table: string;
}

/** Columns of a table as they are, name → type. Empty = there is no such table. */
export type TableColumns = ReadonlyMap<string, string>;

export interface PreparedTable {
  readonly columns: TableColumns;
  /** What is missing although it was tried to add it, in words; null = nothing. */
  readonly incomplete: string | null;
}

export function tableNames(table: string): TableNames {
  const parts = table.split(".");
  const name = parts.pop() as string;
  const schema = parts.map((part) => `${quoted(part)}.`).join("");
  return { calls: `${schema}${quoted(name)}`, open: `${schema}${quoted(OPEN_TABLE)}`, table: name };
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

const PG_TYPES = { TEXT: "text", INTEGER: "bigint", REAL: "double precision" } as const;
const CREATED_AT = "created_at timestamptz NOT NULL DEFAULT now()";

/** An ALTER must not hold everybody up behind somebody's long transaction. */
const LOCK_TIMEOUT = "SET LOCAL lock_timeout = '2s'";

/**
 * `to_regclass` needs no privilege and looks where INSERT looks (spec 05); `pg_attribute` may be read by everybody.
 * A schema that may not be used is as good as none.
 */
export async function columnsOf(query: Query, table: string): Promise<TableColumns> {
  const text = `SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`;
  try {
    const rows = await query(text, [table]);
    return new Map(rows.map(({ name, type }) => [String(name), String(type)]));
  } catch (error) {
    if (isDenied(error)) return new Map();
    throw error;
  }
}

const MAX_RACES = 5;

/**
 * Looks before it creates: PostgreSQL checks the right to CREATE before IF NOT EXISTS (spec 05). Throws HopelessError
 * when the table is missing and can't be made; what the connection throws means that it may be tried again.
 */
export async function prepareCalls(query: Query, names: TableNames): Promise<PreparedTable> {
  const columns = await existing(query, names.calls, () => createCalls(query, names));
  if (!columns.has("call_id")) throw new HopelessError(`table ${names.table} holds no telemetry: it has no call_id`);
  return complete(query, names.calls, columns, CALL_COLUMNS);
}

/** As `prepareCalls`, for the journal, and whether its rights are there; they are asked for by name in the error. */
export async function prepareJournal(query: Query, names: TableNames): Promise<PreparedTable> {
  const columns = await existing(query, names.open, () => createOpen(query, names));
  const missing = await missingRights(query, names.open, ["SELECT", "INSERT", "DELETE"]);
  if (missing.length > 0) throw new HopelessError(`no right to ${missing.join(", ")} on ${OPEN_TABLE}`);
  return complete(query, names.open, columns, OPEN_COLUMNS);
}

export async function missingRights(query: Query, table: string, rights: readonly string[]): Promise<string[]> {
  const checks = rights.map((right) => `has_table_privilege(to_regclass($1), '${right}')::text AS "${right}"`);
  const [row = {}] = await query(`SELECT ${checks.join(", ")}`, [table]);
  return rights.filter((right) => row[right] !== "true");
}

async function existing(query: Query, table: string, create: () => Promise<unknown>): Promise<TableColumns> {
  for (let races = 0; ; races++) {
    const columns = await columnsOf(query, table);
    if (columns.size > 0) return columns;
    try {
      await create();
    } catch (error) {
      if (isRace(error) && races < MAX_RACES) continue;
      if (!isStructural(error)) throw error;
      throw new HopelessError(`table ${table} does not exist and can't be created: ${textOf(error)}`);
    }
  }
}

/** Indexes come with the table alone: on a large one they would hold its writers up. */
async function createCalls(query: Query, names: TableNames): Promise<void> {
  const definitions = CALL_COLUMNS.map(definition);
  definitions.splice(COLUMNS_BEFORE_CREATED_AT, 0, CREATED_AT);
  await inTransaction(query, async () => {
    await query(`CREATE TABLE ${names.calls} (${definitions.join(", ")})`);
    for (const index of baseIndexes(names)) await query(`CREATE INDEX ${indexDefinition(names, index)}`);
  });
}

export function baseIndexes({ table }: TableNames): readonly ColumnIndex[] {
  return [indexOn(table, "created_at"), indexOn(table, "session_id")];
}

/** What stands behind CREATE INDEX. */
export function indexDefinition({ calls }: TableNames, { name, column, isPartial }: ColumnIndex): string {
  return `${quoted(name)} ON ${calls} (${column})${isPartial ? ` WHERE ${column} IS NOT NULL` : ""}`;
}

async function createOpen(query: Query, names: TableNames): Promise<void> {
  await query(`CREATE TABLE ${names.open} (${OPEN_COLUMNS.map(definition).join(", ")})`);
}

function definition({ name, type }: Column, index: number): string {
  return `${quoted(name)} ${PG_TYPES[type]}${index === 0 ? " NOT NULL PRIMARY KEY" : ""}`;
}

/** Adds what is missing; what can't be added is left out of what is written. A complete table sees no DDL. */
async function complete(
  query: Query,
  table: string,
  columns: TableColumns,
  wanted: readonly Column[],
): Promise<PreparedTable> {
  const missing = wanted.filter(({ name }) => !columns.has(name));
  if (missing.length === 0) return { columns, incomplete: null };
  const additions = missing.map(({ name, type }) => `ADD COLUMN IF NOT EXISTS ${quoted(name)} ${PG_TYPES[type]}`);
  try {
    await inTransaction(query, async () => {
      await query(LOCK_TIMEOUT);
      await query(`ALTER TABLE ${table} ${additions.join(", ")}`);
    });
  } catch (error) {
    // What the connection says is no answer of the table.
    if (sqlState(error) === null) throw error;
    const now = await columnsOf(query, table);
    const left = missing.filter(({ name }) => !now.has(name)).map(({ name }) => name);
    const reason = `columns ${left.join(", ")} of ${table} can't be added (${textOf(error)}); rows go on without them`;
    return { columns: now, incomplete: left.length === 0 ? null : reason };
  }
  return { columns: await columnsOf(query, table), incomplete: null };
}
