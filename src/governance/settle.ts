import type { Outcome, Settle } from "../domain/tick.js";
import type { RateLimitDimension, UpstreamLimits } from "../domain/upstream-limits.js";
import type { Usage } from "../domain/usage.js";
import { PolyGatewayError, SourceDeadError, TransientError } from "../errors.js";
import type { Attempt } from "./attempt.js";
import { lastErrorOf } from "./call-ends.js";
import type { PartialFacts, ReplyFacts } from "./operation.js";
import { unsentSettle } from "./unsent.js";

/**
 * Both give the permit back, once, with what the attempt taught. They never throw into the loop: the dispatcher keeps
 * what the governor can't take now.
 */

export function settleSuccess(attempt: Attempt, { usage, latencyMs, ttftMs, limits }: ReplyFacts): void {
  if (attempt.settled) return;
  const nowMs = attempt.runtime.now();
  attempt.settled = true;
  attempt.stopWatching();
  // An answer that came as a whole never showed a first token.
  if (attempt.firstTokenMs === null) attempt.reverseOverdue();
  const { grant, source } = attempt;
  const isMeasured = usage.source === "measured";
  const settle: Settle = {
    leaseId: grant.leaseId,
    source: grant.source,
    epoch: grant.epoch,
    probe: grant.probe,
    windowId: grant.windowId,
    reservedTokens: grant.reservedTokens,
    actualTokens: source.tpmCharge === "max" ? null : usage.totalTokens,
    sent: true,
    outcome: "success",
    durationMs: nowMs - attempt.startedMs,
    ttftMs: ttftMs ?? undefined,
    tpotMs: isMeasured ? tpotMsOf(usage, latencyMs, ttftMs) : undefined,
    inTokens: isMeasured ? usage.promptTokens : undefined,
    outTokens: isMeasured ? usage.completionTokens : undefined,
    limits,
  };
  attempt.call.environment.dispatcher.settle(settle, nowMs);
}

/** `partial` = what arrived before the failure. */
export function settleFailure(
  attempt: Attempt,
  outcome: Outcome,
  actualTokens: number | null,
  error: Error | null = null,
  partial: PartialFacts | null = null,
): void {
  if (attempt.settled) return;
  attempt.settled = true;
  attempt.stopWatching();
  const { grant, call, source } = attempt;
  const { dispatcher, runtime } = call.environment;
  const lastError = error === null || outcome === "cancelled" ? undefined : lastErrorOf(error);
  if (!attempt.sent && outcome !== "success") {
    // Nothing left, so the request slot comes back; a source that can't be reached has failed all the same.
    dispatcher.settle({ ...unsentSettle(grant), outcome: outcome === "failure" ? "failure" : "cancelled", lastError });
    return;
  }
  // Only a whole answer, be it useless, says how long answers are.
  const learned = outcome === "success" && partial?.usage.source === "measured" ? partial.usage : undefined;
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
    rateLimited: rateLimitedOf(error),
    inTokens: learned?.promptTokens,
    outTokens: learned?.completionTokens,
    limits: limitsOf(error),
    lastError,
  });
}

/** Per token of the answer, thinking included; without a first token the whole time is spread over them. */
function tpotMsOf({ completionTokens }: Usage, latencyMs: number, ttftMs: number | null): number | undefined {
  if (completionTokens <= 0) return undefined;
  return Math.max(0, latencyMs - (ttftMs ?? 0)) / completionTokens;
}

function retryAfterOf(error: Error | null): number | undefined {
  if (TransientError.isInstance(error)) return error.rateLimited === true ? error.retryAfterMs : undefined;
  return SourceDeadError.isInstance(error) ? error.retryAfterMs : undefined;
}

const DIMENSIONS: ReadonlySet<unknown> = new Set<RateLimitDimension>(["requests", "tokens", "concurrency"]);

function rateLimitedOf(error: Error | null): RateLimitDimension | undefined {
  if (!TransientError.isInstance(error) || error.rateLimited !== true) return undefined;
  const named = error.details?.limitedBy;
  return DIMENSIONS.has(named) ? (named as RateLimitDimension) : "unknown";
}

function limitsOf(error: Error | null): UpstreamLimits | undefined {
  const limits = PolyGatewayError.isInstance(error) ? error.details?.limits : undefined;
  return typeof limits === "object" && limits !== null ? (limits as UpstreamLimits) : undefined;
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
