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
  /** Resolves once none is good: given back, or over because no renewal got through. */
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
  let cancelOver: CancelTimer | null = null;

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

  /** Longest time that one of them is still good for. */
  function leftMs(): number {
    let latestMs = Number.NEGATIVE_INFINITY;
    for (const untilMs of held.values()) latestMs = Math.max(latestMs, untilMs);
    return latestMs - runtime.now();
  }

  function tellWaiting(): void {
    cancelOver?.();
    cancelOver = null;
    if (waiting.length === 0) return;
    const goodForMs = leftMs();
    // Renewed meanwhile, it is looked at again.
    if (goodForMs > 0) cancelOver = runtime.setTimer(goodForMs, tellWaiting);
    else for (const resolve of waiting.splice(0)) resolve();
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
        tellWaiting();
      }
      return untilMs;
    },
    renewed(leaseId, fromMs) {
      if (held.has(leaseId)) held.set(leaseId, fromMs + newestTtlMs);
    },
    isGood: (leaseId, nowMs) => (held.get(leaseId) ?? Number.NEGATIVE_INFINITY) > nowMs,
    count: () => held.size,
    whenNone: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        tellWaiting();
      }),
    stop,
  };
}
