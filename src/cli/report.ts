import { type Command, Option } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import { openTelemetryFile } from "../telemetry/reader.js";
import {
  createReport,
  type Percentiles,
  REPORT_GROUPINGS,
  type Report,
  type ReportGroup,
  type ReportGrouping,
} from "../telemetry/report.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { CONFIG_OPTION, ENV_OPTION } from "./arguments.js";
import { CliError } from "./failure.js";
import { formatCost, formatCostCell, formatCount, formatDuration, PRICE_REMEDY, plural } from "./format.js";
import { type Column, fitTable } from "./table.js";
import { DB_OPTION, TABLE_OPTION, type TelemetryFlags, telemetryFile } from "./telemetry-file.js";
import { clip, columnsOf, printable, processTerminal, type Style, styleOf, type Terminal } from "./terminal.js";
import { parseSinceMs } from "./time-range.js";

interface ReportFlags extends TelemetryFlags {
  readonly table?: string;
  readonly since?: string;
  readonly session?: string;
  readonly by?: ReportGrouping;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway report                          everything in the configured file, or in ./polygateway.db
  polygateway report --since 1h --by source   the last hour, source by source
  polygateway report --session 0192f3a4-…     one session; a batch tells its own at the end
  polygateway report --by day --json          for other programs

Exit code 1 when the file can't be read or is no telemetry.`;

/** Adds `polygateway report`: what the calls in a telemetry file cost, how fast they were and what failed. */
export function registerReport(program: Command, terminal: Terminal = processTerminal): void {
  program
    .command("report")
    .summary("show calls, success, tokens, money, latency and errors of a telemetry file")
    .description("Shows calls, success, tokens, money, latency and errors of a telemetry file.")
    .option(...DB_OPTION)
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(...TABLE_OPTION)
    .option("--since <when>", "only newer rows: a length of time (90s, 15m, 1h, 7d) or a date (2025-11-29)")
    .option("--session <id>", "only rows of this session; a batch tells its own at the end")
    .addOption(new Option("--by <group>", "one line per value").choices(REPORT_GROUPINGS))
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: ReportFlags) => {
      const nowMs = createSystemRuntime().wallNow();
      const sinceMs = flags.since === undefined ? undefined : parseSinceMs(flags.since, nowMs);
      const { report, path, unreadableLines } = await readReport(telemetryFile(flags, terminal.env), flags, sinceMs);
      const text = flags.json
        ? JSON.stringify({ file: path, unreadableLines, ...report }, null, 2)
        : reportLines(
            report,
            path,
            unreadableLines,
            flags.by,
            styleOf(terminal.stdout, terminal.env),
            columnsOf(terminal.stdout),
          ).join("\n");
      terminal.stdout.write(`${text}\n`);
    });
}

