import type { OcrElementType } from "../../domain/ocr.js";
import type { BlockType, PageBuilder } from "./boxes.js";

export interface ElementContent {
  readonly text?: string;
  readonly html?: string;
  readonly latex?: string;
}

const HTML_TABLE = /^\s{0,40}<(?:html|body|div|table)\b/i;
const LATEX_TABLE = /^\s{0,40}\\begin\{(?:tabular|array|table)/;
/** What stands for a picture in Markdown or HTML, and nothing beside it. */
const PICTURE_ALONE =
  /^\s{0,40}(?:<div[^>]{0,200}>\s{0,40})?(?:<img\b[^>]{0,2000}>|!\[[^\]]{0,500}\]\([^)]{0,2000}\))(?:\s{0,40}<\/div>)?\s{0,40}$/i;

/** Where one text of a server belongs that calls everything `content`: tables and formulas have a form of their own. */
export function contentOf(type: OcrElementType, content: unknown): ElementContent {
  if (typeof content !== "string") return {};
  if (type === "formula") return { latex: content };
  if (type === "table" && HTML_TABLE.test(content)) return { html: content };
  if (type === "table" && LATEX_TABLE.test(content)) return { latex: content };
  const isPicture = (type === "image" || type === "chart") && PICTURE_ALONE.test(content);
  return isPicture ? {} : { text: content };
}

/** Adds a block with its one text; false = its box can't be used. Field by field, as boxes.ts makes its elements. */
export function addContent(page: PageBuilder, { type, rawType }: BlockType, box: unknown, content: unknown): boolean {
  const { text, html, latex } = contentOf(type, content);
  return page.add({ type, rawType, box, text, html, latex });
}
