import { MOST_TOKENS } from "../domain/scheduling/budgets.js";
import type { AdaptiveSnapshot, SourceSnapshot } from "../domain/tick.js";
import type { StatusFile, StatusLimits } from "../status/status-file.js";
import type { FoundStatus } from "../status/status-reader.js";
import { parseWorkerId } from "../telemetry/worker-id.js";
import { formatCount, formatDuration, formatRate, plural } from "./format.js";
import { fullText, inForce } from "./full-gate.js";
import { sourceState } from "./source-state.js";
import { reasonWords } from "./status-words.js";
import { type Column, fitTable } from "./table.js";
import { printable, type Style } from "./terminal.js";

const INDENT = "  ";
/** A process that is at work writes once a second; one that is silent for longer hangs or is stopped. */
const SILENT_MS = 5_000;
const NO_LIMITS: StatusLimits = { maxConcurrency: 0, rpm: 0, tpm: 0, limitRule: "smooth" };

/** Every process one after the other, in `columns` cells. */
export function statusLines(found: FoundStatus, nowMs: number, style: Style, columns = Infinity): string[] {
  const lines: string[] = [];
  for (const status of found.live) {
    if (lines.length > 0) lines.push("");
    lines.push(...processLines(status, nowMs, style, columns));
  }
  for (const status of found.stale) lines.push(style.dim(staleText(status)));
  return lines;
}

export function staleText(status: StatusFile): string {
  return `${nameOf(status)} is gone without taking its status away; it is not shown again.`;
}

function nameOf({ scope, worker }: StatusFile): string {
  return `${printable(scope)}: process ${parseWorkerId(worker)?.pid ?? printable(worker)}`;
}

function processLines(status: StatusFile, nowMs: number, style: Style, columns: number): string[] {
  const { sources } = status.snapshot;
  const table = fitTable(
    COLUMNS,
    sources.map((source) => cellsOf(status, source, style)),
    columns - INDENT.length,
  );
  const [titles = "", ...rows] = table.lines;
  const facts = [...sources.flatMap((source) => learnedText(source)), ...waitingLines(status), budgetText(status)];
  return [
    style.bold(`${nameOf(status)} in ${printable(status.folder)}`) + style.dim(ageText(status, nowMs)),
    `${INDENT}${style.dim(titles)}`,
    ...rows.map((row) => INDENT + row),
    ...facts.map((fact) => INDENT + fact),
    ...backendLines(status, style),
  ];
}

/** The process works; what it shares with others can't be asked. */
function backendLines({ snapshot: { backend } }: StatusFile, style: Style): string[] {
  if (backend.ok) return [];
  const name = backend.kind === "redis" ? "Redis" : printable(backend.kind);
  return [
    INDENT + style.yellow(`${name} does not answer: nothing new starts, and these figures are the last known ones`),
  ];
}

function ageText({ startedAtMs, writtenAtMs, idle }: StatusFile, nowMs: number): string {
  const since = `  since ${formatDuration(Math.max(0, nowMs - startedAtMs))}`;
  const ageMs = Math.max(0, nowMs - writtenAtMs);
  if (idle) return `${since}, idle for ${formatDuration(ageMs)}`;
  return ageMs > SILENT_MS ? `${since}, silent for ${formatDuration(ageMs)}: it hangs or is stopped` : since;
}

function right(title: string, leaves?: number): Column {
  return leaves === undefined ? { title, align: "right" } : { title, align: "right", leaves };
}

const COLUMNS: readonly Column[] = [
  { title: "source" },
  right("running"),
  right("requests", 1),
  right("tokens", 2),
  right("rate now", 3),
  right("evidence", 4),
  right("good", 5),
  right("first token", 6),
  { title: "state" },
];

function cellsOf(status: StatusFile, source: SourceSnapshot, style: Style): string[] {
  const { adaptive } = source;
  const limits = limitsOf(status, source);
  return [
    printable(source.name),
    usedOf(source.inflight, adaptive?.window ?? source.maxConcurrency),
    usedOf(source.requestsUsed, inForce(limits.rpm, adaptive?.learnedRpm)),
    usedOf(source.tokensUsed, inForce(limits.tpm, adaptive?.learnedTpm)),
    typeof adaptive?.ratePerS === "number" ? `${formatRate(adaptive.ratePerS)}/s` : "–",
    adaptive === undefined ? "–" : `${adaptive.evidence.toFixed(1)} of ${adaptive.tripsAt}`,
    adaptive === undefined ? "–" : `${(adaptive.successShare * 100).toFixed(0)} %`,
    typeof adaptive?.ttftMs === "number" ? formatDuration(adaptive.ttftMs) : "–",
    stateText(source, style, limits),
  ];
}

/** `12/600`; without a limit nothing is counted but what runs. */
function usedOf(used: number, limit: number): string {
  return limit > 0 ? `${formatCount(used)}/${formatCount(limit)}` : formatCount(used);
}

const limitsOf = ({ limits }: StatusFile, { name }: SourceSnapshot): StatusLimits => limits[name] ?? NO_LIMITS;

/** A source that works but has no room for a call says what it is full of. */
export function stateText(source: SourceSnapshot, style: Style, limits: StatusLimits): string {
  const { passedOver, state, coolingMs, dead } = source;
  const isWell = state === "closed" && coolingMs <= 0 && !dead;
  if (!isWell || passedOver === undefined || passedOver === null) return sourceState(source, style);
  return style.yellow(fullText(source, limits));
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
    (source) =>
      `${printable(source.name)} ${usedOf(source.inflight, source.adaptive?.window ?? source.maxConcurrency)} ${stateText(source, style, limitsOf(status, source))}`,
  );
  const reasons = Object.entries(waiting.reasons).map(([reason, count]) => `${count} ${reasonWords(reason)}`);
  const waits =
    waiting.count === 0 ? "nobody waits" : `${plural(waiting.count, "waits", "wait")} (${reasons.join(", ")})`;
  return `${nameOf(status)} · ${parts.join(" · ")} · ${waits}`;
}
