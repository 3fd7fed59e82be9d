import type { EmbedResult, FailedText } from "../domain/embedding.js";
import type { Answered, Governed } from "../governance/operation.js";
import type { EmbeddedTexts } from "./embedding-operation.js";
import type { EmbeddedRange } from "./embedding-ranges.js";
import type { Row } from "./embedding-rows.js";

export interface DoneBatch {
  readonly governed: Governed<unknown, EmbeddedTexts>;
  readonly answered: Answered<EmbeddedTexts>;
}

/** The fixed answer where no text was embedded; all of them failed, or there were none. */
export function nothing(failed: readonly FailedText[], skips: boolean): EmbedResult<Row | null> {
  const vectors = failed.map(() => null);
  const empty = { dim: 0, promptTokens: 0, usageSource: "measured", cost: 0, callId: "", batches: [] } as const;
  return { vectors, ...(skips ? { failed } : {}), ...empty };
}

const NANOS_PER_UNIT = 1e9;

function costOf(costNanos: bigint | null): number | null {
  return costNanos === null ? null : Number(costNanos) / NANOS_PER_UNIT;
}

/** Spec 06 "Aggregate". `length` = number of texts; `failed` absent where none may. */
export function resultOf(
  done: readonly EmbeddedRange<DoneBatch>[],
  length: number,
  failed: readonly FailedText[] | undefined,
): EmbedResult<Row | null> {
  const { governed: first, answered } = done[0]!.batch;
  const vectors = new Array<Row | null>(length).fill(null);
  let promptTokens = 0;
  let latencyMs = 0;
  let costNanos: bigint | null = 0n;
  let usageSource: EmbedResult["usageSource"] = "measured";
  for (const { from, batch } of done) {
    const { completion, facts } = batch.answered;
    for (const [at, row] of completion.rows.entries()) vectors[from + at] = row;
    promptTokens += facts.usage.promptTokens;
    latencyMs += facts.latencyMs;
    if (facts.usage.source === "estimated") usageSource = "estimated";
    costNanos = costNanos === null || batch.answered.costNanos === null ? null : costNanos + batch.answered.costNanos;
  }
  return {
    vectors,
    ...(failed === undefined ? {} : { failed }),
    dim: answered.completion.dim,
    promptTokens,
    usageSource,
    cost: costOf(costNanos),
    callId: first.callId,
    batches: done.map(({ from, to, batch: { governed, answered: answer } }) => ({
      from,
      count: to - from,
      callId: governed.callId,
      sourceName: governed.source.name,
      cost: costOf(answer.costNanos),
      promptTokens: answer.facts.usage.promptTokens,
      attempts: governed.attempts,
    })),
    model: first.source.model,
    provider: first.source.provider,
    sourceName: first.source.name,
    latencyMs,
  };
}
