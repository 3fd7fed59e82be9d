import type { LeaseId } from "../domain/tick.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";

export interface LiveLeases {
  add(leaseId: LeaseId): void;
  /** Returns whether it was held. */
  remove(leaseId: LeaseId): boolean;
  count(): number;
  stop(): void;
}

/** The permits this process holds, renewed all in one step every third of their life (spec 02 §3). No timer while there are none. */
export function createLiveLeases(
  runtime: Runtime,
  leaseTtlMs: number,
  renewal: boolean,
  renew: (leaseIds: LeaseId[]) => void,
): LiveLeases {
  const held = new Set<LeaseId>();
  let cancelTimer: CancelTimer | null = null;

  function schedule(): void {
    if (!renewal || cancelTimer !== null) return;
    cancelTimer = runtime.setTimer(leaseTtlMs / 3, () => {
      cancelTimer = null;
      if (held.size === 0) return;
      schedule();
      renew([...held]);
    });
  }

  function stop(): void {
    cancelTimer?.();
    cancelTimer = null;
  }

  return {
    add(leaseId) {
      held.add(leaseId);
      schedule();
    },
    remove(leaseId) {
      const wasHeld = held.delete(leaseId);
      if (held.size === 0) stop();
      return wasHeld;
    },
    count: () => held.size,
    stop,
  };
}
