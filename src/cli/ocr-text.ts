import type { OcrElement } from "../domain/ocr.js";
import type { OcrBody } from "./ocr-body.js";

/** What people read of a page. Everything here takes time in proportion to the text, whatever a model wrote. */

/** A text as its server gave it; of a layout the elements in reading order, tables as rows with tabs between the cells. */
export function readableText(body: OcrBody): string {
  if (body.object === "ocr.text") return body.text;
  return body.elements
    .map(elementText)
    .filter((text) => text !== "")
    .join("\n\n");
}

function elementText({ text, html, latex }: OcrElement): string {
  if (text !== undefined) return HAS_MARKUP.test(text) ? htmlText(text) : text;
  if (html !== undefined) return htmlText(html);
  if (latex === undefined) return "";
  return latexTable(latex) ?? latex;
}

/** Some servers put HTML where others put text. A page that merely speaks of tags has no such ones. */
const HAS_MARKUP = /<(?:table|tr|td|div|p|br|img)\b[^<>]{0,500}>/i;

const TAG = /^<(\/?)([a-z][a-z0-9]{0,20})((?:\s[^<>]*)?)>$/i;
/** Texts and tags in turn; a `<` that begins no tag is text. */
const PIECES = /<[^<>]{0,2000}>|[^<]+|</g;
const CELLS = new Set(["td", "th"]);
const BLOCKS = new Set([
  "p",
  "div",
  "li",
  "tr",
  "table",
  "thead",
  "tbody",
  "caption",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
]);
const ROW_ENDS = new Set(["tr", "table", "thead", "tbody"]);
const SPAN = /\bcolspan\s{0,9}=\s{0,9}["']?(\d{1,2})/i;

/** HTML as plain text: a row is a line, its cells have tabs between them, a cell over several columns leaves them empty. */
export function htmlText(html: string): string {
  const lines: string[] = [];
  let row: string[] | null = null;
  let line = "";
  let emptyCells = 0;
  const endLine = (): void => {
    const text = oneLine(line);
    if (row !== null)
      lines.push(
        [...row, text]
          .slice(row[0] === "" ? 1 : 0)
          .join("\t")
          .trimEnd(),
      );
    else if (text !== "") lines.push(text);
    [row, line, emptyCells] = [null, "", 0];
  };
  for (const [piece] of html.matchAll(PIECES)) {
    const tag = TAG.exec(piece);
    const name = (tag?.[2] ?? "").toLowerCase();
    if (tag === null) line += decoded(piece);
    else if (CELLS.has(name) && tag[1] === "") {
      row ??= [];
      row.push(oneLine(line));
      for (; emptyCells > 0; emptyCells -= 1) row.push("");
      line = "";
      emptyCells = Math.max(1, Number(SPAN.exec(tag[3]!)?.[1] ?? 1)) - 1;
    } else if (name === "br" || (row !== null && !ROW_ENDS.has(name))) line += " ";
    else if (BLOCKS.has(name)) endLine();
  }
  endLine();
  return lines.join("\n");
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

function decoded(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED[name.toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
  });
}

const TABLE_BEGIN = /\\begin\{(tabular|array|table)\*?\}/;
const TABLE_RULES = /\\(?:hline|toprule|midrule|bottomrule|(?:cline|cmidrule(?:\([lr]{1,2}\))?)\{[^{}]{0,20}\})/g;

/** The rows of a LaTeX table; undefined = it is none. */
function latexTable(latex: string): string | undefined {
  if (!TABLE_BEGIN.test(latex)) return undefined;
  const inside = latex
    .replaceAll(/\\(?:begin|end)\{(?:tabular|array|table|center)\*?\}(?:\[[^\]]{0,20}\])?/g, "")
    .replace(/^\s{0,40}\{[^{}]{0,200}\}/, "")
    .replaceAll(TABLE_RULES, "");
  const rows = inside
    .split("\\\\")
    .map((row) => row.split(/(?<!\\)&/).map((cell) => oneLine(cell).replaceAll("\\&", "&")));
  return rows
    .map((cells) => cells.join("\t").trimEnd())
    .filter((row) => row.trim() !== "")
    .join("\n");
}
