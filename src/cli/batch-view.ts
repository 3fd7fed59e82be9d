import type { BatchProgress, BatchSnapshot, BatchSummary } from "../batch/types.js";
import type { SourceSnapshot } from "../domain/tick.js";
import { formatCount, formatDuration, formatMoney, formatRate, plural, progressBar } from "./format.js";
import { tableLines } from "./table.js";
import { printable, type Style } from "./terminal.js";

const BAR_CELLS = 30;
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
  return counts.join(" · ");
}

function moneyText(progress: BatchProgress): string {
  if (progress.cost === null) return "cost unknown (no prices)";
  const atLeast = progress.unpriced > 0 ? "at least " : "";
  const projected = progress.projectedCost === null ? "" : `, about ${formatMoney(progress.projectedCost)} in all`;
  return `cost ${atLeast}${formatMoney(progress.cost)}${projected}`;
}

function timeText(progress: BatchProgress): string {
  const left = progress.etaMs === null || progress.left === 0 ? "" : `, about ${formatDuration(progress.etaMs)} left`;
  return `${formatDuration(progress.elapsedMs)}${left}`;
}

function ratesText(progress: BatchProgress): string {
  return `${formatRate(progress.callsPerSecond)} calls/s · ${formatCount(progress.tokensPerSecond)} tokens/s`;
}

/** What a source is doing, in words. */
function sourceState(source: SourceSnapshot, style: Style): string {
  const last = source.lastError ? printable(source.lastError.message) : "";
  if (source.dead) return style.red(`dead: ${last || "key, model or endpoint refused"}`);
  if (source.state === "open") {
    const resting = `resting ${formatDuration(source.openForMs)}`;
    return style.yellow(last === "" ? resting : `${resting}: ${last}`);
  }
  if (source.state === "half_open") return style.yellow(source.probeInFlight ? "probing" : "waiting for a probe");
  if (source.coolingMs > 0) return style.yellow(`rate-limited, ${formatDuration(source.coolingMs)}`);
  return style.green("ok");
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

function waitingText(progress: BatchProgress): string {
  const waiting = progress.snapshot?.waiting;
  const parts: string[] = [];
  if (progress.draining && progress.inFlight > 0)
    parts.push(`finishing ${plural(progress.inFlight, "call")} in flight`);
  if (waiting && waiting.count > 0) {
    parts.push(`${plural(waiting.count, "call")} waiting for a slot, the longest ${formatDuration(waiting.oldestMs)}`);
  }
  if (progress.requeued > 0) parts.push(`${plural(progress.requeued, "line")} put back for a later try`);
  if (progress.badLines > 0) parts.push(`${plural(progress.badLines, "broken line")} left out`);
  return parts.join(" · ");
}

/** The block drawn over itself on a terminal. */
export function progressBlock(progress: BatchProgress, style: Style): string[] {
  const { total } = progress;
  const share = total === undefined || total === 0 ? 0 : finishedLines(progress) / total;
  const bar = total === undefined ? "" : `${style.cyan(progressBar(share, BAR_CELLS))} ${shareText(progress)}  `;
  const lines = [
    `${bar}${countsText(progress)}`,
    `${ratesText(progress)} · ${moneyText(progress)} · ${timeText(progress)}`,
  ];
  if (progress.snapshot !== null) lines.push(...sourceLines(progress, progress.snapshot, style));
  // Always there, so that the block doesn't jump.
  lines.push(style.dim(waitingText(progress)));
  return lines;
}

/** One plain line, for logs and pipes. */
export function progressLine(progress: BatchProgress): string {
  const share = shareText(progress);
  return [
    ...(share === "" ? [] : [share]),
    countsText(progress),
    ratesText(progress),
    moneyText(progress),
    timeText(progress),
    ...(progress.draining && progress.inFlight > 0 ? [`finishing ${plural(progress.inFlight, "call")}`] : []),
  ].join(" · ");
}

/** OUT stays resumable however a run ended. */
function nextStep(summary: BatchSummary): string {
  const first = summary.exitCode === 1 ? "Correct that, then run" : "Run";
  return `${first} the same command again to do the rest.`;
}

/** The end of a run in a few lines: what came out, what it took, what to do next. */
export function summaryLines(summary: BatchSummary, outPath: string | undefined, style: Style): string[] {
  const ok = summary.exitCode === 0;
  const verdict = ok
    ? style.green("All lines are answered")
    : style.yellow(summary.stop ? "Stopped early" : "Finished");
  const lines = [
    `${verdict}: ${countsText(summary)} in ${formatDuration(summary.elapsedMs)}, ${formatCount(summary.tokens)} tokens, ${moneyText(
      { ...summary, projectedCost: null },
    )}.`,
    ...(outPath === undefined ? [] : [`Results: ${outPath}`]),
  ];
  if (summary.badLines > 0) lines.push(`${plural(summary.badLines, "broken line")} left out.`);
  const failed = summary.failed + summary.skippedFailed;
  if (failed > 0) {
    const holds = failed === 1 ? "1 line holds an error" : `${formatCount(failed)} lines hold errors`;
    lines.push(`${holds} instead of an answer; try them again with --retry-failed.`);
  }
  if (summary.requeues > 0) lines.push(`Lines were put back for a later try ${plural(summary.requeues, "time")}.`);
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
  if (summary.stop !== null) lines.push(style.yellow(`${printable(summary.stop.reason)} ${nextStep(summary)}`));
  return lines;
}
