import type { CachedAnswer } from "../ports/cache.js";
import { type Call, type GovernEnvironment, startCall } from "./call.js";
import type { CallOptions, Governed, Operation, ReplyFacts } from "./operation.js";
import { recordHit } from "./rows.js";

export interface HitFacts {
  /** Id of its row. */
  readonly callId: string;
  readonly requestId: string;
  readonly latencyMs: number;
}

/** A call that is over before it began: one row, cost 0, no permit. Waits for the row where the configuration asks for it. */
export async function endWithHit(
  environment: GovernEnvironment,
  operation: Operation<unknown, unknown>,
  options: CallOptions,
  answer: CachedAnswer,
  askedMs: number,
): Promise<HitFacts> {
  const call = startCall(environment, operation, options);
  call.interrupt.dispose();
  const { model, provider, modelReported, finishReason } = answer;
  const { response, thinking } = operation.describePartial(answer);
  return writeHit(call, { model, provider, modelReported, finishReason, response, thinking, route: null }, askedMs);
}

/** A call that was given what the attempts of another one brought. */
export async function endShared(
  call: Call,
  { source, requestId: sharedWith }: Governed<unknown, unknown>,
  facts: ReplyFacts,
  joinedMs: number,
): Promise<HitFacts> {
  const { model, provider } = source;
  const { modelReported, finishReason, response, thinking } = facts;
  const route = JSON.stringify({ sharedWith });
  return writeHit(call, { model, provider, modelReported, finishReason, response, thinking, route }, joinedMs);
}

async function writeHit(call: Call, answer: Parameters<typeof recordHit>[2], askedMs: number): Promise<HitFacts> {
  const { runtime } = call.environment;
  const callId = runtime.uuid();
  const latencyMs = Math.max(0, runtime.now() - askedMs);
  const committed = recordHit(call, callId, answer, latencyMs);
  if (committed !== undefined) await committed;
  return { callId, requestId: call.requestId, latencyMs };
}
