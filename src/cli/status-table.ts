import type { SourceSnapshot } from "../domain/tick.js";
import type { StatusFile, StatusLimits } from "../status/status-file.js";
import { formatCount, formatDuration, formatRate } from "./format.js";
import { fullText, inForce } from "./full-gate.js";
import { sourceState, stateWord } from "./source-state.js";
import { type Column, fitTable } from "./table.js";
import { printable, type Style } from "./terminal.js";

const NO_LIMITS: StatusLimits = { maxConcurrency: 0, rpm: 0, tpm: 0, limitRule: "smooth" };

function right(title: string, leaves?: number): Column {
  return leaves === undefined ? { title, align: "right" } : { title, align: "right", leaves };
}

const COLUMNS: readonly Column[] = [
  { title: "source" },
  right("running"),
  right("requests/min", 1),
  right("tokens/min", 2),
  right("rate now", 3),
  right("evidence", 4),
  right("good", 5),
  right("first token", 6),
  { title: "state" },
];

/** What the word means that stands beside a paced limit; the store knows no count of the last minute, only this. */
export const AHEAD_TEXT =
  "ahead: started before the limit's pace had their turn. Time works that off; at the end of the burst new ones wait.";

/** Does any source have a limit that is paced? */
export function isPaced({ snapshot, limits }: StatusFile): boolean {
  return snapshot.sources.some((source) => {
    const { rpm, tpm, limitRule } = limits[source.name] ?? NO_LIMITS;
    return limitRule === "smooth" && (rpm > 0 || tpm > 0);
  });
}

export interface SourceTable {
  /** Titles, then a line a source. */
  readonly lines: readonly string[];
  /** States that found no room in it, in full. */
  readonly states: readonly string[];
}

/** The sources of a process in `columns` cells. Where a state is too long for that, its word alone stands in its line. */
export function sourceTable(status: StatusFile, style: Style, columns: number): SourceTable {
  const rows = status.snapshot.sources.map((source) => cellsOf(status, source, style));
  const { lines, isCut } = fitTable(COLUMNS, rows, columns);
  if (!isCut) return { lines, states: [] };
  const short = rows.map((cells) => [...cells.slice(0, -1), stateWord(cells.at(-1) ?? "")]);
  const states = rows.flatMap((cells, index) =>
    short[index]?.at(-1) === cells.at(-1) ? [] : [`${cells[0]}: ${cells.at(-1)}`],
  );
  return { lines: fitTable(COLUMNS, short, columns).lines, states };
}

function cellsOf(status: StatusFile, source: SourceSnapshot, style: Style): string[] {
  const { adaptive } = source;
  const limits = limitsOf(status, source);
  const { limitRule } = limits;
  return [
    printable(source.name),
    runningOf(source),
    takenOf(source.requestsUsed, inForce(limits.rpm, adaptive?.learnedRpm), limitRule),
    takenOf(source.tokensUsed, inForce(limits.tpm, adaptive?.learnedTpm), limitRule),
    typeof adaptive?.ratePerS === "number" ? `${formatRate(adaptive.ratePerS)}/s` : "–",
    adaptive === undefined ? "–" : `${adaptive.evidence.toFixed(1)} of ${adaptive.tripsAt}`,
    adaptive === undefined ? "–" : `${(adaptive.successShare * 100).toFixed(0)} %`,
    typeof adaptive?.ttftMs === "number" ? formatDuration(adaptive.ttftMs) : "–",
    stateText(source, style, limits),
  ];
}

/** `2/8`; without a limit what runs alone. */
export function runningOf({ inflight, adaptive, maxConcurrency }: SourceSnapshot): string {
  const limit = adaptive?.window ?? maxConcurrency;
  return limit > 0 ? `${formatCount(inflight)}/${formatCount(limit)}` : formatCount(inflight);
}

/** Per aligned minute a count of it, `12/60`; paced, what is ahead of the pace: `60, 4 ahead`. */
function takenOf(taken: number, limit: number, rule: StatusLimits["limitRule"]): string {
  if (limit <= 0) return "–";
  if (rule === "window") return `${formatCount(taken)}/${formatCount(limit)}`;
  return `${formatCount(limit)}, ${formatCount(taken)} ahead`;
}

export const limitsOf = ({ limits }: StatusFile, { name }: SourceSnapshot): StatusLimits => limits[name] ?? NO_LIMITS;

/** A source that works but has no room for a call says what it is full of. */
export function stateText(source: SourceSnapshot, style: Style, limits: StatusLimits): string {
  const { passedOver, state, coolingMs, dead } = source;
  const isWell = state === "closed" && coolingMs <= 0 && !dead;
  if (!isWell || passedOver === undefined || passedOver === null) return sourceState(source, style);
  return style.yellow(fullText(source, limits));
}
