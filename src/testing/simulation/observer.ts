import type { BreakerState, Grant, ScopeSnapshot, Settle, TickBatch, TickReply } from "../../domain/tick.js";
import type { SimulationKernel } from "../kernel.js";
import { createLeaseLedger } from "./lease-ledger.js";
import { createLimitLedger, type MinuteLimits } from "./limit-ledger.js";
import type { AttemptRecord } from "./records.js";

/** A breaker that changed its state, as seen from outside. */
export interface StateChange {
  readonly atMs: number;
  readonly source: string;
  readonly state: BreakerState;
}

/** What the observer must know of the configuration to judge it. */
export interface Expectations {
  /** Source → its configured limits. */
  readonly limits: ReadonlyMap<string, MinuteLimits & { readonly maxConcurrency: number }>;
}

/** Rounding of sums of times. */
const SLACK_MS = 0.01;
const SHOWN = 20;
/** Ticks from one look into the store's own books to the next. */
const BOOKS_COMPARED_EVERY = 64;
/** Spec 02 §1: a longer Retry-After is held against the source no longer than this. */
const RETRY_AFTER_MAX_MS = 600_000;

/**
 * Watches a run from outside, at the store's door and at the providers', and keeps books of its own: none of the rules
 * it judges is asked. The invariants are those of spec 10 §10, last row, and one final telemetry row a call.
 */
export class Observer {
  readonly changes: StateChange[] = [];
  /** The first ones in words; `violationCount` is how many there were. */
  readonly violations: string[] = [];
  violationCount = 0;
  ticks = 0;
  events = 0;
  settledTokens = 0;
  readonly #kernel: SimulationKernel;
  readonly #ledger = createLeaseLedger();
  readonly #states = new Map<string, BreakerState>();
  readonly #coolUntilMs = new Map<string, number>();
  /** Grants whose attempt may still come, and what their worker has been told since. */
  readonly #grants = new Map<string, { readonly grant: Grant; readonly worker: string; readonly receivedMs: number }>();
  readonly #told = new Map<string, number>();
  readonly #settled = new Map<string, Settle>();
  /** Permits of a store that has restarted since: their workers can't know. */
  readonly #forgotten = new Set<string>();
  readonly #finalRows = new Map<string, number>();
  /** Permits that ended by their time to live: only a dead, frozen or cut-off worker may leave them to that. */
  #ranOut = 0;
  /** Baselines have no permits. */
  #governed = false;
  #expectations: Expectations = { limits: new Map() };
  readonly #minutes = createLimitLedger((source) => this.#expectations.limits.get(source));
  /** Epochs as they were before the tick that is being judged, and those that changed since. */
  readonly #epochs = new Map<string, number>();
  readonly #newEpochs = new Map<string, number>();

  constructor(kernel: SimulationKernel) {
    this.#kernel = kernel;
  }

  expect(expectations: Expectations): void {
    this.#governed = true;
    this.#expectations = expectations;
  }

