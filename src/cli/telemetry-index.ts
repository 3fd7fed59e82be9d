import { Argument, type Command } from "commander";
import { isPostgresDsn } from "../domain/postgres-dsn.js";
import { INDEX_COLUMNS, type IndexColumn, type IndexOptions, type IndexResult } from "../telemetry/index-columns.js";
import { indexPostgres } from "../telemetry/postgres-indexes.js";
import { openTelemetryFile } from "../telemetry/reader.js";
import { indexTelemetry } from "../telemetry/sqlite-indexes.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { CONFIG_OPTION, ENV_OPTION } from "./arguments.js";
import { CliError } from "./failure.js";
import { DB_OPTION, shownPlace, TABLE_OPTION, type TelemetryFlags, telemetryFile } from "./telemetry-file.js";
import type { Terminal } from "./terminal.js";

interface IndexFlags extends TelemetryFlags {
  readonly table?: string;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway telemetry index                    what \`trace\` looks by: request_id and parent_call_id
  polygateway telemetry index model outcome      for queries of your own

Each index makes every row a little dearer to write. In PostgreSQL only the owner of the table may add one, and calls go on
recording meanwhile; in a SQLite file rows wait in their queues until it is built.
Exit code 1 when the database can't be changed.`;

/** Adds `polygateway telemetry index`: more indexes than a table begins with. */
export function registerTelemetryIndex(telemetry: Command, terminal: Terminal): void {
  telemetry
    .command("index")
    .summary("add indexes by which calls are found")
    .description("Adds indexes to a telemetry database, by which `trace` and queries of your own find calls.")
    .addArgument(
      new Argument("[columns...]", "columns to look by (default: request_id and parent_call_id)").choices(
        INDEX_COLUMNS,
      ),
    )
    .option(DB_OPTION[0], DB_OPTION[1].replace("SQLite or JSONL", "SQLite"), DB_OPTION[2])
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(...TABLE_OPTION)
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (columns: IndexColumn[], flags: IndexFlags) => {
      const { table } = flags;
      const options = { ...(columns.length === 0 ? {} : { columns }), ...(table === undefined ? {} : { table }) };
      const { path, added } = await index(telemetryFile(flags, terminal.env, ["sqlite", "postgres"]), options);
      const said = added.length === 0 ? `${path} has these indexes already.` : `Added to ${path}: ${added.join(", ")}.`;
      terminal.stdout.write(`${flags.json ? JSON.stringify({ file: path, added }) : said}\n`);
    });
}

async function index(db: string, options: IndexOptions): Promise<IndexResult & { readonly path: string }> {
  try {
    if (isPostgresDsn(db)) return { path: shownPlace(db), ...(await indexPostgres(db, options)) };
    const file = openTelemetryFile(db, options.table === undefined ? {} : { table: options.table });
    // Only to see what it is: a file of something else is refused before anything is changed.
    file.close();
    return { path: file.path, ...indexTelemetry(file, options) };
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}
