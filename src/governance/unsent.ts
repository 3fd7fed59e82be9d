import type { Grant, LeaseId, Settle, SourceName } from "../domain/tick.js";

const UNUSED = { actualTokens: 0, sent: false, outcome: "cancelled", durationMs: 0 } as const;

/** Gives back a permit of which nothing was used. */
export function unsentSettle(grant: Grant): Settle {
  return {
    leaseId: grant.leaseId,
    source: grant.source,
    epoch: grant.epoch,
    probe: grant.probe,
    windowId: grant.windowId,
    reservedTokens: grant.reservedTokens,
    ...UNUSED,
  };
}

/** Gives back what may have been granted under this lease id; nothing happens when nothing was. */
export function releaseSettle(leaseId: LeaseId, source: SourceName): Settle {
  return {
    leaseId,
    source,
    epoch: 0,
    probe: false,
    windowId: null,
    reservedTokens: 0,
    ...UNUSED,
  };
}