  /** A tick ran in the store. `state` tells the store's breakers where something may have changed. */
  ticked(batch: TickBatch, reply: TickReply, state: () => ScopeSnapshot): void {
    const nowMs = this.#kernel.now();
    this.ticks += 1;
    this.#ranOut += this.#ledger.expire(nowMs);
    batch.settles.forEach((settle, index) => {
      this.#settle(settle, reply.applied[index] === true, nowMs);
    });
    batch.verdicts.forEach(({ leaseId, kind }, index) => {
      const took = reply.applied[batch.settles.length + index] === true;
      if (took && kind === "first_token") this.#ledger.endProbe(leaseId);
    });
    const firstRenewal = batch.settles.length + batch.verdicts.length;
    batch.renew.forEach((leaseId, index) => {
      if (reply.applied[firstRenewal + index] === true) this.#ledger.renew(leaseId, nowMs);
    });
    for (const grant of reply.grants) this.#granted(grant, nowMs, state);
    for (const [source, epoch] of this.#newEpochs) this.#epochs.set(source, epoch);
    this.#newEpochs.clear();
    if (this.ticks % BOOKS_COMPARED_EVERY === 0) this.#compareBooks(state());
  }

  /** The store says that a breaker changed. */
  changed(state: ScopeSnapshot): void {
    for (const source of state.sources) {
      this.#newEpochs.set(source.name, source.epoch);
      const before = this.#states.get(source.name) ?? "closed";
      if (before === source.state) continue;
      this.#states.set(source.name, source.state);
      this.changes.push({ atMs: this.#kernel.now(), source: source.name, state: source.state });
    }
  }

  /** The store forgot everything, and so does its book. */
  storeRestarted(): void {
    for (const leaseId of this.#ledger.clear()) this.#forgotten.add(leaseId);
    this.#minutes.clear();
    this.#states.clear();
    this.#epochs.clear();
    this.#newEpochs.clear();
    this.#coolUntilMs.clear();
  }

  /** A reply reached its worker. */
  replied(worker: string, reply: TickReply): void {
    const receivedMs = this.#kernel.now();
    for (const grant of reply.grants) this.#grants.set(grant.leaseId, { grant, worker, receivedMs });
  }

  /** An event reached a worker: what it holds for later of this source it must look at again. */
  told(worker: string, source: string): void {
    this.#told.set(`${worker} ${source}`, this.#kernel.now());
  }

  /** An attempt leaves for its provider. */
  sent(attempt: AttemptRecord): void {
    const held = this.#grants.get(attempt.leaseId);
    if (held === undefined) {
      if (this.#governed)
        this.violate(`attempt ${attempt.leaseId} left for ${attempt.source} without a permit of its own`);
      return;
    }
    this.#grants.delete(attempt.leaseId);
    const nowMs = this.#kernel.now();
    const { grant, worker, receivedMs } = held;
    if (nowMs + SLACK_MS < receivedMs + grant.startInMs)
      this.violate(`attempt ${grant.leaseId} on ${grant.source} left before its permit began`);
    const lease = this.#ledger.find(grant.leaseId);
    if ((lease === undefined || lease.expiresAtMs <= nowMs) && !this.#forgotten.has(grant.leaseId))
      this.violate(`attempt ${grant.leaseId} left for ${grant.source} after its permit had ended`);
    const toldMs = this.#told.get(`${worker} ${grant.source}`) ?? -Infinity;
    // What it was told after the grant came and before it left had to stop it.
    if (grant.probe || toldMs <= receivedMs || toldMs >= nowMs) return;
    if (this.#stateOf(grant.source) === "open") this.violate(`attempt ${grant.leaseId} left for ${grant.source}, open`);
    if ((this.#coolUntilMs.get(grant.source) ?? 0) > nowMs + SLACK_MS)
      this.violate(`attempt ${grant.leaseId} left for ${grant.source} before its Retry-After had passed`);
  }

  /** The loop itself ended an attempt, for the sake of the source. */
  givenUp({ leaseId, source }: AttemptRecord, hadToken: boolean): void {
    if (hadToken) this.violate(`attempt ${leaseId} on ${source} was given up while its answer came`);
  }

  row(requestId: string, final: boolean): void {
    if (final) this.#finalRows.set(requestId, (this.#finalRows.get(requestId) ?? 0) + 1);
  }

  /** After the last call: nothing may be left, and every sum must be right. `hadLosses`: workers died or replies were lost. */
  finish(attempts: readonly AttemptRecord[], finishedCalls: number, hadLosses: boolean, state: ScopeSnapshot): void {
    this.#ranOut += this.#ledger.expire(this.#kernel.now());
    if (this.#ranOut > 0 && !hadLosses) this.violate(`${this.#ranOut} permits ran out instead of being settled`);
    for (const source of state.sources) {
      if (source.inflight > 0) this.violate(`${source.name} still counts ${source.inflight} permits after the run`);
      if (source.probeInFlight) this.violate(`${source.name} still waits for a probe after the run`);
    }
    if (this.#ledger.size() > 0) this.violate(`${this.#ledger.size()} permits are still out after the run`);
    this.#checkTokens(attempts, hadLosses);
    this.#checkRows(finishedCalls, hadLosses);
  }

  #settle(settle: Settle, applied: boolean, nowMs: number): void {
    this.#grants.delete(settle.leaseId);
    const lease = this.#ledger.remove(settle.leaseId);
    if (lease === undefined) {
      if (applied) this.violate(`settling ${settle.leaseId} took effect though its permit was gone`);
      return;
    }
    this.#settled.set(settle.leaseId, settle);
    this.#minutes.settle(settle, nowMs);
    if (applied && lease.grant.epoch !== (this.#epochs.get(lease.grant.source) ?? 0))
      this.violate(`settling ${settle.leaseId} took effect though ${lease.grant.source} has opened since its permit`);
    this.settledTokens += settle.sent ? (settle.actualTokens ?? settle.reservedTokens) : 0;
    if (!applied || settle.rateLimited === undefined || settle.retryAfterMs === undefined) return;
    const untilMs = nowMs + Math.min(RETRY_AFTER_MAX_MS, settle.retryAfterMs);
    this.#coolUntilMs.set(settle.source, Math.max(this.#coolUntilMs.get(settle.source) ?? 0, untilMs));
  }

  #granted(grant: Grant, nowMs: number, state: () => ScopeSnapshot): void {
    const { source, leaseId } = grant;
    // Asked again after a lost reply: the same permit, not another one.
    if (this.#ledger.find(leaseId) !== undefined) {
      this.#ledger.renew(leaseId, nowMs);
      return;
    }
    if (this.#settled.has(leaseId)) this.violate(`permit ${leaseId} was granted again after it had been settled`);
    if (grant.probe && this.#ledger.liveProbes(source) > 0) this.violate(`${source} got a second probe, ${leaseId}`);
    if (grant.probe && grant.startInMs > 0) this.violate(`${source} got its probe ${leaseId} ahead of its start`);
    this.#ledger.add(grant, nowMs);
    for (const what of this.#minutes.add(grant, nowMs)) this.violate(what);
    const limits = this.#expectations.limits.get(source);
    if (limits !== undefined && limits.tpm > 0 && grant.reservedTokens < 1)
      this.violate(`${source} granted ${leaseId} for ${grant.reservedTokens} tokens`);
    const most = limits?.maxConcurrency ?? 0;
    const inflight = this.#ledger.inflight(source);
    if (most > 0 && inflight > most) this.violate(`${source} has ${inflight} permits out, its limit is ${most}`);
    if (!grant.probe && this.#stateOf(source) !== "closed") {
      this.changed(state());
      if (this.#stateOf(source) !== "closed")
        this.violate(`${source} is ${this.#stateOf(source)} and granted ${leaseId}`);
    }
    if ((this.#coolUntilMs.get(source) ?? 0) > nowMs + grant.startInMs + SLACK_MS)
      this.violate(`${source} granted ${leaseId} for a moment before its Retry-After has passed`);
  }

  #compareBooks(state: ScopeSnapshot): void {
    for (const { name, inflight } of state.sources) {
      const own = this.#ledger.inflight(name);
      if (inflight !== own) this.violate(`${name} counts ${inflight} permits, ${own} were granted and not given back`);
    }
  }

  #checkTokens(attempts: readonly AttemptRecord[], hadLosses: boolean): void {
    let settled = 0;
    let actual = 0;
    for (const attempt of attempts) {
      const settle = this.#settled.get(attempt.leaseId);
      if (settle === undefined) {
        if (!hadLosses) this.violate(`the attempt ${attempt.leaseId} was never settled`);
        continue;
      }
      // An attempt that was neither answered nor refused is booked by an estimate, and has no truth to compare with.
      if (attempt.outcome !== "success" && !attempt.refused) continue;
      settled += settle.actualTokens ?? settle.reservedTokens;
      actual += attempt.tokens;
    }
    if (settled !== actual) this.violate(`${settled} tokens were settled, the providers counted ${actual}`);
  }

  #checkRows(finishedCalls: number, hadLosses: boolean): void {
    let twice = 0;
    for (const count of this.#finalRows.values()) if (count > 1) twice += 1;
    if (twice > 0) this.violate(`${twice} calls have more than one final row`);
    const rows = this.#finalRows.size;
    if (rows !== finishedCalls && !(hadLosses && rows > finishedCalls))
      this.violate(`${finishedCalls} calls ended, ${rows} have a final row`);
  }

  #stateOf(source: string): BreakerState {
    return this.#states.get(source) ?? "closed";
  }

  /** A promise was broken, found here or elsewhere. */
  violate(what: string): void {
    this.violationCount += 1;
    if (this.violations.length < SHOWN) this.violations.push(`at ${this.#kernel.now().toFixed(3)} ms: ${what}`);
  }
}

export function createObserver(kernel: SimulationKernel): Observer {
  return new Observer(kernel);
}
