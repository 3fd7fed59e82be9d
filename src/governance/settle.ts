import type { Outcome } from "../domain/tick.js";
import { type PolyGatewayError, SourceDeadError, TransientError } from "../errors.js";
import type { Attempt } from "./attempt.js";
import { lastErrorOf } from "./call-ends.js";
import type { PartialFacts } from "./operation.js";
import { unsentSettle } from "./unsent.js";

/**
 * Gives the permit back, once, with what the attempt taught. Never throws into the loop: the dispatcher keeps what the
 * governor can't take now.
 */
export function settleAttempt(
  attempt: Attempt,
  outcome: Outcome,
  actualTokens: number | null,
  error: Error | null = null,
): void {
  if (attempt.settled) return;
  attempt.settled = true;
  const { grant, call, source } = attempt;
  const { dispatcher, runtime } = call.environment;
  const lastError = error === null || outcome === "cancelled" ? undefined : lastErrorOf(error);
  if (!attempt.sent && outcome !== "success") {
    // Nothing left, so the request slot comes back; a source that can't be reached has failed all the same.
    dispatcher.settle({ ...unsentSettle(grant), outcome: outcome === "failure" ? "failure" : "cancelled", lastError });
    return;
  }
  dispatcher.settle({
    leaseId: grant.leaseId,
    source: grant.source,
    epoch: grant.epoch,
    probe: grant.probe,
    windowId: grant.windowId,
    reservedTokens: grant.reservedTokens,
    actualTokens: source.tpmCharge === "max" ? null : actualTokens,
    sent: true,
    outcome,
    durationMs: runtime.now() - attempt.startedMs,
    retryAfterMs: retryAfterOf(error),
    rateLimited: TransientError.isInstance(error) && error.rateLimited === true ? "unknown" : undefined,
    lastError,
  });
}

function retryAfterOf(error: Error | null): number | undefined {
  if (TransientError.isInstance(error)) return error.rateLimited === true ? error.retryAfterMs : undefined;
  return SourceDeadError.isInstance(error) ? error.retryAfterMs : undefined;
}

/**
 * Tokens a failed attempt is booked with (spec 02 §3): none when it was answered with an error status or nothing left;
 * what it reported or showed when text had arrived; else (timeout, cut, reset) its prompt.
 */
export function tokensOfFailure(attempt: Attempt, error: unknown, partial: PartialFacts | null): number {
  if (!attempt.sent) return 0;
  const status = (error as PolyGatewayError | null)?.statusCode;
  if (partial !== null) return partial.usage.totalTokens;
  if (status !== undefined) return 0;
  return attempt.call.operation.promptTokens;
}
