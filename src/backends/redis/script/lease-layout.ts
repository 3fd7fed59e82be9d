import type { Lease } from "../../../domain/leases.js";
import { LAYOUT_VERSION, type Packed } from "./layout.js";

/** How a lease is packed: a list as in layout.ts, since to read names takes longer than to read what they name. */

/** Of the values that every lease has. */
export const LEASE_TYPES: readonly string[] = [
  "number",
  "string",
  "number",
  "boolean",
  "number",
  "number",
  "number",
  "number",
  "number",
  "number",
  "number",
  "string",
  "boolean",
  "string",
  "table",
];

export function flattenLease(lease: Lease): Packed {
  const { grant } = lease;
  // A list has no gaps.
  const windowId = grant.windowId ?? false;
  const globalWindowId = lease.globalWindowId ?? false;
  const firstTokenDueMs = grant.firstTokenDueMs ?? false;
  const hedgeAfterMs = grant.hedgeAfterMs ?? false;
  const promptTokens = lease.promptTokens ?? false;
  return [
    LAYOUT_VERSION,
    grant.source,
    grant.epoch,
    grant.probe,
    grant.reservedTokens,
    grant.leaseTtlMs,
    grant.startInMs,
    lease.expiresAtMs,
    lease.startedAtMs,
    lease.inflight,
    lease.ttftMs,
    lease.tag,
    lease.retry,
    lease.overdue,
    grant.passedOver,
    windowId,
    globalWindowId,
    firstTokenDueMs,
    hedgeAfterMs,
    promptTokens,
  ];
}

/** null: another version wrote it. */
export function restoreLease(leaseId: string, v: Packed): Lease | null {
  if (v[0] !== LAYOUT_VERSION) return null;
  return {
    grant: {
      leaseId,
      source: v[1],
      epoch: v[2],
      probe: v[3],
      reservedTokens: v[4],
      leaseTtlMs: v[5],
      startInMs: v[6],
      passedOver: v[14],
      windowId: orNull(v[15]),
      firstTokenDueMs: orNull(v[17]),
      hedgeAfterMs: orNull(v[18]),
    },
    expiresAtMs: v[7],
    startedAtMs: v[8],
    inflight: v[9],
    ttftMs: v[10],
    tag: v[11],
    retry: v[12],
    overdue: v[13],
    globalWindowId: orNull(v[16]),
    promptTokens: orNull(v[19]) ?? undefined,
  };
}

function orNull(value: number | false): number | null {
  return value === false ? null : value;
}
