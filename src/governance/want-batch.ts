import type { Grant } from "../domain/tick.js";
import { goesBefore, isOpen, priorityEnd, type QueueEntry, type WantQueue } from "./want-queue.js";

/** A tick carries at most this many wants (spec 10 "One port"). */
export const MAX_WANTS = 32;

const NOBODY: readonly never[] = [];

/**
 * The next entries worth asking, in queue order over all groups that are not blocked; at most `limit`. When it is full
 * of one priority the head of the next lower one comes too, because every tenth grant belongs to that one (spec 10 §6).
 */
export function nextToAsk(queue: WantQueue, limit: number): readonly QueueEntry[] {
  if (queue.size === 0) return NOBODY;
  const batch = firstOf(queue, limit);
  if (batch.length < limit || limit === 1) return batch;
  const { priority } = batch[0]!.want;
  if (batch[limit - 1]!.want.priority !== priority) return batch;
  const lower = firstBelow(queue, priority);
  if (lower === null) return batch;
  if (limit < MAX_WANTS) batch.push(lower);
  else batch[limit - 1] = lower;
  return batch;
}

function firstOf(queue: WantQueue, limit: number): QueueEntry[] {
  let batch: QueueEntry[] | null = null;
  for (const group of queue.groups.values()) {
    if (!isOpen(group)) continue;
    if (batch === null) batch = group.entries.slice(0, limit);
    else mergeInto(batch, group.entries, limit);
  }
  return batch ?? [];
}

/** Both sorted; few of many are wanted, so that sorting all would be wasted. */
function mergeInto(batch: QueueEntry[], entries: readonly QueueEntry[], limit: number): void {
  for (let i = 0; i < entries.length && i < limit; i += 1) {
    const entry = entries[i]!;
    let at = batch.length;
    while (at > 0 && goesBefore(entry, batch[at - 1]!)) at -= 1;
    if (at === limit) return;
    batch.splice(at, 0, entry);
    if (batch.length > limit) batch.pop();
  }
}

function firstBelow(queue: WantQueue, priority: number): QueueEntry | null {
  let first: QueueEntry | null = null;
  for (const group of queue.groups.values()) {
    if (!isOpen(group)) continue;
    const head = group.entries[priorityEnd(group.entries, priority)];
    if (head !== undefined && (first === null || goesBefore(head, first))) first = head;
  }
  return first;
}

/**
 * Counts for each entry that was not granted how many later ones of its priority were, on a source that it could have
 * had as well: the governor serves next whom it has passed over too often (spec 10 §5).
 */
export function countSkips(batch: readonly QueueEntry[], grants: readonly Grant[]): void {
  if (batch.length < 2 || grants.length === 0 || grants.length === batch.length) return;
  let later: Grant[] = [];
  let priority = Number.NaN;
  for (let i = batch.length - 1; i >= 0; i -= 1) {
    const { want } = batch[i]!;
    if (want.priority !== priority) later = [];
    priority = want.priority;
    const own = grants.find((grant) => grant.leaseId === want.leaseId);
    if (own !== undefined) {
      later.push(own);
      continue;
    }
    for (const grant of later) {
      if (want.candidates.includes(grant.source)) want.skips = (want.skips ?? 0) + 1;
    }
  }
}
