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
import { CliError } from "./failure.js";
import { formatCount, formatDuration, formatMoney, plural } from "./format.js";
import { type Column, tableLines } from "./table.js";
import { printable, processTerminal, type Style, styleOf, type Terminal } from "./terminal.js";
import { parseSinceMs } from "./time-range.js";

interface ReportFlags {
  readonly db: string;
  readonly table?: string;
  readonly since?: string;
  readonly by?: ReportGrouping;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway report                          everything in ./polygateway.db
  polygateway report --since 1h --by source   the last hour, source by source
  polygateway report --by day --json          for other programs`;

/** Adds `polygateway report`: what the calls in a telemetry file cost, how fast they were and what failed. */
export function registerReport(program: Command, terminal: Terminal = processTerminal): void {
  program
    .command("report")
    .description("show calls, success, tokens, money, latency and errors of a telemetry file")
    .option("--db <path>", "SQLite or JSONL file with telemetry", "./polygateway.db")
    .option("--table <name>", "table of a SQLite file (default llm_calls)")
    .option("--since <when>", "only newer rows: a length of time (90s, 15m, 1h, 7d) or a date (2025-11-29)")
    .addOption(new Option("--by <group>", "one line per value").choices(REPORT_GROUPINGS))
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: ReportFlags) => {
      const nowMs = createSystemRuntime().wallNow();
      const sinceMs = flags.since === undefined ? undefined : parseSinceMs(flags.since, nowMs);
      const { report, path, unreadableLines } = await readReport(flags, sinceMs);
      const text = flags.json
        ? JSON.stringify({ file: path, unreadableLines, ...report }, null, 2)
        : reportLines(report, path, unreadableLines, flags.by, styleOf(terminal.stdout, terminal.env)).join("\n");
      terminal.stdout.write(`${text}\n`);
    });
}

async function readReport(flags: ReportFlags, sinceMs: number | undefined) {
  try {
    const file = openTelemetryFile(flags.db, flags.table === undefined ? {} : { table: flags.table });
    try {
      const builder = createReport(flags.by);
      const filter = { withoutTexts: true, ...(sinceMs === undefined ? {} : { sinceMs }) };
      for await (const row of file.rows(filter)) builder.add(row);
      return { report: builder.finish(), path: file.path, unreadableLines: file.unreadableLines };
    } finally {
      file.close();
    }
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

/** The report as people read it. */
export function reportLines(
  report: Report,
  path: string,
  unreadableLines: number,
  by: ReportGrouping | undefined,
  style: Style,
): string[] {
  const { total } = report;
  const lines = [style.bold(`Telemetry in ${path}`) + style.dim(rangeText(report))];
  if (unreadableLines > 0)
    lines.push(style.yellow(`${plural(unreadableLines, "line")} could not be read and is left out`));
  if (total.calls + total.attempts === 0) return [...lines, "No calls recorded."];
  lines.push("", ...totalLines(total, style));
  if (by !== undefined) lines.push("", style.bold(`By ${by}`), ...groupLines(report.groups));
  if (report.errors.length > 0) lines.push("", style.bold("Most frequent errors"), ...errorLines(report));
  return lines;
}

function rangeText({ firstAtMs, lastAtMs }: Report): string {
  if (firstAtMs === null || lastAtMs === null) return "";
  return `  ${new Date(firstAtMs).toISOString()} to ${new Date(lastAtMs).toISOString()}`;
}

function totalLines(total: ReportGroup, style: Style): string[] {
  const { tokens, retries } = total;
  const failed = total.calls - total.answered;
  const unpriced = total.attemptsWithoutPrice;
  const line = (title: string, text: string) => `  ${title.padEnd(10)} ${text}`;
  return [
    line(
      "Calls",
      `${formatCount(total.calls)}, ${share(total.successRate)} answered` +
        (failed > 0 ? style.red(` (${formatCount(failed)} not)`) : "") +
        (total.cacheHits > 0 ? `, ${formatCount(total.cacheHits)} from the cache` : ""),
    ),
    line("Attempts", `${formatCount(total.attempts)}, ${ratio(total.attemptsPerCall)} per call`),
    line(
      "Tokens",
      `${formatCount(tokens.prompt)} prompt (${formatCount(tokens.cached)} cached), ` +
        `${formatCount(tokens.completion)} completion (${formatCount(tokens.reasoning)} reasoning)`,
    ),
    line(
      "Cost",
      formatMoney(total.cost) +
        (unpriced > 0 ? style.yellow(` plus ${plural(unpriced, "attempt")} without a price`) : ""),
    ),
    line("Latency", spread(total.latencyMs)),
    line("TTFT", spread(total.ttftMs)),
    line(
      "Retries",
      retries.attempts === 0
        ? "none needed"
        : `${plural(retries.attempts, "attempt")} without an answer took ${formatDuration(retries.timeMs)}, ` +
            `${formatCount(retries.tokens)} tokens and ${formatMoney(retries.cost)}`,
    ),
  ];
}

const GROUP_COLUMNS: readonly Column[] = [
  { title: "" },
  ...["calls", "ok", "att/call", "prompt", "cached", "reasoning", "completion", "cost", "p50", "p95", "p99"].map(right),
  ...["ttft p50", "p95", "p99", "retries"].map(right),
];

function right(title: string): Column {
  return { title, align: "right" };
}

function groupLines(groups: readonly ReportGroup[]): string[] {
  const rows = groups.map((group) => [
    group.key === null ? "(none)" : printable(group.key),
    formatCount(group.calls),
    share(group.successRate),
    ratio(group.attemptsPerCall),
    formatCount(group.tokens.prompt),
    formatCount(group.tokens.cached),
    formatCount(group.tokens.reasoning),
    formatCount(group.tokens.completion),
    formatMoney(group.cost),
    ...cells(group.latencyMs),
    ...cells(group.ttftMs),
    formatCount(group.retries.attempts),
  ]);
  return tableLines(GROUP_COLUMNS, rows).map((text) => `  ${text}`);
}

const MAX_ERROR_TEXT = 160;

function errorLines(report: Report): string[] {
  const rows = report.errors.map((error) => {
    const text = printable(error.sample).replace(/\s+/g, " ");
    const shown = text.length > MAX_ERROR_TEXT ? `${text.slice(0, MAX_ERROR_TEXT - 1)}…` : text;
    return [formatCount(error.count), error.outcome, String(error.statusCode ?? ""), shown];
  });
  return tableLines([right("count"), { title: "outcome" }, right("status"), { title: "one of them" }], rows).map(
    (text) => `  ${text}`,
  );
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
