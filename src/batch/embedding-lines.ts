import type { EmbedOptions, EmbedResult } from "../domain/embedding.js";
import type { Usage } from "../domain/usage.js";

/** Lines that ask for vectors: what such a line holds, and what it is answered with. */

/** One request for vectors, as a line of IN asks for it. */
export interface EmbeddingRequest extends Pick<EmbedOptions, "model" | "dimensions" | "sessionId" | "parentCallId"> {
  readonly texts: readonly string[];
  /** Write vectors as base64 of little-endian float32. */
  readonly base64: boolean;
  readonly signal?: AbortSignal;
}

/** A vector as it stands in OUT. */
export type WrittenVector = string | readonly number[];

/** The answer to an EmbeddingRequest. */
export interface EmbeddingResponse {
  /** In the order of the texts. */
  readonly vectors: readonly WrittenVector[];
  /** Of the first governed call. */
  readonly callId: string;
  /** Governed calls that it took: more than one for more texts than fit into a request. */
  readonly calls: number;
  readonly sourceName: string;
  readonly model: string;
  readonly usage: Pick<Usage, "promptTokens" | "totalTokens">;
  readonly attempts: number;
  /** null = unknown. */
  readonly cost: number | null;
  readonly latencyMs: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** `user` is of no use to anybody here; every other field would change the vectors if it were heard. */
const KNOWN = new Set(["model", "input", "dimensions", "encoding_format", "user"]);

/** The request of a body `{model?, input, dimensions?, encoding_format?}`, or what is wrong with it. */
export function toEmbeddingRequest(body: Fields): EmbeddingRequest | string {
  const { model, input, dimensions, encoding_format: format = "float" } = body;
  const unknown = Object.keys(body).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) {
    return `${JSON.stringify(unknown)} is not supported in an embedding line (known: ${[...KNOWN].join(", ")})`;
  }
  if (model != null && typeof model !== "string") return "model must be a text";
  const texts = typeof input === "string" ? [input] : input;
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === "string")) {
    return "input must be a text or a list of texts";
  }
  if (texts.length === 0) return "input is empty";
  if (dimensions != null && !(Number.isSafeInteger(dimensions) && Number(dimensions) >= 1)) {
    return "dimensions must be a whole number of at least 1";
  }
  if (format !== null && format !== "float" && format !== "base64") return "encoding_format must be float or base64";
  return {
    texts: texts as string[],
    base64: format === "base64",
    ...(model == null || model === "" ? {} : { model }),
    ...(dimensions == null ? {} : { dimensions: Number(dimensions) }),
  };
}

/** As much of EmbeddingClient as lines need. */
export interface LineEmbedder {
  embed(texts: readonly string[], options: EmbedOptions): Promise<EmbedResult<number[] | Float32Array | null>>;
}

/** One line's request through the governed client. Rejects as that does. */
export async function embedLine(
  client: LineEmbedder,
  { texts, base64, ...options }: EmbeddingRequest,
): Promise<EmbeddingResponse> {
  const result = await client.embed(texts, { ...options, vectors: base64 ? "float32" : "number" });
  const { batches, promptTokens } = result;
  return {
    // None is missing where bad texts are not skipped.
    vectors: result.vectors.map((vector) => writtenVector(vector!, base64)),
    callId: result.callId,
    calls: batches.length,
    sourceName: result.sourceName ?? "",
    model: result.model ?? "",
    usage: { promptTokens, totalTokens: promptTokens },
    attempts: batches.reduce((sum, { attempts }) => sum + attempts, 0),
    cost: result.cost,
    latencyMs: result.latencyMs ?? 0,
  };
}

export function writtenVector(vector: number[] | Float32Array, base64: boolean): WrittenVector {
  return base64 ? base64Of(vector) : vector instanceof Float32Array ? [...vector] : vector;
}

const BYTES_PER_FLOAT = 4;

function base64Of(vector: number[] | Float32Array): string {
  const bytes = Buffer.alloc(vector.length * BYTES_PER_FLOAT);
  for (const [at, number] of vector.entries()) bytes.writeFloatLE(number, at * BYTES_PER_FLOAT);
  return bytes.toString("base64");
}

/** An OpenAI `list` of embeddings. */
export function embeddingBody({ vectors, model, usage }: EmbeddingResponse): unknown {
  return {
    object: "list",
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
    model,
    usage: { prompt_tokens: usage.promptTokens, total_tokens: usage.totalTokens },
  };
}
