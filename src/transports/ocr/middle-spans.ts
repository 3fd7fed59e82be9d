import type { OcrElementType } from "../../domain/ocr.js";
import { bareLatex } from "./boxes.js";

/** The lines and spans of one block: what its text, table or formula is. */

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export interface BlockTexts {
  readonly text?: string | undefined;
  readonly html?: string | undefined;
  readonly latex?: string | undefined;
  /** Of the only span. */
  readonly score?: unknown;
}

/** A blank, or a letter of a script that sets none between words. */
const NEEDS_NO_BLANK = /[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u;

/** @param onText told each text of a span as the server wrote it */
export function textsOfLines(block: Fields, type: OcrElementType, onText: (text: string) => void): BlockTexts {
  const lines = listOf(block.lines).map((line) => spansOf(fieldsOf(line)));
  const spans = lines.length === 1 ? lines[0]! : lines.flat();
  for (const { content } of spans) if (typeof content === "string") onText(content);
  const score = spans.length === 1 ? spans[0]?.score : undefined;
  const formula = type === "formula" ? formulaOf(spans) : undefined;
  if (formula !== undefined) return { latex: formula, score };
  const text = lines.map(textOfLine).filter(isText).join("\n");
  if (type === "formula") return { latex: text, score };
  if (type === "table") return { html: firstOf(spans, "html"), latex: firstOf(spans, "latex"), text, score };
  return { text, score };
}

/** Spans that a paragraph took from the next page lie there, not here. */
function spansOf(line: Fields | undefined): Fields[] {
  const spans: Fields[] = [];
  for (const raw of listOf(line?.spans)) {
    const span = fieldsOf(raw);
    if (span !== undefined && span.cross_page !== true) spans.push(span);
  }
  return spans;
}

function isText(text: string): boolean {
  return text !== "";
}

/** Joined at the end: to look at the last letter of a text that grows makes the engine copy all of it each time. */
function textOfLine(spans: readonly Fields[]): string {
  const parts: string[] = [];
  for (const span of spans) {
    const next = textOfSpan(span);
    if (next === "") continue;
    const before = parts.at(-1);
    if (before !== undefined && needBlank(before, next)) parts.push(" ");
    parts.push(next);
  }
  return parts.join("");
}

function needBlank(before: string, next: string): boolean {
  return !NEEDS_NO_BLANK.test(before.slice(-1)) && !NEEDS_NO_BLANK.test(next.slice(0, 1));
}

/** Formulas within a text are marked as such, however the server wrote them. */
function textOfSpan({ type, content }: Fields): string {
  if (typeof content !== "string" || content.trim() === "") return "";
  if (type === "inline_equation") return `$${String(bareLatex(content))}$`;
  return type === "interline_equation" ? `$$${String(bareLatex(content))}$$` : content;
}

function formulaOf(spans: readonly Fields[]): string | undefined {
  const formulas = spans.filter(({ type }) => type === "interline_equation" || type === "equation");
  const texts = formulas.map(({ content }) => (typeof content === "string" ? String(bareLatex(content)) : ""));
  return texts.some(isText) ? texts.filter(isText).join("\n") : undefined;
}

function firstOf(spans: readonly Fields[], field: "html" | "latex"): string | undefined {
  return spans.map((span) => span[field]).find((value): value is string => typeof value === "string" && value !== "");
}
