import type { EmbedOptions, EmbedResult } from "../../domain/embedding.js";
import type { BatchClient } from "../types.js";
import type { EmbeddingLine, LineAnswer } from "./kinds.js";

/** The slice of EmbeddingClient that embedding lines need. */
export interface EmbeddingLineClient extends Pick<BatchClient, "scope" | "models" | "snapshot" | "leases"> {
  embed(texts: readonly string[], options: EmbedOptions & { vectors: "float32" }): Promise<EmbedResult<Float32Array>>;
}

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
      const { texts, dimensions } = request;
      const options = { sessionId, parentCallId, signal, ...(dimensions === undefined ? {} : { dimensions }) };
      return answerOf(request, await client.embed(texts, { ...options, vectors: "float32" }));
    },
    snapshot: () => client.snapshot(),
    leases: () => client.leases(),
  };
}

/** The reply of OpenAI's endpoint. */
function answerOf({ encoding }: EmbeddingLine, result: EmbedResult<Float32Array>): LineAnswer {
  const { vectors, promptTokens, model = "", callId, sourceName = "", cost, latencyMs = 0, batches } = result;
  const body = {
    object: "list",
    data: vectors.map((vector, index) => ({ object: "embedding", index, embedding: written(vector, encoding) })),
    model,
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  };
  return {
    callId,
    requestId: callId,
    sourceName,
    attempts: batches.length,
    cost,
    latencyMs,
    usage: { totalTokens: promptTokens },
    body,
  };
}

function written(vector: Float32Array, encoding: EmbeddingLine["encoding"]): string | number[] {
  if (encoding === "float") return Array.from(vector);
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
