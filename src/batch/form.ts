import type { LineAnswer } from "./kinds/kinds.js";
import { type BatchLine, type BrokenLine, parseLine, type RawLine } from "./lines.js";
import type { OutEntry } from "./out-entry.js";
import { entryOf } from "./out-entry.js";
import { failureLine, type LineFailure, successLine } from "./result-line.js";

/** How the lines of IN and OUT are written. */
export interface BatchForm {
  /** The command that writes it, with the options that change what it writes: one OUT is of one form. */
  readonly writtenBy: string;
  /** What people call a line of IN. Default: line. */
  readonly unit?: "line" | "page";
  /** Models whose answers belong together, so that OUT may hold those of no others; absent = any may. */
  readonly models?: readonly string[];
  /** Never throws. */
  parse(raw: RawLine): BatchLine | BrokenLine;
  /** The OUT line of an answer, without the line end. */
  success(line: BatchLine, answer: LineAnswer): string;
  /** The OUT line of a failure, without the line end. `uuid` only makes its `id` unique. */
  failure(line: BatchLine | BrokenLine, failure: LineFailure, uuid: string): string;
  /** What a line of OUT says; undefined = it is no result line. */
  entry(raw: RawLine): OutEntry | undefined;
}

/** What an OUT is written by whose ties say nothing of it. */
export const BATCH_COMMAND = "polygateway batch";

/** The lines of OpenAI's batches (spec 08). */
export const OPENAI_FORM: BatchForm = {
  writtenBy: BATCH_COMMAND,
  parse: parseLine,
  success: ({ id }, answer) => successLine(id, answer),
  failure: ({ id }, failure, uuid) => failureLine(id, failure, uuid),
  entry: entryOf,
};
