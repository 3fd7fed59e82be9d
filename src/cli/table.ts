import { displayWidth } from "./terminal.js";

export interface Column {
  readonly title: string;
  /** Numbers stand right. Default left. */
  readonly align?: "left" | "right";
}

function pad(text: string, width: number, align: Column["align"]): string {
  const space = " ".repeat(Math.max(0, width - displayWidth(text)));
  return align === "right" ? space + text : text + space;
}

/** Lines of a plain table: titles, then rows, columns two spaces apart. Cells may be coloured. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const titles = columns.map((column) => column.title);
  const widths = columns.map((_, index) => Math.max(...[titles, ...rows].map((row) => displayWidth(row[index] ?? ""))));
  const line = (cells: readonly string[]): string =>
    columns
      .map((column, index) => pad(cells[index] ?? "", widths[index] ?? 0, column.align))
      .join("  ")
      .trimEnd();
  return [titles, ...rows].map(line);
}
