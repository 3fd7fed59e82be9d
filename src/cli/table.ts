import { clip, displayWidth } from "./terminal.js";

export interface Column {
  readonly title: string;
  /** Numbers stand right. Default left. */
  readonly align?: "left" | "right";
  /** Where room is short, the column with the highest number goes first. Default: it stays. */
  readonly leaves?: number;
}

const GAP = "  ";
/** A text cell is not cut below this. */
const MIN_TEXT_WIDTH = 12;

function pad(text: string, width: number, align: Column["align"]): string {
  const space = " ".repeat(Math.max(0, width - displayWidth(text)));
  return align === "right" ? space + text : text + space;
}

/** Lines of a plain table: titles, then rows, columns two spaces apart. Cells may be coloured. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  return fitTable(columns, rows, Number.POSITIVE_INFINITY).lines;
}

export interface FittedTable {
  readonly lines: string[];
  /** Columns that found no room. */
  readonly leftOut: readonly Column[];
  /** A text in it is cut. */
  readonly isCut: boolean;
}

/** The same within `width` cells: columns that may leave do, then long texts are cut with "…". */
export function fitTable(columns: readonly Column[], rows: readonly (readonly string[])[], width: number): FittedTable {
  const titles = columns.map((column) => column.title);
  const widths = columns.map((_, index) => Math.max(...[titles, ...rows].map((row) => displayWidth(row[index] ?? ""))));
  const shown = fittingColumns(columns, widths, width);
  cutTexts(columns, widths, shown, width);
  const line = (cells: readonly string[]): string =>
    shown
      .map((index) => pad(clip(cells[index] ?? "", widths[index] ?? 0), widths[index] ?? 0, columns[index]?.align))
      .join(GAP)
      .trimEnd();
  return {
    lines: [titles, ...rows].map(line),
    leftOut: columns.filter((_, index) => !shown.includes(index)),
    isCut: shown.some((index) => rows.some((row) => displayWidth(row[index] ?? "") > (widths[index] ?? 0))),
  };
}

function totalWidth(widths: readonly number[], shown: readonly number[]): number {
  return shown.reduce((sum, index) => sum + (widths[index] ?? 0), 0) + GAP.length * Math.max(0, shown.length - 1);
}

/** Indices of the columns that stay. Texts may still be cut, so they count with the least they need. */
function fittingColumns(columns: readonly Column[], widths: readonly number[], width: number): number[] {
  const least = widths.map((own, index) => (columns[index]?.align === "right" ? own : Math.min(own, MIN_TEXT_WIDTH)));
  let shown = columns.map((_, index) => index);
  const leaving = shown
    .filter((index) => columns[index]?.leaves !== undefined)
    .sort((left, right) => (columns[right]?.leaves ?? 0) - (columns[left]?.leaves ?? 0));
  for (const index of leaving) {
    if (totalWidth(least, shown) <= width) break;
    shown = shown.filter((other) => other !== index);
  }
  return shown;
}

/** Takes from the widest text until the line fits. */
function cutTexts(columns: readonly Column[], widths: number[], shown: readonly number[], width: number): void {
  const texts = shown.filter((index) => columns[index]?.align !== "right");
  for (let over = totalWidth(widths, shown) - width; over > 0; over = totalWidth(widths, shown) - width) {
    const widest = texts.reduce((a, b) => ((widths[b] ?? 0) > (widths[a] ?? 0) ? b : a), texts[0] ?? 0);
    const now = widths[widest] ?? 0;
    if (texts.length === 0 || now <= MIN_TEXT_WIDTH) return;
    widths[widest] = now - 1;
  }
}
