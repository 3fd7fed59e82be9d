import { estimateTextTokens } from "../domain/estimate.js";
import type { Usage } from "../domain/usage.js";
import { RequestRejectedError, type ResultInvalidError } from "../errors.js";
import type { CheckedRequest } from "./chat-request.js";

/** More room for an answer that the output limit cut. */

/** No limit is raised beyond this; one that is higher already isn't raised at all. */
const MAX_TOKENS = 131_072;
/** The first limit for a call that set none and met its model's own. */
const LEAST_TOKENS = 2_048;
const WIRE_NAMES = ["max_completion_tokens", "max_tokens"] as const;

function usedTokens(error: ResultInvalidError): number {
  const usage = error.partial?.usage as Usage | null | undefined;
  return usage?.completionTokens || estimateTextTokens(error.rawText + (error.partial?.thinking ?? ""));
}

/** The request with twice the limit, wherever that was set; null = it can't be raised. */
export function withMoreTokens(request: CheckedRequest, error: ResultInvalidError): CheckedRequest | null {
  const { extraBody, sampling } = request;
  const wireName = WIRE_NAMES.find((name) => typeof extraBody?.[name] === "number");
  const given = wireName === undefined ? sampling?.maxTokens : (extraBody![wireName] as number);
  if (given !== undefined && given >= MAX_TOKENS) return null;
  const wanted = given === undefined ? Math.max(LEAST_TOKENS, usedTokens(error) * 2) : given * 2;
  const maxTokens = Math.min(MAX_TOKENS, wanted);
  if (wireName !== undefined) return { ...request, extraBody: { ...extraBody, [wireName]: maxTokens } };
  return { ...request, sampling: { ...sampling, maxTokens } };
}

const BUDGET_CODES: ReadonlySet<string> = new Set([
  "bad_request",
  "unsupported_param",
  "context_length",
  "request_too_large_for_tier",
]);

/** The raised limit was more than the model, or our own limits, allow. */
export function isBudgetRefusal(error: unknown): error is RequestRejectedError {
  return RequestRejectedError.isInstance(error) && BUDGET_CODES.has(error.code);
}
