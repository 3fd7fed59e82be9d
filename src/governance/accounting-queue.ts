import type { LeaseId, Settle, Verdict } from "../domain/tick.js";

/**
 * What has to reach the governor sooner or later, whatever fails (spec 02 §2 "Degradation goes by path"):
 * the call really happened. Kept by lease id, dropped only when the lease is gone anyway.
 */
interface Pending<T> {
  readonly item: T;
  /** null until a tick with it failed. */
  dropAtMs: number | null;
}

export interface AccountingQueue {
  settles: Pending<Settle>[];
  verdicts: Pending<Verdict>[];
  /** Ids whose renewal is due. */
  renew: LeaseId[];
}

export function emptyAccountingQueue(): AccountingQueue {
  return { settles: [], verdicts: [], renew: [] };
}

export function hasPending(queue: AccountingQueue): boolean {
  return queue.settles.length + queue.verdicts.length + queue.renew.length > 0;
}

export function addSettle(queue: AccountingQueue, item: Settle): void {
  queue.settles.push({ item, dropAtMs: null });
}

export function addVerdict(queue: AccountingQueue, item: Verdict): void {
  queue.verdicts.push({ item, dropAtMs: null });
}

export interface TakenAccounts {
  readonly settles: Pending<Settle>[];
  readonly verdicts: Pending<Verdict>[];
  readonly renew: LeaseId[];
}

const NO_ITEMS: readonly never[] = [];

export function itemsOf<T>(pending: readonly Pending<T>[]): readonly T[] {
  return pending.length === 0 ? NO_ITEMS : pending.map((entry) => entry.item);
}

export const NO_ACCOUNTS: TakenAccounts = { settles: [], verdicts: [], renew: [] };

/** Takes everything for one tick; `giveBack` returns it when the tick fails. */
export function takeAll(queue: AccountingQueue): TakenAccounts {
  if (!hasPending(queue)) return NO_ACCOUNTS;
  const taken = { settles: queue.settles, verdicts: queue.verdicts, renew: queue.renew };
  queue.settles = [];
  queue.verdicts = [];
  queue.renew = [];
  return taken;
}

/** Puts back what a failed tick carried. Returns how many entries were too old to be of use and were dropped. */
export function giveBack(queue: AccountingQueue, taken: TakenAccounts, nowMs: number, leaseTtlMs: number): number {
  const settles = keepFresh(taken.settles, nowMs, leaseTtlMs);
  const verdicts = keepFresh(taken.verdicts, nowMs, leaseTtlMs);
  queue.settles = [...settles, ...queue.settles];
  queue.verdicts = [...verdicts, ...queue.verdicts];
  queue.renew = [...taken.renew, ...queue.renew];
  return taken.settles.length + taken.verdicts.length - settles.length - verdicts.length;
}

function keepFresh<T>(pending: readonly Pending<T>[], nowMs: number, leaseTtlMs: number): Pending<T>[] {
  return pending.filter((entry) => {
    entry.dropAtMs ??= nowMs + leaseTtlMs;
    return entry.dropAtMs > nowMs;
  });
}
