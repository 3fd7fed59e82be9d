import type { EmbedOptions, EmbedResult } from "../../domain/embedding.js";
import type { BatchClient } from "../types.js";
import type { EmbeddingLine, LineAnswer } from "./kinds.js";

/** As much of EmbeddingClient as asks for vectors. */
export interface LineEmbedder {
  embed(texts: readonly string[], options: EmbedOptions): Promise<EmbedResult<number[] | Float32Array | null>>;
}

/** The slice of EmbeddingClient that embedding lines need. */
export interface EmbeddingLineClient
  extends LineEmbedder,
    Pick<BatchClient, "scope" | "models" | "snapshot" | "leases"> {}

/** Embedding lines, answered by a client for embeddings; each line is at least one governed call. */
export function embeddingLines(client: EmbeddingLineClient): BatchClient {
  return {
    kind: "embedding",
    scope: client.scope,
    models: client.models,
    async call({ request, sessionId, parentCallId }, signal) {
      if (request.kind !== "embedding") {
        throw new TypeError(`a line of kind ${request.kind} came to a client for embeddings`);
      }
      const { kind: _, texts, base64, ...wishes } = request;
      const options = { ...wishes, sessionId, parentCallId, signal, vectors: base64 ? "float32" : "number" } as const;
      return answerOf(request, await client.embed(texts, options));
    },
    snapshot: () => client.snapshot(),
    leases: () => client.leases(),
  };
}

function answerOf(
  { base64 }: EmbeddingLine,
  { vectors, batches, ...result }: EmbedResult<number[] | Float32Array | null>,
): LineAnswer {
  const { promptTokens, callId, cost, model = "", sourceName = "", latencyMs = 0 } = result;
  const usage = { promptTokens, totalTokens: promptTokens };
  return {
    callId,
    requestId: callId,
    sourceName,
    ...(batches.length > 1 ? { calls: batches.length } : {}),
    attempts: batches.reduce((sum, { attempts }) => sum + attempts, 0),
    cost,
    latencyMs,
    usage,
    body: {
      object: "list",
      // None is missing where bad texts are not skipped.
      data: vectors.map((vector, index) => ({
        object: "embedding",
        index,
        embedding: writtenVector(vector!, base64),
      })),
      model,
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    },
  };
}

/** A vector as it stands in OUT. */
export type WrittenVector = string | readonly number[];

export function writtenVector(vector: number[] | Float32Array, base64: boolean): WrittenVector {
  return base64 ? base64Of(vector) : vector instanceof Float32Array ? [...vector] : vector;
}

const BYTES_PER_FLOAT = 4;

function base64Of(vector: number[] | Float32Array): string {
  const bytes = Buffer.alloc(vector.length * BYTES_PER_FLOAT);
  for (const [at, number] of vector.entries()) bytes.writeFloatLE(number, at * BYTES_PER_FLOAT);
  return bytes.toString("base64");
}
