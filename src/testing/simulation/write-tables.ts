import { readFileSync, writeFileSync } from "node:fs";

/** Below the folder in which `npm run sim` works: the checkout. */
export const BENCHMARKS_PAGE = "docs/benchmarks.md";

const BEGIN = "<!-- sim:begin -->";
const END = "<!-- sim:end -->";

/** Puts text in the marked place of the page, in place of what was there. */
export function withTables(page: string, tables: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`${BENCHMARKS_PAGE} has no place between ${BEGIN} and ${END}.`);
  return `${page.slice(0, begin + BEGIN.length)}\n${tables}\n${page.slice(end)}`;
}

export function writeTables(tables: string): void {
  writeFileSync(BENCHMARKS_PAGE, withTables(readFileSync(BENCHMARKS_PAGE, "utf8"), tables));
}
