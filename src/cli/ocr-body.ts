import type { OcrLayout } from "../domain/ocr.js";

/** `response.body` of an OCR line in OUT. */
export type OcrBody =
  | { readonly object: "ocr.text"; readonly text: string }
  | ({ readonly object: "ocr.layout" } & Pick<OcrLayout, "pages" | "elements">);

function isElement(value: unknown): boolean {
  return typeof value === "object" && value !== null && Array.isArray((value as { bbox?: unknown }).bbox);
}

export function isOcrBody(value: unknown): value is OcrBody {
  if (typeof value !== "object" || value === null) return false;
  const { object, text, pages, elements } = value as Record<string, unknown>;
  if (object === "ocr.text") return typeof text === "string";
  return object === "ocr.layout" && Array.isArray(pages) && Array.isArray(elements) && elements.every(isElement);
}
