import type { Grant, Refusal } from "../domain/tick.js";
import type { QueueEntry } from "./want-queue.js";

export type Answer = Grant | Refusal;

/** The entry being admitted, while its answer may still come in the same turn. */
export interface Instant {
  readonly entry: QueueEntry;
  answer: Answer | null;
  error: Error | null;
  /** It was refused itself and stays. */
  told: boolean;
}

interface Waiter {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
  readonly sinceMs: number;
  /** Since when failures of the governor are waited out. */
  failingSinceMs: number;
  /** The outage that began then; 0 before the first one. */
  outage: number;
}

/** The calls that wait for an answer, each told once. */
export interface Waiters {
  /** The one that is answered in this turn, without a promise. */
  instant: Instant | null;
  wait(entry: QueueEntry, nowMs: number): Promise<Answer>;
  /** Somebody still wants the answer. */
  isAsking(entry: QueueEntry): boolean;
  resolve(entry: QueueEntry, answer: Answer): void;
  reject(entry: QueueEntry, error: unknown): void;
  /** Whether the entry still waits out failures of the governor; its grace begins with the first of an outage. */
  hasGrace(entry: QueueEntry, nowMs: number): boolean;
  /** The governor answered wants: an outage is over, and the next one has a grace of its own. */
  answered(): void;
  summary(nowMs: number): { count: number; oldestMs: number };
}

export function createWaiters(): Waiters {
  const waiting = new Map<QueueEntry, Waiter>();
  /** A failure belongs to the outage after the answers so far. */
  let outage = 1;
  const take = (entry: QueueEntry): Waiter | undefined => {
    const waiter = waiting.get(entry);
    waiting.delete(entry);
    return waiter;
  };
  const waiters: Waiters = {
    instant: null,
    wait: (entry, nowMs) =>
      new Promise((resolve, reject) => {
        waiting.set(entry, { resolve, reject, sinceMs: nowMs, failingSinceMs: nowMs, outage: 0 });
      }),
    isAsking: (entry) => waiters.instant?.entry === entry || waiting.has(entry),
    resolve(entry, answer) {
      if (waiters.instant?.entry === entry) waiters.instant.answer = answer;
      else take(entry)?.resolve(answer);
    },
    reject(entry, error) {
      if (waiters.instant?.entry === entry) waiters.instant.error = error as Error;
      else take(entry)?.reject(error);
    },
    hasGrace(entry, nowMs) {
      const waiter = waiting.get(entry);
      if (entry.backendGraceMs === 0 || waiter === undefined) return entry.backendGraceMs > 0;
      if (waiter.outage !== outage) {
        waiter.outage = outage;
        waiter.failingSinceMs = nowMs;
      }
      return nowMs < waiter.failingSinceMs + entry.backendGraceMs;
    },
    answered() {
      outage += 1;
    },
    summary(nowMs) {
      let oldestMs = 0;
      for (const waiter of waiting.values()) oldestMs = Math.max(oldestMs, nowMs - waiter.sinceMs);
      return { count: waiting.size, oldestMs };
    },
  };
  return waiters;
}
