import type { FailedText } from "../domain/embedding.js";
import type { SourceConfig } from "../domain/source.js";
import { PolyGatewayError } from "../errors.js";
import type { LearnedBatchLimits } from "./embedding-limits.js";
import { isOfOneText, ofText, splitAfter } from "./embedding-split.js";

/** Texts [from, to) of a call's list. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

export interface EmbeddedRange<Batch> extends TextRange {
  readonly batch: Batch;
}

/** What came of a range: its batches and the texts without a vector, both in order. */
export interface RangeEnd<Batch> {
  readonly done: EmbeddedRange<Batch>[];
  readonly failed: FailedText[];
}

export interface RangeOptions<Batch> {
  /** One governed call. */
  send(range: TextRange): Promise<Batch>;
  readonly sources: readonly SourceConfig[];
  readonly limits: LearnedBatchLimits;
  /** A text that can't be embedded is left out instead of failing the range. */
  readonly skips: boolean;
}

/**
 * Embeds one batch of texts. A batch that a source refuses for its size, or for what is in it, is cut and sent again in
 * parts, each a governed call of its own: at most 2·log2(n) further calls for each text that is to blame (spec 06, F29).
 */
export async function embedRange<Batch>(range: TextRange, options: RangeOptions<Batch>): Promise<RangeEnd<Batch>> {
  const end: RangeEnd<Batch> = { done: [], failed: [] };
  await embedInto(end, range, options);
  return end;
}

async function embedInto<Batch>(end: RangeEnd<Batch>, range: TextRange, options: RangeOptions<Batch>): Promise<void> {
  const { from, to } = range;
  const { sources, limits, skips } = options;
  if (to - from > limits.smallest) return embedParts(end, stepsOf(range, limits.smallest), options);
  try {
    end.done.push({ from, to, batch: await options.send(range) });
    return;
  } catch (error) {
    const sourceName = PolyGatewayError.isInstance(error) ? error.sourceName : undefined;
    const profileMax = sources.find(({ name }) => name === sourceName)?.profile.embeddingBatchMax;
    const split = splitAfter(error, { from, to, profileMax, resendsInvalid: skips });
    if (split.kind === "isolate") return embedParts(end, rangesBetween(range, split.cuts), options);
    if (split.kind === "size") {
      if (split.isCertain && sourceName !== undefined) limits.learn(sourceName, split.max);
      const failed = end.failed.length;
      await embedParts(end, stepsOf(range, split.max), options);
      // What the halves were taken for is certain only when no text was to blame.
      if (sourceName !== undefined && end.failed.length === failed) limits.learn(sourceName, split.max);
      return;
    }
    if (to - from > 1 || !isOfOneText(error)) throw error;
    const named = ofText(error, from);
    if (!skips) throw named;
    end.failed.push({ index: from, error: named });
  }
}

/** One after the other, so that the first text to blame is found first. */
async function embedParts<Batch>(
  end: RangeEnd<Batch>,
  parts: Iterable<TextRange>,
  options: RangeOptions<Batch>,
): Promise<void> {
  for (const part of parts) await embedInto(end, part, options);
}

function* stepsOf({ from, to }: TextRange, length: number): Generator<TextRange> {
  for (let at = from; at < to; at += length) yield { from: at, to: Math.min(at + length, to) };
}

function rangesBetween({ from, to }: TextRange, cuts: readonly number[]): TextRange[] {
  const edges = [from, ...cuts, to];
  return cuts.concat(to).map((edge, at) => ({ from: edges[at]!, to: edge }));
}
