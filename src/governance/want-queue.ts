import type { Refusal, Want } from "../domain/tick.js";
import { BACKEND, newWaitLog, noteReason, type WaitLog, waitReason } from "./wait-log.js";

/** One call waiting for its permit. */
export interface QueueEntry {
  readonly want: Want;
  /** First-enqueue order of the call; a retried call keeps it, so it returns to its old position. */
  readonly sequence: number;
  /** Asked on every refusal that concerns this entry: stay in the queue, or leave with this refusal? */
  staysAfter(refusal: Refusal): boolean;
  /** How long the entry waits out failures of the governor itself before it rejects. */
  readonly backendGraceMs: number;
  /** Brings the want up to date before it is asked. */
  refresh?(): void;
  /** What its group waits for; set when it joins the queue. */
  log?: WaitLog | null;
}

/** The want as it is at this moment. */
export function askedNow(entry: QueueEntry): Want {
  entry.refresh?.();
  return entry.want;
}

/**
 * Entries whose refusal would be alike: same candidates, and the same sources failed them, if any. When the head of a
 * group is refused, the rest need not be asked; other groups are not held up by it. Who was rate-limited where only
 * decides which free source is preferred: a call that a 429 sent back must hold back those that came after it.
 */
export interface WantGroup {
  readonly key: string;
  /** Sorted by (priority, sequence). */
  entries: QueueEntry[];
  /** The last answer to its head; while set, the group isn't asked. */
  blockedBy: Refusal | null;
  /** When time alone may change that answer. */
  blockedUntilMs: number;
  /** The governor itself failed and the group waits it out. */
  paused: boolean;
  /** Why its head was last refused; null = not asked yet. */
  lastRefusal: Refusal | null;
  /** What they wait for; another one for those that come after the group was empty. */
  log: WaitLog;
  /** Entries that have not been told of any refusal yet. */
  readonly untold: Set<QueueEntry>;
}

export interface WantQueue {
  readonly groups: Map<string, WantGroup>;
  size: number;
}

const MAX_IDLE_GROUPS = 16;

export function emptyWantQueue(): WantQueue {
  return { groups: new Map(), size: 0 };
}

/** Candidates by name; one array is shared by all calls of a client that may use the same sources. */
const candidateKeys = new WeakMap<readonly string[], string>();

function candidateKey(candidates: readonly string[]): string {
  let key = candidateKeys.get(candidates);
  if (key === undefined) {
    key = candidates.join();
    candidateKeys.set(candidates, key);
  }
  return key;
}

/** A retry may be refused for the retry budget alone; what is no retry must not wait behind it. */
function groupKey({ candidates, failedHere, ordered, retry }: Want): string {
  const key = candidateKey(candidates);
  if (failedHere.length === 0 && ordered !== true && retry !== true) return key;
  return `${key}|${failedHere.join()}|${ordered === true}|${retry === true}`;
}

export function goesBefore(a: QueueEntry, b: QueueEntry): boolean {
  if (a.want.priority !== b.want.priority) return a.want.priority < b.want.priority;
  return a.sequence < b.sequence;
}

export function enqueue(queue: WantQueue, entry: QueueEntry): WantGroup {
  const key = groupKey(entry.want);
  let group = queue.groups.get(key);
  if (group === undefined) {
    group = newGroup(key);
    queue.groups.set(key, group);
  }
  const { entries } = group;
  if (entries.length === 0 && group.log.reason !== null) group.log = newWaitLog();
  entry.log = group.log;
  let index = entries.length;
  if (index > 0 && goesBefore(entry, entries[index - 1]!)) index = insertionIndex(entries, entry);
  if (index === entries.length) entries.push(entry);
  else entries.splice(index, 0, entry);
  // A new head may be what the old one was not: it has to be asked itself.
  if (index === 0) group.blockedBy = null;
  queue.size += 1;
  return group;
}

function newGroup(key: string): WantGroup {
  return {
    key,
    entries: [],
    blockedBy: null,
    blockedUntilMs: 0,
    paused: false,
    lastRefusal: null,
    log: newWaitLog(),
    untold: new Set(),
  };
}

