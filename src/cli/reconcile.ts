import { type Command, Option } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import { DEFAULT_STALE_AFTER_MS, type ReconcileReport, reconcileStore } from "../telemetry/reconcile.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { CONFIG_OPTION, ENV_OPTION, parseDurationMs, parsePath } from "./arguments.js";
import { CliError, EXIT } from "./failure.js";
import { formatCost, formatCount, PRICE_REMEDY, plural } from "./format.js";
import { unreadableText } from "./report.js";
import { DB_OPTION, shownPlace, TABLE_OPTION, type TelemetryFlags, telemetryFile } from "./telemetry-file.js";
import { printable, processTerminal, type Style, styleOf, type Terminal } from "./terminal.js";

interface ReconcileFlags extends TelemetryFlags {
  readonly table?: string;
  readonly out?: string;
  readonly staleAfter: number;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway reconcile                          repair and check the configured file, or ./polygateway.db
  polygateway reconcile --out answers.jsonl      look up lost rows in the answers of a batch, and compare both

Exit code 1 when the file can't be read or is no telemetry, 2 when the books don't balance.`;

/** Adds `polygateway reconcile`: rows for what dead processes left open, then the check of the books. */
export function registerReconcile(program: Command, terminal: Terminal = processTerminal): void {
  program
    .command("reconcile")
    .summary("give every attempt of a dead process its row, then check that the books balance")
    .description("Gives every attempt of a dead process its row, then checks that the books balance.")
    .option(...DB_OPTION)
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(...TABLE_OPTION)
    .option("--out <file>", "OUT file of a batch", parsePath)
    .addOption(
      new Option("--stale-after <time>", "when rows of a process on another host count as left behind")
        .argParser(parseDurationMs)
        .default(DEFAULT_STALE_AFTER_MS, "1h"),
    )
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: ReconcileFlags) => {
      const path = telemetryFile(flags, terminal.env);
      const shown = shownPlace(path);
      const report = await reconcile(path, flags);
      const text = flags.json
        ? JSON.stringify({ file: shown, ...report }, null, 2)
        : [`Telemetry  ${shown}`, ...reconcileLines(report, styleOf(terminal.stdout, terminal.env))].join("\n");
      terminal.stdout.write(`${text}\n`);
      if (report.balanced) return;
      const count = plural(report.differences.length, "difference");
      throw new CliError(`The books of ${shown} don't balance: ${count}.`, EXIT.someFailed);
    });
}

async function reconcile(path: string, flags: ReconcileFlags): Promise<ReconcileReport> {
  try {
    return await reconcileStore({
      store: path,
      staleAfterMs: flags.staleAfter,
      tableRequired: true,
      now: createSystemRuntime().wallNow(),
      ...(flags.out === undefined ? {} : { outPath: flags.out }),
      ...(flags.table === undefined ? {} : { table: flags.table }),
    });
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

const SHOWN_DIFFERENCES = 50;

export function reconcileLines(report: ReconcileReport, style: Style): string[] {
  const { repaired } = report;
  const lines = [
    `Calls      ${formatCount(report.calls)} = ${formatCount(report.ended)} ended + ${formatCount(report.open)} running`,
    `Attempts   ${formatCount(report.attempts)}, and ${formatCount(report.openAttempts)} in flight holding ${plural(report.openTokens, "token")}`,
    `Money      ${formatCost(report)}`,
    `Repaired   ${repairText(repaired)}`,
  ];
  if (report.unreadableLines > 0) lines.push(unreadableText(report.unreadableLines));
  if (report.attemptsWithoutPrice > 0) lines.push(PRICE_REMEDY);
  if (report.unreadableLines > 0 && report.calls === 0)
    return [...lines, style.yellow("No line could be read, so there are no books to check.")];
  if (report.balanced) return [...lines, style.green("The books balance.")];
  const shown = report.differences.slice(0, SHOWN_DIFFERENCES).map(({ text }) => style.red(`  ${printable(text)}`));
  const more = report.differences.length - shown.length;
  return [
    ...lines,
    "Differences:",
    ...shown,
    ...(more > 0 ? [`  and ${formatCount(more)} more (--json lists all)`] : []),
  ];
}

function repairText({ abandoned, answered, ended }: ReconcileReport["repaired"]): string {
  if (abandoned + answered + ended === 0) return "nothing was left open by dead processes";
  return [
    `${plural(abandoned, "attempt")} sent with unknown outcome, possibly billed`,
    `${plural(answered, "answer")} found in OUT`,
    `${plural(ended, "call")} ended`,
  ].join("; ");
}
