import type { Fields } from "./fields.js";
import type { EmbeddingLine } from "./kinds.js";

/** The wire fields of an embedding request, or the reason why they are none. */
export function embeddingLine(body: Fields): EmbeddingLine | string {
  const { input, model, dimensions, encoding_format: encoding } = body;
  const texts = typeof input === "string" ? [input] : input;
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === "string")) {
    return "input must be a text or a list of texts; tokens are not supported";
  }
  if (texts.length === 0) return "input is empty";
  const empty = texts.indexOf("");
  if (empty >= 0) return `input${texts.length === 1 ? "" : `[${empty}]`} is an empty text, which has no embedding`;
  if (model != null && typeof model !== "string") return "model must be a text";
  if (dimensions != null && !(Number.isSafeInteger(dimensions) && (dimensions as number) >= 1)) {
    return "dimensions must be a whole number of at least 1";
  }
  if (encoding != null && encoding !== "float" && encoding !== "base64")
    return "encoding_format must be float or base64";
  return {
    kind: "embedding",
    texts,
    encoding: encoding ?? "float",
    ...(model == null || model === "" ? {} : { model }),
    ...(dimensions == null ? {} : { dimensions: dimensions as number }),
  };
}
