import type { Governor } from "../ports/governor.js";

/** Settings of a store are seldom changed, and asking costs a round trip. */
const RECHECK_MS = 600_000;

export interface StoreCheck {
  /** The store has just answered. */
  answered(nowMs: number): void;
}

/** Asks a store whether limits are safe with it: with the first answer, and now and then while there is work. */
export function createStoreCheck(governor: Pick<Governor, "dangers">, warn: (text: string) => void): StoreCheck {
  let nextMs = -Infinity;
  const look = async (): Promise<void> => {
    try {
      for (const text of (await governor.dangers?.()) ?? []) warn(text);
    } catch {
      // What is wrong with the store itself is told by the ticks.
    }
  };
  return {
    answered(nowMs) {
      if (governor.dangers === undefined || nowMs < nextMs) return;
      nextMs = nowMs + RECHECK_MS;
      void look();
    },
  };
}
