import type { OcrLayout } from "../../domain/ocr.js";
import type { ResultInvalidError } from "../../errors.js";
import type { Fields } from "../openai/message-fields.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { invalidAnswer } from "./ask.js";
import { layoutBuilder } from "./boxes.js";
import { parseLayoutJson } from "./lenient-json.js";
import { readMiddleJson } from "./middle-json.js";
import { contentVerdict, PLACEHOLDER } from "./monkey-ocr-verdict.js";
import { verdictError } from "./server-verdict.js";

/** A text of a 2xx answer, unless it is a failure in a text's place. */
export function checkedText(answer: WholeBody, text: unknown): string {
  if (typeof text !== "string" || text.trim() === "") throw invalidAnswer(answer, "empty", "no text was found");
  failOnErrorText(answer, text);
  return text;
}

/** Throws what a server has written where a text should be. */
export function failOnErrorText(answer: WholeBody, text: string): void {
  const verdict = contentVerdict(text);
  if (verdict !== null) throw verdictError(answer, verdict, text);
}

/** One `middle.json`, alone or as a part of a split document. */
export interface MiddlePart {
  readonly json: string;
  /** Where the parts of a split document are told apart. */
  readonly page?: number;
}

/** The layout of all parts together; throws ResultInvalidError `bad_layout` where one can't be used. */
export function layoutOfParts(answer: WholeBody, parts: readonly MiddlePart[]): OcrLayout {
  const layout = layoutBuilder();
  const onText = (text: string) => failOnErrorText(answer, text);
  for (const { json, page } of parts) {
    const value = parseLayoutJson(json);
    const where = page === undefined ? "the middle.json" : `the middle.json of page ${page}`;
    if (value === undefined) throw badLayout(answer, `${where} is no JSON, or too large to be read`);
    const problem = readMiddleJson(value, layout, page === undefined ? { onText } : { onText, page });
    if (problem !== null) throw badLayout(answer, problem);
  }
  return layout.finish();
}

export function badLayout(answer: WholeBody, what: string): ResultInvalidError {
  return invalidAnswer(answer, "bad_layout", what);
}

/** What `/parse` answers: the layout itself, or where an archive with it can be fetched. */
export type Parsed = { readonly layout: OcrLayout } | { readonly downloadUrl: string };

/** Older servers know no `return_type` and always make an archive. */
export function readParse(answer: WholeBody, fields: Fields): Parsed {
  const { content, content_type: contentType, download_url: downloadUrl } = fields;
  if (typeof content === "string") {
    failOnErrorText(answer, content);
    if (contentType === "text/plain" || PLACEHOLDER.test(content)) {
      throw badLayout(answer, `instead of a layout the server sent: ${content.slice(0, 200)}`);
    }
    return { layout: layoutOfParts(answer, [{ json: content }]) };
  }
  if (typeof downloadUrl === "string" && downloadUrl !== "") return { downloadUrl };
  throw badLayout(answer, "the answer holds neither a layout nor the address of an archive");
}
