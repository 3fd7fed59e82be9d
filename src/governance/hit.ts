import type { CachedAnswer } from "../ports/cache.js";
import { type GovernEnvironment, startCall } from "./call.js";
import type { CallOptions, Operation } from "./operation.js";
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
  const { runtime } = environment;
  const call = startCall(environment, operation, options);
  call.interrupt.dispose();
  const callId = runtime.uuid();
  const latencyMs = Math.max(0, runtime.now() - askedMs);
  const committed = recordHit(call, callId, answer, latencyMs);
  if (committed !== undefined) await committed;
  return { callId, requestId: call.requestId, latencyMs };
}
