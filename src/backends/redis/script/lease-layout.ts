import type { Lease } from "../../../domain/leases.js";
import { LAYOUT_VERSION, type Packed } from "./layout.js";

/** How a lease is packed: plain values as in layout.ts, since to read names takes longer than to read what they name. */

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

/** null: another version wrote it, or somebody else. */
export function restoreLease(
  leaseId: string,
  version: number,
  source: string,
  epoch: number,
  probe: boolean,
  reservedTokens: number,
  leaseTtlMs: number,
  startInMs: number,
  expiresAtMs: number,
  startedAtMs: number,
  inflight: number,
  ttftMs: number,
  tag: string,
  retry: boolean,
  overdue: Lease["overdue"],
  passedOver: Lease["grant"]["passedOver"],
  windowId: number | false,
  globalWindowId: number | false,
  firstTokenDueMs: number | false,
  hedgeAfterMs: number | false,
  promptTokens: number | false,
): Lease | null {
  if (version !== LAYOUT_VERSION) return null;
  return {
    grant: {
      leaseId,
      source,
      epoch,
      probe,
      reservedTokens,
      leaseTtlMs,
      startInMs,
      passedOver,
      windowId: windowId === false ? null : windowId,
      firstTokenDueMs: firstTokenDueMs === false ? null : firstTokenDueMs,
      hedgeAfterMs: hedgeAfterMs === false ? null : hedgeAfterMs,
    },
    expiresAtMs,
    startedAtMs,
    inflight,
    ttftMs,
    tag,
    retry,
    overdue,
    globalWindowId: globalWindowId === false ? null : globalWindowId,
    promptTokens: promptTokens === false ? undefined : promptTokens,
  };
}

/** What is unpacked. */
export type PackedLease = Parameters<typeof restoreLease> extends [string, ...infer Values] ? Values : never;
