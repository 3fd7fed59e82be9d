import { MOST_TOKENS } from "../domain/scheduling/budgets.js";
import type { AdaptiveSnapshot, SourceSnapshot } from "../domain/tick.js";
import type { StatusFile } from "../status/status-file.js";
import type { FoundStatus } from "../status/status-reader.js";
import { parseWorkerId } from "../telemetry/worker-id.js";
import { formatCount, formatDuration, plural } from "./format.js";
import { AHEAD_TEXT, isPaced, limitsOf, runningOf, sourceTable, stateText } from "./status-table.js";
import { reasonWords } from "./status-words.js";
import { displayWidth, printable, type Style } from "./terminal.js";
import { wrapWords } from "./wrap.js";

const INDENT = "  ";
/** A process that is at work writes once a second; one that is silent for longer hangs or is stopped. */
const SILENT_MS = 5_000;

/** Every process one after the other, in `columns` cells. */
export function statusLines(found: FoundStatus, nowMs: number, style: Style, columns = Infinity): string[] {
  const dim = (text: string): string[] => wrapWords(text, columns, INDENT).map(style.dim);
  const lines = sharedTexts(found.live).flatMap(dim);
  for (const status of found.live) {
    if (lines.length > 0) lines.push("");
    lines.push(...processLines(status, nowMs, style, columns));
  }
  if (found.live.some(isPaced)) lines.push("", ...dim(AHEAD_TEXT));
  lines.push(...staleTexts(found.stale).flatMap(dim));
  return lines;
}

/** Limits in Redis are the fleet's: every process shows the same figures of them. */
function sharedTexts(live: FoundStatus["live"]): string[] {
  const shared = live.filter(({ snapshot }) => snapshot.backend.kind === "redis");
  return [...new Set(shared.map(({ scope }) => scope))].flatMap((scope) => {
    const ours = shared.filter((status) => status.scope === scope);
    const count = Math.max(ours.length, ...ours.map(({ snapshot }) => snapshot.workers?.length ?? 0));
    if (count < 2) return [];
    return [
      `${printable(scope)}: ${plural(count, "process", "processes")} share the limits through Redis; running, requests and tokens are those of all together, the calls that wait those of each.`,
    ];
  });
}

/** One line, however many there are. */
export function staleTexts(stale: FoundStatus["stale"]): string[] {
  const [first] = stale;
  if (first === undefined) return [];
  if (stale.length === 1) return [`${nameOf(first)} is gone without taking its status away; it is not shown again.`];
  const scopes = [...new Set(stale.map(({ scope }) => printable(scope)))].join(", ");
  return [`${scopes}: ${stale.length} processes are gone without taking their status away; they are not shown again.`];
}

function nameOf({ scope, worker }: StatusFile): string {
  return `${printable(scope)}: process ${parseWorkerId(worker)?.pid ?? printable(worker)}`;
}

function processLines(status: StatusFile, nowMs: number, style: Style, columns: number): string[] {
  const { sources } = status.snapshot;
  const width = columns - INDENT.length;
  const table = sourceTable(status, style, width);
  const [titles = "", ...rows] = table.lines;
  const facts = [
    ...table.states,
    ...sources.flatMap((source) => learnedText(source)),
    ...waitingLines(status),
    budgetText(status),
    ...backendTexts(status, style),
  ];
  return [
    ...titleLines(status, nowMs, style, columns),
    `${INDENT}${style.dim(titles)}`,
    ...rows.map((row) => INDENT + row),
    ...facts.flatMap((fact) => wrapWords(fact, width, INDENT)).map((line) => INDENT + line),
  ];
}

function titleLines(status: StatusFile, nowMs: number, style: Style, columns: number): string[] {
  const title = `${nameOf(status)} in ${printable(status.folder)}`;
  const age = ageText(status, nowMs);
  if (displayWidth(`${title}  ${age}`) <= columns) return [style.bold(title) + style.dim(`  ${age}`)];
  return [...wrapWords(title, columns, INDENT).map(style.bold), style.dim(INDENT + age)];
}

