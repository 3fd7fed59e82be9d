import { leaseEndMs } from "../../domain/leases.js";
import type { Grant } from "../../domain/tick.js";

export interface LedgerLease {
  readonly grant: Grant;
  /** It still stands for its source's one probe. */
  probes: boolean;
  expiresAtMs: number;
}

/** The observer's own book of permits: what was granted and neither settled nor run out. */
export interface LeaseLedger {
  add(grant: Grant, nowMs: number): void;
  find(leaseId: string): LedgerLease | undefined;
  renew(leaseId: string, nowMs: number): void;
  remove(leaseId: string): LedgerLease | undefined;
  /** The probe has its verdict; from here on it is a permit like any other. */
  endProbe(leaseId: string): void;
  /** Drops what has run out by now, and says how many. */
  expire(nowMs: number): number;
  inflight(source: string): number;
  liveProbes(source: string): number;
  /** Everything is forgotten; gives what there was. */
  clear(): readonly string[];
  size(): number;
}

export function createLeaseLedger(): LeaseLedger {
  /** In order of their end: all leases live equally long, and a renewal puts them last. */
  const leases = new Map<string, LedgerLease>();
  const inflight = new Map<string, number>();
  const probes = new Map<string, number>();
  const add = (counts: Map<string, number>, source: string, by: number): void => {
    counts.set(source, (counts.get(source) ?? 0) + by);
  };
  function endProbe(lease: LedgerLease): void {
    if (lease.probes) add(probes, lease.grant.source, -1);
    lease.probes = false;
  }
  function remove(leaseId: string): LedgerLease | undefined {
    const lease = leases.get(leaseId);
    if (lease === undefined) return undefined;
    leases.delete(leaseId);
    add(inflight, lease.grant.source, -1);
    endProbe(lease);
    return lease;
  }
  return {
    add(grant, nowMs) {
      leases.set(grant.leaseId, { grant, probes: grant.probe, expiresAtMs: leaseEndMs(nowMs, grant.leaseTtlMs) });
      add(inflight, grant.source, 1);
      if (grant.probe) add(probes, grant.source, 1);
    },
    find: (leaseId) => leases.get(leaseId),
    renew(leaseId, nowMs) {
      const lease = leases.get(leaseId);
      if (lease === undefined) return;
      leases.delete(leaseId);
      lease.expiresAtMs = leaseEndMs(nowMs, lease.grant.leaseTtlMs);
      leases.set(leaseId, lease);
    },
    remove,
    endProbe(leaseId) {
      const lease = leases.get(leaseId);
      if (lease !== undefined) endProbe(lease);
    },
    expire(nowMs) {
      let count = 0;
      for (const [leaseId, lease] of leases) {
        if (lease.expiresAtMs > nowMs) break;
        remove(leaseId);
        count += 1;
      }
      return count;
    },
    inflight: (source) => inflight.get(source) ?? 0,
    liveProbes: (source) => probes.get(source) ?? 0,
    clear() {
      const forgotten = [...leases.keys()];
      leases.clear();
      inflight.clear();
      probes.clear();
      return forgotten;
    },
    size: () => leases.size,
  };
}
