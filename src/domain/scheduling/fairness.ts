import type { Grant, Refusal, Want } from "../tick.js";

/**
 * Start-time fair queueing over the processes of a scope (spec 10 §6): each grant moves a process's virtual time on, and
 * who is too far ahead of the others that wait has to let them go first. Leases are not concerned, only turns.
 */
export interface WorkerRecord {
  virtualTime: number;
  /** Has calls that wait. */
  waiting: boolean;
  /** Of the calls that wait, the most urgent. */
  priority: number;
  lastVisitMs: number;
}

export type WorkerBook = Map<string, WorkerRecord>;

/** Grants a process may be ahead of one that waits. */
export const LEAD = 4;
/** Whoever waits and has not been here for so long may be dead: it holds nobody up. */
const SILENT_MS = 1_500;
/** Forgotten after this long without a visit. */
const FORGET_MS = 15_000;

/** The process is here; one that was away, or is new, does not catch up. */
export function visit(book: WorkerBook, name: string, nowMs: number): WorkerRecord {
  let worker = book.get(name);
  if (worker === undefined) {
    forgetSilent(book, nowMs);
    worker = { virtualTime: 0, waiting: false, priority: 0, lastVisitMs: nowMs };
    book.set(name, worker);
  }
  if (!worker.waiting && book.size > 1) {
    const presentTime = leastWaiting(book, worker, nowMs) ?? greatest(book);
    worker.virtualTime = Math.max(worker.virtualTime, presentTime);
  }
  worker.lastVisitMs = nowMs;
  return worker;
}

/** While nobody waits, nobody has a claim to what others were given. */
function greatest(book: WorkerBook): number {
  let most = 0;
  for (const { virtualTime } of book.values()) if (virtualTime > most) most = virtualTime;
  return most;
}

/** Smallest virtual time among the others that wait; null when nobody does. */
function leastWaiting(book: WorkerBook, self: WorkerRecord, nowMs: number): number | null {
  let least: number | null = null;
  for (const other of book.values()) {
    if (other === self || !isWaiting(other, nowMs)) continue;
    if (least === null || other.virtualTime < least) least = other.virtualTime;
  }
  return least;
}

function isWaiting(worker: WorkerRecord, nowMs: number): boolean {
  return worker.waiting && nowMs - worker.lastVisitMs <= SILENT_MS;
}

/**
 * Must this process let another one go first? More urgent calls elsewhere always do, apart from the turns that belong to
 * the lower class.
 */
export function mustYield(
  book: WorkerBook,
  self: WorkerRecord,
  priority: number,
  isLowerTurn: boolean,
  nowMs: number,
): boolean {
  if (book.size === 1) return false;
  for (const other of book.values()) {
    if (other === self || !isWaiting(other, nowMs)) continue;
    if (other.priority < priority && !isLowerTurn) return true;
    if (other.priority === priority && self.virtualTime > other.virtualTime + LEAD) return true;
  }
  return false;
}

/** Do more urgent calls of another process wait? */
export function waitsForClass(book: WorkerBook, self: WorkerRecord, priority: number, nowMs: number): boolean {
  if (book.size === 1) return false;
  for (const other of book.values()) {
    if (other !== self && isWaiting(other, nowMs) && other.priority < priority) return true;
  }
  return false;
}

/** After its wants were answered: does it wait, and with what? */
export function noteWaiting(self: WorkerRecord, wants: readonly Want[], answers: readonly (Grant | Refusal)[]): void {
  self.waiting = false;
  for (let n = 0; n < wants.length; n += 1) {
    const answer = answers[n]!;
    if (!("kind" in answer) || answer.kind === "never" || answer.kind === "deadline") continue;
    const { priority, hedge } = wants[n]!;
    if (hedge === true) continue;
    self.priority = self.waiting ? Math.min(self.priority, priority) : priority;
    self.waiting = true;
  }
}

/** How many others that wait come before this one. */
export function rankOf(book: WorkerBook, self: WorkerRecord, nowMs: number): number {
  let rank = 0;
  for (const other of book.values()) {
    if (other !== self && isWaiting(other, nowMs) && other.virtualTime < self.virtualTime) rank += 1;
  }
  return rank;
}

/**
 * Who is next among those that wait, apart from `self`: the most urgent class, or the least urgent one when it is the lower
 * class's turn, then the smallest virtual time.
 */
export function nextInLine(
  book: WorkerBook,
  self: WorkerRecord | null,
  isLowerTurn: boolean,
  nowMs: number,
): string | null {
  let name: string | null = null;
  let best: WorkerRecord | null = null;
  for (const [candidate, worker] of book) {
    if (worker === self || !isWaiting(worker, nowMs)) continue;
    if (best !== null && !goesFirst(worker, best, isLowerTurn)) continue;
    name = candidate;
    best = worker;
  }
  return name;
}

function goesFirst(a: WorkerRecord, b: WorkerRecord, isLowerTurn: boolean): boolean {
  if (a.priority !== b.priority) return a.priority < b.priority !== isLowerTurn;
  return a.virtualTime < b.virtualTime;
}

function forgetSilent(book: WorkerBook, nowMs: number): void {
  // Over a copy: in the Lua twin a deletion ends the walk through what is deleted from.
  for (const [name, worker] of [...book]) if (nowMs - worker.lastVisitMs > FORGET_MS) book.delete(name);
}
