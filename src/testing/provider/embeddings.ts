import { seededStream } from "../seeded-random.js";
import type { ReceivedRequest } from "./answer.js";
import { fingerprint } from "./random.js";
import type { Reply } from "./reply.js";

/** What the simulated provider answers to `POST /v1/embeddings`: a vector that only the text decides. */

const DEFAULT_DIMENSIONS = 16;
const MAX_DIMENSIONS = 8_192;

export interface EmbeddingRequest {
  readonly request: ReceivedRequest;
  readonly texts: readonly string[];
  readonly dimensions: number;
  readonly asBase64: boolean;
}

/** Reads a request body; a string says why it is refused with a 400. */
export function readEmbeddingRequest(
  body: Buffer,
  headers: Readonly<Record<string, string>>,
): EmbeddingRequest | string {
  let json: Record<string, unknown> | null;
  try {
    json = JSON.parse(body.toString()) as Record<string, unknown> | null;
  } catch {
    return "The body is not valid JSON.";
  }
  if (typeof json !== "object" || json === null) return "The body must be a JSON object.";
  const { model, input, dimensions = DEFAULT_DIMENSIONS, encoding_format: format = "float" } = json;
  const texts: unknown = typeof input === "string" ? [input] : input;
  if (typeof model !== "string" || model === "") return "'model' must be a non-empty string.";
  if (!isTexts(texts)) return "'input' must be a non-empty text or a list of them.";
  if (!Number.isInteger(dimensions) || Number(dimensions) < 1 || Number(dimensions) > MAX_DIMENSIONS) {
    return `'dimensions' must be a whole number from 1 to ${MAX_DIMENSIONS}.`;
  }
  if (format !== "float" && format !== "base64") return "'encoding_format' must be float or base64.";
  let promptTokens = 0;
  for (const text of texts) promptTokens += Math.ceil(text.length / 4);
  const plain = { messages: [], question: "", stream: false, includeUsage: false, maxTokens: undefined };
  const request = { ...plain, model, promptTokens, headers, body: json };
  return { request, texts, dimensions: Number(dimensions), asBase64: format === "base64" };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === "string" && text !== "");
}

/** Of length 1, exact in float32; the same text always has the same one. */
function vectorFor(text: string, dimensions: number): Float32Array {
  const next = seededStream(Number.parseInt(fingerprint(text), 16), dimensions);
  const vector = new Float32Array(dimensions);
  let squares = 0;
  for (let at = 0; at < dimensions; at += 1) {
    vector[at] = next() / 2_147_483_648 - 1;
    squares += vector[at]! ** 2;
  }
  const length = Math.sqrt(squares) || 1;
  return vector.map((number) => number / length);
}

function base64Of(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [at, number] of vector.entries()) bytes.writeFloatLE(number, at * 4);
  return bytes.toString("base64");
}

/** The answer, ready to be sent: embeddings have no answer tokens. */
export function buildEmbeddingReply(
  { request, texts, dimensions, asBase64 }: EmbeddingRequest,
  made: Pick<Reply, "id" | "createdS">,
): Reply {
  const data = texts.map((text, index) => {
    const vector = vectorFor(text, dimensions);
    return { object: "embedding", index, embedding: asBase64 ? base64Of(vector) : [...vector] };
  });
  const usage = { prompt_tokens: request.promptTokens, total_tokens: request.promptTokens };
  const json = JSON.stringify({ object: "list", model: request.model, data, usage });
  return { ...made, request, answer: { content: "" }, tokens: [], finishReason: "stop", completionTokens: 0, json };
}
