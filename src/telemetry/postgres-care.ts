import { CALL_COLUMNS, isoTime, OPEN_TABLE } from "./columns.js";
import type { Query } from "./postgres-database.js";
import { HopelessError, PoolError } from "./postgres-errors.js";
import { BUILD_TIMEOUT_MS, buildIndexes, indexNamesOf } from "./postgres-indexes.js";
import { type OpenedDatabase, openDatabaseOf, requireCalls, timeColumn } from "./postgres-store.js";
import {
  baseIndexes,
  columnsOf,
  missingRights,
  prepareCalls,
  prepareJournal,
  type TableColumns,
  type TableNames,
} from "./postgres-tables.js";
import type { PruneOptions, PruneResult } from "./prune.js";
import { TelemetryFileError } from "./store.js";

/** A transaction of this many rows is done in some milliseconds. */
const PAGE_ROWS = 2_000;

/**
 * Deletes old rows, a page a transaction, so that calls go on recording meanwhile. The journal is left alone: what is
 * open there is `reconcile`'s. Needs SELECT and DELETE. Throws TelemetryFileError.
 */
export async function prunePostgres(dsn: string, options: PruneOptions): Promise<PruneResult> {
  const opened = openDatabaseOf(dsn, options.table);
  const { calls } = opened.names;
  try {
    return await opened.run(async (query) => {
      const columns = await requireCalls(opened, query);
      if (timeColumn(columns) === null) throw noTimes(opened);
      const old = `created_at < $1::${columns.get("created_at")}`;
      const before = isoTime(options.beforeMs) ?? "-infinity";
      const counted = await query(`SELECT count(*) AS rows, count(*) FILTER (WHERE ${old}) AS old FROM ${calls}`, [
        before,
      ]);
      const { rows: all, old: found } = counted[0] ?? {};
      const rows = options.dryRun === true ? Number(found) : await deletePages(query, calls, old, before);
      return { rows, kept: Number(all) - rows };
    });
  } finally {
    await opened.database.close();
  }
}

function noTimes({ database, names }: OpenedDatabase): TelemetryFileError {
  const problem = `can't say how old the rows of ${names.table} are: created_at is no time there`;
  return new TelemetryFileError(database.shown, problem, "Delete them by hand", `${database.shown} ${problem}`);
}

async function deletePages(query: Query, calls: string, old: string, before: string): Promise<number> {
  const page = `SELECT ctid FROM ${calls} WHERE ${old} LIMIT ${PAGE_ROWS}`;
  // The age once more: in a partitioned table other rows stand at the same places.
  const gone = `DELETE FROM ${calls} WHERE ctid = ANY(ARRAY(${page})) AND ${old} RETURNING 1`;
  const text = `WITH gone AS (${gone}) SELECT count(*) AS rows FROM gone`;
  for (let rows = 0; ; ) {
    const [deleted] = await query(text, [before]);
    const count = Number(deleted?.rows);
    rows += count;
    if (count === 0) return rows;
  }
}

export interface MigrateResult {
  /** Tables that were missing; what belongs to them is not told apart. */
  readonly created: readonly { readonly table: string; readonly columns: number }[];
  /** Columns and indexes that tables lacked. */
  readonly added: readonly string[];
}

/**
 * Brings both tables up to date, as their owner: missing tables, columns and indexes. Indexes are built without holding
 * writers up. Throws TelemetryFileError.
 */
export async function migratePostgres(dsn: string, table?: string): Promise<MigrateResult> {
  const opened = openDatabaseOf(dsn, table, BUILD_TIMEOUT_MS);
  const { names } = opened;
  try {
    return await opened.run(async (query) => {
      const before = await stateOf(query, names);
      for (const prepare of [prepareCalls, prepareJournal]) {
        const { incomplete } = await prepare(query, names);
        if (incomplete !== null) throw new HopelessError(incomplete);
      }
      await buildIndexes(opened, query, baseIndexes(names));
      return changesBetween(before, await stateOf(query, names), names.table);
    });
  } finally {
    await opened.database.close();
  }
}

interface TablesState {
  /** Columns by table. */
  readonly tables: ReadonlyMap<string, TableColumns>;
  readonly indexes: ReadonlySet<string>;
}

async function stateOf(query: Query, names: TableNames): Promise<TablesState> {
  const calls = await columnsOf(query, names.calls);
  const open = await columnsOf(query, names.open);
  const tables = new Map([
    [names.table, calls],
    [OPEN_TABLE, open],
  ]);
  return { tables, indexes: await indexNamesOf(query, names) };
}

