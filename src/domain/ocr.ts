import type { UpstreamLimits } from "./upstream-limits.js";
import type { Usage } from "./usage.js";

/** The two things an OCR source is asked for; each is an operation of its own in telemetry. */
export type OcrOperation = "ocr_text" | "ocr_layout";

/**
 * How a chat model that reads pictures is asked and its answer read. `auto`: by the model's name; a model that none of the
 * names fits is `plain`, which is any model that takes pictures: text alone.
 */
export type OcrReaderName = "auto" | "plain" | "dots-ocr" | "deepseek-ocr" | "olmocr";

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
  /** Pages that were read; what is paid for. ≥ 1 */
  readonly pageCount: number;
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

/** Corners in pixels of a picture of this size, not rounded. */
export function toPixels(bbox: OcrBox, width: number, height: number): OcrBox {
  return [bbox[0] * width, bbox[1] * height, bbox[2] * width, bbox[3] * height];
}
