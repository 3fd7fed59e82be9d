import type { Grant, Refusal, TickBatch } from "../domain/tick.js";
import type { Governor } from "../ports/governor.js";
import type { Runtime } from "../ports/runtime.js";
import {
  type AccountingQueue,
  addSettle,
  emptyAccountingQueue,
  itemsOf,
  type TakenAccounts,
} from "./accounting-queue.js";
import { type BackendRetry, createBackendRetry } from "./backend-retry.js";
import { createLiveLeases, type LiveLeases } from "./live-leases.js";
import { ScheduledStarts } from "./scheduled-starts.js";
import { releaseSettle } from "./unsent.js";
import { createWaiters, type Waiters } from "./waiters.js";
import { askedNow, dequeue, emptyWantQueue, type QueueEntry, resumeAll, type WantQueue } from "./want-queue.js";
import type { Warn } from "./warn.js";

export interface DispatcherOptions {
  readonly governor: Governor;
  readonly runtime: Runtime;
  /** host:pid:random. */
  readonly worker: string;
  readonly leaseTtlMs: number;
  readonly leaseRenewal: boolean;
  readonly warn: Warn;
}

/** What a dispatcher remembers between its ticks: who waits, what is to be booked, what may be held. */
export interface Desk {
  readonly options: DispatcherOptions;
  readonly queue: WantQueue;
  readonly accounts: AccountingQueue;
  readonly waiters: Waiters;
  readonly live: LiveLeases;
  readonly retry: BackendRetry;
  /** Grants whose start lies ahead. */
  readonly starts: ScheduledStarts;
  /** Wants whose tick failed in company of something else that may be to blame; asked again by themselves. */
  readonly askAgain: (readonly QueueEntry[])[];
  /** Why no more permits are asked for; null while they are. */
  refusal: Error | null;
  /** Granted perhaps, though no answer came: given back when nobody asks again. */
  readonly mayHold: Set<QueueEntry>;
  /** Returns a permit of which nothing was used. */
  giveBack(grant: Grant): void;
}

export function createDesk(
  options: DispatcherOptions,
  { wake, giveBack }: { wake(): void; giveBack(grant: Grant): void },
): Desk {
  const { runtime, leaseTtlMs, leaseRenewal } = options;
  const queue = emptyWantQueue();
  const accounts = emptyAccountingQueue();
  const desk: Desk = {
    options,
    queue,
    accounts,
    waiters: createWaiters(),
    live: createLiveLeases(runtime, leaseTtlMs, leaseRenewal, (leaseIds) => {
      accounts.renew = leaseIds;
      accounts.isRenewalDue = true;
      wake();
    }),
    retry: createBackendRetry(
      runtime,
      {
        away: (text) => warnOf(desk, "outage", text),
        back: (text) => runtime.log("warn", `scope ${options.governor.scope}: ${text}`, { component: "governor" }),
      },
      () => {
        resumeAll(queue);
        wake();
      },
    ),
    starts: new ScheduledStarts(),
    askAgain: [],
    refusal: null,
    mayHold: new Set(),
    giveBack,
  };
  return desk;
}

/** Answers whether it was said. */
export function warnOf({ options }: Desk, kind: string, message: string): boolean {
  return options.warn("governor", kind, `scope ${options.governor.scope}: ${message}`);
}

/** The reply may be what got lost: whatever was granted goes back by its lease id. */
export function releaseIfHeld(desk: Desk, entry: QueueEntry): void {
  if (!desk.mayHold.delete(entry)) return;
  const { leaseId, candidates } = entry.want;
  if (candidates[0] !== undefined) addSettle(desk.accounts, releaseSettle(leaseId, candidates[0]), true);
}

/** The entry leaves the queue with this refusal, its own or that of one ahead of it. */
export function leave(desk: Desk, entry: QueueEntry, refusal: Refusal): void {
  if (!dequeue(desk.queue, entry)) return;
  releaseIfHeld(desk, entry);
  desk.waiters.resolve(entry, refusal);
}

/** What a tick says and asks. */
export function batchOf(
  { runtime, worker }: DispatcherOptions,
  { settles, verdicts, renew }: TakenAccounts,
  wants: readonly QueueEntry[],
): TickBatch {
  return {
    worker,
    seed: Math.floor(runtime.random() * 0x1_0000_0000),
    settles: itemsOf(settles),
    verdicts: itemsOf(verdicts),
    renew,
    wants: wants.map(askedNow),
  };
}
