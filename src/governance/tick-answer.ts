import type { Grant, Refusal, TickReply } from "../domain/tick.js";
import { type Desk, leave } from "./desk.js";
import { wantsFailed } from "./tick-failure.js";
import { countSkips } from "./want-batch.js";
import { block, dequeue, type QueueEntry, takeUntold, tell, type WantGroup } from "./want-queue.js";

/**
 * Grants first, then refusals: who was granted holds nobody back. `sentMs`: when the tick left; null when it was
 * answered in the same turn.
 */
export function answerWants(
  desk: Desk,
  { grants, refusals }: TickReply,
  wants: readonly QueueEntry[],
  sentMs: number | null,
): void {
  countSkips(wants, grants);
  const anyGranted = grantAll(desk, grants, wants, sentMs);
  const anyRefused = refuseAll(desk, refusals, wants);
  if (anyGranted || anyRefused) return;
  // The same batch would be asked for ever: those without any answer end here.
  const silent = wants.filter((entry) => refusalOf(entry, refusals) === undefined);
  wantsFailed(desk, new Error("it neither granted nor refused what it was asked for"), silent, false);
}

/**
 * Hands out the permits of a tick. Returns whether any was for one of the wants.
 */
function grantAll(desk: Desk, grants: readonly Grant[], wants: readonly QueueEntry[], sentMs: number | null): boolean {
  let isAnyOurs = false;
  for (const grant of grants) {
    const entry = wants.find((candidate) => candidate.want.leaseId === grant.leaseId);
    if (entry === undefined) continue;
    isAnyOurs = true;
    handOut(desk, entry, grant, sentMs);
  }
  return isAnyOurs;
}

function handOut(desk: Desk, entry: QueueEntry, grant: Grant, sentMs: number | null): void {
  const nowMs = desk.options.runtime.now();
  desk.mayHold.delete(entry);
  // A process that was frozen longer than the lease: somebody else may have the permit by now.
  const isStale = sentMs !== null && nowMs - sentMs >= grant.leaseTtlMs;
  if (isStale) {
    // Asked again under the same id. Given back, it would come back later than the next permit of that id was given.
    if (desk.waiters.isAsking(entry)) desk.mayHold.add(entry);
    else desk.giveBack(grant);
    return;
  }
  desk.live.add(grant.leaseId, sentMs ?? nowMs, grant.leaseTtlMs);
  desk.starts.add(grant);
  if (dequeue(desk.queue, entry)) desk.waiters.resolve(entry, grant);
  // Withdrawn while the tick was in flight: nobody is left to use it.
  else desk.giveBack(grant);
}

/**
 * Tells the refused of a tick, in queue order, and blocks the groups whose head is refused and stays. Returns whether
 * the same batch need not be asked again as it was: somebody left it, or a group was blocked.
 */
function refuseAll(desk: Desk, refusals: readonly Refusal[], wants: readonly QueueEntry[]): boolean {
  if (refusals.length === 0) return false;
  const nowMs = desk.options.runtime.now();
  const blocked: WantGroup[] = [];
  let someoneLeft = false;
  let expected = 0;
  for (const entry of wants) {
    // Nearly always in the order of asking.
    const isNext = refusals[expected]?.leaseId === entry.want.leaseId;
    const refusal = isNext ? refusals[expected] : refusalOf(entry, refusals);
    if (isNext) expected += 1;
    if (refusal === undefined) continue;
    if (!stays(desk, entry, refusal)) someoneLeft = true;
    // Who stands behind one that left may have been refused for its sake, and is asked again.
    else if (someoneLeft) tell(desk.queue, entry);
    else {
      const group = block(desk.queue, entry, refusal, nowMs);
      if (group !== null) blocked.push(group);
    }
  }
  for (const group of blocked) tellRest(desk, group);
  return someoneLeft || blocked.length > 0;
}

function refusalOf(entry: QueueEntry, refusals: readonly Refusal[]): Refusal | undefined {
  return refusals.find((refusal) => refusal.leaseId === entry.want.leaseId);
}

/** false: it leaves with this refusal, or has left by itself while the tick was on its way. */
function stays(desk: Desk, entry: QueueEntry, refusal: Refusal): boolean {
  const { waiters } = desk;
  if (!waiters.isAsking(entry)) return false;
  if (!entry.staysAfter(refusal)) {
    leave(desk, entry, refusal);
    return false;
  }
  if (waiters.instant?.entry === entry) waiters.instant.told = true;
  return true;
}

/** The others of a blocked group learn what they wait for. */
function tellRest(desk: Desk, group: WantGroup): void {
  const refusal = group.blockedBy;
  if (refusal === null || group.untold.size === 0) return;
  for (const entry of takeUntold(group)) {
    if (!entry.staysAfter(refusal)) leave(desk, entry, refusal);
  }
}
