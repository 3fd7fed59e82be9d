import type { ChatCompletion } from "../../domain/chat.js";
import type { OcrOperation } from "../../domain/ocr.js";
import {
  type ErrorCode,
  type PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  TransientError,
} from "../../errors.js";
import { composeMessage } from "../body-digest.js";
import { shownName } from "../openai/judge.js";
import type { Redact } from "../redact.js";
import type { VlmReader } from "./vlm-reader.js";

/** Where an answer came from, for its errors. */
export interface AnswerPlace {
  readonly sourceName: string;
  readonly operation: OcrOperation;
  readonly redact: Redact;
  readonly reader: VlmReader;
}

/** A queue in front of a model may tell its own failure as the text of a good answer. */
const QUEUE_FULL = /^Error: Request queue full\.?$/i;
const QUEUE_TIMEOUT = /^Error: Request timeout\.?$/i;
/** A longer answer that begins so is a page that says it. */
const MAX_REFUSAL_UNITS = 300;
const READING = "assist|help|process|read|view|see|access|extract|transcribe|provide|comply|do that";
const CANNOT = "can(?:['’]t|not| not)|won['’]t|am unable to|am not able to|['’]m unable to|['’]m not able to";
/** In the first person, as a model speaks of itself and an error message on a page doesn't. */
const REFUSALS: readonly RegExp[] = [
  new RegExp(
    `^(?:i['’]m|i am) (?:very |so |really )?(?:sorry|unable|not able|afraid)\\b.{0,100}\\b(?:${READING})\\b`,
    "i",
  ),
  new RegExp(`^(?:sorry|i apologi[sz]e)\\b.{0,40}\\bi ?(?:${CANNOT}) (?:${READING})\\b`, "i"),
  new RegExp(`^i ?(?:${CANNOT}) (?:${READING})\\b`, "i"),
  /^(?:很?抱歉|对不起)[，,。 ]{0,2}我.{0,12}(?:无法|不能)/,
];

function partialOf({ content, thinking, usage }: ChatCompletion) {
  return { content, thinking, toolCalls: [], usage };
}

/** The service is healthy, its answer can't be used. What it reported as used is booked. */
export function unusable(
  place: AnswerPlace,
  completion: ChatCompletion,
  code: ErrorCode,
  what: string,
): ResultInvalidError {
  const { sourceName, redact } = place;
  return new ResultInvalidError(composeMessage(shownName(place), "unusable result", redact(what)), {
    code,
    sourceName,
    statusCode: completion.statusCode,
    rawText: redact(completion.content),
    partial: partialOf(completion),
  });
}

/** What a complete answer of chat really is, where it is no reading of the picture; undefined = it is one. */
export function answerTrouble(place: AnswerPlace, completion: ChatCompletion): PolyGatewayError | undefined {
  const { reader, sourceName } = place;
  const { content, finishReason, rawFinishReason, refusal, statusCode } = completion;
  const facts = { sourceName, statusCode, partial: partialOf(completion) };
  const text = content.trim();
  if (QUEUE_FULL.test(text)) {
    const message = composeMessage(shownName(place), "rate limited", "the server's queue is full");
    return new TransientError(message, { ...facts, code: "rate_limit", rateLimited: true });
  }
  if (QUEUE_TIMEOUT.test(text)) {
    const message = composeMessage(shownName(place), "transient failure", "the server's queue has timed out");
    return new TransientError(message, { ...facts, code: "timeout" });
  }
  if (finishReason === "content_filter") {
    const what = "the provider's content filter cut the answer";
    const message = composeMessage(shownName(place), "request rejected", what);
    return new RequestRejectedError(message, { ...facts, code: "content_filtered" });
  }
  const isWhole = finishReason === "stop" || finishReason === null;
  if (reader.retriesCutAnswers === true && !isWhole) {
    const what = `the answer didn't end by itself (finish_reason ${place.redact(String(rawFinishReason)).slice(0, 100)})`;
    return new TransientError(composeMessage(shownName(place), "transient failure", what), {
      ...facts,
      code: "truncated",
    });
  }
  if (finishReason === "length") {
    const what =
      "the output limit cut the answer, or the model repeated itself up to it; EXTRA_BODY can raise max_tokens";
    return unusable(place, completion, "truncated", what);
  }
  const isRefused =
    (refusal ?? "") !== "" || (text.length <= MAX_REFUSAL_UNITS && REFUSALS.some((pattern) => pattern.test(text)));
  if (isRefused) return unusable(place, completion, "refused", "the model refused to read this picture");
  return undefined;
}