/** Where the entries of lower priority begin. */
export function priorityEnd(entries: readonly QueueEntry[], priority: number): number {
  let low = 0;
  let high = entries.length;
  if (high > 0 && entries[high - 1]!.want.priority <= priority) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (entries[middle]!.want.priority > priority) high = middle;
    else low = middle + 1;
  }
  return low;
}

function insertionIndex(entries: readonly QueueEntry[], entry: QueueEntry): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (goesBefore(entry, entries[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function groupOf(queue: WantQueue, entry: QueueEntry): WantGroup | undefined {
  return queue.groups.get(groupKey(entry.want));
}

/** Removes an entry wherever it stands. Returns whether it was there. */
export function dequeue(queue: WantQueue, entry: QueueEntry): boolean {
  const group = groupOf(queue, entry);
  if (group === undefined) return false;
  const index = group.entries[0] === entry ? 0 : insertionIndex(group.entries, entry) - 1;
  if (index < 0 || group.entries[index] !== entry) return false;
  group.untold.delete(entry);
  if (index === 0) {
    group.entries.shift();
    // The answer was the old head's.
    group.blockedBy = null;
  } else {
    group.entries.splice(index, 1);
  }
  queue.size -= 1;
  // Kept for the next call of its kind, unless retries have left too many kinds behind.
  if (group.entries.length === 0 && queue.groups.size > MAX_IDLE_GROUPS) queue.groups.delete(group.key);
  return true;
}

export function isOpen(group: WantGroup): boolean {
  return group.entries.length > 0 && group.blockedBy === null && !group.paused;
}

/**
 * The entry was refused and stays: when it is the head, its group is blocked and returned. One behind a head that came
 * meanwhile blocks nothing: the new head has to be asked itself.
 */
export function block(queue: WantQueue, entry: QueueEntry, refusal: Refusal, nowMs: number): WantGroup | null {
  const group = groupOf(queue, entry);
  if (group === undefined) return null;
  group.untold.delete(entry);
  const untilMs = nowMs + refusal.waitHintMs;
  if (group.entries[0] === entry) {
    group.blockedBy = refusal;
    group.blockedUntilMs = untilMs;
    group.lastRefusal = refusal;
    noteReason(group.log, waitReason(refusal), nowMs);
    return group;
  }
  // Another priority may have its turn before the head has.
  if (group.blockedBy !== null && entry.want.priority !== group.entries[0]?.want.priority) {
    group.blockedUntilMs = Math.min(group.blockedUntilMs, untilMs);
  }
  return null;
}

/** The entry learned of a refusal of its own. */
export function tell(queue: WantQueue, entry: QueueEntry): void {
  groupOf(queue, entry)?.untold.delete(entry);
}

/** Those of the group who have not been told of a refusal yet; told once. */
export function takeUntold(group: WantGroup): QueueEntry[] {
  const untold = [...group.untold];
  group.untold.clear();
  return untold;
}

/** The governor failed: the entry's group is not asked until `resumeAll`. */
export function pause(queue: WantQueue, entry: QueueEntry, nowMs: number): void {
  const group = groupOf(queue, entry);
  if (group === undefined) return;
  group.paused = true;
  noteReason(group.log, BACKEND, nowMs);
}

export function resumeAll(queue: WantQueue): void {
  for (const group of queue.groups.values()) group.paused = false;
}

/** Something changed: every group may be asked again. */
export function unblockAll(queue: WantQueue): void {
  for (const group of queue.groups.values()) group.blockedBy = null;
}

/** The earliest moment at which time alone may let a blocked group go on; Infinity when none is blocked. */
export function earliestUnblockMs(queue: WantQueue): number {
  let earliest = Infinity;
  for (const group of queue.groups.values()) {
    if (group.blockedBy !== null && group.entries.length > 0) earliest = Math.min(earliest, group.blockedUntilMs);
  }
  return earliest;
}

export function allEntries(queue: WantQueue): QueueEntry[] {
  return [...queue.groups.values()].flatMap((group) => group.entries);
}
