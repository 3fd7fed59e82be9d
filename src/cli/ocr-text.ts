import type { OcrElement } from "../domain/ocr.js";
import { tableText } from "./html-table.js";
import type { OcrBody } from "./ocr-body.js";

/** What a person reads of a page: its elements in reading order, tables row by row, formulas as LaTeX between dollars. */
export function textOf(body: OcrBody): string {
  if (body.object === "ocr.text") return body.text;
  return body.elements
    .map(elementText)
    .filter((text) => text !== "")
    .join("\n\n");
}

function elementText({ text, html, latex }: OcrElement): string {
  if (text !== undefined && text !== "") return text;
  if (html !== undefined) return tableText(html);
  return latex === undefined || latex === "" ? "" : `$$${latex}$$`;
}
