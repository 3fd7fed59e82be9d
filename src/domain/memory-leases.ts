import type { Lease, LeaseBook } from "./leases.js";
import type { LeaseId, SourceName } from "./tick.js";

/** All leases of a scope share one TTL, so insertion order (renewal re-inserts) is expiry order. */
export class MemoryLeases implements LeaseBook {
  readonly #byId = new Map<LeaseId, Lease>();
  readonly #inflight = new Map<SourceName, number>();
  /** No lease ends before this moment; a bound, so that a tick need not look at the leases. */
  #noneEndsBeforeMs = Infinity;

  get(leaseId: LeaseId): Lease | undefined {
    return this.#byId.get(leaseId);
  }

  count(): number {
    return this.#byId.size;
  }

  inflightOf(source: SourceName): number {
    return this.#inflight.get(source) ?? 0;
  }

  add(lease: Lease): void {
    if (this.#byId.size === 0) this.#noneEndsBeforeMs = lease.expiresAtMs;
    this.#byId.set(lease.grant.leaseId, lease);
    this.#inflight.set(lease.grant.source, this.inflightOf(lease.grant.source) + 1);
  }

  remove(leaseId: LeaseId): Lease | undefined {
    const lease = this.#byId.get(leaseId);
    if (lease === undefined) return undefined;
    this.#byId.delete(leaseId);
    this.#inflight.set(lease.grant.source, this.inflightOf(lease.grant.source) - 1);
    return lease;
  }

  renew(leaseId: LeaseId, expiresAtMs: number): boolean {
    const lease = this.#byId.get(leaseId);
    if (lease === undefined) return false;
    this.#byId.delete(leaseId);
    lease.expiresAtMs = expiresAtMs;
    this.#byId.set(leaseId, lease);
    return true;
  }

  expire(nowMs: number, onExpired: (lease: Lease) => void): void {
    if (this.#noneEndsBeforeMs > nowMs) return;
    for (const [leaseId, lease] of this.#byId) {
      if (lease.expiresAtMs > nowMs) break;
      this.remove(leaseId);
      onExpired(lease);
    }
    this.#noneEndsBeforeMs = this.nextExpiryMs() ?? Infinity;
  }

  nextExpiryMs(): number | null {
    for (const lease of this.#byId.values()) return lease.expiresAtMs;
    return null;
  }

  nextExpiryOfMs(source: SourceName): number | null {
    for (const lease of this.#byId.values()) {
      if (lease.grant.source === source) return lease.expiresAtMs;
    }
    return null;
  }
}
