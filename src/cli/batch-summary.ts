import type { BatchSummary } from "../batch/types.js";
import { countsText, moneyText, sourcesInTrouble, sumOf, troubleText } from "./batch-view.js";
import { ASK_LIMITS, ASK_SOURCES, CORRECT_SOURCES } from "./failure.js";
import { formatCount, formatDuration, plural } from "./format.js";
import { LINE_WORDS, type RunWords } from "./run-words.js";
import { printable, type Style } from "./terminal.js";

/** Files of a run, as the user wrote them. */
export interface RunFiles {
  readonly inPath: string;
  readonly outPath: string;
}

/** OUT stays resumable however a run ended. */
function nextStep({ exitCode, stop, left }: BatchSummary, { item }: RunWords): string {
  const rest = left === undefined || left === 0 ? "the rest" : `the ${plural(left, item)} left; none is lost`;
  const again = `the same command again to do ${rest}.`;
  if (exitCode === 1) return `Correct that, then run ${again}`;
  return stop?.kind === "all_sources_dead" ? `${CORRECT_SOURCES} Run ${again}` : `Run ${again}`;
}

/** Why it ended before its input did, what the sources have to do with it, and what to do next; none when it did not. */
export function stopLines(summary: BatchSummary, resumable: boolean, words: RunWords = LINE_WORDS): string[] {
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
  { item, done }: RunWords,
): string[] {
  const nothingRun = summary.stop === null && summary.done + summary.failed === 0;
  if (files !== undefined && nothingRun) {
    const { skipped } = summary;
    const inName = files.inPath === "-" ? "standard input" : files.inPath;
    if (skipped === 0) return [style.yellow(`Nothing to do: no ${item}s in ${inName}.`)];
    const all = skipped === 1 ? `the only ${item} is` : `all ${formatCount(skipped)} ${item}s are`;
    return [`${style.green("Nothing left to do")}: ${all} in ${files.outPath}.`];
  }
  const verdict =
    summary.exitCode === 0
      ? style.green(`All ${item}s are ${done}`)
      : style.yellow(summary.stop ? "Stopped early" : "Finished");
  const money = moneyText({ ...summary, projectedCost: null });
  return [
    `${verdict}: ${countsText(summary)} in ${formatDuration(summary.elapsedMs)}, ${plural(summary.tokens, "token")}, ${money}.`,
    ...(files === undefined ? [] : [`Results: ${files.outPath}`, sessionText(summary.batchId)]),
  ];
}

/** Of all runs into the same OUT. */
const sessionText = (id: string): string => `Session: ${id}, for \`polygateway trace\` and \`report --session\``;

function deathLines({ workers = [] }: BatchSummary, { item }: RunWords): string[] {
  const [died, handedOn] = [sumOf(workers, "deaths"), sumOf(workers, "handedOn")];
  if (died === 0) return [];
  const lines = handedOn === 0 ? "" : ` ${plural(handedOn, item)} in flight then: run again, possibly paid twice.`;
  return [`Workers died ${plural(died, "time")} in this run.${lines}`];
}

/** The end of a run in a few lines. Without `files` it can't be resumed, and nothing is said of that. */
export function summaryLines(
  summary: BatchSummary,
  files: RunFiles | undefined,
  style: Style,
  words: RunWords = LINE_WORDS,
): string[] {
  const { item, answer } = words;
  const lines = outcomeLines(summary, files, style, words);
  if (summary.badLines > 0) lines.push(`${plural(summary.badLines, "broken line")} left out.`);
  const failed = summary.failed + summary.skippedFailed;
  if (failed > 0) {
    lines.push(`${plural(failed, item)} ended with an error instead of ${answer}; --retry-failed tries again.`);
  }
  if (summary.requeues > 0)
    lines.push(`${capital(item)}s were put back for a later try ${plural(summary.requeues, "time")}.`);
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
