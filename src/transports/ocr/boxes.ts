import type { OcrBox, OcrElement, OcrElementType, OcrLayout, OcrPage } from "../../domain/ocr.js";

/**
 * The one defence against servers' boxes (spec 06), and the builder of every transport's layout.
 *
 * ```ts
 * const typeOf = typeReader({ doc_title: "title", paragraph_title: "heading", text: "text" });
 * const layout = layoutBuilder();
 * const page = layout.page({ page: 1, width: 1200, height: 800, unit: "pixel" });
 * if (page === null) throw invalidAnswer(answer, "bad_layout", "page 1 has no usable size");
 * for (const raw of blocks) page.add({ ...typeOf(raw.block_label), box: raw.block_bbox, text: raw.block_content });
 * return layout.finish();
 * ```
 *
 * - `page()` again with the same number adds to that page. Pages may come in any order; elements come in reading order.
 * - Boxes in another unit than the page's size, as 0–1000: `layout.page(size, { width: 1000, height: 1000 })`;
 *   boxes that count from the bottom: `{ …, origin: "bottom-left" }`. A server that tells no size gives
 *   `{ page, width: 1, height: 1, unit: "normalised" }` and such a frame.
 * - `add()` takes the server's values as they are: `box`, `text`, `html`, `latex`, `score` are `unknown`. What is no text is
 *   left out, `$` around LaTeX goes, a score outside of 0…1 too. An unusable box drops the element and counts it;
 *   `drop()` counts what isn't even an object. Nothing here throws.
 */

/** What boxes are measured by: the page in the boxes' own unit. */
export interface BoxFrame {
  readonly width: number;
  readonly height: number;
  /** Where y counts from. Default `top-left`. */
  readonly origin?: "top-left" | "bottom-left";
}

/** A number as JSON has it, or as text: `12.5`. */
const DECIMAL = /^\s{0,8}[+-]?(?:\d{1,20}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,3})?\s{0,8}$/i;

function numberOf(raw: unknown): number {
  if (typeof raw === "number") return raw;
  return typeof raw === "string" && DECIMAL.test(raw) ? Number(raw) : Number.NaN;
}

type Point = readonly [x: number, y: number];

/** Two opposite corners, four corners in a row, or a list of points; null = none of these. */
function pointsOf(raw: unknown): Point[] | null {
  if (!Array.isArray(raw)) return null;
  if (raw.every((item) => Array.isArray(item))) {
    if (raw.length < 2 || raw.some((item) => item.length !== 2)) return null;
    return raw.map(([x, y]): Point => [numberOf(x), numberOf(y)]);
  }
  if (raw.length !== 4 && raw.length !== 8) return null;
  const numbers = raw.map(numberOf);
  return Array.from({ length: numbers.length / 2 }, (_, n): Point => [numbers[2 * n]!, numbers[2 * n + 1]!]);
}

/** A little out of the page is a box that can be cut; so many pages away is no place at all. */
const MAX_PAGES_AWAY = 10;

function isNear(value: number, whole: number): boolean {
  return Math.abs(value / whole) <= MAX_PAGES_AWAY;
}

function share(value: number, whole: number): number {
  return Math.min(1, Math.max(0, value / whole));
}

/** Is this the size of a page or a picture? */
export function isPageSize(width: unknown, height: unknown): boolean {
  return [width, height].every((side) => typeof side === "number" && Number.isFinite(side) && side > 0);
}

/**
 * `[x0, y0, x1, y1]`, or a polygon as `[[x, y], …]` or eight numbers, as shares of its page: corners put in order, what
 * stands out of the page cut off. null = it can't be mended in one way only, or nothing of it is on the page. Never throws.
 */
export function readBox(raw: unknown, { width, height, origin }: BoxFrame): OcrBox | null {
  const points = isPageSize(width, height) ? pointsOf(raw) : null;
  // What is no number is near nothing.
  if (points === null || !points.every(([x, y]) => isNear(x, width) && isNear(y, height))) return null;
  let [x0, y0, x1, y1] = [1, 1, 0, 0];
  for (const [x, yRaw] of points) {
    const y = origin === "bottom-left" ? height - yRaw : yRaw;
    x0 = Math.min(x0, share(x, width));
    x1 = Math.max(x1, share(x, width));
    y0 = Math.min(y0, share(y, height));
    y1 = Math.max(y1, share(y, height));
  }
  return x0 < x1 && y0 < y1 ? [x0, y0, x1, y1] : null;
}

