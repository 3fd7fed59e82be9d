import type { LeaseId, Settle, Verdict } from "../domain/tick.js";

/**
 * What has to reach the governor sooner or later, whatever fails (spec 02 §2 "Degradation goes by path"):
 * the call really happened. Kept by lease id, dropped only when the lease is gone anyway.
 */
interface Pending<T> {
  readonly item: T;
  /** Gives back what may have been granted without an answer; nobody misses it when it is dropped. */
  readonly isRelease: boolean;
  /** null until a tick with it failed. */
  dropAtMs: number | null;
}

export interface AccountingQueue {
  settles: Pending<Settle>[];
  verdicts: Pending<Verdict>[];
  /** Ids whose renewal is due. */
  renew: readonly LeaseId[];
}

export interface TakenAccounts {
  readonly settles: readonly Pending<Settle>[];
  readonly verdicts: readonly Pending<Verdict>[];
  readonly renew: readonly LeaseId[];
}

const NO_ITEMS: readonly never[] = [];

export const NO_ACCOUNTS: TakenAccounts = { settles: NO_ITEMS, verdicts: NO_ITEMS, renew: NO_ITEMS };

export function emptyAccountingQueue(): AccountingQueue {
  return { settles: [], verdicts: [], renew: NO_ITEMS };
}

export function accountCount({ settles, verdicts, renew }: TakenAccounts): number {
  return settles.length + verdicts.length + renew.length;
}

export function addSettle(queue: AccountingQueue, item: Settle, isRelease = false): void {
  queue.settles.push({ item, isRelease, dropAtMs: null });
}

export function addVerdict(queue: AccountingQueue, item: Verdict): void {
  queue.verdicts.push({ item, isRelease: false, dropAtMs: null });
}

export function itemsOf<T>(pending: readonly Pending<T>[]): readonly T[] {
  return pending.length === 0 ? NO_ITEMS : pending.map((entry) => entry.item);
}

/** Takes everything for one tick; `giveBack` returns it when the tick fails. */
export function takeAll(queue: AccountingQueue): TakenAccounts {
  if (accountCount(queue) === 0) return NO_ACCOUNTS;
  const taken = { settles: queue.settles, verdicts: queue.verdicts, renew: queue.renew };
  queue.settles = [];
  queue.verdicts = [];
  queue.renew = NO_ITEMS;
  return taken;
}

/** Takes the oldest entry alone, so that one the governor refuses for ever can't hold back the others. */
export function takeOne(queue: AccountingQueue): TakenAccounts {
  const settle = queue.settles.shift();
  if (settle !== undefined) return { ...NO_ACCOUNTS, settles: [settle] };
  const verdict = queue.verdicts.shift();
  if (verdict !== undefined) return { ...NO_ACCOUNTS, verdicts: [verdict] };
  return takeAll(queue);
}

export function takeRenewal(queue: AccountingQueue): TakenAccounts {
  const { renew } = queue;
  queue.renew = NO_ITEMS;
  return { ...NO_ACCOUNTS, renew };
}

/**
 * Puts back what a failed tick carried, behind what waits. Returns how many entries were too old to be of use and were
 * dropped, mere releases apart.
 */
export function giveBack(queue: AccountingQueue, taken: TakenAccounts, nowMs: number, leaseTtlMs: number): number {
  queue.settles.push(...keepFresh(taken.settles, nowMs, leaseTtlMs));
  queue.verdicts.push(...keepFresh(taken.verdicts, nowMs, leaseTtlMs));
  queue.renew = [...taken.renew, ...queue.renew];
  return countDropped(taken.settles, nowMs) + countDropped(taken.verdicts, nowMs);
}

function keepFresh<T>(pending: readonly Pending<T>[], nowMs: number, leaseTtlMs: number): Pending<T>[] {
  return pending.filter((entry) => {
    entry.dropAtMs ??= nowMs + leaseTtlMs;
    return entry.dropAtMs > nowMs;
  });
}

function countDropped(pending: readonly Pending<unknown>[], nowMs: number): number {
  return pending.filter((entry) => !entry.isRelease && entry.dropAtMs !== null && entry.dropAtMs <= nowMs).length;
}