async function readReport(path: string, flags: ReportFlags, sinceMs: number | undefined) {
  try {
    const file = openTelemetryFile(path, flags.table === undefined ? {} : { table: flags.table });
    try {
      await file.requireTable();
      const builder = createReport(flags.by);
      const filter = {
        withoutTexts: true,
        ...(sinceMs === undefined ? {} : { sinceMs }),
        ...(flags.session === undefined ? {} : { sessionId: flags.session }),
      };
      for await (const row of file.rows(filter)) builder.add(row);
      return { report: builder.finish(), path: file.path, unreadableLines: file.unreadableLines };
    } finally {
      file.close();
    }
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

/** The report as people read it, in `columns` cells; without a terminal as wide as it gets. */
export function reportLines(
  report: Report,
  path: string,
  unreadableLines: number,
  by: ReportGrouping | undefined,
  style: Style,
  columns = Number.POSITIVE_INFINITY,
): string[] {
  const { total } = report;
  const width = columns - INDENT.length;
  const lines = [style.bold(`Telemetry in ${path}`) + style.dim(rangeText(report))];
  if (unreadableLines > 0) lines.push(style.yellow(unreadableText(unreadableLines)));
  if (total.calls + total.attempts === 0) return [...lines, "No calls recorded."];
  lines.push("", ...totalLines(total, style));
  if (total.attemptsWithoutPrice > 0) lines.push("", `${INDENT}${PRICE_REMEDY}`);
  if (by !== undefined) lines.push("", style.bold(`By ${by}`), ...groupLines(report.groups, by, width, style));
  if (report.errors.length > 0) lines.push("", style.bold("Most frequent errors"), ...errorLines(report, width));
  return lines;
}

const INDENT = "  ";

/** "1 line … is", "2 lines … are". */
export function unreadableText(count: number): string {
  return `${plural(count, "line")} could not be read and ${count === 1 ? "is" : "are"} left out`;
}

function rangeText({ firstAtMs, lastAtMs }: Report): string {
  if (firstAtMs === null || lastAtMs === null) return "";
  return `  ${new Date(firstAtMs).toISOString()} to ${new Date(lastAtMs).toISOString()}`;
}

function totalLines(total: ReportGroup, style: Style): string[] {
  const { tokens, retries } = total;
  const failed = total.calls - total.cancelled - total.answered;
  const line = (title: string, text: string) => `${INDENT}${title.padEnd(10)} ${text}`;
  return [
    line(
      "Calls",
      `${formatCount(total.calls - total.cancelled)}, ${share(total.successRate)} answered` +
        (failed > 0 ? style.red(` (${formatCount(failed)} not)`) : "") +
        (total.cacheHits > 0 ? `, ${formatCount(total.cacheHits)} from the cache` : ""),
    ),
    ...(total.cancelled > 0
      ? [line("Cancelled", `${plural(total.cancelled, "call")} stopped by the caller, not counted in the share`)]
      : []),
    line("Attempts", `${formatCount(total.attempts)}, ${ratio(total.attemptsPerCall)} per call`),
    line(
      "Tokens",
      `${formatCount(tokens.prompt)} prompt (${formatCount(tokens.cached)} cached), ` +
        `${formatCount(tokens.completion)} completion (${formatCount(tokens.reasoning)} reasoning)`,
    ),
    line("Cost", total.attemptsWithoutPrice > 0 ? style.yellow(formatCost(total)) : formatCost(total)),
    line("Latency", `${spread(total.latencyMs)} (answered attempts only)`),
    line("TTFT", `${spread(total.ttftMs)} (time to first token)`),
    line(
      "Retries",
      retries.attempts === 0
        ? "none needed"
        : `${plural(retries.attempts, "failed attempt")} took ${formatDuration(retries.timeMs)}, ` +
            `${plural(retries.tokens, "token")}, cost ${retryCost(retries)}`,
    ),
  ];
}

/** What a killed process had sent may have been billed: no sum can say that it was not. */
function retryCost(retries: ReportGroup["retries"]): string {
  const { attempts, abandoned } = retries;
  if (abandoned === 0) return formatCost(retries);
  const lost = `${plural(abandoned, "attempt")} of processes that ended may have been billed`;
  return abandoned === attempts ? `unknown: ${lost}` : `${formatCost(retries)}; ${lost}`;
}

/** What goes first where the terminal is narrow: details of tokens, then the ends of the distributions. */
const GROUP_COLUMNS: readonly Column[] = [
  { title: "" },
  right("calls"),
  right("ok"),
  right("cancelled", 3),
  right("att/call", 4),
  right("prompt", 6),
  right("cached", 12),
  right("reasoning", 13),
  right("completion", 5),
  right("cost"),
  right("p50"),
  right("p95", 2),
  right("p99", 8),
  right("ttft p50", 7),
  right("ttft p95", 9),
  right("ttft p99", 10),
  right("failed att", 1),
];

function right(title: string, leaves?: number): Column {
  return leaves === undefined ? { title, align: "right" } : { title, align: "right", leaves };
}

const NO_SOURCE = "(no source)";
const NO_SOURCE_NOTE = `${NO_SOURCE}: calls that ended without a source's answer: stopped, given up on, ended with their process, or from the cache`;

function keyText(key: string | null, by: ReportGrouping): string {
  if (key !== null) return printable(key);
  return by === "source" || by === "model" ? NO_SOURCE : `(no ${by})`;
}

function groupLines(groups: readonly ReportGroup[], by: ReportGrouping, width: number, style: Style): string[] {
  const rows = groups.map((group) => [
    keyText(group.key, by),
    formatCount(group.calls - group.cancelled),
    share(group.successRate),
    formatCount(group.cancelled),
    ratio(group.attemptsPerCall),
    formatCount(group.tokens.prompt),
    formatCount(group.tokens.cached),
    formatCount(group.tokens.reasoning),
    formatCount(group.tokens.completion),
    usedNothing(group) ? "–" : formatCostCell(group),
    ...cells(group.latencyMs),
    ...cells(group.ttftMs),
    formatCount(group.retries.attempts),
  ]);
  const { lines, leftOut } = fitTable(GROUP_COLUMNS, rows, width);
  const notes = [
    ...(rows.some(([key]) => key === NO_SOURCE) ? [NO_SOURCE_NOTE] : []),
    ...(leftOut.length > 0 ? [`no room for ${leftOut.map(({ title }) => title).join(", ")}: --json has them`] : []),
  ];
  return [...lines, ...notes.map((note) => style.dim(note))].map((text) => INDENT + text);
}

/** Attempts without a token leave nothing whose cost could be known. */
function usedNothing({ attempts, cost, attemptsWithPrice, attemptsWithoutPrice }: ReportGroup): boolean {
  return attempts > 0 && cost === 0 && attemptsWithPrice + attemptsWithoutPrice === 0;
}

const MAX_ERROR_TEXT = 160;

function errorLines(report: Report, width: number): string[] {
  const rows = report.errors.map((error) => {
    const text = clip(printable(error.sample).replace(/\s+/g, " "), MAX_ERROR_TEXT);
    return [formatCount(error.count), error.outcome, error.statusCodes.join(", ") || "–", text];
  });
  const columns = [right("count"), { title: "outcome" }, right("status"), { title: "one of them" }];
  return fitTable(columns, rows, width).lines.map((text) => INDENT + text);
}

function share(value: number | null): string {
  return value === null ? "–" : `${(value * 100).toFixed(1)} %`;
}

function ratio(value: number | null): string {
  return value === null ? "–" : value.toFixed(2);
}

function cells(percentiles: Percentiles | null): string[] {
  if (percentiles === null) return ["–", "–", "–"];
  return [percentiles.p50, percentiles.p95, percentiles.p99].map(formatDuration);
}

function spread(percentiles: Percentiles | null): string {
  if (percentiles === null) return "–";
  const [p50, p95, p99] = cells(percentiles);
  return `p50 ${p50}, p95 ${p95}, p99 ${p99}`;
}
