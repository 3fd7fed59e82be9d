import type { EmbeddingConfig, EmbedOptions, EmbedResult } from "../domain/embedding.js";
import { gatherBounded } from "../gather-bounded.js";
import type { GovernEnvironment } from "../governance/call.js";
import { govern } from "../governance/govern.js";
import type { Answered, Governed } from "../governance/operation.js";
import type { EmbeddingTransport } from "../ports/transport.js";
import type { CallLifetime } from "./call-lifetime.js";
import { type EmbeddedTexts, EmbeddingOperation, type EmbedRun } from "./embedding-operation.js";
import { type CheckedEmbed, checkEmbed } from "./embedding-request.js";
import type { Row } from "./embedding-rows.js";

export interface Embedder {
  embed(texts: readonly string[], options?: EmbedOptions): Promise<EmbedResult<Row>>;
}

interface DoneBatch {
  readonly governed: Governed<unknown, EmbeddedTexts>;
  readonly answered: Answered<EmbeddedTexts>;
}

/** Embeddings on the governed loop: each batch of texts is a call of its own (spec 06). */
export function createEmbedder(
  environment: GovernEnvironment,
  transport: EmbeddingTransport,
  lifetime: CallLifetime,
  settings: EmbeddingConfig,
): Embedder {
  const { config, runtime, telemetry } = environment;
  const { sources } = config;
  const shared = {
    sources,
    candidates: sources.map((source) => source.name),
    countsTokens: config.global.tpm > 0 || sources.some((source) => source.tpm > 0),
    describes: telemetry !== null,
    transport,
  };

  function runOf({ dimensions, vectors }: CheckedEmbed): EmbedRun {
    const form = { float32: vectors === "float32", normalize: settings.normalize };
    return { ...shared, dimensions, form, dim: dimensions ?? settings.expectedDim };
  }

  async function embedAll(checked: CheckedEmbed): Promise<DoneBatch[]> {
    const { texts, signal, deadlineMs = config.deadlineMs } = checked;
    const { batchSize, concurrency } = settings;
    const run = runOf(checked);
    const endsAtMs = deadlineMs === undefined ? undefined : runtime.now() + deadlineMs;

    async function embedBatch(from: number, stop: AbortSignal | undefined): Promise<DoneBatch> {
      const operation = new EmbeddingOperation(run, texts.slice(from, from + batchSize), from);
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

    function* batches(): Generator<(stop: AbortSignal) => Promise<DoneBatch>> {
      for (let from = 0; from < texts.length; from += batchSize) yield (stop) => embedBatch(from, stop);
    }

    // A caller who has left already gets the row of one cancelled call, as everywhere.
    if (texts.length <= batchSize || signal?.aborted === true) return [await embedBatch(0, signal)];
    return gatherBounded(batches(), concurrency, signal === undefined ? {} : { signal });
  }

  return {
    async embed(texts, options) {
      lifetime.enter();
      try {
        const checked = checkEmbed(texts, options, settings.expectedDim);
        if (checked.texts.length === 0) {
          checked.signal?.throwIfAborted();
          return nothing();
        }
        return resultOf(await embedAll(checked));
      } finally {
        lifetime.leave();
      }
    },
  };
}

/** The fixed answer to no texts. */
function nothing(): EmbedResult<Row> {
  return { vectors: [], dim: 0, promptTokens: 0, usageSource: "measured", cost: 0, callId: "", batches: [] };
}

const NANOS_PER_UNIT = 1e9;

function costOf(costNanos: bigint | null): number | null {
  return costNanos === null ? null : Number(costNanos) / NANOS_PER_UNIT;
}

/** Spec 06 "Aggregate". */
function resultOf(done: readonly DoneBatch[]): EmbedResult<Row> {
  const { governed: first, answered } = done[0]!;
  const vectors: Row[] = [];
  let promptTokens = 0;
  let latencyMs = 0;
  let costNanos: bigint | null = 0n;
  let usageSource: EmbedResult["usageSource"] = "measured";
  for (const batch of done) {
    const { completion, facts } = batch.answered;
    for (const row of completion.rows) vectors.push(row);
    promptTokens += facts.usage.promptTokens;
    latencyMs += facts.latencyMs;
    if (facts.usage.source === "estimated") usageSource = "estimated";
    costNanos = costNanos === null || batch.answered.costNanos === null ? null : costNanos + batch.answered.costNanos;
  }
  return {
    vectors,
    dim: answered.completion.dim,
    promptTokens,
    usageSource,
    cost: costOf(costNanos),
    callId: first.callId,
    batches: done.map(({ governed, answered: { costNanos: nanos } }) => ({
      callId: governed.callId,
      sourceName: governed.source.name,
      cost: costOf(nanos),
    })),
    model: first.source.model,
    provider: first.source.provider,
    sourceName: first.source.name,
    latencyMs,
  };
}
