import type { BatchProgress, BatchSnapshot, BatchSummary } from "../batch/types.js";
import type { SourceSnapshot } from "../domain/tick.js";
import { ASK_LIMITS, ASK_SOURCES, CORRECT_SOURCES } from "./failure.js";
import { formatCount, formatDuration, formatMoney, formatRate, plural, progressBar } from "./format.js";
import { LINE_WORDS, type RunWords } from "./run-words.js";
import { sourceState } from "./source-state.js";
import { tableLines } from "./table.js";
import { displayWidth, printable, type Style } from "./terminal.js";
import { deathLines, workersText } from "./workers-text.js";
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

function countsText(progress: BatchProgress): string {
  const counts = [`${formatCount(progress.done)} done`, `${formatCount(progress.failed)} failed`];
  counts.push(progress.left === undefined ? "input still open" : `${formatCount(progress.left)} left`);
  if (progress.skipped > 0) counts.push(`${formatCount(progress.skipped)} from earlier runs`);
  return counts.join(BETWEEN);
}

function moneyText(progress: BatchProgress): string {
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

function sourceLines(progress: BatchProgress, snapshot: BatchSnapshot, style: Style, { answers }: RunWords): string[] {
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
      { title: answers, align: "right" },
      { title: "tokens", align: "right" },
      { title: "state" },
    ],
    rows,
  );
  const hidden = snapshot.sources.length - rows.length;
  return [style.dim(titles), ...lines, ...(hidden > 0 ? [style.dim(`… and ${plural(hidden, "more source")}`)] : [])];
}

function waitingText(progress: BatchProgress, { unit }: RunWords): string {
  const waiting = progress.snapshot?.waiting;
  const parts: string[] = [];
  if (progress.draining && progress.inFlight > 0)
    parts.push(`finishing ${plural(progress.inFlight, "call")} in flight`);
  if (waiting && waiting.count > 0) {
    parts.push(`${plural(waiting.count, "call")} waiting for a slot, the longest ${formatDuration(waiting.oldestMs)}`);
  }
  if (progress.requeued > 0) parts.push(`${plural(progress.requeued, unit)} put back for a later try`);
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
  words = LINE_WORDS,
): string[] {
  const workers = workersText(progress.workers, words);
  const facts = [
    ratesText(progress, words),
    moneyText(progress),
    timeText(progress),
    ...(workers === "" ? [] : [workers]),
  ].join(BETWEEN);
  const lines = [...barLines(progress, style, width), ...wrapFacts(facts, width)];
  if (progress.snapshot !== null) lines.push(...sourceLines(progress, progress.snapshot, style, words));
  // Always there, so that the block doesn't jump.
  lines.push(style.dim(waitingText(progress, words)));
  return lines;
}

