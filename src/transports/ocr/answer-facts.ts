import type { OcrAnswerFacts } from "../../domain/ocr.js";
import type { AttemptContext } from "../../ports/transport.js";
import type { WholeBody } from "../openai/whole-answer.js";

/** What a whole answer tells beside its content. */
export function answerFacts(
  { statusCode, latencyMs, headers }: WholeBody,
  { runtime }: AttemptContext,
  { pageCount, modelReported = null }: { readonly pageCount: number | null; readonly modelReported?: string | null },
): OcrAnswerFacts {
  return { pageCount, usage: null, modelReported, statusCode, latencyMs, limits: headers.limits(runtime) };
}
