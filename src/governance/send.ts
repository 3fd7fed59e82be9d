import type { AttemptContext } from "../ports/transport.js";
import type { Attempt } from "./attempt.js";
import type { ReplyFacts } from "./operation.js";
import { recordFailure } from "./rows.js";
import { settleFailure, settleSuccess } from "./settle.js";

export const UNSENT = Symbol("unsent");

/** UNSENT = nothing left: the permit was older than its lease (a frozen process), it goes back and the call asks again. */
export function send(attempt: Attempt): Promise<unknown> {
  const { call, grant, source } = attempt;
  const { runtime, telemetry, config } = call.environment;
  const committed = telemetry?.open({
    callId: attempt.callId,
    requestId: call.requestId,
    scope: config.scope,
    sourceName: source.name,
    worker: telemetry.worker,
    startedAtMs: runtime.wallNow(),
    estTokens: grant.reservedTokens,
    sessionId: call.options.sessionId ?? null,
    parentCallId: call.options.parentCallId ?? null,
    operation: call.kind,
  });
  if (committed === undefined) return call.operation.attempt(source, attempt, releaseAnswered);
  return committed.then(() => sendAfterCommit(attempt));
}

/** One function for all attempts: the context is the attempt. */
const releaseAnswered = (context: AttemptContext, facts: ReplyFacts): void => settleSuccess(context as Attempt, facts);

async function sendAfterCommit(attempt: Attempt): Promise<unknown> {
  if (attempt.aborted) throw attempt.abortReason;
  if (attempt.mayBeSent) return attempt.call.operation.attempt(attempt.source, attempt, releaseAnswered);
  await giveBackUnsent(attempt);
  return UNSENT;
}

/** Costs the call nothing, and the source neither a request nor tokens. */
export async function giveBackUnsent(attempt: Attempt): Promise<void> {
  const { call } = attempt;
  settleFailure(attempt, "cancelled", 0);
  await recordFailure(
    attempt,
    new Error("returned unsent: the permit was older than its lease"),
    "cancelled",
    null,
    false,
  );
  call.clock.end(attempt.mark, call.environment.runtime.now(), false);
}
