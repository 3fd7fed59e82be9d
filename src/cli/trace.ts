import { type Command, InvalidArgumentError } from "commander";
import { openTelemetryFile } from "../telemetry/reader.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { type Trace, type TracedCall, traceOf, walkCalls } from "../telemetry/trace.js";
import { type PassedOver, type TracedAttempt, type TracedCost, tracedCost } from "../telemetry/traced-attempt.js";
import { CONFIG_OPTION, ENV_OPTION } from "./arguments.js";
import { CliError } from "./failure.js";
import { formatDuration, formatMoney, plural } from "./format.js";
import { unreadableText } from "./report.js";
import { reasonWords } from "./status-words.js";
import { DB_OPTION, TABLE_OPTION, type TelemetryFlags, telemetryFile } from "./telemetry-file.js";
import { clip, columnsOf, printable, processTerminal, type Style, styleOf, type Terminal } from "./terminal.js";

interface TraceFlags extends TelemetryFlags {
  readonly table?: string;
  readonly json?: boolean;
}

/** A session of a batch may have a hundred thousand calls; nobody reads those on a terminal. */
const SHOWN_CALLS = 200;
const DEEPEST_INDENT = 12;

/** Texts of others must not pass for lines of ours. */
function oneLine(text: string): string {
  return printable(text).replace(/\s+/g, " ").trim();
}

const EXAMPLES = `
Examples:
  polygateway trace chat-42                                  all calls of a session
  polygateway trace 0192f3a4-5b6c-7d8e-9f01-23456789abcd      one call or attempt, with the calls below it
  polygateway trace line-17                                  what a line of a batch led to

Exit code 1 when the file can't be read or knows no such id.`;

/** Adds `polygateway trace`: what happened in a session or call, attempt by attempt, and why. */
export function registerTrace(program: Command, terminal: Terminal = processTerminal): void {
  program
    .command("trace")
    .summary("show what happened in a session or a call, attempt by attempt")
    .description("Shows what happened in a session or a call, attempt by attempt: outcome, source, times and route.")
    .argument("<id>", "a session id, request id, call id, or the parent id that the caller gave", parseId)
    .option(...DB_OPTION)
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(...TABLE_OPTION)
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (id: string, flags: TraceFlags) => {
      const trace = await readTrace(id, telemetryFile(flags, terminal.env), flags);
      const text = flags.json
        ? JSON.stringify(flat(trace), null, 2)
        : traceLines(trace, styleOf(terminal.stdout, terminal.env), columnsOf(terminal.stdout)).join("\n");
      terminal.stdout.write(`${text}\n`);
    });
}

/** Empty is mostly a variable of a script that is not set; rows without a session or parent are not what is looked for. */
function parseId(text: string): string {
  if (text.trim() !== "") return text;
  throw new InvalidArgumentError("It is empty. Ids stand in replies (requestId, callId) and in rows.");
}

async function readTrace(id: string, path: string, { table }: TraceFlags): Promise<Trace> {
  try {
    const file = openTelemetryFile(path, table === undefined ? {} : { table });
    try {
      await file.requireTable();
      const trace = await traceOf(file, id);
      if (trace !== null) return trace;
      throw new CliError(
        `${file.path} knows no session, call, attempt or parent ${printable(id)}. Ids stand in replies (requestId, callId) and in rows; a line of a batch that was refused before anything was sent has no row, its result line says why. A text of \`polygateway embed\` shares its row with others: ask with the call_id of its line.`,
      );
    } finally {
      file.close();
    }
  } catch (error) {
    throw error instanceof TelemetryFileError ? new CliError(error.message) : error;
  }
}

/** For programs, without nesting: a chain may be deeper than any reader of JSON allows. */
function flat({ calls, ...rest }: Trace): object {
  const listed = [...walkCalls(calls)].map(({ call: { children, ...call }, depth }) => ({
    ...call,
    depth,
    children: children.map((child) => child.requestId),
  }));
  return { ...rest, calls: listed };
}

/** The trace as people read it, in `columns` cells. */
export function traceLines(trace: Trace, style: Style, columns = Number.POSITIVE_INFINITY): string[] {
  const all = [...walkCalls(trace.calls)];
  const lines: string[] = [];
  const drawing: Drawing = { style, columns, lines };
  push(drawing, style.bold(`${titleOf(trace)}: ${summaryOf(all.map(({ call }) => call))}`));
  if (trace.unreadableLines > 0) lines.push(style.yellow(unreadableText(trace.unreadableLines)));
  for (const { call, depth } of all.slice(0, SHOWN_CALLS)) drawCall(drawing, call, depth);
  const hidden = all.length - SHOWN_CALLS;
  if (hidden > 0) lines.push(style.dim(`… and ${plural(hidden, "more call", "more calls")}; --json gives all of them`));
  if (trace.truncated) lines.push(style.dim("… and calls on deeper levels; ask for one of the lowest to see them"));
  return lines;
}

interface Drawing {
  readonly style: Style;
  readonly columns: number;
  readonly lines: string[];
}

function titleOf({ found, id }: Trace): string {
  const names = { session: "Session", call: "Call", attempt: "Attempt", parent: "Below" };
  return `${names[found]} ${oneLine(id)}`;
}

