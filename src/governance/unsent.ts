import type { Grant, Settle } from "../domain/tick.js";

/** Gives back a permit of which nothing was used. */
export function unsentSettle(grant: Grant): Settle {
  return {
    leaseId: grant.leaseId,
    source: grant.source,
    epoch: grant.epoch,
    probe: grant.probe,
    windowId: grant.windowId,
    reservedTokens: grant.reservedTokens,
    actualTokens: 0,
    sent: false,
    outcome: "cancelled",
    durationMs: 0,
  };
}
