import { errorBody, NO_HEADERS, type ResponseHeaders } from "./http-response.js";
import type { LedgerOutcome } from "./ledger.js";
import { type LimitDecision, rateLimitHeaders, retryAfterHeaders } from "./limits.js";
import type { Plan } from "./plan.js";

/** A complete small response that is not an answer. */
export interface Refusal {
  readonly status: number;
  readonly outcome: LedgerOutcome;
  readonly body: string;
  readonly headers: ResponseHeaders;
}

function refuse(
  status: number,
  outcome: LedgerOutcome,
  [message, type, code]: readonly [string, string, string],
  headers: ResponseHeaders = NO_HEADERS,
): Refusal {
  return { status, outcome, body: errorBody(message, type, code), headers };
}

export const UNAVAILABLE = refuse(503, "outage", [
  "The service is temporarily unavailable.",
  "server_error",
  "service_unavailable",
]);

export const BAD_KEY = refuse(401, "unauthorized", [
  "Incorrect API key provided.",
  "invalid_request_error",
  "invalid_api_key",
]);

export const NO_SUCH_PATH = refuse(404, "not_found", ["Unknown path.", "invalid_request_error", "unknown_url"]);

export function badRequest(message: string): Refusal {
  return refuse(400, "bad_request", [message, "invalid_request_error", "invalid_request"]);
}

export function limitRefusal(decision: LimitDecision, announce: boolean): Refusal {
  const message = `Rate limit reached for ${decision.refusedBy}.`;
  const headers = announce ? rateLimitHeaders(decision) : NO_HEADERS;
  return refuse(429, "limit_exceeded", [message, "rate_limit_error", "rate_limit_exceeded"], headers);
}

/** The drawn faults that are answered with a status; null for all others. */
export function drawnRefusal(plan: Plan, retryAfterMs: number): Refusal | null {
  if (plan.fault === "error") {
    return refuse(plan.status, "error", ["The server had an error.", "server_error", "internal_error"]);
  }
  if (plan.fault !== "rate_limit") return null;
  const headers = retryAfterMs > 0 ? retryAfterHeaders(retryAfterMs) : NO_HEADERS;
  return refuse(429, "rate_limited", ["Too many requests.", "rate_limit_error", "rate_limit_exceeded"], headers);
}
