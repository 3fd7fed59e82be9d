import { countOf } from "../domain/count-of.js";
import { isLastingFailure } from "../domain/lasting-failure.js";
import { accountCount, giveBack, type TakenAccounts } from "./accounting-queue.js";
import { admissionError, isOfContent } from "./backend-errors.js";
import { type Desk, releaseIfHeld, warnOf } from "./desk.js";
import { allEntries, dequeue, pause, type QueueEntry } from "./want-queue.js";

/**
 * Admission fails closed, accounting is kept (spec 02 §2 "Degradation goes by path"). `mayHaveRun`: only the answer
 * may be missing.
 */
export function tickFailed(
  desk: Desk,
  error: unknown,
  accounts: TakenAccounts,
  wants: readonly QueueEntry[],
  mayHaveRun: boolean,
): void {
  const hasAccounts = accountCount(accounts) > 0;
  const isContent = isOfContent(error);
  if (hasAccounts) accountsFailed(desk, error, accounts, isContent && wants.length > 0);
  const isOutage = mayHaveRun && !isContent;
  // What is refused for good was not done.
  if (isOutage && !isLastingFailure(error)) for (const entry of wants) desk.mayHold.add(entry);
  if (wants.length > 0 && hasAccounts) desk.askAgain.push(wants);
  else if (wants.length > 1 && isContent) desk.askAgain.push(...wants.map((entry) => [entry]));
  else wantsFailed(desk, error, wants, isOutage);
}

/** Wants to be asked by themselves; those whose callers have left since are not. null = none. */
export function nextAgain(desk: Desk): readonly QueueEntry[] | null {
  const { askAgain, waiters } = desk;
  while (askAgain.length > 0) {
    const wants = askAgain.shift()!;
    const again = wants.filter((entry) => waiters.isAsking(entry));
    for (const entry of wants) if (!waiters.isAsking(entry)) releaseIfHeld(desk, entry);
    if (again.length > 0) return again;
  }
  return null;
}

/** `maybeBlameless`: what was asked with them may be to blame, so they are told by themselves at once. */
function accountsFailed(desk: Desk, error: unknown, accounts: TakenAccounts, maybeBlameless: boolean): void {
  const { runtime, leaseTtlMs } = desk.options;
  const dropped = giveBack(desk.accounts, accounts, runtime.now(), leaseTtlMs);
  if (dropped > 0) {
    const text = "accounting was dropped: its leases ended before the governor could be told";
    warnOf(desk, "accounting_dropped", `${text} (${countOf(dropped, "entry", "entries")})`);
  }
  desk.accounts.isolating = true;
  if (!maybeBlameless) desk.retry.later(error, "accounts");
}

export function wantsFailed(desk: Desk, error: unknown, wants: readonly QueueEntry[], isOutage: boolean): void {
  // An outage is told to all who wait at once, not tick by tick.
  const told = isOutage && wants.length > 0 ? new Set([...wants, ...allEntries(desk.queue)]) : wants;
  for (const entry of told) wantFailed(desk, entry, error);
}

function wantFailed(desk: Desk, entry: QueueEntry, error: unknown): void {
  const { queue, waiters, options } = desk;
  const [first, second] = entry.want.candidates;
  const sourceName = second === undefined ? first : undefined;
  const failure = admissionError("tick", error, options.governor.scope, sourceName);
  const isAsking = waiters.isAsking(entry);
  const mayWait = isAsking && !isOfContent(failure) && !isLastingFailure(failure);
  const nowMs = options.runtime.now();
  if (mayWait && waiters.hasGrace(entry, nowMs)) {
    pause(queue, entry, nowMs);
    desk.retry.later(error, "wants");
    return;
  }
  dequeue(queue, entry);
  releaseIfHeld(desk, entry);
  waiters.reject(entry, failure);
}
