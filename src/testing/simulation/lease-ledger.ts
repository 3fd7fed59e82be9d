import type { Grant } from "../../domain/tick.js";

export interface LedgerLease {
  readonly grant: Grant;
  expiresAtMs: number;
}

/** The observer's own book of permits: what was granted and neither settled nor run out. */
export interface LeaseLedger {
  add(grant: Grant, nowMs: number): void;
  find(leaseId: string): LedgerLease | undefined;
  renew(leaseId: string, nowMs: number): void;
  remove(leaseId: string): LedgerLease | undefined;
  /** Drops what has run out by now. */
  expire(nowMs: number): void;
  inflight(source: string): number;
  liveProbes(source: string): number;
  clear(): void;
  size(): number;
}

export function createLeaseLedger(): LeaseLedger {
  /** In order of their end: all leases live equally long, and a renewal puts them last. */
  const leases = new Map<string, LedgerLease>();
  const inflight = new Map<string, number>();
  const probes = new Map<string, number>();
  const count = (grant: Grant, by: number): void => {
    inflight.set(grant.source, (inflight.get(grant.source) ?? 0) + by);
    if (grant.probe) probes.set(grant.source, (probes.get(grant.source) ?? 0) + by);
  };
  function remove(leaseId: string): LedgerLease | undefined {
    const lease = leases.get(leaseId);
    if (lease === undefined) return undefined;
    leases.delete(leaseId);
    count(lease.grant, -1);
    return lease;
  }
  return {
    add(grant, nowMs) {
      leases.set(grant.leaseId, { grant, expiresAtMs: nowMs + grant.leaseTtlMs });
      count(grant, 1);
    },
    find: (leaseId) => leases.get(leaseId),
    renew(leaseId, nowMs) {
      const lease = leases.get(leaseId);
      if (lease === undefined) return;
      leases.delete(leaseId);
      lease.expiresAtMs = nowMs + lease.grant.leaseTtlMs;
      leases.set(leaseId, lease);
    },
    remove,
    expire(nowMs) {
      for (const [leaseId, lease] of leases) {
        if (lease.expiresAtMs > nowMs) return;
        remove(leaseId);
      }
    },
    inflight: (source) => inflight.get(source) ?? 0,
    liveProbes: (source) => probes.get(source) ?? 0,
    clear() {
      leases.clear();
      inflight.clear();
      probes.clear();
    },
    size: () => leases.size,
  };
}
