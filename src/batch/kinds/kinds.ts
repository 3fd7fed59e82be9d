import type { ChatRequest } from "../../domain/chat.js";
import type { OcrOperation } from "../../domain/ocr.js";
import type { Usage } from "../../domain/usage.js";

/** What the lines of a batch ask for; those of one batch go to one scope, and so to one kind of client. */
export type LineKind = "chat" | "embedding" | "ocr";

export interface ChatLine {
  readonly kind: "chat";
  readonly request: ChatRequest;
}

export interface EmbeddingLine {
  readonly kind: "embedding";
  readonly texts: readonly string[];
  readonly model?: string;
  readonly dimensions?: number;
  /** Write vectors as base64 of little-endian float32. */
  readonly base64: boolean;
}

export interface OcrLine {
  readonly kind: "ocr";
  readonly operation: OcrOperation;
  /** Path of the picture or document. */
  readonly image: string;
  /** The one page of the document that is read, from 1; absent = the file as it is. */
  readonly page?: number;
  /** Of the file, where the line is only good for that one. */
  readonly sha256?: string;
  /** Where the picture of the page is kept once it is read; never part of a line's text. */
  readonly pictureAt?: string;
  readonly model?: string;
}

/** What one line asks for. */
export type LineRequest = ChatLine | EmbeddingLine | OcrLine;

/** A line on its way to a source. */
export interface LineCall {
  readonly request: LineRequest;
  readonly sessionId: string;
  /** The line's id. */
  readonly parentCallId: string;
}

/** What came of it, as OUT and the summary need it. */
export interface LineAnswer {
  readonly callId: string;
  readonly requestId: string;
  readonly sourceName: string;
  /** Governed calls that it took, where that is more than one. */
  readonly calls?: number;
  /** Sends of all its calls. */
  readonly attempts: number;
  /** In the price table's currency; null = unknown. */
  readonly cost: number | null;
  readonly latencyMs: number;
  readonly usage: Pick<Usage, "totalTokens">;
  /** `response.body` of the line in OUT; plain JSON. */
  readonly body: unknown;
}

/** The model that a line names, whatever it asks for. */
export function modelOf(request: LineRequest): string | undefined {
  return request.kind === "chat" ? request.request.model : request.model;
}

/** The same line for any model. */
export function withoutModel(request: LineRequest): LineRequest {
  if (request.kind === "chat") {
    const { model: _, ...rest } = request.request;
    return { kind: "chat", request: rest };
  }
  const { model: _, ...rest } = request;
  return rest;
}
