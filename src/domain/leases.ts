import type { Grant, LeaseId, SourceName } from "./tick.js";

/**
 * Permits are leases (spec 02 §3): only live leases count, a dead worker's come back by themselves after their TTL.
 * All leases of a scope share one TTL, so insertion order (renewal re-inserts) is expiry order.
 */
export interface Lease {
  readonly grant: Grant;
  /** Window of the scope-wide gates; null under `smooth`. */
  readonly globalWindowId: number | null;
  expiresAtMs: number;
  /** When the attempt was to start, and what was in flight then, itself included. */
  readonly startedAtMs: number;
  readonly inflight: number;
  /** The estimates it was granted with, for learning. */
  readonly promptTokens: number | undefined;
  readonly tag: string;
  readonly retry: boolean;
  /** A first token that was overdue was told as evidence; `reversed`: it came after all. */
  overdue: "no" | "told" | "reversed";
  ttftMs: number;
}

export interface LeaseBook {
  readonly byId: Map<LeaseId, Lease>;
  readonly inflight: Map<SourceName, number>;
  /** No lease ends before this moment; a bound, so that a tick need not look at the leases. */
  noneEndsBeforeMs: number;
}

export function emptyLeaseBook(): LeaseBook {
  return { byId: new Map(), inflight: new Map(), noneEndsBeforeMs: Infinity };
}

export function inflightOf(book: LeaseBook, source: SourceName): number {
  return book.inflight.get(source) ?? 0;
}

export function addLease(book: LeaseBook, lease: Lease): void {
  if (book.byId.size === 0) book.noneEndsBeforeMs = lease.expiresAtMs;
  book.byId.set(lease.grant.leaseId, lease);
  book.inflight.set(lease.grant.source, inflightOf(book, lease.grant.source) + 1);
}

/** The lease, now gone; undefined when it was not live (settled before, or expired). */
export function removeLease(book: LeaseBook, leaseId: LeaseId): Lease | undefined {
  const lease = book.byId.get(leaseId);
  if (lease === undefined) return undefined;
  book.byId.delete(leaseId);
  book.inflight.set(lease.grant.source, inflightOf(book, lease.grant.source) - 1);
  return lease;
}

export function renewLease(book: LeaseBook, leaseId: LeaseId, expiresAtMs: number): boolean {
  const lease = book.byId.get(leaseId);
  if (lease === undefined) return false;
  book.byId.delete(leaseId);
  lease.expiresAtMs = expiresAtMs;
  book.byId.set(leaseId, lease);
  return true;
}

/** Drops what has expired and calls `onExpired` for each. */
export function expireLeases(book: LeaseBook, nowMs: number, onExpired: (lease: Lease) => void): void {
  if (book.noneEndsBeforeMs > nowMs) return;
  for (const [leaseId, lease] of book.byId) {
    if (lease.expiresAtMs > nowMs) break;
    removeLease(book, leaseId);
    onExpired(lease);
  }
  book.noneEndsBeforeMs = nextExpiryMs(book) ?? Infinity;
}

/** When the next lease would end by itself; null without leases. */
export function nextExpiryMs(book: LeaseBook): number | null {
  for (const lease of book.byId.values()) return lease.expiresAtMs;
  return null;
}

/** When the next lease of one source would end by itself; null without leases. */
export function nextExpiryOfMs(book: LeaseBook, source: SourceName): number | null {
  for (const lease of book.byId.values()) {
    if (lease.grant.source === source) return lease.expiresAtMs;
  }
  return null;
}