function summaryOf(calls: readonly TracedCall[]): string {
  const attempts = calls.flatMap((call) => call.attempts);
  const sends = attempts.filter(({ attempt, outcome }) => attempt !== null || outcome === "in_flight");
  const tokens = attempts.reduce((sum, attempt) => sum + attempt.tokens, 0);
  const money = moneyText(tracedCost(attempts));
  return `${plural(calls.length, "call")}, ${plural(sends.length, "attempt")}, ${plural(tokens, "token")}${money}`;
}

function moneyText({ cost, attemptsWithPrice, attemptsWithoutPrice }: TracedCost): string {
  if (attemptsWithPrice === 0 && cost === 0) return attemptsWithoutPrice === 0 ? "" : ", cost unknown";
  const unknown = attemptsWithoutPrice === 0 ? "" : ` and unknown of ${plural(attemptsWithoutPrice, "attempt")}`;
  return `, cost ${formatMoney(cost)}${unknown}`;
}

function drawCall(drawing: Drawing, call: TracedCall, depth: number): void {
  const { style } = drawing;
  const indent = "    ".repeat(Math.min(depth, DEEPEST_INDENT));
  const what = [call.operation ?? "call", call.requestId].map(oneLine).join(" ");
  const above = call.parentCallId === null || depth > 0 ? "" : style.dim(`  below ${oneLine(call.parentCallId)}`);
  const at = call.startedAtMs === null ? "" : style.dim(`  ${new Date(call.startedAtMs).toISOString()}`);
  push(drawing, `${indent}${style.bold(what)}  ${coloured(call.outcome ?? "no end yet", style)}${at}${above}`);
  const tried = new Set(call.attempts.map(({ sourceName }) => sourceName));
  for (const attempt of call.attempts) drawAttempt(drawing, attempt, tried, `${indent}  `);
}

/** Reasons that may be the outcome of an attempt of this very call. */
const OUTCOMES: ReadonlySet<string> = new Set(["rate_limited", "timeout", "transient", "dead", "failed_in_call"]);

function passedText({ source, reason }: PassedOver, tried: ReadonlySet<string | null>): string {
  const why = reason === "failed_in_call" ? "failed in this call" : oneLine(reason);
  return `${OUTCOMES.has(reason) && tried.has(source) ? "tried" : "passed over"} ${oneLine(source)}: ${why}`;
}

/** `*` is the scope: what the call as a whole waited for. */
function routeText(passed: PassedOver, tried: ReadonlySet<string | null>): string {
  const { source, reason, waitMs } = passed;
  const length = formatDuration(waitMs);
  if (source === "*") {
    const what = oneLine(reasonWords(reason));
    return waitMs > 0 ? `waited ${length} for ${what}` : `was waiting for ${what}`;
  }
  if (reason === "hedged") return `sent beside ${oneLine(source)}, which showed no token for ${length}`;
  return `${passedText(passed, tried)}${waitMs > 0 ? `, ${length} more` : ""}`;
}

function drawAttempt(
  drawing: Drawing,
  attempt: TracedAttempt,
  tried: ReadonlySet<string | null>,
  indent: string,
): void {
  const { style } = drawing;
  const number = attempt.attempt === null ? "–" : `${attempt.attempt}.`;
  const source = attempt.sourceName === null ? "" : `${oneLine(attempt.sourceName)}${modelText(attempt)}  `;
  push(drawing, `${indent}${number} ${source}${coloured(attempt.outcome, style)}${timesOf(attempt)}`);
  for (const passed of attempt.route) push(drawing, style.dim(`${indent}   ${routeText(passed, tried)}`));
  if (attempt.sharedWith !== null) {
    push(drawing, style.dim(`${indent}   shared the attempts of call ${oneLine(attempt.sharedWith)}`));
  }
  // Never cut: it is what people came for.
  if (attempt.error !== null) drawing.lines.push(`${indent}   ${oneLine(attempt.error)}`);
}

function modelText({ model }: TracedAttempt): string {
  return model === null ? "" : ` (${oneLine(model)})`;
}

function timesOf({ latencyMs, ttftMs, waitedMs, tokens, cost, statusCode }: TracedAttempt): string {
  const parts = [
    statusCode === null ? "" : `status ${statusCode}`,
    latencyMs === null ? "" : formatDuration(latencyMs),
    ttftMs === null ? "" : `first token ${formatDuration(ttftMs)}`,
    waitedMs === null || waitedMs < 1 ? "" : `waited ${formatDuration(waitedMs)}`,
    tokens === 0 ? "" : plural(tokens, "token"),
    cost === null || cost === 0 ? "" : formatMoney(cost),
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : `  ${parts.join(", ")}`;
}

function coloured(outcome: string, style: Style): string {
  if (outcome === "success" || outcome === "cache_hit") return style.green(outcome);
  return outcome === "in_flight" || outcome === "no end yet" ? style.yellow(outcome) : style.red(oneLine(outcome));
}

function push({ lines, columns }: Drawing, line: string): void {
  lines.push(Number.isFinite(columns) ? clip(line, columns) : line);
}
