import type { BatchForm } from "./form.js";
import type { Fields } from "./kinds/fields.js";
import { type BatchLine, type BrokenLine, brokenLine, PLAIN_TEXT, type RawLine, readObject } from "./lines.js";
import { objectIn } from "./out-entry.js";
import { type VectorWidth, writtenWidth } from "./vector-width.js";

/** The lines of `polygateway embed`: a text each in IN, its vector in OUT. */

export interface VectorFormOptions {
  /** IN holds `{id?, text}` or `{id?, input}` a line; else each line is a text. */
  readonly jsonl: boolean;
  readonly base64: boolean;
  /** Width to ask for. */
  readonly dimensions?: number;
  /** Of the scope. */
  readonly models?: readonly string[];
  readonly width: VectorWidth;
}

const NOT_JSONL = `${PLAIN_TEXT}; such a file is read without --jsonl, under a name that doesn't end in .jsonl`;

export function vectorForm({ jsonl, base64, dimensions, models = [], width }: VectorFormOptions): BatchForm {
  const lineOf = (raw: RawLine & { readonly text: string }, id: string, text: string): BatchLine => ({
    kind: "line",
    number: raw.number,
    id,
    request: { kind: "embedding", texts: [text], base64, ...(dimensions === undefined ? {} : { dimensions }) },
    textLength: raw.text.length,
  });

  function parse(raw: RawLine): BatchLine | BrokenLine {
    if ("problem" in raw) return brokenLine(raw, raw.problem);
    if (!jsonl) return lineOf(raw, `line-${raw.number}`, raw.text);
    const line = readObject(raw);
    if ("problem" in line) return line.problem === PLAIN_TEXT ? { ...line, problem: NOT_JSONL } : line;
    const problem = unheardField(line.fields);
    if (problem !== undefined) return brokenLine(raw, problem, line.id);
    const text = line.fields.text ?? line.fields.input;
    if (typeof text === "string") return lineOf(raw, line.id, text);
    return brokenLine(raw, text == null ? "has neither text nor input" : "text must be a text", line.id);
  }

  const asked = dimensions === undefined ? "" : ` --dimensions ${dimensions}`;
  return {
    writtenBy: `polygateway embed${base64 ? " --base64" : ""}${asked}`,
    models: models.toSorted(),
    parse,
    /** Of one text, made by `groupTexts`: the body is its vector. */
    success({ id, number }, { body, callId }) {
      return JSON.stringify({ id, index: number - 1, embedding: body, call_id: callId });
    },
    failure({ id, number }, { response, ...error }) {
      return JSON.stringify({ id, index: number - 1, embedding: null, error, ...(response && { response }) });
    },
    entry(raw) {
      const { id: lineId, index, embedding, error, call_id: callId = "" } = objectIn(raw) ?? {};
      if (typeof lineId !== "string" || typeof index !== "number" || typeof callId !== "string") return undefined;
      if (embedding === null) return error == null ? undefined : { lineId, callId, failed: true };
      if (typeof embedding !== "string" && !Array.isArray(embedding)) return undefined;
      width.found(lineId, writtenWidth(embedding));
      return { lineId, callId, failed: false };
    },
  };
}

const WISHES = ["model", "dimensions", "encoding_format"] as const;

/** What stands beside a text is the user's own, unless it looks like a wish. */
function unheardField(fields: Fields): string | undefined {
  if (fields.text != null && fields.input != null) return "has text and input: only one of them can be embedded";
  const wish = WISHES.find((name) => fields[name] != null);
  if (wish === undefined) return undefined;
  return `${JSON.stringify(wish)} can't be set for one line of embed: for all of them it is --dimensions, --base64 or another scope, for each a line of polygateway batch`;
}
