import { groupTexts } from "../batch/text-groups.js";
import { type VectorFormOptions, vectorForm } from "../batch/vector-form.js";
import { createVectorWidth } from "../batch/vector-width.js";
import type { BatchCaller } from "./batch-caller.js";
import { batchHooks } from "./batch-telemetry.js";
import { type ClientRequest, openEmbeddingLines } from "./client.js";
import { mostEmbedRequests } from "./embed-requests.js";

export interface EmbedCallerRequest extends Omit<ClientRequest, "batch">, Omit<VectorFormOptions, "width"> {
  readonly note: (text: string) => void;
  /** Batches in flight. */
  readonly concurrency?: number;
}

/** Who makes the calls of `polygateway embed`: this process, with the texts of many lines in a request. */
export function openEmbedCaller(request: EmbedCallerRequest): BatchCaller {
  const opened = openEmbeddingLines({ ...request, batch: true });
  const { lines, embedder, embedding, runtime, store, defaultConcurrency, close } = opened;
  const { batchSize, expectedDim } = embedding;
  const width = createVectorWidth(request.dimensions ?? expectedDim);
  const batches = request.concurrency ?? Math.min(defaultConcurrency, mostEmbedRequests(batchSize));
  const hooks = store === undefined ? {} : batchHooks(store, runtime, request.note, false);
  return {
    batchOptions: {
      ...hooks,
      client: { ...lines, call: groupTexts(embedder, { batchSize, batches, runtime, width }) },
      form: vectorForm({ ...request, models: lines.models, width }),
      runtime,
      // A second set of lines is ready when a request ends.
      concurrency: 2 * batches * batchSize,
    },
    close,
  };
}
