import type { Lease, LeaseBook } from "../../../domain/leases.js";
import { GRANTS_KEY, LEASES_KEY, sourceLeasesKey } from "./keys.js";

/** Most leases one tick reclaims; the rest are found by the next one. */
const MOST_RECLAIMED = 256;

/**
 * The lease book on sorted sets by expiry (one for the scope, one a source) and a hash of the leases themselves. Reads when
 * asked, writes nothing before `save`: a tick that fails has changed nothing.
 */
export class LeaseStore implements LeaseBook {
  /** What this tick has looked at; false = not live. */
  private readonly known: Record<string, Lease | false> = {};
  private readonly packed: Record<string, string> = {};
  /** Leases whose place in the sorted sets is no longer the stored one. */
  private readonly moved: Record<string, Lease | false> = {};
  private readonly counts: Record<string, number> = {};
  private movedCount = 0;
  private readonly reclaimed: string[] = [];
  /** Taken out by this tick; the same id may be granted anew by it, at another source. */
  private readonly dropped: Lease[] = [];

  constructor(
    private readonly prefix: string,
    private readonly nowMs: number,
    private readonly sources: readonly string[],
  ) {}

  get(leaseId: string): Lease | undefined {
    const known = this.known[leaseId];
    if (known !== undefined) return known === false ? undefined : known;
    const packed = redis.call("HGET", this.prefix + GRANTS_KEY, leaseId);
    if (typeof packed !== "string") return undefined;
    const lease = cmsgpack.unpack(packed) as Lease;
    if (lease.expiresAtMs <= this.nowMs) return undefined;
    this.known[leaseId] = lease;
    this.packed[leaseId] = packed;
    return lease;
  }

  count(): number {
    return this.countOf(LEASES_KEY);
  }

  inflightOf(source: string): number {
    return this.countOf(sourceLeasesKey(source));
  }

  add(lease: Lease): void {
    this.known[lease.grant.leaseId] = lease;
    this.move(lease.grant.leaseId, lease);
    this.changeCounts(lease, 1);
  }

  remove(leaseId: string): Lease | undefined {
    const lease = this.get(leaseId);
    if (lease === undefined) return undefined;
    this.drop(lease);
    return lease;
  }

  renew(leaseId: string, expiresAtMs: number): boolean {
    const lease = this.get(leaseId);
    if (lease === undefined) return false;
    lease.expiresAtMs = expiresAtMs;
    this.move(leaseId, lease);
    return true;
  }

  expire(nowMs: number, onExpired: (lease: Lease) => void): void {
    const ended = redis.call(
      "ZRANGEBYSCORE",
      this.prefix + LEASES_KEY,
      "-inf",
      score(nowMs),
      "LIMIT",
      0,
      MOST_RECLAIMED,
    ) as string[];
    for (const leaseId of ended) {
      this.reclaimed.push(leaseId);
      const packed = redis.call("HGET", this.prefix + GRANTS_KEY, leaseId);
      this.known[leaseId] = false;
      const lease = typeof packed === "string" ? (cmsgpack.unpack(packed) as Lease) : undefined;
      // A process of another configuration may hold permits of sources that are unknown here.
      if (lease !== undefined && this.sources.includes(lease.grant.source)) onExpired(lease);
    }
  }

  nextExpiryMs(): number | null {
    return this.nextOf(LEASES_KEY, "");
  }

  nextExpiryOfMs(source: string): number | null {
    return this.nextOf(sourceLeasesKey(source), source);
  }

  /** Writes what changed. `ttlMs`: how long the keys outlive the last tick. */
  save(ttlMs: number): void {
    const all = this.prefix + LEASES_KEY;
    const grants = this.prefix + GRANTS_KEY;
    const written: Record<string, boolean> = {};
    if (this.reclaimed.length > 0) {
      for (const leaseId of this.reclaimed) redis.call("HDEL", grants, leaseId);
      for (const leaseId of this.reclaimed) redis.call("ZREM", all, leaseId);
      for (const source of this.sources) {
        redis.call("ZREMRANGEBYSCORE", this.prefix + sourceLeasesKey(source), "-inf", score(this.nowMs));
      }
    }
    for (const { grant } of this.dropped) {
      redis.call("HDEL", grants, grant.leaseId);
      redis.call("ZREM", all, grant.leaseId);
      redis.call("ZREM", this.prefix + sourceLeasesKey(grant.source), grant.leaseId);
    }
    for (const leaseId in this.moved) {
      const lease = this.moved[leaseId]!;
      if (lease === false || this.known[leaseId] === false) continue;
      const own = this.prefix + sourceLeasesKey(lease.grant.source);
      redis.call("ZADD", all, score(lease.expiresAtMs), leaseId);
      redis.call("ZADD", own, score(lease.expiresAtMs), leaseId);
      written[own] = true;
    }
    for (const leaseId in this.known) {
      const lease = this.known[leaseId]!;
      if (lease === false) continue;
      const packed = cmsgpack.pack(lease);
      if (packed === this.packed[leaseId] && this.moved[leaseId] === undefined) continue;
      redis.call("HSET", grants, leaseId, packed);
      written[all] = true;
      written[grants] = true;
    }
    for (const key in written) redis.call("PEXPIRE", key, ttlMs);
  }

  private drop(lease: Lease): void {
    this.dropped.push(lease);
    this.known[lease.grant.leaseId] = false;
    this.move(lease.grant.leaseId, lease);
    this.changeCounts(lease, -1);
  }

  private move(leaseId: string, lease: Lease): void {
    if (this.moved[leaseId] === undefined) this.movedCount += 1;
    this.moved[leaseId] = lease;
  }

  /** By expiry: what nobody removed in time is over all the same. */
  private countOf(key: string): number {
    const known = this.counts[key];
    if (known !== undefined) return known;
    const stored = tonumber(redis.call("ZCOUNT", this.prefix + key, `(${score(this.nowMs)}`, "+inf")) ?? 0;
    this.counts[key] = stored;
    return stored;
  }

  private changeCounts(lease: Lease, by: number): void {
    for (const key of [LEASES_KEY, sourceLeasesKey(lease.grant.source)]) this.counts[key] = this.countOf(key) + by;
  }

  private nextOf(key: string, source: string): number | null {
    let next: number | null = null;
    const stored = redis.call(
      "ZRANGEBYSCORE",
      this.prefix + key,
      `(${score(this.nowMs)}`,
      "+inf",
      "WITHSCORES",
      "LIMIT",
      0,
      this.movedCount + 1,
    ) as string[];
    for (let at = 0; at < stored.length; at += 2) {
      if (this.moved[stored[at]!] !== undefined) continue;
      next = tonumber(stored[at + 1]) ?? null;
      break;
    }
    for (const leaseId in this.moved) {
      const lease = this.known[leaseId]!;
      if (lease === false || (source !== "" && lease.grant.source !== source)) continue;
      if (next === null || lease.expiresAtMs < next) next = lease.expiresAtMs;
    }
    return next;
  }
}

/** Every bit of a double. */
export function score(moment: number): string {
  return formatted("%.17g", moment);
}
