import { type Command, InvalidArgumentError, Option } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import { type PruneResult, pruneTelemetry } from "../telemetry/prune.js";
import { openTelemetryFile } from "../telemetry/reader.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { CONFIG_OPTION, ENV_OPTION, parseDurationMs } from "./arguments.js";
import { CliError } from "./failure.js";
import { plural } from "./format.js";
import { DB_OPTION, type TelemetryFlags, telemetryFile } from "./telemetry-file.js";
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

/** With its unit: a forgotten "d" must not delete all but the last half minute. */
function parseAgeMs(text: string): number {
  if (/^[\d.\s]*$/.test(text)) throw new InvalidArgumentError("Give the unit too: 90s, 15m, 12h or 30d.");
  return parseDurationMs(text);
}

/** Adds `polygateway telemetry`: the care of a telemetry file. */
export function registerTelemetry(program: Command, terminal: Terminal = processTerminal): void {
  const telemetry = program
    .command("telemetry")
    .summary("take care of a telemetry file: prune")
    .description("Takes care of a telemetry file.");
  telemetry
    .command("prune")
    .summary("delete old rows")
    .description("Deletes the rows of a SQLite telemetry file that are older than the given time; open attempts stay.")
    .addOption(new Option("--older-than <time>", "90s, 15m, 12h, 30d").argParser(parseAgeMs).makeOptionMandatory())
    .option(DB_OPTION[0], DB_OPTION[1].replace("SQLite or JSONL", "SQLite"))
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option("--table <name>", "table of the file (default llm_calls)")
    .option("--dry-run", "only count")
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action((flags: PruneFlags) => {
      const { path, result } = prune(telemetryFile(flags, terminal.env, "sqlite"), flags);
      const text = flags.json
        ? JSON.stringify({ file: path, dryRun: flags.dryRun === true, ...result })
        : said(flags, path, result);
      terminal.stdout.write(`${text}\n`);
    });
}

function prune(db: string, { table, olderThan, dryRun }: PruneFlags): { path: string; result: PruneResult } {
  const named = table === undefined ? {} : { table };
  try {
    const file = openTelemetryFile(db, named);
    // Only to see what it is: a table of something else is refused before anything is deleted.
    file.close();
    const beforeMs = createSystemRuntime().wallNow() - olderThan;
    return { path: file.path, result: pruneTelemetry(file, { beforeMs, dryRun: dryRun === true, ...named }) };
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

function said({ dryRun }: PruneFlags, path: string, { rows, kept }: PruneResult): string {
  const what = dryRun ? "would be deleted from" : "deleted from";
  return `${plural(rows, "row")} ${what} ${path}, ${plural(kept, "row")} kept.`;
}
