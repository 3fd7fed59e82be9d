import type { LeaseId, Settle, Verdict } from "../domain/tick.js";

/**
 * What has to reach the governor sooner or later, whatever fails (spec 02 §2 "Degradation goes by path"):
 * the call really happened. Kept by lease id, dropped only when the lease is gone anyway.
 */
interface Pending<T> {
  readonly item: T;
  /** Gives back what may have been granted without an answer; nobody misses it when it is dropped. */
  readonly isRelease: boolean;
  /** The time of its lease was over when the attempt ended. */
  readonly wasOver: boolean;
  /** null until a tick with it failed. */
  dropAtMs: number | null;
}

export interface AccountingQueue {
  settles: Pending<Settle>[];
  verdicts: Pending<Verdict>[];
  /** Ids whose renewal is due. */
  renew: readonly LeaseId[];
  /** Accounts failed together: one at a time, until none is left. */
  isolating: boolean;
  /** A renewal that has not been tried: it waits for nothing, or healthy calls would lose their permits. */
  isRenewalDue: boolean;
  /** Verdicts go with the next tick, even one that carries nothing else. */
  isUrgent: boolean;
}

export interface TakenAccounts {
  readonly settles: readonly Pending<Settle>[];
  readonly verdicts: readonly Pending<Verdict>[];
  readonly renew: readonly LeaseId[];
}

const NO_ITEMS: readonly never[] = [];

export const NO_ACCOUNTS: TakenAccounts = { settles: NO_ITEMS, verdicts: NO_ITEMS, renew: NO_ITEMS };

export function emptyAccountingQueue(): AccountingQueue {
  return { settles: [], verdicts: [], renew: NO_ITEMS, isolating: false, isRenewalDue: false, isUrgent: false };
}

export function accountCount({ settles, verdicts, renew }: TakenAccounts): number {
  return settles.length + verdicts.length + renew.length;
}

export function addSettle(queue: AccountingQueue, item: Settle, isRelease = false, wasOver = false): void {
  queue.settles.push({ item, isRelease, wasOver, dropAtMs: null });
}

export function addVerdict(queue: AccountingQueue, item: Verdict): void {
  queue.verdicts.push({ item, isRelease: false, wasOver: false, dropAtMs: null });
}

export function itemsOf<T>(pending: readonly Pending<T>[]): readonly T[] {
  return pending.length === 0 ? NO_ITEMS : pending.map((entry) => entry.item);
}

/** It may change the breaker: a probe's verdict, or evidence for or against a source. */
export const isUrgent = ({ probe, kind }: Verdict): boolean => probe || kind !== "first_token";

/**
 * What goes with the next tick. `ride`: it carries wants anyway. While a failure is waited out (`isRetryPending`)
 * accounts stay back, so that they can't spoil an admission.
 */
export function takeForTick(queue: AccountingQueue, ride: boolean, isRetryPending: boolean): TakenAccounts {
  const { settles, verdicts, renew } = queue;
  const sendsRenewal = queue.isRenewalDue && (queue.isolating || isRetryPending);
  queue.isRenewalDue = false;
  if (sendsRenewal) return takeRenewal(queue);
  if (isRetryPending) return NO_ACCOUNTS;
  const hasUrgent = queue.isUrgent || verdicts.some((verdict) => isUrgent(verdict.item));
  if (!ride && !queue.isolating && settles.length + renew.length === 0 && !hasUrgent) return NO_ACCOUNTS;
  queue.isUrgent = false;
  const taken = queue.isolating ? takeOne(queue) : takeAll(queue);
  if (taken === NO_ACCOUNTS) queue.isolating = false;
  return taken;
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

function takeRenewal(queue: AccountingQueue): TakenAccounts {
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
