import type { SourceConfig } from "../../domain/source.js";
import type { UpstreamLimits } from "../../domain/upstream-limits.js";
import type { PolyGatewayError } from "../../errors.js";
import { classify, errorOf, type Refusal } from "../../transports/openai/classify.js";
import type { HeaderLookup } from "../../transports/retry-after.js";
import type { UpstreamRefusal } from "./upstream.js";

/** The typed error of a refusal, by the very rules the HTTP transport uses. */
export function refusalError(
  { statusCode, code, message, retryAfterS }: UpstreamRefusal,
  limits: UpstreamLimits | undefined,
  source: SourceConfig,
  wallNowMs: number,
): PolyGatewayError {
  const text = JSON.stringify({ error: { message, code, type: code } });
  const refusal: Refusal = { statusCode, embedded: false, text, header: headersOf(retryAfterS, limits) };
  const error = errorOf(classify(refusal, source, wallNowMs), refusal, source, keepAll);
  if (limits === undefined) return error;
  return Object.assign(error, { details: { ...error.details, limits } });
}

const keepAll = (text: string): string => text;

function headersOf(retryAfterS: number | null, limits: UpstreamLimits | undefined): HeaderLookup {
  const headers: Record<string, number | null | undefined> = {
    "retry-after": retryAfterS,
    "x-ratelimit-limit-requests": limits?.limitRequests,
    "x-ratelimit-limit-tokens": limits?.limitTokens,
    "x-ratelimit-remaining-requests": limits?.remainingRequests,
    "x-ratelimit-remaining-tokens": limits?.remainingTokens,
  };
  return (name) => {
    const value = headers[name];
    return value === null || value === undefined ? undefined : String(value);
  };
}
