import { PolyGatewayError, ResultInvalidError } from "../errors.js";
import type { LineAnswer } from "./kinds/kinds.js";
import { LineKillsWorkersError } from "./workers/restarts.js";

/** The OUT line of an answer (spec 08), without the line end. */
export function successLine(lineId: string, answer: LineAnswer): string {
  return JSON.stringify({
    id: `batch_req_${answer.callId}`,
    custom_id: lineId,
    response: { status_code: 200, request_id: answer.requestId, body: answer.body },
    error: null,
    pgw: {
      source: answer.sourceName,
      attempts: answer.attempts,
      cost: answer.cost,
      latencyMs: Math.round(answer.latencyMs),
      ...(answer.calls === undefined ? {} : { calls: answer.calls }),
    },
  });
}

export interface LineFailure {
  readonly code: string;
  readonly message: string;
  readonly class: string;
  /** What the other side answered, when it answered: digest of its body. */
  readonly response: { readonly status_code: number; readonly body: string } | null;
  /** What is wrong with an answer that doesn't fit its response format. */
  readonly issues?: readonly unknown[];
}

/** The OUT line of a failure (spec 08), without the line end. `uuid` only makes the line's `id` unique. */
export function failureLine(lineId: string, failure: LineFailure, uuid: string): string {
  const { response, ...error } = failure;
  return JSON.stringify({ id: `batch_req_${uuid}`, custom_id: lineId, response, error });
}

export function failureOf(error: unknown): LineFailure {
  if (error instanceof LineKillsWorkersError) {
    return { code: "kills_workers", message: error.message, class: error.name, response: null };
  }
  if (!PolyGatewayError.isInstance(error)) {
    const known = error instanceof Error;
    return {
      code: "unexpected",
      message: known ? error.message : String(error),
      class: known ? error.name : typeof error,
      response: null,
    };
  }
  const failure = { code: error.code, message: error.message, class: error.name, response: refusedBody(error) };
  return ResultInvalidError.isInstance(error) && error.issues.length > 0
    ? { ...failure, issues: error.issues }
    : failure;
}

/** A scope-level error carries no body itself: the last attempt's is its cause. */
function refusedBody(error: PolyGatewayError): LineFailure["response"] {
  if (ResultInvalidError.isInstance(error)) return null;
  if (error.statusCode !== undefined) return { status_code: error.statusCode, body: error.bodyText };
  return PolyGatewayError.isInstance(error.cause) ? refusedBody(error.cause) : null;
}

/** A line that was never sent because it can't be read. */
export function brokenLineFailure(message: string): LineFailure {
  return { code: "bad_line", message, class: "RequestRejectedError", response: null };
}