function changesBetween(before: TablesState, after: TablesState, indexed: string): MigrateResult {
  const created: { table: string; columns: number }[] = [];
  const added: string[] = [];
  for (const [table, columns] of after.tables) {
    const known = before.tables.get(table);
    if (known === undefined || known.size === 0) created.push({ table, columns: columns.size });
    else added.push(...[...columns.keys()].filter((name) => !known.has(name)).map((name) => `${table}.${name}`));
  }
  const isNew = created.some(({ table }) => table === indexed);
  if (!isNew) added.push(...[...after.indexes].filter((name) => !before.indexes.has(name)));
  return { created, added };
}

/** What `check` says of one thing: it is as it should be, less is kept than could be, or rows are lost. */
export interface HealthFinding {
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
}

export interface PostgresHealth {
  readonly place: string;
  /** No finding is a problem. */
  readonly ok: boolean;
  readonly findings: readonly HealthFinding[];
}

const CHECK_TIMEOUT_MS = 5_000;

/** Looks, and changes nothing. `journal` = whether attempts in flight are to be written down. Never rejects. */
export async function inspectPostgres(dsn: string, journal: boolean, table?: string): Promise<PostgresHealth> {
  const opened = openDatabaseOf(dsn, table, CHECK_TIMEOUT_MS);
  const { database, names } = opened;
  try {
    const findings = await database.run(async (query) => {
      const { version, role, mayCreate } = await serverOf(query);
      return [
        finding("ok", `PostgreSQL ${version} answers, role ${role}`),
        await callFinding(query, names, role, mayCreate),
        ...(journal ? [await journalFinding(query, names, role, mayCreate)] : []),
      ];
    });
    return { place: database.shown, ok: findings.every(({ level }) => level !== "problem"), findings };
  } catch (error) {
    const reason = database.explain(error);
    const text = error instanceof PoolError ? reason : `can't be reached: ${reason}`;
    return { place: database.shown, ok: false, findings: [finding("problem", text)] };
  } finally {
    await database.close();
  }
}

const finding = (level: HealthFinding["level"], text: string): HealthFinding => ({ level, text });

async function serverOf(query: Query) {
  const [row] = await query(`SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
    current_user::text AS role, has_schema_privilege(current_schema(), 'CREATE')::text AS creates`);
  return { version: String(row?.version), role: String(row?.role), mayCreate: row?.creates === "true" };
}

async function callFinding(query: Query, names: TableNames, role: string, mayCreate: boolean): Promise<HealthFinding> {
  const columns = await columnsOf(query, names.calls);
  if (columns.size === 0) return missingTable(names.table, mayCreate, "problem");
  const rights = await missingRights(query, names.calls, ["INSERT", "SELECT"]);
  if (rights.includes("INSERT")) {
    const remedy = `GRANT INSERT ON ${names.table} TO ${role}`;
    if (rights.includes("SELECT")) return finding("problem", `table ${names.table}: no right to write. ${remedy}`);
    const use = "right for report and trace, not enough where calls are recorded";
    return finding("warning", `table ${names.table} may be read alone: ${use} (there: ${remedy})`);
  }
  const reads = rights.includes("SELECT")
    ? "may be written, not read (report, trace, reconcile)"
    : "may be written and read";
  const missing = CALL_COLUMNS.filter(({ name }) => !columns.has(name)).map(({ name }) => name);
  if (missing.length === 0) return finding("ok", `table ${names.table} ${reads}`);
  const remedy = "`polygateway telemetry migrate` as its owner adds them";
  return finding("warning", `table ${names.table} ${reads}; it lacks ${missing.join(", ")}: ${remedy}`);
}

async function journalFinding(
  query: Query,
  names: TableNames,
  role: string,
  mayCreate: boolean,
): Promise<HealthFinding> {
  const columns = await columnsOf(query, names.open);
  if (columns.size === 0) return missingTable(OPEN_TABLE, mayCreate, "warning");
  const rights = await missingRights(query, names.open, ["SELECT", "INSERT", "DELETE"]);
  if (rights.length === 0) return finding("ok", `journal ${OPEN_TABLE} may be kept`);
  const isReader = !rights.includes("SELECT") && rights.length === 2;
  if (isReader && (await missingRights(query, names.calls, ["INSERT"])).length > 0) {
    return finding("ok", `journal ${OPEN_TABLE} may be read`);
  }
  const lack = `journal ${OPEN_TABLE}: no right to ${rights.join(", ")}, so attempts in flight are not written down`;
  return finding(
    "warning",
    `${lack}. GRANT SELECT, INSERT, DELETE ON ${OPEN_TABLE} TO ${role}, or set PGW_JOURNAL=off`,
  );
}

function missingTable(table: string, mayCreate: boolean, level: HealthFinding["level"]): HealthFinding {
  if (mayCreate) return finding("ok", `table ${table} is not there yet: the first row creates it`);
  const remedy = "`polygateway telemetry migrate` as the owner of the schema creates it";
  return finding(level, `table ${table} is missing, and the role may not create it: ${remedy}`);
}
