import { isEmbeddingResponse, type LineKind, type LineResponse } from "./ask.js";
import { embeddingBody } from "./embedding-lines.js";
import { type BatchLine, type BrokenLine, parseLine, type RawLine } from "./lines.js";
import { entryOf, type OutEntry } from "./out-entry.js";
import { embeddingSuccess, failureLine, type LineFailure, successLine } from "./result-line.js";

/** How the lines of IN and OUT are written. */
export interface BatchForm {
  /** The command that writes it, with the options that change what it writes: one OUT is of one form. */
  readonly writtenBy: string;
  /** Never throws. */
  parse(raw: RawLine): BatchLine | BrokenLine;
  /** The OUT line of an answer, without the line end. */
  success(line: BatchLine, response: LineResponse, createdAtMs: number): string;
  /** The OUT line of a failure, without the line end. `uuid` only makes its `id` unique. */
  failure(line: BatchLine | BrokenLine, failure: LineFailure, uuid: string): string;
  /** What a line of OUT says; undefined = it is no result line. */
  entry(raw: RawLine): OutEntry | undefined;
}

/** What an OUT is written by whose ties say nothing of it. */
export const BATCH_COMMAND = "polygateway batch";

/** The lines of OpenAI's batches (spec 08). */
export function openAiForm(kind: LineKind): BatchForm {
  return {
    writtenBy: BATCH_COMMAND,
    parse: (raw) => parseLine(raw, kind),
    success: ({ id }, response, createdAtMs) =>
      isEmbeddingResponse(response)
        ? embeddingSuccess(id, response, embeddingBody(response))
        : successLine(id, response, createdAtMs),
    failure: ({ id }, failure, uuid) => failureLine(id, failure, uuid),
    entry: entryOf,
  };
}
