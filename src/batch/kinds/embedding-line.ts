import { type Fields, unknownFieldProblem } from "./fields.js";
import type { EmbeddingLine } from "./kinds.js";

/** `user` is of no use to anybody here; every other field would change the vectors if it were heard. */
export const EMBEDDING_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "input",
  "dimensions",
  "encoding_format",
  "user",
]);

/** The line of a body `{model?, input, dimensions?, encoding_format?}`, or what is wrong with it. */
export function embeddingLine(body: Fields): EmbeddingLine | string {
  const { model, input, dimensions, encoding_format: format = "float" } = body;
  const unknown = unknownFieldProblem(body, EMBEDDING_FIELDS, "an embedding line");
  if (unknown !== undefined) return unknown;
  if (model != null && typeof model !== "string") return "model must be a text";
  const texts = typeof input === "string" ? [input] : input;
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === "string")) {
    return "input must be a text or a list of texts";
  }
  if (texts.length === 0) return "input is empty";
  if (dimensions != null && !(Number.isSafeInteger(dimensions) && Number(dimensions) >= 1)) {
    return "dimensions must be a whole number of at least 1";
  }
  if (format !== null && format !== "float" && format !== "base64") return "encoding_format must be float or base64";
  return {
    kind: "embedding",
    texts: texts as string[],
    base64: format === "base64",
    ...(model == null || model === "" ? {} : { model }),
    ...(dimensions == null ? {} : { dimensions: Number(dimensions) }),
  };
}
