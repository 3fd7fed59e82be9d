import type { LeaseId } from "../domain/tick.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";

export interface LiveLeases {
  /** `fromMs`: when its tick left, so that it is over here no later than in the store. */
  add(leaseId: LeaseId, fromMs: number, ttlMs: number): void;
  /** Returns until when it was good; undefined when it wasn't held. */
  remove(leaseId: LeaseId): number | undefined;
  renewed(leaseId: LeaseId, fromMs: number): void;
  /** It is held, and its time is not over. */
  isGood(leaseId: LeaseId, nowMs: number): boolean;
  count(): number;
  /** Resolves once none is held. */
  whenNone(): Promise<void>;
  stop(): void;
}

/** The permits this process holds, renewed all in one step every third of their life (spec 02 §3). No timer while there are none. */
export function createLiveLeases(
  runtime: Runtime,
  leaseTtlMs: number,
  renewal: boolean,
  renew: (leaseIds: LeaseId[]) => void,
): LiveLeases {
  /** Until when each is good. */
  const held = new Map<LeaseId, number>();
  const waiting: (() => void)[] = [];
  let newestTtlMs = leaseTtlMs;
  let cancelTimer: CancelTimer | null = null;

  function schedule(): void {
    if (!renewal || cancelTimer !== null) return;
    cancelTimer = runtime.setTimer(leaseTtlMs / 3, () => {
      cancelTimer = null;
      if (held.size === 0) return;
      schedule();
      renew([...held.keys()]);
    });
  }

  function stop(): void {
    cancelTimer?.();
    cancelTimer = null;
  }

  return {
    add(leaseId, fromMs, ttlMs) {
      newestTtlMs = ttlMs;
      held.set(leaseId, fromMs + ttlMs);
      schedule();
    },
    remove(leaseId) {
      const untilMs = held.get(leaseId);
      held.delete(leaseId);
      if (held.size === 0) {
        stop();
        for (const resolve of waiting.splice(0)) resolve();
      }
      return untilMs;
    },
    renewed(leaseId, fromMs) {
      if (held.has(leaseId)) held.set(leaseId, fromMs + newestTtlMs);
    },
    isGood: (leaseId, nowMs) => (held.get(leaseId) ?? Number.NEGATIVE_INFINITY) > nowMs,
    count: () => held.size,
    whenNone: () => (held.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    stop,
  };
}
