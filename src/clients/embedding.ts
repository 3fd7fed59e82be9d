import type { EmbeddingConfig, EmbedOptions, EmbedResult } from "../domain/embedding.js";
import { gatherBounded } from "../gather-bounded.js";
import type { GovernEnvironment } from "../governance/call.js";
import { govern } from "../governance/govern.js";
import type { EmbeddingTransport } from "../ports/transport.js";
import type { CallLifetime } from "./call-lifetime.js";
import { createBatchLimits } from "./embedding-limits.js";
import { createModelSources } from "./embedding-models.js";
import { EmbeddingOperation, type EmbedRun } from "./embedding-operation.js";
import { embedRange, type RangeEnd, type TextRange } from "./embedding-ranges.js";
import { type CheckedEmbed, checkEmbed } from "./embedding-request.js";
import { type DoneBatch, nothing, resultOf } from "./embedding-result.js";
import type { Row } from "./embedding-rows.js";

export interface Embedder {
  embed(texts: readonly string[], options?: EmbedOptions): Promise<EmbedResult<Row | null>>;
  /** Most texts a request by source name, of the sources that refused a batch as too large. */
  batchLimits(): Readonly<Record<string, number>>;
}

/** Embeddings on the governed loop: each batch of texts is a call of its own (spec 06). */
export function createEmbedder(
  environment: GovernEnvironment,
  transport: EmbeddingTransport,
  lifetime: CallLifetime,
  settings: EmbeddingConfig,
): Embedder {
  const { config, runtime, telemetry, warn } = environment;
  const { sources } = config;
  const limits = createBatchLimits(config.scope, warn);
  const sourcesOf = createModelSources(config);

  function runOf({ model, dimensions, expectedDim = settings.expectedDim, vectors }: CheckedEmbed): EmbedRun {
    const form = { float32: vectors === "float32", normalize: settings.normalize };
    const dim = dimensions ?? expectedDim;
    return { ...sourcesOf(model), describes: telemetry !== null, transport, dimensions, form, dim };
  }

  async function embedAll(checked: CheckedEmbed): Promise<RangeEnd<DoneBatch>[]> {
    const { texts, signal, deadlineMs = config.deadlineMs, onBadItem } = checked;
    const { concurrency } = settings;
    const run = runOf(checked);
    const endsAtMs = deadlineMs === undefined ? undefined : runtime.now() + deadlineMs;

    async function send({ from, to }: TextRange, stop: AbortSignal | undefined): Promise<DoneBatch> {
      const operation = new EmbeddingOperation(run, texts.slice(from, to), from);
      const governed = await govern(environment, operation, {
        ...checked,
        ...(stop === undefined ? {} : { signal: stop }),
        // The deadline is that of the whole: a later batch gets what is left.
        ...(endsAtMs === undefined
          ? {}
          : { deadlineMs: Math.max(0, endsAtMs - runtime.now()), wholeDeadlineMs: deadlineMs! }),
      });
      return { governed, answered: await governed.ended };
    }

    function embedBatch(batch: TextRange, stop: AbortSignal | undefined): Promise<RangeEnd<DoneBatch>> {
      const skips = onBadItem === "skip";
      return embedRange(batch, { send: (range) => send(range, stop), sources, limits, skips });
    }

    /** Cut only when there is room for the next one, so that a limit learned meanwhile counts. */
    function* batches(): Generator<TextRange> {
      for (const { from, to } of sendable(checked)) {
        for (let at = from; at < to; ) {
          const end = Math.min(to, at + Math.min(settings.batchSize, limits.smallest));
          yield { from: at, to: end };
          at = end;
        }
      }
    }

    function* tasks(): Generator<(stop: AbortSignal) => Promise<RangeEnd<DoneBatch>>> {
      for (const batch of batches()) yield (stop) => embedBatch(batch, stop);
    }

    // A caller who has left already gets the row of one cancelled call, as everywhere.
    const [first] = batches();
    if (first === undefined) return [];
    const isOnly = first.to - first.from === texts.length;
    if (isOnly || signal?.aborted === true) return [await embedBatch(first, signal)];
    return gatherBounded(tasks(), concurrency, signal === undefined ? {} : { signal });
  }

  return {
    async embed(texts, options) {
      lifetime.enter();
      try {
        const checked = checkEmbed(texts, options, settings.expectedDim);
        const { length } = checked.texts;
        const skips = checked.onBadItem === "skip";
        if (length === checked.unsendable.length) {
          checked.signal?.throwIfAborted();
          return nothing(checked.unsendable, skips);
        }
        const ends = await embedAll(checked);
        const done = ends.flatMap((end) => end.done);
        const failed = [...checked.unsendable, ...ends.flatMap((end) => end.failed)].sort((a, b) => a.index - b.index);
        return done.length === 0 ? nothing(failed, skips) : resultOf(done, length, skips ? failed : undefined);
      } finally {
        lifetime.leave();
      }
    },
    batchLimits: limits.all,
  };
}

/** Texts that stand one after the other, without those that can't be sent. */
function* sendable({ texts, unsendable }: CheckedEmbed): Generator<TextRange> {
  let from = 0;
  for (const { index } of unsendable) {
    if (index > from) yield { from, to: index };
    from = index + 1;
  }
  if (from < texts.length) yield { from, to: texts.length };
}
