import { stat } from "node:fs/promises";
import { countOf } from "../domain/count-of.js";
import { createIdSet, type IdSet } from "./done-set.js";
import { BATCH_COMMAND, type BatchForm } from "./form.js";
import { cutTornLine, filterOut, readOut } from "./out-file.js";
import { type Places, unwritableOutput } from "./places.js";
import { compareInput, type InputIdentity, type Ties, writeTies } from "./ties.js";
import { BatchRefusedError } from "./types.js";

export interface PreparedOut {
  readonly batchId: string;
  /** Ids that have their line in OUT. */
  readonly done: IdSet;
  /** How many of them are lines of this run. */
  readonly finished: number;
  /** Failure lines among those. */
  readonly failed: number;
  /** As they stand in the file; a device has none. */
  readonly ties: Ties | undefined;
}

export interface PrepareOptions {
  readonly input: InputIdentity;
  readonly prefixSha256: string | undefined;
  /** What `readTies` gave before IN was read. */
  readonly ties: Ties | undefined;
  readonly retryFailed: boolean;
  /** The lines of this run. */
  readonly isDue: (lineId: string) => boolean;
  readonly form: Pick<BatchForm, "entry" | "writtenBy" | "models" | "unit">;
  readonly newBatchId: () => string;
  readonly startedAt: string;
  readonly onNote: (text: string) => void;
}

/**
 * Makes OUT ready to be appended to: its own (or refused), without a torn line, tied to IN. The ties are on disk before
 * OUT has its first line, so that a line of OUT can always be told from somebody else's.
 */
export async function prepareOut(places: Places, options: PrepareOptions): Promise<PreparedOut> {
  if (places.outIsDevice) {
    options.onNote(`${places.outPath} is a device: a run that is stopped can't go on from it.`);
    return { batchId: options.newBatchId(), done: createIdSet(), finished: 0, failed: 0, ties: undefined };
  }
  try {
    const relation = compare(places, options);
    // Without an OUT the user has started over; its old rows belong to a batch of the past.
    const goOn = relation !== "other" && places.outExists;
    const kept = goOn ? options.ties : undefined;
    const hasLines = places.outExists && (await hasBytes(places.outPath));
    if (kept === undefined && hasLines) throw foreignOutput(places, options.ties);
    const { writtenBy, models } = options.form;
    // Its lines would be taken for damaged ones.
    if (kept !== undefined && hasLines) refuseOtherForm(places, kept.writtenBy ?? BATCH_COMMAND, writtenBy);
    if (hasLines) refuseOtherModels(places, kept?.models, models);
    const ties: Ties = kept ?? {
      version: 1,
      batchId: options.newBatchId(),
      startedAt: options.startedAt,
      input: options.input,
      ...(writtenBy === BATCH_COMMAND ? {} : { writtenBy }),
      ...(models === undefined ? {} : { models }),
    };
    const isNew = kept === undefined || relation === "grown" || gainsFirstLine(kept.input, options.input);
    const written = isNew ? { ...ties, input: options.input } : ties;
    const loaded = hasLines ? await loadOut(places.outPath, options) : { done: createIdSet(), finished: 0, failed: 0 };
    if (isNew) await writeTies(places.tiesPath, written);
    if (relation === "grown" && goOn)
      options.onNote(`${places.inName} has new ${options.form.unit ?? "line"}s since the last run; they are run too.`);
    return { batchId: ties.batchId, ...loaded, ties: written };
  } catch (error) {
    throw BatchRefusedError.isInstance(error) ? error : unwritableOutput(places.outPath, error);
  }
}

function refuseOtherForm({ outPath }: Places, before: string, now: string): void {
  if (before === now) return;
  throw new BatchRefusedError(
    "out_foreign",
    `${outPath} was begun by \`${before}\`, and \`${now}\` writes other lines. Go on with the first, or choose another output.`,
  );
}

/** Vectors of different models can't be compared with each other. */
function refuseOtherModels({ outPath }: Places, before?: readonly string[], now?: readonly string[]): void {
  if (before === undefined || now === undefined || before.join("\n") === now.join("\n")) return;
  throw new BatchRefusedError(
    "out_foreign",
    `${outPath} was begun with ${before.join(", ")}, and the scope has ${now.join(", ")} now: their vectors can't be compared with each other. Go on with the first, or choose another output.`,
  );
}

function compare(places: Places, { ties, input, prefixSha256 }: PrepareOptions): "same" | "grown" | "other" {
  return ties === undefined || !places.outExists ? "other" : compareInput(ties.input, input, prefixSha256);
}

function gainsFirstLine(before: InputIdentity, now: InputIdentity): boolean {
  return (
    before.kind === "stream" && now.kind === "stream" && before.firstLineSha256 === null && now.firstLineSha256 !== null
  );
}

async function hasBytes(path: string): Promise<boolean> {
  const { size } = await stat(path);
  return size > 0;
}

function foreignOutput(places: Places, ties: Ties | undefined): BatchRefusedError {
  const { outPath, tiesPath, inName } = places;
  if (ties === undefined) {
    return new BatchRefusedError(
      "out_foreign",
      `${outPath} has content already, and no ${tiesPath} says that it belongs to ${inName}. Choose another output, or move it away.`,
    );
  }
  const other = ties.input.kind === "file" ? ties.input.path : "another stream";
  return new BatchRefusedError(
    "out_other_in",
    `${outPath} belongs to ${other} as it was at ${ties.startedAt}, not to ${inName} as it is now. Choose another output, or move ${outPath} and ${tiesPath} away.`,
  );
}

async function loadOut(path: string, options: PrepareOptions): Promise<Omit<PreparedOut, "batchId" | "ties">> {
  const torn = await cutTornLine(path);
  if (torn > 0) options.onNote(`A line that was only half written (${countOf(torn, "byte")}) was cut from ${path}.`);
  const loaded = await countOut(path, options);
  const retried = options.retryFailed ? loaded.failed : 0;
  if (loaded.damaged > 0) {
    options.onNote(`${loaded.damaged} damaged or repeated lines were taken out of ${path}.`);
  }
  if (retried === 0 && loaded.damaged === 0) return loaded;
  const seen = createIdSet();
  await filterOut(
    path,
    options.form.entry,
    (entry) =>
      entry !== undefined &&
      seen.add(entry.lineId) &&
      !(options.retryFailed && entry.failed && options.isDue(entry.lineId)),
  );
  return countOut(path, options);
}

async function countOut(
  path: string,
  { form, isDue }: Pick<PrepareOptions, "form" | "isDue">,
): Promise<Omit<PreparedOut, "batchId" | "ties"> & { readonly damaged: number }> {
  const done = createIdSet();
  let finished = 0;
  let failed = 0;
  let damaged = 0;
  for await (const entry of readOut(path, form.entry)) {
    if (entry === undefined || !done.add(entry.lineId)) damaged++;
    else if (isDue(entry.lineId)) {
      finished++;
      if (entry.failed) failed++;
    }
  }
  return { done, finished, failed, damaged };
}
