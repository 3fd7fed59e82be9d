import assert from "node:assert/strict";
import type { LimitConfig } from "../../../domain/source.js";
import type {
  Grant,
  ScopeSnapshot,
  Settle,
  SourceSnapshot,
  TickBatch,
  TickReply,
  Want,
} from "../../../ports/governor.js";
import { type GovernorSetup, MINUTE_MS } from "./bench.js";

const GRACE_MS = 1_000;

/** What was booked on one set of limits (a source, or the scope). */
interface Booking {
  readonly at: number;
  readonly leaseId: string;
  readonly requests: 0 | 1;
  readonly tokens: number;
}

interface Lease {
  readonly grant: Grant;
  readonly want: Want;
  readonly grantedAt: number;
  expiresAt: number;
  settled: boolean;
}

export interface Tick {
  readonly batch: Partial<TickBatch>;
  readonly reply: TickReply;
  readonly before: ScopeSnapshot;
  readonly after: ScopeSnapshot;
  readonly now: number;
}

function sourceIn(snapshot: ScopeSnapshot, name: string): SourceSnapshot {
  const found = snapshot.sources.find((source) => source.name === name);
  assert.ok(found, `snapshot has no source ${name}`);
  return found;
}

/** A second bookkeeping of the promises of spec 02 §§3–4, kept in the plainest way: lists of what happened. */
export class GovernorModel {
  readonly names: readonly string[];
  readonly leaseTtlMs: number;
  /** Every settle that was sent, for sending one again. */
  readonly settles: Settle[] = [];
  readonly #limits: ReadonlyMap<string, Partial<LimitConfig>>;
  readonly #bookings = new Map<string, Booking[]>();
  readonly #returned = new Set<string>();
  readonly #leases = new Map<string, Lease>();
  readonly #epochs = new Map<string, number[]>();

  constructor({ sources, global = {}, leaseTtlMs = 30_000 }: Omit<GovernorSetup, "scope">) {
    this.names = sources.map((source) => source.name);
    this.leaseTtlMs = leaseTtlMs;
    this.#limits = new Map<string, Partial<LimitConfig>>([["*", global], ...sources.map((s) => [s.name, s] as const)]);
    for (const name of this.#limits.keys()) this.#bookings.set(name, []);
  }

  require(condition: boolean, message: string): void {
    assert.ok(condition, message);
  }

  liveGrants(now: number): Grant[] {
    return this.#live(now).map((lease) => lease.grant);
  }

  wantOf(grant: Grant): Want {
    const lease = this.#leases.get(grant.leaseId);
    assert.ok(lease);
    return lease.want;
  }

  /** How long until no lease is in the second in which a governor may end it or not. */
  graceMs(now: number): number {
    const ending = [...this.#leases.values()].filter(
      (lease) => !lease.settled && now >= lease.expiresAt && now <= lease.expiresAt + GRACE_MS,
    );
    return Math.max(0, ...ending.map((lease) => Math.ceil(lease.expiresAt + GRACE_MS + 1 - now)));
  }

  apply(tick: Tick): void {
    const { batch, reply, before, after, now } = tick;
    const { settles = [], verdicts = [], renew = [], wants = [] } = batch;
    assert.equal(reply.applied.length, settles.length + verdicts.length + renew.length);
    assert.equal(reply.grants.length + reply.refusals.length, wants.length);
    for (const [index, settle] of settles.entries()) this.#settle(settle, reply.applied[index] === true, tick);
    for (const [index, leaseId] of renew.entries()) {
      const lease = this.#leases.get(leaseId);
      const live = lease !== undefined && this.#isLive(lease, now);
      assert.equal(reply.applied[settles.length + verdicts.length + index], live, `renewal of ${leaseId}`);
      if (lease && live) lease.expiresAt = now + this.leaseTtlMs;
    }
    const known = this.#leases.size;
    for (const grant of reply.grants) this.#grant(grant, tick);
    this.#checkRefusals(tick);
    const newGrants = this.#leases.size - known;
    if (settles.length + verdicts.length + newGrants === 0)
      assert.deepEqual(
        stateOf(after),
        stateOf(before),
        "a tick that only refused, repeated or renewed changed the state",
      );
    this.#checkTransitions(before, after);
    this.check(after, now);
  }

  #settle(settle: Settle, applied: boolean, { before, now, batch }: Tick): void {
    const lease = this.#leases.get(settle.leaseId);
    const live = lease !== undefined && this.#isLive(lease, now);
    if (!live) {
      assert.equal(applied, false, `settle of the lost lease ${settle.leaseId}`);
      return;
    }
    lease.settled = true;
    this.settles.push(settle);
    const judges = settle.outcome === "success" || settle.outcome === "failure" || settle.outcome === "dead";
    if (judges && batch.settles?.length === 1) {
      const current = settle.epoch === sourceIn(before, settle.source).epoch;
      assert.equal(applied, current, `${settle.outcome} of ${settle.leaseId}: applied`);
    }
    if (!settle.sent) this.#returned.add(settle.leaseId);
    const correction = (settle.actualTokens ?? lease.grant.reservedTokens) - lease.grant.reservedTokens;
    for (const name of [settle.source, "*"]) {
      const returns = !settle.sent && this.#sameWindow(name, lease.grantedAt, now);
      const tokens = this.#sameWindow(name, lease.grantedAt, now) || !this.#isWindow(name) ? correction : 0;
      if (tokens !== 0 || returns) this.#book(name, { at: now, leaseId: settle.leaseId, requests: 0, tokens });
    }
  }

