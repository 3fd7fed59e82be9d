import type { ChatRequest, ChatResponse } from "../domain/chat.js";
import { type EmbeddingRequest, type EmbeddingResponse, embedLine, type LineEmbedder } from "./embedding-lines.js";

/** What the lines of a batch ask for; the scope's kind decides, so a batch has one. */
export type LineKind = "chat" | "embedding";
export type LineRequest = ChatRequest | EmbeddingRequest;
export type LineResponse = ChatResponse | EmbeddingResponse;

export function isEmbeddingRequest(request: LineRequest): request is EmbeddingRequest {
  return "texts" in request;
}

export function isEmbeddingResponse(response: LineResponse): response is EmbeddingResponse {
  return "vectors" in response;
}

/** The client of a line's kind; the other one is not there. */
export interface AskedClient {
  chat?(request: ChatRequest): Promise<ChatResponse>;
  embed?(request: EmbeddingRequest): Promise<EmbeddingResponse>;
}

/** Makes the governed call of a line. */
export function askLine(client: AskedClient, request: LineRequest): Promise<LineResponse> {
  const answer = isEmbeddingRequest(request) ? client.embed?.(request) : client.chat?.(request);
  return answer ?? Promise.reject(new TypeError("this client doesn't make calls of that kind"));
}

/** An embedding client as batches ask it. */
export const embedsLines = (client: LineEmbedder): Required<Pick<AskedClient, "embed">> => ({
  embed: (request) => embedLine(client, request),
});
