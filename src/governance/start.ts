import { Attempt } from "./attempt.js";
import { type Call, keepSources, patienceMs, sourceNamed } from "./call.js";
import type { Interruption } from "./interrupt.js";
import { getPermit, interruptionError, orInterrupted, type Permit, stallError } from "./permit.js";
import { unsentSettle } from "./unsent.js";
import { joinWaits } from "./wait-log.js";

/** From the permit to the attempt. */

export function returnPermit(call: Call, { grant }: Permit, interruption: Interruption): unknown {
  call.environment.dispatcher.settle(unsentSettle(grant));
  return interruptionError(call, interruption);
}

/**
 * A permit that may be used now. One that was given some moments ahead is waited for; that wait is the call's, not an
 * attempt's. News about its source make it stale: it goes back unsent and the call asks again at its old queue position.
 */
export async function startable(call: Call, permit: Permit): Promise<Permit> {
  let current = permit;
  while (current.grant.startInMs > 0) {
    // It may have fired between the grant and this line.
    if (call.interrupt.fired !== null) throw returnPermit(call, current, call.interrupt.fired);
    if (await untilStart(call, current)) break;
    current = await askInstead(call, current);
  }
  return current;
}

/** Gives back and asks in one step, so that the slot that comes back isn't given to a call behind this one. */
async function askInstead(call: Call, { grant, waitedMs, waits }: Permit): Promise<Permit> {
  const { dispatcher, runtime } = call.environment;
  dispatcher.giveBack(grant);
  let asked: Permit | Promise<Permit>;
  try {
    const stall = patienceMs(call, runtime.now()) > 0 ? null : await orInterrupted(call, stallError(call));
    if (stall !== null) throw stall;
    if (call.interrupt.fired !== null) throw interruptionError(call, call.interrupt.fired);
    asked = getPermit(call, runtime.uuid());
  } finally {
    dispatcher.flush();
  }
  const next = await asked;
  next.waitedMs += waitedMs;
  next.waits = joinWaits(waits, next.waits);
  return next;
}

/** False = it is no longer valid. Rejects when the call is interrupted; the permit has then gone back. */
function untilStart(call: Call, permit: Permit): Promise<boolean> {
  const { runtime, dispatcher } = call.environment;
  const { grant } = permit;
  const receivedMs = runtime.now();
  return new Promise((resolve, reject) => {
    const stopListening = call.interrupt.listen((interruption) => {
      cancelTimer();
      reject(returnPermit(call, permit, interruption));
    });
    const cancelTimer = runtime.setTimer(grant.startInMs, () => {
      stopListening();
      const aheadMs = runtime.now() - receivedMs;
      permit.waitedMs += aheadMs;
      // A process that was frozen meanwhile may have lost the lease.
      resolve(!dispatcher.isStale(grant) && aheadMs < grant.leaseTtlMs);
    });
  });
}

export function startAttempt(call: Call, permit: Permit): Attempt {
  const source = sourceNamed(call, permit.grant.source)!;
  if (!call.failover && call.sources.length > 1) keepSources(call, (other) => other.name === source.name);
  return new Attempt(call, source, permit.grant, permit.waitedMs, permit.waits);
}
