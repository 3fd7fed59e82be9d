import { RequestRejectedError } from "../errors.js";
import type { UpstreamLimits } from "./upstream-limits.js";
import type { Usage } from "./usage.js";

/** The two things an OCR source is asked for; each is an operation of its own in telemetry. */
export type OcrOperation = "ocr_text" | "ocr_layout";

/** Wire protocols of OCR servers; `vlm` = a chat model that is shown the picture. */
export const OCR_TRANSPORTS = ["monkey-ocr", "mineru", "paddle", "mistral", "vlm"] as const;

export type OcrTransportName = (typeof OCR_TRANSPORTS)[number];

export function isOcrTransport(name: unknown): name is OcrTransportName {
  return (OCR_TRANSPORTS as readonly unknown[]).includes(name);
}

/** How a `vlm` source is asked and read; `auto` = by the model's name. */
export const OCR_READERS = ["auto", "plain", "dots-ocr", "deepseek-ocr", "olmocr"] as const;

export type OcrReaderName = (typeof OCR_READERS)[number];

/** How one OCR client works, every default filled in. */
export interface OcrConfig {
  /** Largest picture or document that is sent, in bytes. */
  readonly maxImageBytes: number;
}

/** Formats that OCR servers take, by content and not by file name. */
export type OcrMediaType = "image/png" | "image/jpeg" | "image/webp" | "image/tiff" | "application/pdf";

/** What is sent to be read: bytes whose format and size are known. */
export interface OcrImage {
  readonly bytes: Buffer;
  readonly mediaType: OcrMediaType;
  /** Pixels of a picture, before any rotation that its metadata asks for; null for a PDF, and where the header doesn't say. */
  readonly size: { readonly width: number; readonly height: number } | null;
}

/** What a block of a page is; `rawType` keeps the server's own word. */
export type OcrElementType =
  | "title"
  | "heading"
  | "text"
  | "list"
  | "table"
  | "formula"
  | "image"
  | "caption"
  | "footnote"
  | "header"
  | "footer"
  | "page_number"
  | "code"
  | "chart"
  | "other";

/** [x0, y0, x1, y1], each 0…1 of the page, origin top left, x0 < x1 and y0 < y1. */
export type OcrBox = readonly [x0: number, y0: number, x1: number, y1: number];

export interface OcrElement {
  readonly type: OcrElementType;
  /** The server's own word for it. */
  readonly rawType: string;
  readonly bbox: OcrBox;
  /** Number of its page, from 1. */
  readonly page: number;
  /** Place in the reading order of its page, from 0. */
  readonly order: number;
  readonly text?: string;
  /** Tables, where the server gives them so. */
  readonly html?: string;
  /** Formulas and tables, where the server gives them so; without `$` around it. */
  readonly latex?: string;
  /** The server's confidence, 0…1. */
  readonly score?: number;
}

export interface OcrPage {
  /** From 1, as people count. */
  readonly page: number;
  /** The page as the server measured it, in `unit`. */
  readonly width: number;
  readonly height: number;
  /** `normalised`: the server tells no size, its boxes are shares of the page. */
  readonly unit: "point" | "pixel" | "normalised";
}

export interface OcrLayout {
  readonly pages: readonly OcrPage[];
  /** By page, then in reading order. */
  readonly elements: readonly OcrElement[];
  /** Elements left out because their box can't be used. */
  readonly droppedElements: number;
}

/** What every OCR answer carries beside its content. */
export interface OcrAnswerFacts {
  /** Pages that were read; what is paid for. ≥ 1; null = the server doesn't tell. */
  readonly pageCount: number | null;
  /** null = the server reports none, which is the rule. */
  readonly usage: Usage | null;
  readonly modelReported: string | null;
  readonly statusCode: number;
  readonly latencyMs: number;
  /** What the answer's headers said of the account's limits. */
  readonly limits?: UpstreamLimits | undefined;
}

export interface OcrTextCompletion extends OcrAnswerFacts {
  readonly text: string;
}

export interface OcrLayoutCompletion extends OcrAnswerFacts {
  readonly layout: OcrLayout;
}

/** How one source is, as far as it tells without work. */
export interface OcrHealth {
  readonly ok: boolean;
  readonly latencyMs: number;
  /** Plain English: what answered, or why not. Holds no secret. */
  readonly detail: string;
}

/** Corners in pixels of a picture of this size, not rounded. Throws RequestRejectedError for what is no box or no size. */
export function toPixels(bbox: OcrBox, width: number, height: number): OcrBox {
  const isBox = Array.isArray(bbox) && bbox.length === 4 && bbox.every((side) => Number.isFinite(side));
  if (!isBox) throw new RequestRejectedError("toPixels: bbox must be [x0, y0, x1, y1]", { code: "bad_request" });
  if (![width, height].every((side) => Number.isFinite(side) && side > 0)) {
    throw new RequestRejectedError("toPixels: width and height must be numbers above 0", { code: "bad_request" });
  }
  return [bbox[0] * width, bbox[1] * height, bbox[2] * width, bbox[3] * height];
}

/** What is to be read: the bytes themselves, or a file by path or `file:` URL. */
export type OcrInput = Uint8Array | ArrayBuffer | Blob | string | URL;

/** What one OCR call may say beside its picture. */
export interface OcrCallOptions {
  /** Only sources with this model. Default: any. */
  readonly model?: string;
  readonly sessionId?: string;
  readonly parentCallId?: string;
  /** A name for calls whose lengths are alike, for token estimates. Not sent. Default: the kind of operation. */
  readonly tag?: string;
  readonly signal?: AbortSignal;
  /** Higher goes first. Default 0. */
  readonly priority?: number;
  readonly failover?: "on" | "off";
  /** Longest call from its start, queue and retries included, in ms. */
  readonly deadlineMs?: number;
}

/** What every OCR result says of the call; fields are only ever added. */
export interface OcrResultFacts {
  /** Pages that were read; null = the server doesn't tell, as MonkeyOCR of the text of a PDF. */
  readonly pageCount: number | null;
  /** Configured model of the source. */
  readonly model: string;
  readonly provider: string;
  readonly sourceName: string;
  readonly modelReported: string | null;
  /** Also the id of its telemetry row. */
  readonly callId: string;
  readonly requestId: string;
  /** Sends of this call. */
  readonly attempts: number;
  readonly latencyMs: number;
  /** Tokens of a `vlm` source; 0 where a server reports none. */
  readonly usage: Usage;
  /** In the price table's currency, by pages or tokens; null = unknown. */
  readonly cost: number | null;
}

export interface OcrTextResult extends OcrResultFacts {
  readonly text: string;
}

export interface OcrLayoutResult extends OcrResultFacts, OcrLayout {}
