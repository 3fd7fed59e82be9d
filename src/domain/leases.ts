import type { Grant, LeaseId, SourceName } from "./tick.js";

/**
 * Permits are leases (spec 02 §3): only live leases count, a dead worker's come back by themselves after their TTL.
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

/** The live leases of a scope; stores keep them in their own way. */
export interface LeaseBook {
  /** A live one. */
  get(leaseId: LeaseId): Lease | undefined;
  count(): number;
  inflightOf(source: SourceName): number;
  add(lease: Lease): void;
  /** The lease, now gone; undefined when it was not live (settled before, or expired). */
  remove(leaseId: LeaseId): Lease | undefined;
  /** false: it is not live. */
  renew(leaseId: LeaseId, expiresAtMs: number): boolean;
  /** Drops what has expired and calls `onExpired` for each. */
  expire(nowMs: number, onExpired: (lease: Lease) => void): void;
  /** When the next lease would end by itself; null without leases. */
  nextExpiryMs(): number | null;
  /** The same among the leases of one source. */
  nextExpiryOfMs(source: SourceName): number | null;
}

/**
 * When a lease that begins now ends: a whole millisecond, which stores sort by faster than by fractions, and never before
 * its holder thinks.
 */
export function leaseEndMs(nowMs: number, leaseTtlMs: number): number {
  return Math.ceil(nowMs + leaseTtlMs);
}
