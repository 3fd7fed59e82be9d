import { type Command, Option } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import { isPostgresDsn } from "../domain/postgres-dsn.js";
import { type MigrateResult, migratePostgres, prunePostgres } from "../telemetry/postgres-care.js";
import { type PruneResult, pruneTelemetry } from "../telemetry/prune.js";
import { openTelemetryFile } from "../telemetry/reader.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { CONFIG_OPTION, ENV_OPTION, parseDurationMs, parsePath } from "./arguments.js";
import { CliError } from "./failure.js";
import { plural } from "./format.js";
import { DB_OPTION, shownPlace, TABLE_OPTION, type TelemetryFlags, telemetryFile } from "./telemetry-file.js";
import { registerTelemetryIndex } from "./telemetry-index.js";
import { processTerminal, type Terminal } from "./terminal.js";

interface PruneFlags extends TelemetryFlags {
  readonly table?: string;
  readonly olderThan: number;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway telemetry prune --older-than 30d --dry-run    how many rows would go
  polygateway telemetry prune --older-than 30d

Calls may go on recording meanwhile. Exit code 1 when the file can't be used.`;

/** Adds `polygateway telemetry`: the care of a telemetry file. */
export function registerTelemetry(program: Command, terminal: Terminal = processTerminal): void {
  const telemetry = program
    .command("telemetry")
    .summary("take care of a telemetry database: prune, index, migrate")
    .description("Takes care of a telemetry database.");
  registerMigrate(telemetry, terminal);
  registerTelemetryIndex(telemetry, terminal);
  telemetry
    .command("prune")
    .summary("delete old rows")
    .description("Deletes the rows of a telemetry database that are older than the given time; open attempts stay.")
    .addOption(new Option("--older-than <time>", "90s, 15m, 12h, 30d").argParser(parseDurationMs).makeOptionMandatory())
    .option(DB_OPTION[0], DB_OPTION[1].replace("SQLite or JSONL", "SQLite"), DB_OPTION[2])
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(...TABLE_OPTION)
    .option("--dry-run", "only count")
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: PruneFlags) => {
      const { path, result } = await prune(telemetryFile(flags, terminal.env, ["sqlite", "postgres"]), flags);
      const text = flags.json
        ? JSON.stringify({ file: path, dryRun: flags.dryRun === true, ...result })
        : said(flags, path, result);
      terminal.stdout.write(`${text}\n`);
    });
}

interface Pruned {
  readonly path: string;
  readonly result: PruneResult;
}

async function prune(db: string, { table, olderThan, dryRun }: PruneFlags): Promise<Pruned> {
  const named = table === undefined ? {} : { table };
  const beforeMs = createSystemRuntime().wallNow() - olderThan;
  const options = { beforeMs, dryRun: dryRun === true, ...named };
  try {
    if (isPostgresDsn(db)) return { path: shownPlace(db), result: await prunePostgres(db, options) };
    const file = openTelemetryFile(db, named);
    // Only to see what it is: a table of something else is refused before anything is deleted.
    file.close();
    return { path: file.path, result: pruneTelemetry(file, options) };
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

function said({ dryRun }: PruneFlags, path: string, { rows, kept }: PruneResult): string {
  const what = dryRun ? "would be deleted from" : "deleted from";
  return `${plural(rows, "row")} ${what} ${path}, ${plural(kept, "row")} kept.`;
}

interface MigrateFlags extends TelemetryFlags {
  readonly table?: string;
  readonly json?: boolean;
}

const MIGRATE_EXAMPLES = `
Examples:
  polygateway telemetry migrate                                        the configured database
  polygateway telemetry migrate --db postgres://owner@host/telemetry   as the owner of its tables

Calls may go on recording meanwhile. A table in SQLite is brought up to date by whoever writes to it first.
Exit code 1 when the database can't be changed.`;

function registerMigrate(telemetry: Command, terminal: Terminal): void {
  telemetry
    .command("migrate")
    .summary("bring the tables of a PostgreSQL database up to date")
    .description("Creates what is missing of the tables of a PostgreSQL database: tables, columns, indexes.")
    .option("--db <address>", "address of the database (default: the one that is configured)", parsePath)
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(...TABLE_OPTION)
    .option("--json", "print JSON")
    .addHelpText("after", MIGRATE_EXAMPLES)
    .action(async (flags: MigrateFlags) => {
      const dsn = telemetryFile(flags, terminal.env, ["postgres"]);
      const place = shownPlace(dsn);
      if (!isPostgresDsn(dsn)) throw new CliError(`${place} is no PostgreSQL database: only those are migrated.`);
      const result = await migrate(dsn, flags.table);
      terminal.stdout.write(`${flags.json ? JSON.stringify({ file: place, ...result }) : migrated(place, result)}\n`);
    });
}

async function migrate(dsn: string, table: string | undefined): Promise<MigrateResult> {
  try {
    return await migratePostgres(dsn, table);
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

function migrated(place: string, { created, added }: MigrateResult): string {
  if (created.length + added.length === 0) return `${place} is up to date.`;
  const tables = created.map(({ table, columns }) => `table ${table} with ${plural(columns, "column")}`);
  return [
    ...(tables.length === 0 ? [] : [`Created in ${place}: ${tables.join(", ")}.`]),
    ...(added.length === 0 ? [] : [`Added to ${place}: ${added.join(", ")}.`]),
  ].join("\n");
}