  #grant(grant: Grant, { batch, before, now }: Tick): void {
    const known = this.#leases.get(grant.leaseId);
    if (known && this.#isLive(known, now)) {
      assert.deepEqual(grant, known.grant, "the same id, the same grant");
      known.expiresAt = now + this.leaseTtlMs;
      return;
    }
    const want = batch.wants?.find((asked) => asked.leaseId === grant.leaseId);
    assert.ok(want, `${grant.leaseId} was not asked for`);
    assert.ok(want.candidates.includes(grant.source), `${grant.leaseId} went to ${grant.source}, no candidate`);
    if ((batch.settles ?? []).length + (batch.verdicts ?? []).length === 0) this.#checkAdmissible(grant, before);
    const lease = { grant, want, grantedAt: now, expiresAt: now + this.leaseTtlMs, settled: false };
    const probes = this.#liveProbes({ name: grant.source, epoch: grant.epoch }, now);
    if (grant.probe) assert.equal(probes, 0, `a second probe on ${grant.source}`);
    this.#leases.set(grant.leaseId, lease);
    const booking = { at: now, leaseId: grant.leaseId, requests: 1, tokens: grant.reservedTokens } as const;
    for (const name of [grant.source, "*"]) this.#book(name, booking);
  }

  #checkAdmissible(grant: Grant, before: ScopeSnapshot): void {
    const source = sourceIn(before, grant.source);
    assert.equal(grant.epoch, source.epoch, "the grant states the current epoch");
    assert.equal(source.coolingMs, 0, `grant on ${grant.source} within its cooldown`);
    assert.equal(source.openForMs, 0, `grant on ${grant.source} while it is open`);
    assert.equal(grant.probe, source.state !== "closed", `probe flag on a source that is ${source.state}`);
    assert.ok(source.state === "closed" || !source.probeInFlight, `grant on ${grant.source} beside its probe`);
  }

  #checkRefusals({ reply }: Tick): void {
    for (const { kind, waitHintMs, passedOver } of reply.refusals) {
      if (kind === "never") continue;
      assert.ok(Number.isFinite(waitHintMs) && waitHintMs > 0, `waitHintMs ${waitHintMs}`);
      assert.ok(passedOver.length > 0, "a refusal names who was passed over");
    }
    const waits = reply.refusals.map((refusal) => refusal.waitHintMs);
    if (waits.length === 0) assert.equal(reply.hintMs, null);
  }

  /** Epochs change only on entering open and never come back. */
  #checkTransitions(before: ScopeSnapshot, after: ScopeSnapshot): void {
    for (const now of after.sources) {
      const was = sourceIn(before, now.name);
      const seen = this.#epochs.get(now.name) ?? [was.epoch];
      this.#epochs.set(now.name, seen);
      if (now.epoch !== was.epoch) {
        assert.ok(!seen.includes(now.epoch), `${now.name}: epoch ${now.epoch} came back`);
        assert.notEqual(now.state, "closed", `${now.name}: a new epoch without opening`);
        seen.push(now.epoch);
      } else if (was.state === "closed") assert.equal(now.state, "closed", `${now.name}: opened in the old epoch`);
    }
  }

  /** What must be true of every state. */
  check(snapshot: ScopeSnapshot, now: number): void {
    let inflight = 0;
    for (const source of snapshot.sources) {
      const { name } = source;
      for (const [field, value] of Object.entries(source)) {
        if (typeof value === "number") assert.ok(value >= 0 && Number.isFinite(value), `${name}.${field} = ${value}`);
      }
      const live = this.#live(now).filter((lease) => lease.grant.source === name);
      assert.equal(source.inflight, live.length, `${name}: permits in use`);
      const limit = this.#limits.get(name)?.maxConcurrency ?? 0;
      if (limit > 0) assert.ok(source.inflight <= limit, `${name}: ${source.inflight} of ${limit} permits`);
      if (source.state !== "half_open") assert.equal(source.probeInFlight, false);
      else assert.equal(source.probeInFlight, this.#liveProbes(source, now) === 1, `${name}: probe in flight`);
      if (this.#isWindow(name)) this.#checkWindowCounts(source, now);
      inflight += source.inflight;
    }
    const global = this.#limits.get("*")?.maxConcurrency ?? 0;
    if (global > 0) assert.ok(inflight <= global, `${inflight} of ${global} global permits`);
  }

  checkNothingHeld(snapshot: ScopeSnapshot, now: number): void {
    this.check(snapshot, now);
    for (const source of snapshot.sources) {
      assert.equal(source.inflight, 0, `${source.name}: permits left after the TTL`);
      assert.equal(source.probeInFlight, false, `${source.name}: probe left after the TTL`);
    }
  }

  /** Σ settled: the counts of a minute are exactly what was granted, returned and corrected in it. */
  #checkWindowCounts(source: SourceSnapshot, now: number): void {
    const minute = this.#bookings.get(source.name)!.filter((b) => this.#sameWindow(source.name, b.at, now));
    const { rpm = 0, tpm = 0 } = this.#limits.get(source.name) ?? {};
    const tokens = minute.reduce((sum, booking) => sum + booking.tokens, 0);
    const returned = minute.filter((booking) => booking.requests === 1 && this.#returnedWithin(source.name, booking));
    const requests = minute.filter((booking) => booking.requests === 1).length - returned.length;
    if (tpm > 0) assert.equal(source.tokensUsed, tokens, `${source.name}: tokens of this minute`);
    if (rpm > 0) assert.equal(source.requestsUsed, requests, `${source.name}: requests of this minute`);
  }

  #returnedWithin(name: string, granted: Booking): boolean {
    if (!this.#returned.has(granted.leaseId)) return false;
    return this.#bookings.get(name)!.some((b) => b.requests === 0 && b.leaseId === granted.leaseId);
  }

  /** The limits over all that happened, source by source and for the scope. */
  checkRates(): void {
    for (const [name, limits] of this.#limits) {
      const bookings = this.#bookings.get(name)!;
      const { rpm = 0, tpm = 0 } = limits;
      if (rpm > 0) this.#checkRequests(name, rpm, bookings);
      if (tpm > 0) this.#checkTokens(name, tpm, bookings);
    }
  }

  #checkRequests(name: string, rpm: number, bookings: readonly Booking[]): void {
    const grants = bookings.filter(({ requests, leaseId }) => requests === 1 && !this.#returned.has(leaseId));
    for (const { at } of grants) {
      const from = this.#isWindow(name) ? at - (at % MINUTE_MS) : at;
      const count = grants.filter((grant) => grant.at >= from && grant.at < from + MINUTE_MS).length;
      assert.ok(count <= rpm, `${name}: ${count} requests of ${rpm} in the minute from ${from}`);
    }
  }

  /**
   * At each grant of a window: all booked before it, corrections included, is within the limit; `smooth` allows that
   * one call's estimate on top, `window` doesn't.
   */
  #checkTokens(name: string, tpm: number, bookings: readonly Booking[]): void {
    for (const { at } of bookings) {
      const from = this.#isWindow(name) ? at - (at % MINUTE_MS) : at;
      let booked = 0;
      for (const booking of bookings) {
        if (booking.at < from || booking.at >= from + MINUTE_MS) continue;
        booked += booking.tokens;
        if (booking.requests === 0) continue;
        const before = this.#isWindow(name) ? booked : booked - booking.tokens;
        assert.ok(before <= tpm + 1e-6, `${name}: ${before} tokens of ${tpm} in the minute from ${from}`);
      }
    }
  }

  #book(name: string, booking: Booking): void {
    this.#bookings.get(name)!.push(booking);
  }

  #isWindow(name: string): boolean {
    return this.#limits.get(name)?.limitRule === "window";
  }

  #sameWindow(name: string, then: number, now: number): boolean {
    return this.#isWindow(name) && Math.floor(then / MINUTE_MS) === Math.floor(now / MINUTE_MS);
  }

  #isLive(lease: Lease, now: number): boolean {
    return !lease.settled && now < lease.expiresAt;
  }

  #live(now: number): Lease[] {
    return [...this.#leases.values()].filter((lease) => this.#isLive(lease, now));
  }

  /** Probes of one epoch: one that closed by its first token goes on as an ordinary attempt of its epoch. */
  #liveProbes({ name, epoch }: { name: string; epoch: number }, now: number): number {
    return this.#live(now).filter(({ grant }) => grant.source === name && grant.probe && grant.epoch === epoch).length;
  }
}

/** Without what is only said of it: how long a wait lasts at most moves with a renewal. */
function stateOf(snapshot: ScopeSnapshot): unknown {
  return { ...snapshot, sources: snapshot.sources.map(({ passedOver: _, ...state }) => state) };
}
