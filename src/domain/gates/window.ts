/** Counting per aligned minute of the store's clock (spec 02 §3, rule `window`). */
const MINUTE_MS = 60_000;

export interface WindowCounts {
  windowId: number;
  windowRequests: number;
  windowTokens: number;
}

/**
 * The minute of `wallMs`. A clock stepped back by less than a minute stays in the newer minute,
 * else the same minute would be counted twice.
 */
export function windowIdOf(wallMs: number, counts: WindowCounts): number {
  const id = Math.floor(wallMs / MINUTE_MS);
  return id === counts.windowId - 1 ? counts.windowId : id;
}

export function windowWaitMs(wallMs: number, windowId: number): number {
  return Math.max(1, (windowId + 1) * MINUTE_MS - wallMs);
}

/** Starts a new minute when the stored one is over. */
export function rollWindow(counts: WindowCounts, windowId: number): void {
  if (counts.windowId === windowId) return;
  counts.windowId = windowId;
  counts.windowRequests = 0;
  counts.windowTokens = 0;
}
