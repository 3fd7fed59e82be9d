import type { BatchProgress, BatchSnapshot, BatchWorker } from "../batch/types.js";
import type { SourceSnapshot } from "../domain/tick.js";
import { formatCount, formatDuration, formatMoney, formatRate, plural, progressBar } from "./format.js";
import { LINE_WORDS, type RunWords } from "./run-words.js";
import { sourceState } from "./source-state.js";
import { tableLines } from "./table.js";
import { displayWidth, printable, type Style } from "./terminal.js";
import { wrapAt } from "./wrap.js";

const BAR_CELLS = 30;
/** A shorter bar tells nothing. */
const MIN_BAR_CELLS = 6;
const BETWEEN = " · ";
const SHOWN_TROUBLES = 4;
const MAX_TROUBLE_CHARS = 120;
/** More sources than this are counted, not listed: the block must fit on a screen. */
const MAX_SOURCE_LINES = 16;

/** Lines with a result, those of earlier runs included. */
function finishedLines(progress: BatchProgress): number {
  return progress.done + progress.failed + progress.skipped;
}

function shareText(progress: BatchProgress): string {
  if (progress.total === undefined || progress.total === 0) return "";
  return `${Math.floor((100 * finishedLines(progress)) / progress.total)} %`;
}

export function countsText(progress: BatchProgress): string {
  const counts = [`${formatCount(progress.done)} done`, `${formatCount(progress.failed)} failed`];
  counts.push(progress.left === undefined ? "input still open" : `${formatCount(progress.left)} left`);
  if (progress.skipped > 0) counts.push(`${formatCount(progress.skipped)} from earlier runs`);
  return counts.join(BETWEEN);
}

export function moneyText(progress: BatchProgress): string {
  if (progress.cost === null) return "cost unknown (no prices)";
  const atLeast = progress.unpriced > 0 ? "at least " : "";
  const projected = progress.projectedCost === null ? "" : `, about ${formatMoney(progress.projectedCost)} in all`;
  return `cost ${atLeast}${formatMoney(progress.cost)}${projected}`;
}

function timeText(progress: BatchProgress): string {
  const { elapsedMs, etaMs, left, limitsAway } = progress;
  const elapsed = formatDuration(elapsedMs);
  if (limitsAway && left !== 0) return `${elapsed}, the limits can't be asked: calls wait`;
  return etaMs === null || left === 0 ? elapsed : `${elapsed}, about ${formatDuration(etaMs)} left`;
}

function ratesText(progress: BatchProgress, { rate }: RunWords): string {
  return `${formatRate(progress.callsPerSecond)} ${rate} · ${formatCount(progress.tokensPerSecond)} tokens/s`;
}

/** A worker that is asked for its state answers within a fraction of a second, unless it hangs or is stopped. */
const SILENT_MS = 5_000;

/** "" without workers. */
function workersText(workers: readonly BatchWorker[] | undefined, { item }: RunWords): string {
  if (workers === undefined || workers.length === 0) return "";
  const working = workers.filter(({ state }) => state === "working").length;
  const count =
    working === workers.length ? plural(working, "worker") : `${working} of ${plural(workers.length, "worker")}`;
  const silent = workers
    .filter(({ silentMs }) => silentMs > SILENT_MS)
    .map(({ pid, silentMs, inFlight }) => {
      return `${pid} is silent for ${formatDuration(silentMs)} with ${plural(inFlight, item)}`;
    });
  const died = sumOf(workers, "deaths");
  const facts = [...silent, ...(died === 0 ? [] : [`${formatCount(died)} died`])];
  return facts.length === 0 ? count : `${count} (${facts.join(", ")})`;
}

export function sumOf(workers: readonly BatchWorker[], field: "deaths" | "handedOn"): number {
  return workers.reduce((sum, worker) => sum + worker[field], 0);
}

function sourceLines(progress: BatchProgress, snapshot: BatchSnapshot, style: Style): string[] {
  const rows = snapshot.sources.slice(0, MAX_SOURCE_LINES).map((source) => {
    const tally = progress.bySource[source.name];
    const limit = source.maxConcurrency > 0 ? `/${source.maxConcurrency}` : "";
    return [
      source.name,
      `${source.inflight}${limit}`,
      formatCount(tally?.answers ?? 0),
      formatCount(tally?.tokens ?? 0),
      sourceState(source, style),
    ];
  });
  const [titles = "", ...lines] = tableLines(
    [
      { title: "source" },
      { title: "running", align: "right" },
      { title: "answers", align: "right" },
      { title: "tokens", align: "right" },
      { title: "state" },
    ],
    rows,
  );
  const hidden = snapshot.sources.length - rows.length;
  return [style.dim(titles), ...lines, ...(hidden > 0 ? [style.dim(`… and ${plural(hidden, "more source")}`)] : [])];
}

