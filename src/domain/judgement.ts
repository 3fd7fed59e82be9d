import { RequestRejectedError, ResultInvalidError, SourceDeadError, TransientError } from "../errors.js";
import type { RecordOutcome } from "./record.js";
import type { Outcome } from "./tick.js";

/** What a failed attempt means for its call. */
export type FailureClass =
  | "rejected"
  | "rejected_by_model"
  | "invalid"
  | "rate_limited"
  | "dead"
  | "transient"
  | "stale_socket"
  | "param_repaired";

export interface Judgement {
  readonly failure: FailureClass;
  /** What the breaker learns (spec 12 answer 3). */
  readonly outcome: Outcome;
  readonly recordOutcome: RecordOutcome;
}

const REJECTED: Judgement = { failure: "rejected", outcome: "alive", recordOutcome: "rejected" };
const REJECTED_BY_MODEL: Judgement = { failure: "rejected_by_model", outcome: "alive", recordOutcome: "rejected" };
const PARAM_REPAIRED: Judgement = { failure: "param_repaired", outcome: "alive", recordOutcome: "rejected" };
const INVALID: Judgement = { failure: "invalid", outcome: "success", recordOutcome: "invalid" };
const RATE_LIMITED: Judgement = { failure: "rate_limited", outcome: "alive", recordOutcome: "rate_limited" };
const DEAD: Judgement = { failure: "dead", outcome: "dead", recordOutcome: "source_dead" };
const TRANSIENT: Judgement = { failure: "transient", outcome: "failure", recordOutcome: "transient" };
const STALE_SOCKET: Judgement = { failure: "stale_socket", outcome: "cancelled", recordOutcome: "stale_socket" };

/** Codes that say "not with this model": a source with another one may take the call. */
const BY_MODEL: ReadonlySet<string> = new Set(["context_length", "request_too_large_for_tier", "unsupported_modality"]);

/** One table from error class to everything that follows from it (spec 02 §1). Unknown errors count as transient. */
export function judge(error: unknown): Judgement {
  if (RequestRejectedError.isInstance(error)) {
    if (error.code === "unsupported_param" && error.details !== undefined) {
      const { droppedByUs, renamedTo, streamed, translation } = error.details;
      if (droppedByUs === true || renamedTo !== undefined || streamed === true) return PARAM_REPAIRED;
      if (translation === true) return REJECTED_BY_MODEL;
    }
    return BY_MODEL.has(error.code) ? REJECTED_BY_MODEL : REJECTED;
  }
  if (ResultInvalidError.isInstance(error)) return INVALID;
  if (SourceDeadError.isInstance(error)) return DEAD;
  if (TransientError.isInstance(error)) {
    if (error.code === "stale_socket") return STALE_SOCKET;
    return error.rateLimited === true ? RATE_LIMITED : TRANSIENT;
  }
  return TRANSIENT;
}