/** Sources that don't answer; before the first success also those that only reported an error so far. */
function sourcesInTrouble({ snapshot, done }: BatchProgress): SourceSnapshot[] {
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
function troubleText(progress: BatchProgress): string {
  const sources = sourcesInTrouble(progress);
  const shown = sources.slice(0, SHOWN_TROUBLES).map(describeTrouble);
  const hidden = sources.length - shown.length;
  return [...shown, ...(hidden > 0 ? [`and ${plural(hidden, "more source")}`] : [])].join("; ");
}

/** One plain line, for logs and pipes. */
export function progressLine(progress: BatchProgress, words = LINE_WORDS): string {
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

/** Files of a run, as the user wrote them. */
export interface RunFiles {
  readonly inPath: string;
  readonly outPath: string;
}

/** OUT stays resumable however a run ended. */
function nextStep({ exitCode, stop, left }: BatchSummary, { unit }: RunWords): string {
  const rest = left === undefined || left === 0 ? "the rest" : `the ${plural(left, unit)} left; none is lost`;
  const again = `the same command again to do ${rest}.`;
  if (exitCode === 1) return `Correct that, then run ${again}`;
  return stop?.kind === "all_sources_dead" ? `${CORRECT_SOURCES} Run ${again}` : `Run ${again}`;
}

/** Why it ended before its lines did, what the sources have to do with it, and what to do next; none when it did not. */
export function stopLines(summary: BatchSummary, resumable: boolean, words = LINE_WORDS): string[] {
  if (summary.stop === null) return [];
  const reason = printable(summary.stop.reason);
  // A run that was made for once: its sources are nobody's to correct.
  if (!resumable) return [reason];
  const { kind } = summary.stop;
  // What the sources said before that is of no use while nothing may be sent to them.
  if (summary.limitsAway || kind === "misconfigured") return [`${reason} ${nextStep(summary, words)}`, ASK_LIMITS];
  const told = sourcesInTrouble(summary).some(({ name }) => reason.includes(name));
  const trouble = told ? "" : troubleText(summary);
  const asks = kind === "no_success" || (trouble !== "" && kind !== "all_sources_dead");
  return [
    `${reason} ${nextStep(summary, words)}`,
    ...(trouble === "" ? [] : [`At the end: ${trouble}.`]),
    ...(asks ? [ASK_SOURCES] : []),
  ];
}

/** What came out, and where it is. */
function outcomeLines(
  summary: BatchSummary,
  files: RunFiles | undefined,
  style: Style,
  { unit, allDone }: RunWords,
): string[] {
  const nothingRun = summary.stop === null && summary.done + summary.failed === 0;
  if (files !== undefined && nothingRun) {
    const { skipped } = summary;
    const inName = files.inPath === "-" ? "standard input" : files.inPath;
    if (skipped === 0) return [style.yellow(`Nothing to do: no ${unit}s in ${inName}.`)];
    const all = skipped === 1 ? `the only ${unit} is` : `all ${formatCount(skipped)} ${unit}s are`;
    return [`${style.green("Nothing left to do")}: ${all} in ${files.outPath}.`];
  }
  const verdict =
    summary.exitCode === 0 ? style.green(allDone) : style.yellow(summary.stop ? "Stopped early" : "Finished");
  const money = moneyText({ ...summary, projectedCost: null });
  return [
    `${verdict}: ${countsText(summary)} in ${formatDuration(summary.elapsedMs)}, ${plural(summary.tokens, "token")}, ${money}.`,
    ...(files === undefined ? [] : [`Results: ${files.outPath}`, sessionText(summary.batchId)]),
  ];
}

/** Of all runs into the same OUT. */
const sessionText = (id: string): string => `Session: ${id}, for \`polygateway trace\` and \`report --session\``;

/** The end of a run in a few lines. Without `files` it can't be resumed, and nothing is said of that. */
export function summaryLines(
  summary: BatchSummary,
  files: RunFiles | undefined,
  style: Style,
  words = LINE_WORDS,
): string[] {
  const lines = outcomeLines(summary, files, style, words);
  if (summary.badLines > 0) lines.push(`${plural(summary.badLines, "broken line")} left out.`);
  const failed = summary.failed + summary.skippedFailed;
  if (failed > 0) lines.push(`${words.failed(failed)}; try ${failed === 1 ? "it" : "them"} again with --retry-failed.`);
  if (summary.requeues > 0) {
    lines.push(`${capital(words.unit)}s were put back for a later try ${plural(summary.requeues, "time")}.`);
  }
  lines.push(...deathLines(summary, words));
  if (summary.answersPaidTwice > 0) {
    lines.push(`${plural(summary.answersPaidTwice, "answer")} of an earlier run did not reach the file: paid twice.`);
  }
  if (summary.possiblyPaidTwice > 0) {
    lines.push(
      `${plural(summary.possiblyPaidTwice, "attempt")} of an earlier run with unknown outcome: possibly paid twice.`,
    );
  }
  if (summary.answersNotWritten > 0) {
    lines.push(`${plural(summary.answersNotWritten, "answer")} could not be written: paid again by the next run.`);
  }
  lines.push(...stopLines(summary, files !== undefined, words).map(style.yellow));
  return lines;
}

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** The summary for programs: nobody needs parts of a millisecond. */
export function summaryJson(summary: BatchSummary): string {
  const wholeMs = (key: string, value: unknown) =>
    key.endsWith("Ms") && typeof value === "number" ? Math.round(value) : value;
  return JSON.stringify(summary, wholeMs, 2);
}
