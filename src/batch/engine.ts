import { createFeed, type Feed, type LineRule } from "./feed.js";
import { type BatchForm, OPENAI_FORM } from "./form.js";
import { acquireLock, thisProcess } from "./lock.js";
import { type BatchLoop, createLoop } from "./loop.js";
import { type OpenInput, openInput } from "./open-input.js";
import type { OutEntry } from "./out-entry.js";
import { readOut } from "./out-file.js";
import { type AppendFile, createOrderedSink, createSink, openAppendFile } from "./output.js";
import { findPlaces, type Places, unwritableOutput } from "./places.js";
import { type PreparedOut, prepareOut } from "./prepare-out.js";
import { createTally, type Tally } from "./progress.js";
import { reportProgress, type ScopeNow } from "./progress-timer.js";
import { readTies, type Ties, writeTies } from "./ties.js";
import { type BatchExitCode, type BatchOptions, BatchRefusedError, type BatchSummary, type StopKind } from "./types.js";

const DEFAULT_CONCURRENCY = 32;
const DEFAULT_GIVE_UP_AFTER_MS = 15 * 60_000;
const DEFAULT_PROGRESS_EVERY_MS = 250;

/**
 * Runs every line of IN that has no line in OUT yet (spec 08 "batch"). Killed at any moment and run again, every line is
 * exactly once in OUT. Memory is bounded whatever the size of the file.
 *
 * @throws BatchRefusedError when it could not run: nothing was sent. What happens later is told by the summary.
 */
export async function runBatch(options: BatchOptions): Promise<BatchSummary> {
  checkOptions(options);
  const places = findPlaces(options.inPath, options.outPath);
  const { runtime } = options;
  const owner = thisProcess(new Date(runtime.wallNow()).toISOString(), runtime.uuid());
  const release = places.outIsDevice ? () => {} : acquireLock(places.lockPath, owner);
  try {
    return await runLocked(places, options);
  } finally {
    release();
  }
}

function checkOptions({ concurrency = 1, giveUpAfterMs = 1, inPath, stdin }: BatchOptions): void {
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new BatchRefusedError("option", `concurrency = ${concurrency}: it must be a whole number from 1.`);
  }
  if (!(giveUpAfterMs > 0)) {
    throw new BatchRefusedError("option", `giveUpAfterMs = ${giveUpAfterMs}: it must be above 0.`);
  }
  if (inPath === "-" && stdin === undefined) {
    throw new BatchRefusedError("option", "The input is - (stdin), but no stdin was given.");
  }
}

async function runLocked(places: Places, options: BatchOptions): Promise<BatchSummary> {
  const { runtime, onNote = () => {} } = options;
  const ties = places.outIsDevice ? undefined : readTies(places.tiesPath);
  const rule = lineRule(options, onNote);
  const input = await openInput(places, options, rule, ties?.input.kind === "file" ? ties.input.bytes : undefined);
  try {
    const out = await prepareOut(places, {
      input: input.identity,
      prefixSha256: input.scan?.prefixSha256,
      ties,
      retryFailed: options.retryFailed ?? false,
      isDue: options.isDue ?? (() => true),
      form: formOf(options),
      newBatchId: () => runtime.uuid(),
      startedAt: new Date(runtime.wallNow()).toISOString(),
      onNote,
    });
    const badLines = input.scan?.badLines ?? 0;
    if (badLines > 0) onNote(`Lines of ${places.inName} that can't be read and are left out: ${badLines}.`);
    return await runPrepared(places, options, rule, input, out);
  } finally {
    input.reader.close();
  }
}

function formOf({ form = OPENAI_FORM }: BatchOptions): BatchForm {
  return form;
}

function lineRule(options: BatchOptions, onNote: (text: string) => void): LineRule {
  const { client, strictModel = false } = options;
  let noted = false;
  return {
    parse: formOf(options).parse,
    scope: client.scope,
    kind: client.kind,
    models: client.models,
    strictModel,
    isDue: options.isDue,
    onIgnoredModel(model) {
      if (noted) return;
      noted = true;
      const known = client.models.join(", ");
      onNote(
        `Lines ask for the model ${JSON.stringify(model)}, which no source of scope ${client.scope} has: it is ignored, and any source (${known}) may answer. --strict-model refuses such lines.`,
      );
    },
  };
}