function waitingText(progress: BatchProgress, { item }: RunWords): string {
  const waiting = progress.snapshot?.waiting;
  const parts: string[] = [];
  if (progress.draining && progress.inFlight > 0)
    parts.push(`finishing ${plural(progress.inFlight, "call")} in flight`);
  if (waiting && waiting.count > 0) {
    parts.push(`${plural(waiting.count, "call")} waiting for a slot, the longest ${formatDuration(waiting.oldestMs)}`);
  }
  if (progress.requeued > 0) parts.push(`${plural(progress.requeued, item)} put back for a later try`);
  if (progress.badLines > 0) parts.push(`${plural(progress.badLines, "broken line")} left out`);
  return parts.join(" · ");
}

/** Breaks between facts, never inside one, so that a narrow terminal cuts off none. */
const wrapFacts = (text: string, width: number): string[] => wrapAt(text.split(BETWEEN), BETWEEN, width);

/** The bar takes what the figures leave, and goes where they leave nothing. */
function barLines(progress: BatchProgress, style: Style, width: number): string[] {
  const { total } = progress;
  const counts = countsText(progress);
  if (total === undefined) return wrapFacts(counts, width);
  const figures = `${shareText(progress)}  ${counts}`;
  const cells = Math.min(BAR_CELLS, width - displayWidth(figures) - 1);
  if (cells < MIN_BAR_CELLS) return wrapFacts(figures, width);
  const share = total === 0 ? 0 : finishedLines(progress) / total;
  return [`${style.cyan(progressBar(share, cells))} ${figures}`];
}

/** The block drawn over itself on a terminal of `width` cells. */
export function progressBlock(
  progress: BatchProgress,
  style: Style,
  width = Number.POSITIVE_INFINITY,
  words: RunWords = LINE_WORDS,
): string[] {
  const workers = workersText(progress.workers, words);
  const facts = [
    ratesText(progress, words),
    moneyText(progress),
    timeText(progress),
    ...(workers === "" ? [] : [workers]),
  ].join(BETWEEN);
  const lines = [...barLines(progress, style, width), ...wrapFacts(facts, width)];
  if (progress.snapshot !== null) lines.push(...sourceLines(progress, progress.snapshot, style));
  // Always there, so that the block doesn't jump.
  lines.push(style.dim(waitingText(progress, words)));
  return lines;
}

/** Sources that don't answer; before the first success also those that only reported an error so far. */
export function sourcesInTrouble({ snapshot, done }: BatchProgress): SourceSnapshot[] {
  const sources = snapshot?.sources ?? [];
  return sources.filter(
    ({ dead, state, lastError }) => dead || state !== "closed" || (done === 0 && lastError !== null),
  );
}

function describeTrouble(source: SourceSnapshot): string {
  const { name, dead, state, coolingMs, lastError } = source;
  const standing: Record<SourceSnapshot["state"], string> = {
    open: "resting after failures",
    half_open: "waiting for a probe",
    closed: coolingMs > 0 ? "rate-limited" : "failing",
  };
  const standingText = dead ? "dead" : standing[state];
  const said = printable(lastError?.message ?? "").replace(/\s+/g, " ");
  const words = (said.startsWith(name) ? said.slice(name.length) : said).replace(/^[\s:]+/, "");
  if (words === "") return `${name} is ${standingText}`;
  const short = words.length > MAX_TROUBLE_CHARS ? `${words.slice(0, MAX_TROUBLE_CHARS - 1)}…` : words;
  return `${name} is ${standingText}: ${short}`;
}

/** "" when every source is well. */
export function troubleText(progress: BatchProgress): string {
  const sources = sourcesInTrouble(progress);
  const shown = sources.slice(0, SHOWN_TROUBLES).map(describeTrouble);
  const hidden = sources.length - shown.length;
  return [...shown, ...(hidden > 0 ? [`and ${plural(hidden, "more source")}`] : [])].join("; ");
}

/** One plain line, for logs and pipes. */
export function progressLine(progress: BatchProgress, words: RunWords = LINE_WORDS): string {
  const share = shareText(progress);
  const trouble = troubleText(progress);
  const workers = workersText(progress.workers, words);
  return [
    ...(share === "" ? [] : [share]),
    countsText(progress),
    ratesText(progress, words),
    moneyText(progress),
    timeText(progress),
    ...(workers === "" ? [] : [workers]),
    ...(progress.draining && progress.inFlight > 0 ? [`finishing ${plural(progress.inFlight, "call")}`] : []),
    ...(trouble === "" ? [] : [trouble]),
  ].join(BETWEEN);
}