/** One block as its server gave it, but for the type. */
export interface RawElement {
  readonly type: OcrElementType;
  readonly rawType: string;
  readonly box: unknown;
  readonly text?: unknown;
  readonly html?: unknown;
  readonly latex?: unknown;
  readonly score?: unknown;
}

export interface PageBuilder {
  /** false = its box can't be used, it was dropped and counted. */
  add(element: RawElement): boolean;
}

export interface LayoutBuilder {
  /** null = this is no size, or no number from 1. `frame`: what boxes are measured by; default: the page's own size. */
  page(page: OcrPage, frame?: BoxFrame): PageBuilder | null;
  /** Counts blocks that are none. Default 1. */
  drop(count?: number): void;
  finish(): OcrLayout;
}

export function layoutBuilder(): LayoutBuilder {
  const pages = new Map<number, { readonly page: OcrPage; readonly elements: OcrElement[] }>();
  let droppedElements = 0;

  return {
    page(page, frame = page) {
      if (!isPageSize(page.width, page.height) || !isPageSize(frame.width, frame.height)) return null;
      if (!Number.isSafeInteger(page.page) || page.page < 1) return null;
      const { page: number, width, height, unit } = page;
      const known = pages.get(number) ?? { page: { page: number, width, height, unit }, elements: [] };
      pages.set(number, known);
      const { elements } = known;
      return {
        add(raw) {
          const bbox = readBox(raw.box, frame);
          if (bbox === null) droppedElements += 1;
          else elements.push(elementOf(raw, bbox, number, elements.length));
          return bbox !== null;
        },
      };
    },
    drop(count = 1) {
      droppedElements += count;
    },
    finish() {
      const sorted = [...pages.values()].sort((a, b) => a.page.page - b.page.page);
      return {
        pages: sorted.map(({ page }) => page),
        elements: sorted.flatMap(({ elements }) => elements),
        droppedElements,
      };
    },
  };
}

const MAX_RAW_TYPE_UNITS = 60;

type Filled<T> = { -readonly [Name in keyof T]: T[Name] };

/** Field by field: a document has tens of thousands of elements, and an object put together of others takes many times as long. */
function elementOf(raw: RawElement, bbox: OcrBox, page: number, order: number): OcrElement {
  const { type, rawType, score } = raw;
  const element: Filled<OcrElement> = { type, rawType: rawType.slice(0, MAX_RAW_TYPE_UNITS), bbox, page, order };
  const text = textOf(raw.text);
  const html = textOf(raw.html);
  const latex = textOf(raw.latex === undefined ? undefined : bareLatex(raw.latex));
  if (text !== undefined) element.text = text;
  if (html !== undefined) element.html = html;
  if (latex !== undefined) element.latex = latex;
  if (typeof score === "number" && score >= 0 && score <= 1) element.score = score;
  return element;
}

function textOf(raw: unknown): string | undefined {
  return typeof raw === "string" && raw.trim() !== "" ? raw : undefined;
}

const LATEX_MARKS: readonly (readonly [opening: string, closing: string])[] = [
  ["$$", "$$"],
  ["$", "$"],
  ["\\[", "\\]"],
  ["\\(", "\\)"],
];

/** A formula without `$`, `$$`, `\[` or `\(` around it; what is no text is handed back as it is. */
export function bareLatex(raw: unknown): unknown {
  if (typeof raw !== "string") return raw;
  const text = raw.trim();
  for (const [opening, closing] of LATEX_MARKS) {
    const isMarked = text.startsWith(opening) && text.endsWith(closing);
    // One text of several formulas, as `$a$ and $b$`, keeps its marks: they say where each ends.
    const inner = text.slice(opening.length, -closing.length);
    if (isMarked && text.length >= opening.length + closing.length && !inner.includes(opening)) return inner.trim();
  }
  return text;
}

/** The server's word for a block with what it means; words are compared without case, and `-` or a blank is `_`. */
export interface BlockType {
  readonly type: OcrElementType;
  readonly rawType: string;
}

/** Unknown words mean `other`. */
export function typeReader(table: Readonly<Record<string, OcrElementType>>): (raw: unknown) => BlockType {
  const types = new Map(Object.entries(table));
  return (raw) => {
    if (typeof raw !== "string" || raw === "") return { type: "other", rawType: "unknown" };
    const word = raw.slice(0, MAX_RAW_TYPE_UNITS).toLowerCase().replaceAll(/[\s-]/g, "_");
    return { type: types.get(word) ?? "other", rawType: raw };
  };
}
