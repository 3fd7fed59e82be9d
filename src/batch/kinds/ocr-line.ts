import { type Fields, unknownFieldProblem } from "./fields.js";
import type { OcrLine } from "./kinds.js";

/** A field that isn't heard may cost a whole document: `pages` for `page`. */
export const OCR_FIELDS: ReadonlySet<string> = new Set(["image", "page", "layout", "model", "sha256"]);

/** `{image, page?, layout?, model?}`, or the reason why it is none. */
export function ocrLine(fields: Fields): OcrLine | string {
  const { image, page, layout, model, sha256 } = fields;
  const unknown = unknownFieldProblem(fields, OCR_FIELDS, "an OCR line");
  if (unknown !== undefined) return unknown;
  if (typeof image !== "string" || image === "") return "image must be the path of a picture or PDF";
  if (/^(?:https?|data):/i.test(image)) return "image must be a path: pictures by address are not fetched";
  if (page != null && !(Number.isSafeInteger(page) && (page as number) >= 1)) {
    return "page must be a whole number of at least 1";
  }
  if (sha256 != null && typeof sha256 !== "string") return "sha256 must be a text";
  if (layout != null && typeof layout !== "boolean") return "layout must be true or false";
  if (model != null && typeof model !== "string") return "model must be a text";
  return {
    kind: "ocr",
    operation: layout === true ? "ocr_layout" : "ocr_text",
    image,
    ...(page == null ? {} : { page: page as number }),
    ...(sha256 == null ? {} : { sha256 }),
    ...(model == null || model === "" ? {} : { model }),
  };
}
