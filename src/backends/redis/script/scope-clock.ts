import type { StoreClock } from "../../../domain/gates/gate.js";

/**
 * The clock that a scope's state is kept by: the server's, but it never goes back. Where the server's does, everything
 * that was to end at some moment would end that much later: permits of the dead, cooldowns, the slots of the limits. So
 * the scope remembers the latest moment it showed, and how far it is ahead since. Aligned minutes stay the server's own.
 */
export interface ScopeClock extends StoreClock {
  /** Nothing is remembered: the scope is new, or what it remembered is gone. */
  readonly isNew: boolean;
  /** To be kept with whatever a tick writes. */
  readonly packed: string;
}

export function scopeClock(server: StoreClock, stored: string | undefined): ScopeClock {
  const known = stored === undefined ? undefined : unpacked(stored);
  const [aheadMs, latestMs] = known ?? [0, server.nowMs];
  const nowMs = Math.max(server.nowMs + aheadMs, latestMs);
  // Sums of fractions: a clock that never went back is to be the server's to the last bit.
  const nextAheadMs = nowMs === latestMs ? Math.max(0, nowMs - server.nowMs) : aheadMs;
  return { nowMs, wallMs: server.wallMs, isNew: known === undefined, packed: cmsgpack.pack([nextAheadMs, nowMs]) };
}

function unpacked(stored: string): [number, number] | undefined {
  let values: unknown;
  attempt(() => {
    values = cmsgpack.unpack(stored);
  });
  if (type(values) !== "table") return undefined;
  const [aheadMs, latestMs] = values as [number, number];
  if (type(aheadMs) !== "number" || type(latestMs) !== "number") return undefined;
  return aheadMs >= 0 && aheadMs < Infinity && latestMs > 0 && latestMs < Infinity ? [aheadMs, latestMs] : undefined;
}
