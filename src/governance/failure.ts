import { judge } from "../domain/judgement.js";
import { PolyGatewayError, TransientError } from "../errors.js";
import type { Attempt } from "./attempt.js";
import { textOf } from "./backend-errors.js";
import { endAfter, pauseBeforeRetry } from "./exhaustion.js";
import { nextStep, rememberFailure } from "./next-step.js";
import type { PartialFacts } from "./operation.js";
import { recordFailure } from "./rows.js";
import { giveBackUnsent } from "./send.js";
import { settleFailure, tokensOfFailure } from "./settle.js";

/**
 * Books a failed attempt and decides. Returns when the call is to be tried again, else throws its end.
 * Settling comes first, so that no row or pause holds a permit.
 */
export async function afterFailure(attempt: Attempt, thrown: unknown, mayRetry: boolean): Promise<void> {
  if (attempt.isTooLate) return giveBackUnsent(attempt);
  const { call } = attempt;
  const partial = partialOf(attempt, thrown);
  if (attempt.interruption !== null) return endInterrupted(attempt, partial);
  const error = asAttemptError(attempt, thrown);
  const judgement = judge(error);
  settleFailure(attempt, judgement.outcome, tokensOfFailure(attempt, error, partial), error, partial);
  const step = nextStep(call, attempt.source, isFree(attempt), judgement, error);
  const isEnd = step.kind === "throw" || !mayRetry;
  const final = isEnd && (judgement.recordOutcome === "rejected" || judgement.recordOutcome === "invalid");
  const committed = recordFailure(attempt, error, judgement.recordOutcome, partial, final);
  if (committed !== undefined) await committed;
  call.clock.end(attempt.mark, call.environment.runtime.now(), step.counted);
  if (isEnd) throw error;
  if (step.kind === "exhausted") throw await endAfter(call, step.reason, error);
  if (step.backoff) await pauseBeforeRetry(call, error);
}

/**
 * Books a failed attempt while another one of its call runs on, which alone decides what becomes of the call. Its time
 * is the other one's too.
 */
export function bookBeside(attempt: Attempt, thrown: unknown): Promise<void> | undefined {
  if (attempt.isTooLate) return giveBackUnsent(attempt);
  const partial = partialOf(attempt, thrown);
  if (attempt.interruption !== null) return bookCancelled(attempt, attempt.abortReason, partial, false);
  const error = asAttemptError(attempt, thrown);
  const judgement = judge(error);
  settleFailure(attempt, judgement.outcome, tokensOfFailure(attempt, error, partial), error, partial);
  rememberFailure(attempt.call, attempt.source, judgement, error);
  const committed = recordFailure(attempt, error, judgement.recordOutcome, partial, false);
  attempt.call.clock.end(attempt.mark, attempt.runtime.now(), false);
  return committed;
}

/** Ends an attempt whose call has been answered by another one. What it used is used. */
export function endOutrun(attempt: Attempt): Promise<void> | undefined {
  const reason = new Error("another attempt of the call was faster");
  attempt.abort(null, reason);
  return bookCancelled(attempt, reason, partialOf(attempt, reason), false);
}

function bookCancelled(
  attempt: Attempt,
  reason: unknown,
  partial: PartialFacts | null,
  final: boolean,
): Promise<void> | undefined {
  settleFailure(attempt, "cancelled", tokensOfFailure(attempt, null, partial));
  const committed = recordFailure(attempt, reason, "cancelled", partial, final);
  attempt.call.clock.end(attempt.mark, attempt.runtime.now(), false);
  return committed;
}

async function endInterrupted(attempt: Attempt, partial: PartialFacts | null): Promise<never> {
  const { call, abortReason, interruption } = attempt;
  settleFailure(attempt, "cancelled", tokensOfFailure(attempt, null, partial));
  const byCaller = interruption?.kind === "caller";
  const committed = recordFailure(attempt, abortReason, "cancelled", partial, byCaller);
  if (committed !== undefined) await committed;
  call.clock.end(attempt.mark, call.environment.runtime.now(), true);
  if (!byCaller && PolyGatewayError.isInstance(abortReason) && attempt.partialSoFar !== null) {
    abortReason.partial = attempt.partialSoFar();
  }
  throw abortReason;
}

/** It tells of the source, not of the call: a probe that failed before its verdict, or an attempt that was sent away. */
function isFree(attempt: Attempt): boolean {
  return attempt.evacuated || (attempt.grant.probe && attempt.firstTokenMs === null);
}

function partialOf(attempt: Attempt, error: unknown): PartialFacts | null {
  // An abort reason belongs to the caller, whatever it carries.
  const own = PolyGatewayError.isInstance(error) ? error.partial : undefined;
  const partial = attempt.aborted ? attempt.partialSoFar?.() : own;
  return partial === undefined ? null : attempt.call.operation.describePartial(partial);
}

/** A transport that throws something of its own must not take the call out of the taxonomy. */
function asAttemptError(attempt: Attempt, thrown: unknown): PolyGatewayError {
  // We ended it ourselves: whatever the transport makes of that, our reason stands.
  const error = attempt.aborted ? attempt.abortReason : thrown;
  if (PolyGatewayError.isInstance(error)) return error;
  return new TransientError(`${attempt.source.name} transient failure: ${textOf(error)}`, {
    code: "upstream_error",
    sourceName: attempt.source.name,
    cause: error,
  });
}