/** The process works; what it shares with others can't be asked. */
function backendTexts({ snapshot: { backend } }: StatusFile, style: Style): string[] {
  if (backend.ok) return [];
  const name = backend.kind === "redis" ? "Redis" : printable(backend.kind);
  return [style.yellow(`${name} does not answer: nothing new starts, and these figures are the last known ones`)];
}

function ageText({ startedAtMs, writtenAtMs, idle }: StatusFile, nowMs: number): string {
  const since = `since ${formatDuration(Math.max(0, nowMs - startedAtMs))}`;
  const ageMs = Math.max(0, nowMs - writtenAtMs);
  if (idle) return `${since}, idle for ${formatDuration(ageMs)}`;
  return ageMs > SILENT_MS ? `${since}, silent for ${formatDuration(ageMs)}: it hangs or is stopped` : since;
}

/** What the adaptive rules hold, where it is not what is configured. */
function learnedText({ name, maxConcurrency, adaptive }: SourceSnapshot): string[] {
  if (adaptive === undefined) return [];
  const facts = [
    ...windowFact(adaptive, maxConcurrency),
    ...(adaptive.learnedRpm === null ? [] : [`its answers tell ${plural(adaptive.learnedRpm, "request")}/min`]),
    ...(adaptive.learnedTpm === null ? [] : [`its answers tell ${plural(adaptive.learnedTpm, "token")}/min`]),
    ...(adaptive.lastCutAgoMs === null ? [] : [`slowed down ${formatDuration(adaptive.lastCutAgoMs)} ago`]),
    ...(adaptive.ramping ? ["just back, gets its load step by step"] : []),
  ];
  return facts.length === 0 ? [] : [`${printable(name)}: ${facts.join(", ")}`];
}

function windowFact({ window }: AdaptiveSnapshot, maxConcurrency: number): string[] {
  if (window === null || window === maxConcurrency) return [];
  return maxConcurrency > 0
    ? [`${formatCount(window)} of ${plural(maxConcurrency, "place")} in use by its pacer or ramp`]
    : [`${plural(window, "place")} for now, no concurrency limit is configured`];
}

function waitingLines({ snapshot: { waiting } }: StatusFile): string[] {
  if (waiting.count === 0) return ["nobody waits"];
  const reasons = Object.entries(waiting.reasons).map(
    ([reason, count]) => `${formatCount(count)} for ${reasonWords(reason)}`,
  );
  const classes = Object.entries(waiting.byPriority);
  const byClass = classes.map(([priority, count]) => `${formatCount(count)} of priority ${priority}`).join(", ");
  return [
    `${plural(waiting.count, "call waits", "calls wait")}, the longest ${formatDuration(waiting.oldestMs)}: ${reasons.join(", ")}`,
    ...(classes.length > 1 ? [`of them ${byClass}`] : []),
  ];
}

function budgetText({ snapshot: { budgets, workers = [] } }: StatusFile): string {
  if (budgets === undefined) return "budgets: not told";
  const { retryTokens, hedgeTokens, retriesInFlight } = budgets;
  const waiting = workers.filter((worker) => worker.waiting).length;
  const others = workers.length > 1 ? `, ${formatCount(waiting)} of ${formatCount(workers.length)} processes wait` : "";
  return `retries ${retryTokens.toFixed(1)} of ${MOST_TOKENS} (${formatCount(retriesInFlight)} under way), hedges ${hedgeTokens.toFixed(1)}${others}`;
}

/** One line a process, for logs and pipes. */
export function statusLine(status: StatusFile, style: Style): string {
  const { waiting, sources } = status.snapshot;
  const parts = sources.map(
    (source) => `${printable(source.name)} ${runningOf(source)} ${stateText(source, style, limitsOf(status, source))}`,
  );
  const reasons = Object.entries(waiting.reasons).map(([reason, count]) => `${count} ${reasonWords(reason)}`);
  const waits =
    waiting.count === 0 ? "nobody waits" : `${plural(waiting.count, "waits", "wait")} (${reasons.join(", ")})`;
  return `${nameOf(status)} · ${parts.join(" · ")} · ${waits}`;
}
