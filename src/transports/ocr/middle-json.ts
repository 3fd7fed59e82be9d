import type { OcrElementType } from "../../domain/ocr.js";
import {
  type BlockType,
  type BoxFrame,
  isPageSize,
  type LayoutBuilder,
  type PageBuilder,
  readBox,
  typeReader,
} from "./boxes.js";
import { type Fields, fieldsOf, listOf, textsOfLines } from "./middle-spans.js";

/**
 * `middle.json` of MonkeyOCR and MinerU (reference-providers §1.1): pages of blocks in points. Text and boxes are those of
 * `preproc_blocks`; `para_blocks` only says which of them are lists. There paragraphs are merged across pages, so that a
 * text stands where it doesn't lie.
 */

const typeOf = typeReader({
  title: "title",
  text: "text",
  ref_text: "text",
  phonetic: "text",
  abstract: "text",
  list: "list",
  index: "list",
  interline_equation: "formula",
  equation: "formula",
  image: "image",
  image_body: "image",
  image_caption: "caption",
  image_footnote: "footnote",
  table: "table",
  table_body: "table",
  table_caption: "caption",
  table_footnote: "footnote",
  chart: "chart",
  chart_body: "chart",
  chart_caption: "caption",
  chart_footnote: "footnote",
  code: "code",
  code_body: "code",
  algorithm: "code",
  code_caption: "caption",
  code_footnote: "footnote",
  header: "header",
  footer: "footer",
  page_number: "page_number",
  page_footnote: "footnote",
});

/** What a paragraph pass may make of a block of text. */
const RELABELLED = new Set(["list", "index"]);
/** Groups lie in groups no deeper than a list in a list. */
const MAX_DEPTH = 4;
/** Blocks that a server sets aside lie in these shares of the page, at its edges. */
const EDGE = 0.1;
/** No document is longer. */
const MAX_PAGE = 1_000_000;

export interface MiddleJsonOptions {
  /** The page that all of it is, where the file can't know: parts of a split document all call themselves the first. */
  readonly page?: number;
  /** A text of a server that stands there instead of what was read; throws when it is one. */
  readonly onText?: (text: string) => void;
}

/** Adds all its pages. A text is the reason why nothing of it can be used; null = all is well. */
export function readMiddleJson(value: unknown, layout: LayoutBuilder, options: MiddleJsonOptions = {}): string | null {
  const info = fieldsOf(value)?.pdf_info;
  if (!Array.isArray(info)) return "the middle.json has no pdf_info";
  if (info.length === 0) return "the middle.json has no page";
  for (const [index, raw] of info.entries()) {
    const page = fieldsOf(raw);
    const number = options.page ?? pageNumber(page, index);
    if (page === undefined || number === null) return `the middle.json's entry ${index + 1} is no page`;
    const [width, height] = listOf(page.page_size);
    const size = { page: number, width: width as number, height: height as number, unit: "point" } as const;
    const builder = isPageSize(width, height) ? layout.page(size) : null;
    if (builder === null) return `page ${number} tells no usable page_size, so its boxes mean nothing`;
    readPage(page, { layout, page: builder, size, onText: options.onText ?? (() => {}) });
  }
  return null;
}

/** From `page_idx`, which counts from 0; its place in the list where it has none. */
export function pageNumber(page: Fields | undefined, index: number): number | null {
  const { page_idx: pageIndex = index } = page ?? {};
  const isIndex = Number.isSafeInteger(pageIndex) && (pageIndex as number) >= 0 && (pageIndex as number) < MAX_PAGE;
  return isIndex ? (pageIndex as number) + 1 : null;
}

interface PageReading {
  readonly layout: LayoutBuilder;
  readonly page: PageBuilder;
  readonly size: BoxFrame;
  readonly onText: (text: string) => void;
}

function readPage(page: Fields, reading: PageReading): void {
  const paragraphs = listOf(page.para_blocks);
  const isRaw = Array.isArray(page.preproc_blocks);
  const blocks = isRaw ? listOf(page.preproc_blocks) : paragraphs;
  for (const [index, raw] of blocks.entries()) {
    const block = fieldsOf(raw);
    if (block === undefined) reading.layout.drop();
    // Merged into an earlier paragraph, which may lie on another page.
    else if (isRaw || block.lines_deleted !== true) {
      readBlock(isRaw ? relabelled(block, fieldsOf(paragraphs[index])) : block, reading, 0);
    }
  }
  for (const raw of listOf(page.discarded_blocks)) {
    const block = fieldsOf(raw);
    if (block === undefined) reading.layout.drop();
    else addBlock(block, discardedType(block, reading.size), reading);
  }
}

/** Both lists have the same order; a number that differs says that these two don't. */
function relabelled(block: Fields, paragraph: Fields | undefined): Fields {
  const word = paragraph?.type;
  const isSame = block.index === paragraph?.index;
  const isList = block.type === "text" && typeof word === "string" && RELABELLED.has(word);
  return isSame && isList ? { ...block, type: word } : block;
}

/** A group is its parts, each with a box of its own; that of the group may be empty. */
function readBlock(block: Fields, reading: PageReading, depth: number): void {
  const parts = listOf(block.blocks);
  if (parts.length === 0 || depth === MAX_DEPTH) {
    addBlock(block, blockType(block), reading);
    return;
  }
  for (const raw of parts) {
    const part = fieldsOf(raw);
    if (part === undefined) reading.layout.drop();
    else
      readBlock(block.type === "list" && part.type === "text" ? { ...part, type: "list" } : part, reading, depth + 1);
  }
}

/** Titles below the first level are headings, where the server tells levels. */
function blockType({ type, level }: Fields): BlockType {
  const read = typeOf(type);
  return read.type === "title" && typeof level === "number" && level > 1 ? { ...read, type: "heading" } : read;
}

/** Set aside are headers, footers and page numbers; older servers don't say which, so the edge that they lie at does. */
function discardedType(block: Fields, size: BoxFrame): BlockType {
  const read = typeOf(block.type);
  if (read.type !== "other") return read;
  const bbox = readBox(block.bbox, size);
  const middle = bbox === null ? 0.5 : (bbox[1] + bbox[3]) / 2;
  let type: OcrElementType = "other";
  if (middle < EDGE) type = "header";
  else if (middle > 1 - EDGE) type = "footer";
  return { ...read, type };
}

function addBlock(block: Fields, { type, rawType }: BlockType, { page, onText }: PageReading): void {
  const { text, html, latex, score } = textsOfLines(block, type, onText);
  page.add({ type, rawType, box: block.bbox, text, html, latex, score: block.score ?? score });
}