async function runPrepared(
  places: Places,
  options: BatchOptions,
  rule: LineRule,
  input: OpenInput,
  out: PreparedOut,
): Promise<BatchSummary> {
  const { client, runtime, onProgress } = options;
  const linesToDo = input.scan === undefined ? undefined : Math.max(0, input.scan.lines - out.finished);
  const { batchId } = out;
  await options.onReady?.({
    batchId,
    outPath: places.outPath,
    linesToDo,
    readOut: () => entriesOf(places, formOf(options)),
  });
  const paidTwice = await countPaidTwice(options, out);
  const tally = createTally({
    batchId,
    skipped: out.finished,
    skippedFailed: out.failed,
    startedMs: runtime.now(),
  });
  const { done, ties } = out;
  const earlier = ties?.input.kind === "stream" ? ties.input.numbered : undefined;
  const { skipBadLines = false } = options;
  const isStream = input.scan === undefined;
  const feed = createFeed(input.reader, { ...rule, done, skipBadLines, isStream, earlier });
  const loop = assembleLoop(await openOut(places), feed, options, input, out, tally, linesToDo);
  const progressNow = (scope: ScopeNow) => ({
    ...tally.report(runtime.now(), loop.counts(), scope),
    ...(client.workers === undefined ? {} : { workers: client.workers() }),
  });
  const reporter = reportProgress(
    client,
    runtime,
    options.progressEveryMs ?? DEFAULT_PROGRESS_EVERY_MS,
    onProgress && ((scope) => onProgress(progressNow(scope))),
  );
  const unlink = linkSignals(options, loop);
  const stop = await loop.run();
  unlink();
  reporter.stop();
  await reporter.refresh();
  await keepSeen(places, ties, feed);
  const progress = progressNow(reporter.scope);
  // Nothing waits any more, whatever it ended of.
  onProgress?.({ ...progress, limitsAway: false });
  return summarize({ ...progress, ...paidTwice, stop, answersNotWritten: tally.answersNotWritten });
}

/** So that the next run on a stream knows whether it is the same. A run that is killed leaves what was kept before. */
async function keepSeen({ tiesPath }: Places, ties: Ties | undefined, { numbered }: Feed): Promise<void> {
  if (ties?.input.kind !== "stream" || numbered === undefined) return;
  // The run has ended as it has: all that is lost is this comparison.
  await writeTies(tiesPath, { ...ties, input: { ...ties.input, numbered } }).catch(() => {});
}

function assembleLoop(
  file: AppendFile,
  feed: Feed,
  options: BatchOptions,
  input: OpenInput,
  out: PreparedOut,
  tally: Tally,
  linesToDo: number | undefined,
): BatchLoop {
  const { client, runtime, ordered = false } = options;
  const plainSink = createSink(file, runtime, (error) => loop.stop("write_failed", syncTrouble(error)));
  const loop = createLoop({
    client,
    runtime,
    feed,
    form: formOf(options),
    sink: ordered ? createOrderedSink(plainSink) : plainSink,
    ordered,
    tally,
    batchId: out.batchId,
    concurrency: options.concurrency ?? DEFAULT_CONCURRENCY,
    giveUpAfterMs: options.giveUpAfterMs ?? DEFAULT_GIVE_UP_AFTER_MS,
    linesToDo,
    badLines: input.scan?.badLines ?? 0,
  });
  return loop;
}

function summarize(end: Omit<BatchSummary, "exitCode">): BatchSummary {
  // A Ctrl-C that came when the last lines were already under way has stopped nothing.
  const harmless = end.left === 0 && (end.stop?.kind === "drained" || end.stop?.kind === "aborted");
  const stop = harmless ? null : end.stop;
  return { ...end, stop, exitCode: exitCodeOf({ ...end, stop }) };
}

const COULD_NOT_RUN: ReadonlySet<StopKind> = new Set(["no_sources", "misconfigured", "input_changed"]);

function exitCodeOf({ stop, failed, skippedFailed }: Omit<BatchSummary, "exitCode">): BatchExitCode {
  if (stop !== null) return COULD_NOT_RUN.has(stop.kind) ? 1 : 3;
  return failed + skippedFailed > 0 ? 2 : 0;
}

async function openOut(places: Places): Promise<AppendFile> {
  try {
    return await openAppendFile(places.outPath);
  } catch (error) {
    throw unwritableOutput(places.outPath, error);
  }
}

function syncTrouble(error: unknown): string {
  return `The output can't be written safely: ${error instanceof Error ? error.message : String(error)}.`;
}

async function countPaidTwice({ earlierAttempts, isDue }: BatchOptions, { batchId, done }: PreparedOut) {
  const count = { answersPaidTwice: 0, possiblyPaidTwice: 0 };
  if (earlierAttempts === undefined) return count;
  for await (const { lineId, outcome } of earlierAttempts(batchId)) {
    if (done.has(lineId) || isDue?.(lineId) === false) continue;
    if (outcome === "success") count.answersPaidTwice++;
    else count.possiblyPaidTwice++;
  }
  return count;
}

async function* entriesOf(places: Places, { entry: read }: BatchForm): AsyncGenerator<OutEntry> {
  // A device gives back nothing that was written, and may never end.
  if (places.outIsDevice || !places.outExists) return;
  for await (const entry of readOut(places.outPath, read)) if (entry !== undefined) yield entry;
}

/** First Ctrl-C drains, second aborts. Returns the function that removes the listeners. */
function linkSignals({ drainSignal, abortSignal }: BatchOptions, loop: BatchLoop): () => void {
  const drain = () => loop.drain();
  const abort = () => loop.abort(abortSignal?.reason);
  if (drainSignal?.aborted) drain();
  if (abortSignal?.aborted) abort();
  drainSignal?.addEventListener("abort", drain);
  abortSignal?.addEventListener("abort", abort);
  return () => {
    drainSignal?.removeEventListener("abort", drain);
    abortSignal?.removeEventListener("abort", abort);
  };
}
