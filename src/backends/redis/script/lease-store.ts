import type { Lease, LeaseBook } from "../../../domain/leases.js";
import { GRANTS_KEY, LEASES_KEY, sourceLeasesKey } from "./keys.js";
import { packedList } from "./layout.js";
import { flattenLease, type PackedLease, restoreLease } from "./lease-layout.js";

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
  private readonly moved: Record<string, Lease> = {};
  /** By key: in the store, and after what this tick has changed. */
  private readonly storedCounts: Record<string, number> = {};
  private readonly counts: Record<string, number> = {};
  private movedCount = 0;
  private readonly reclaimed: string[] = [];
  /** By source. */
  private readonly dropped: Record<string, string[]> = {};
  private readonly allKey: string;
  private readonly grantsKey: string;
  private readonly sourceKeys: Record<string, string> = {};
  private readonly now: string;
  /** Sources a lease of which was looked at, given or taken in this tick. */
  readonly touched: Record<string, boolean> = {};

  constructor(
    prefix: string,
    private readonly nowMs: number,
    private readonly sources: readonly string[],
  ) {
    this.allKey = prefix + LEASES_KEY;
    this.grantsKey = prefix + GRANTS_KEY;
    this.now = score(nowMs);
    for (const source of sources) this.sourceKeys[source] = prefix + sourceLeasesKey(source);
  }

  /** Reads all that this tick will ask for, in one command. */
  prefetch(leaseIds: readonly string[]): void {
    inParts(leaseIds, (part) => {
      const found = redis.call("HMGET", this.grantsKey, ...part) as (string | false)[];
      for (let n = 0; n < part.length; n += 1) this.keep(part[n]!, found[n]!);
    });
  }

  get(leaseId: string): Lease | undefined {
    let known = this.known[leaseId];
    if (known === undefined) {
      this.keep(leaseId, redis.call("HGET", this.grantsKey, leaseId) as string | false);
      known = this.known[leaseId];
    }
    return known === undefined || known === false ? undefined : known;
  }

  count(): number {
    return this.countOf(this.allKey);
  }

  inflightOf(source: string): number {
    return this.countOf(this.sourceKeys[source]!);
  }

  add(lease: Lease): void {
    this.known[lease.grant.leaseId] = lease;
    this.touched[lease.grant.source] = true;
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
    this.inflightOf(lease.grant.source);
    lease.expiresAtMs = expiresAtMs;
    this.move(leaseId, lease);
    return true;
  }

  expire(nowMs: number, onExpired: (lease: Lease) => void): void {
    const ended = redis.call(
      "ZRANGEBYSCORE",
      this.allKey,
      "-inf",
      score(nowMs),
      "LIMIT",
      0,
      MOST_RECLAIMED,
    ) as string[];
    // Looked at before anything is written: what is there may not be a set at all.
    if (ended.length > 0) for (const source of this.sources) this.inflightOf(source);
    for (const leaseId of ended) {
      this.reclaimed.push(leaseId);
      const packed = redis.call("HGET", this.grantsKey, leaseId);
      this.known[leaseId] = false;
      const lease = typeof packed === "string" ? unpackedLease(leaseId, packed) : null;
      if (lease === null) continue;
      // A process of another configuration may have held permits of sources that are unknown here.
      if (this.sourceKeys[lease.grant.source] !== undefined) this.touched[lease.grant.source] = true;
      onExpired(lease);
    }
  }

  nextExpiryMs(): number | null {
    return this.nextOf(this.allKey, "");
  }

  nextExpiryOfMs(source: string): number | null {
    return this.nextOf(this.sourceKeys[source]!, source);
  }

  /** Writes what changed. `ttlMs`: how long the keys outlive the last tick. */
  save(ttlMs: number): void {
    const { allKey, grantsKey } = this;
    const gone = [...this.reclaimed];
    if (gone.length > 0) {
      for (const source of this.sources) {
        redis.call("ZREMRANGEBYSCORE", this.sourceKeys[source]!, "-inf", this.now);
      }
    }
    // First, since an id may come back in the same tick, at another source.
    for (const source in this.dropped) {
      const key = this.sourceKeys[source]!;
      inParts(this.dropped[source]!, (part) => redis.call("ZREM", key, ...part));
    }
    const kept: string[] = [];
    const keptOf: Record<string, string[]> = {};
    // Nearly all that a tick gives end at one moment.
    let expiryMs = Number.NaN;
    let expiry = "";
    for (const leaseId in this.moved) {
      const lease = this.moved[leaseId]!;
      if (this.known[leaseId] === false) {
        gone.push(leaseId);
        continue;
      }
      if (lease.expiresAtMs !== expiryMs) {
        expiryMs = lease.expiresAtMs;
        expiry = score(expiryMs);
      }
      kept.push(expiry);
      kept.push(leaseId);
      const own = listOf(keptOf, lease.grant.source);
      own.push(expiry);
      own.push(leaseId);
    }
    for (const source in keptOf) {
      const key = this.sourceKeys[source]!;
      this.place(key, keptOf[source]!);
      redis.call("PEXPIRE", key, ttlMs);
    }
    inParts(gone, (part) => {
      redis.call("ZREM", allKey, ...part);
      redis.call("HDEL", grantsKey, ...part);
    });
    this.place(allKey, kept);
    const changed = this.changedLeases();
    inParts(changed, (part) => redis.call("HSET", grantsKey, ...part));
    if (kept.length + changed.length === 0) return;
    redis.call("PEXPIRE", allKey, ttlMs);
    redis.call("PEXPIRE", grantsKey, ttlMs);
  }

  /** `places`: pairs of expiry and id. */
  private place(key: string, places: readonly string[]): void {
    if (places.length === 0) return;
    const growsLarge = (this.storedCounts[key] ?? LARGE) < LARGE && (this.counts[key] ?? 0) >= LARGE;
    if (growsLarge) redis.call("ZADD", key, this.now, LONG_MEMBER);
    inParts(places, (part) => redis.call("ZADD", key, ...part));
    if (growsLarge) redis.call("ZREM", key, LONG_MEMBER);
  }

  private changedLeases(): string[] {
    const changed: string[] = [];
    for (const leaseId in this.known) {
      const lease = this.known[leaseId]!;
      if (lease === false) continue;
      const packed = packedLease(lease);
      if (packed === this.packed[leaseId] && this.moved[leaseId] === undefined) continue;
      changed.push(leaseId);
      changed.push(packed);
    }
    return changed;
  }

  private keep(leaseId: string, packed: string | false): void {
    this.known[leaseId] = false;
    if (typeof packed !== "string") return;
    const lease = unpackedLease(leaseId, packed);
    if (lease === null || lease.expiresAtMs <= this.nowMs) return;
    if (this.sourceKeys[lease.grant.source] === undefined) return;
    this.touched[lease.grant.source] = true;
    this.known[leaseId] = lease;
    this.packed[leaseId] = packed;
  }

  private drop(lease: Lease): void {
    this.known[lease.grant.leaseId] = false;
    listOf(this.dropped, lease.grant.source).push(lease.grant.leaseId);
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
    const stored = tonumber(redis.call("ZCOUNT", key, `(${this.now}`, "+inf")) ?? 0;
    this.storedCounts[key] = stored;
    this.counts[key] = stored;
    return stored;
  }

  private changeCounts(lease: Lease, by: number): void {
    const own = this.sourceKeys[lease.grant.source]!;
    this.counts[this.allKey] = this.countOf(this.allKey) + by;
    this.counts[own] = this.countOf(own) + by;
  }

  private nextOf(key: string, source: string): number | null {
    let next: number | null = null;
    const stored = redis.call(
      "ZRANGEBYSCORE",
      key,
      `(${this.now}`,
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

function listOf(lists: Record<string, string[]>, name: string): string[] {
  lists[name] ??= [];
  return lists[name];
}

/**
 * Redis keeps a short sorted set as one piece and walks through it for every member that is added: with 64 leases that takes
 * five times as long as in a tree. A set that once had a member of more than 64 bytes is a tree for good.
 */
const LARGE = 16;
const LONG_MEMBER = "makes a tree of this set, which adds leases in a fifth of the time";

/** Lua hands only some thousand arguments to a function; even, since some lists hold pairs. */
const MOST_ARGUMENTS = 1_000;

export function inParts<T>(list: readonly T[], use: (part: readonly T[]) => void): void {
  if (list.length === 0) return;
  if (list.length <= MOST_ARGUMENTS) {
    use(list);
    return;
  }
  for (let from = 0; from < list.length; from += MOST_ARGUMENTS) use(list.slice(from, from + MOST_ARGUMENTS));
}

export function packedLease(lease: Lease): string {
  return packedList(flattenLease(lease));
}

export function unpackedLease(leaseId: string, packed: string): Lease | null {
  return restoreLease(leaseId, ...(unpackedAll(packed) as unknown as PackedLease));
}

/** Every bit of a double. */
export function score(moment: number): string {
  return formatted("%.17g", moment);
}
