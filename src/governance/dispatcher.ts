import { isPromiseLike } from "../domain/promise-like.js";
import type { Grant, LeaseId, Refusal, ScopeSnapshot, Settle, TickReply, Verdict } from "../domain/tick.js";
import { SourceNotConfiguredError } from "../errors.js";
import type { Governor, GovernorEvent } from "../ports/governor.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import {
  accountCount,
  addSettle,
  addVerdict,
  emptyAccountingQueue,
  giveBack,
  itemsOf,
  NO_ACCOUNTS,
  type TakenAccounts,
  takeAll,
  takeOne,
  takeRenewal,
} from "./accounting-queue.js";
import { admissionError, askGovernor } from "./backend-errors.js";
import { type BackendRetry, createBackendRetry } from "./backend-retry.js";
import { Evacuation } from "./evacuation.js";
import { createLiveLeases, type LiveLeases } from "./live-leases.js";
import { ScheduledStarts } from "./scheduled-starts.js";
import { releaseSettle, unsentSettle } from "./unsent.js";
import { type Answer, createWaiters } from "./waiters.js";
import {
  allEntries,
  askedNow,
  block,
  dequeue,
  earliestUnblockMs,
  emptyWantQueue,
  enqueue,
  nextToAsk,
  pause,
  type QueueEntry,
  resumeAll,
  unblockAll,
  type WantGroup,
} from "./want-queue.js";
import type { Warn } from "./warn.js";

/** A tick carries at most this many wants (spec 10 "One port"). */
const MAX_WANTS = 32;
const NONE: readonly never[] = [];

/** It may change the breaker: a probe's verdict, or evidence for or against a source. */
const isUrgent = ({ probe, kind }: Verdict): boolean => probe || kind !== "first_token";

export interface DispatcherOptions {
  readonly governor: Governor;
  readonly runtime: Runtime;
  /** host:pid:random. */
  readonly worker: string;
  readonly leaseTtlMs: number;
  readonly leaseRenewal: boolean;
  readonly warn: Warn;
}

/** The entry being admitted, while its answer may still come in the same turn. */
interface Instant {
  readonly entry: QueueEntry;
  answer: Answer | null;
  error: Error | null;
}

/**
 * The one queue of a process and scope in front of its governor (spec 10 §6): ordered by priority and first enqueue,
 * one tick in flight, one timer at the smallest hint, no polling. With a synchronous governor a free slot is granted
 * in the same turn.
 */
export class Dispatcher {
  /** Attempts of this process that wait for their first token. */
  readonly evacuation = new Evacuation();
  readonly #options: DispatcherOptions;
  readonly #queue = emptyWantQueue();
  readonly #accounts = emptyAccountingQueue();
  readonly #waiters = createWaiters();
  readonly #live: LiveLeases;
  readonly #retry: BackendRetry;
  readonly #starts = new ScheduledStarts();
  readonly #unsubscribe: () => void;
  /** Wants whose tick failed in company of something else that may be to blame; asked again by themselves. */
  #askAgain: (readonly QueueEntry[])[] = [];
  /** Accounts failed together: one at a time, until none is left. */
  #isolating = false;
  /** Granted perhaps, though no answer came: given back when nobody asks again. */
  readonly #mayHold = new Set<QueueEntry>();
  /** A renewal that has not been tried: it waits for nothing, or healthy calls would lose their permits. */
  #renewalDue = false;
  #landings = 0;
  #whenTold: { readonly landing: number; readonly resolve: () => void }[] = [];
  /** The newest success or first token of this process; the governor may not have heard of it yet. */
  #lastProgressMs = Number.NEGATIVE_INFINITY;
  #sequence = 0;
  #wantsPerTick = 1;
  #ticking = false;
  #inFlight = false;
  #wokenMeanwhile = false;
  #sendVerdicts = false;
  #instant: Instant | null = null;
  #hint: { readonly atMs: number; readonly cancel: CancelTimer } | null = null;
  #leasesLost = 0;
  #closed = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#live = createLiveLeases(options.runtime, options.leaseTtlMs, options.leaseRenewal, (leaseIds) => {
      this.#accounts.renew = leaseIds;
      this.#renewalDue = true;
      this.#wake();
    });
    this.#retry = createBackendRetry(
      options.runtime,
      (kind, text) => this.#warn(kind, text),
      () => {
        resumeAll(this.#queue);
        this.#wake();
      },
    );
    this.#unsubscribe = options.governor.onEvent((event) => this.#heard(event));
  }

  /** The queue position of a new call. */
  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  /**
   * Asks for a permit. Answers at once when the governor does; else waits in the queue. Gives a grant, or the refusal
   * after which `entry.staysAfter` said no; throws or rejects with GovernanceBackendError or SourceNotConfiguredError.
   */
  admit(entry: QueueEntry): Answer | Promise<Answer> {
    const group = enqueue(this.#queue, entry);
    if (this.#hint !== null && this.#options.runtime.now() >= this.#hint.atMs) unblockAll(this.#queue);
    if (this.#ticking || group.paused || group.blockedBy !== null) return this.#waitOrLeave(entry, group);
    const instant: Instant = { entry, answer: null, error: null };
    this.#instant = instant;
    this.#pump();
    this.#instant = null;
    if (instant.error !== null) throw instant.error;
    return instant.answer ?? this.#waitOrLeave(entry, group);
  }

  /** Takes a waiting entry out, e.g. because its caller left. A grant already on its way goes back by itself. */
  withdraw(entry: QueueEntry, reason: unknown): void {
    dequeue(this.#queue, entry);
    this.#waiters.reject(entry, reason);
    if (this.#mayHold.has(entry)) this.#release(entry);
    // Those behind it have not been asked while it stood at the head.
    if (!this.#ticking && !this.#closed) this.#pump();
  }

  settle(settle: Settle): void {
    if (settle.outcome === "success") this.#lastProgressMs = this.#options.runtime.now();
    this.#addSettle(settle);
    this.#wake();
  }

  /** Gives a permit back unused. Told together with what is asked next, at the latest with `flush`. */
  giveBack(grant: Grant): void {
    this.#addSettle(unsentSettle(grant));
  }

  flush(): void {
    if (accountCount(this.#accounts) > 0) this.#wake();
  }

  #addSettle(settle: Settle): void {
    this.#live.remove(settle.leaseId);
    this.#starts.remove(settle.leaseId);
    addSettle(this.#accounts, settle);
  }

  /** A first token that changes nothing rides with the next tick, at the latest with the renewal. */
  verdict(verdict: Verdict): void {
    addVerdict(this.#accounts, verdict);
    if (verdict.kind !== "overdue") this.#lastProgressMs = this.#options.runtime.now();
    if (isUrgent(verdict)) this.#wake();
  }

  /** Asked when a scheduled grant is due: whether the state of its source changed, or it cools, since the grant came. */
  isStale(grant: Grant): boolean {
    return this.#starts.isStale(grant);
  }

  /** Milliseconds since the scope's last progress. Throws or rejects with GovernanceBackendError when the governor can't say. */
  progressAgeMs(): number | Promise<number> {
    if (accountCount(this.#accounts) > 0) {
      this.#sendVerdicts = true;
      this.#wake();
    }
    const { governor } = this.#options;
    const age = askGovernor("progress age", governor.scope, () => governor.progressAgeMs());
    return age instanceof Promise ? age.then((ageMs) => this.#withOwnProgress(ageMs)) : this.#withOwnProgress(age);
  }

  #withOwnProgress(ageMs: number): number {
    return Math.min(ageMs, this.#options.runtime.now() - this.#lastProgressMs);
  }

  /** The progress age where the governor answers synchronously; null where it would have to be asked. */
  knownProgressAgeMs(): number | null {
    if (this.#wantsPerTick > 1) return null;
    try {
      const ageMs = this.#options.governor.progressAgeMs();
      if (typeof ageMs === "number") return this.#withOwnProgress(ageMs);
      // Nobody waits for this answer; its failure must not end the process.
      ageMs.catch(() => {});
      return null;
    } catch {
      return null;
    }
  }

  /** What is on its way to the governor is in it. Throws or rejects with GovernanceBackendError when it can't say. */
  snapshot(): ScopeSnapshot | Promise<ScopeSnapshot> {
    const { governor } = this.#options;
    const ask = () => askGovernor("snapshot", governor.scope, () => governor.snapshot());
    return this.#inFlight ? this.told().then(ask) : ask();
  }

  /** Resolves when what is to be told now has been told, or the governor failed to listen. */
  told(): Promise<void> {
    if (!this.#inFlight) return Promise.resolve();
    // What waits behind the tick in flight goes with the next one.
    const landing = this.#landings + (accountCount(this.#accounts) > 0 ? 2 : 1);
    return new Promise((resolve) => this.#whenTold.push({ landing, resolve }));
  }

  waiting(): { count: number; oldestMs: number } {
    return this.#waiters.summary(this.#options.runtime.now());
  }

  /** Permits this process holds, and leases it lost while it still worked on them. */
  leases(): { live: number; lost: number } {
    return { live: this.#live.count(), lost: this.#leasesLost };
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
    this.#hint?.cancel();
    this.#hint = null;
    this.#live.stop();
    this.#retry.stop();
  }

  #waitOrLeave(entry: QueueEntry, group: WantGroup): Answer | Promise<Answer> {
    const refusal = group.blockedBy;
    if (refusal === null) group.untold.add(entry);
    else if (!entry.staysAfter(refusal)) {
      dequeue(this.#queue, entry);
      return refusal;
    }
    return this.#waiters.wait(entry, this.#options.runtime.now());
  }

  #heard({ type, source, evacuateAfterMs }: GovernorEvent): void {
    if (type !== "capacity") this.#starts.newsOf(source);
    if (evacuateAfterMs !== undefined) this.evacuation.run(source, evacuateAfterMs, this.#options.runtime.now());
    this.#wake();
  }

  #wake(): void {
    if (this.#closed) return;
    unblockAll(this.#queue);
    if (this.#ticking) this.#wokenMeanwhile = true;
    else this.#pump();
  }

  /** Ticks until nothing is left to say or ask; with an asynchronous governor, until one tick is in flight. */
  #pump(): void {
    this.#ticking = true;
    while (!this.#inFlight && this.#tickOnce());
    if (this.#inFlight) return;
    this.#ticking = false;
    this.#setHintTimer();
    this.#tellTold(Infinity);
  }

  #tellTold(landing: number): void {
    if (this.#whenTold.length === 0) return;
    const due = this.#whenTold.filter((waiter) => waiter.landing <= landing);
    this.#whenTold = this.#whenTold.filter((waiter) => waiter.landing > landing);
    for (const { resolve } of due) resolve();
  }

  /** Returns whether there was anything to do. */
  #tickOnce(): boolean {
    const again = this.#askAgain.shift();
    const wants = again ?? nextToAsk(this.#queue, this.#wantsPerTick);
    const accounts = again === undefined ? this.#takeAccounts(wants.length > 0) : NO_ACCOUNTS;
    if (wants.length === 0 && accounts === NO_ACCOUNTS) return false;
    // Accounts that failed once never ride with a want again.
    if (this.#isolating && accounts !== NO_ACCOUNTS) this.#tick(accounts, NONE);
    else this.#tick(accounts, wants);
    return true;
  }

  /** While a failure is waited out accounts stay back, so that they can't spoil an admission. */
  #takeAccounts(ride: boolean): TakenAccounts {
    const { settles, verdicts, renew } = this.#accounts;
    const isHeldBack = this.#isolating || this.#retry.isPending();
    const sendsRenewal = this.#renewalDue && isHeldBack;
    this.#renewalDue = false;
    if (sendsRenewal) return takeRenewal(this.#accounts);
    if (this.#retry.isPending()) return NO_ACCOUNTS;
    const hasUrgent = this.#sendVerdicts || verdicts.some((verdict) => isUrgent(verdict.item));
    if (!ride && !this.#isolating && settles.length + renew.length === 0 && !hasUrgent) return NO_ACCOUNTS;
    this.#sendVerdicts = false;
    const taken = this.#isolating ? takeOne(this.#accounts) : takeAll(this.#accounts);
    if (taken === NO_ACCOUNTS) this.#isolating = false;
    return taken;
  }

  #tick(accounts: TakenAccounts, wants: readonly QueueEntry[]): void {
    const { governor, runtime, worker } = this.#options;
    let reply: TickReply | Promise<TickReply>;
    try {
      reply = governor.tick({
        worker,
        seed: Math.floor(runtime.random() * 0x1_0000_0000),
        settles: itemsOf(accounts.settles),
        verdicts: itemsOf(accounts.verdicts),
        renew: accounts.renew,
        wants: wants.length === 0 ? NONE : wants.map(askedNow),
      });
    } catch (error) {
      this.#tickFailed(error, accounts, wants, false);
      return;
    }
    if (!isPromiseLike(reply)) {
      this.#tickAnswered(reply, accounts, wants, null);
      return;
    }
    const sentMs = runtime.now();
    this.#wantsPerTick = MAX_WANTS;
    this.#inFlight = true;
    Promise.resolve(reply).then(
      (answer) => this.#landed(() => this.#tickAnswered(answer, accounts, wants, sentMs)),
      (error) => this.#landed(() => this.#tickFailed(error, accounts, wants, true)),
    );
  }

  #landed(handle: () => void): void {
    this.#inFlight = false;
    this.#landings += 1;
    handle();
    this.#tellTold(this.#landings);
    // An answer older than the news must not block what the news let go.
    if (this.#wokenMeanwhile) unblockAll(this.#queue);
    this.#wokenMeanwhile = false;
    this.#ticking = false;
    if (!this.#closed) this.#pump();
  }

  #tickAnswered(reply: TickReply, accounts: TakenAccounts, wants: readonly QueueEntry[], sentMs: number | null): void {
    this.#retry.succeeded();
    if (accounts.renew.length > 0) this.#countLostLeases(reply, accounts.renew);
    for (const grant of reply.grants) this.#granted(grant, wants, sentMs);
    for (const refusal of reply.refusals) this.#refused(refusal, wants);
  }

  /** Renewals stand last in `applied`. */
  #countLostLeases(reply: TickReply, renewed: readonly LeaseId[]): void {
    const first = reply.applied.length - renewed.length;
    const lost = renewed.filter((id, index) => reply.applied[first + index] === false && this.#live.remove(id));
    if (lost.length === 0) return;
    this.#leasesLost += lost.length;
    const text = "leases were lost because they were not renewed in time; their calls go on";
    this.#warn("lease_lost", `${lost.length} ${text}`);
  }

  /** `sentMs`: when the tick left; null when it was answered in the same turn. */
  #granted(grant: Grant, wants: readonly QueueEntry[], sentMs: number | null): void {
    const entry = wants.find((candidate) => candidate.want.leaseId === grant.leaseId);
    if (entry === undefined) return;
    this.#live.add(grant.leaseId);
    this.#starts.add(grant);
    this.#mayHold.delete(entry);
    // A process that was frozen longer than the lease: somebody else may have the permit by now. Asked again.
    const isStale = sentMs !== null && this.#options.runtime.now() - sentMs >= grant.leaseTtlMs;
    if (isStale) this.settle(unsentSettle(grant));
    else if (dequeue(this.#queue, entry)) this.#answer(entry, grant);
    // Withdrawn while the tick was in flight: nobody is left to use it.
    else this.settle(unsentSettle(grant));
  }

  #refused(refusal: Refusal, wants: readonly QueueEntry[]): void {
    const entry = wants.find((candidate) => candidate.want.leaseId === refusal.leaseId);
    if (entry === undefined) return;
    if (!entry.staysAfter(refusal)) {
      this.#leave(entry, refusal);
      return;
    }
    for (const other of block(this.#queue, entry, refusal, this.#options.runtime.now())) {
      if (other !== entry && !other.staysAfter(refusal)) this.#leave(other, refusal);
    }
  }

  #leave(entry: QueueEntry, refusal: Refusal): void {
    if (dequeue(this.#queue, entry)) this.#answer(entry, refusal);
  }

  #answer(entry: QueueEntry, answer: Answer): void {
    if (this.#instant?.entry === entry) this.#instant.answer = answer;
    else this.#waiters.resolve(entry, answer);
  }

  /** Admission fails closed, accounting is kept (spec 02 §2 "Degradation goes by path"). */
  #tickFailed(error: unknown, accounts: TakenAccounts, wants: readonly QueueEntry[], mayHaveRun: boolean): void {
    const count = accountCount(accounts);
    if (count > 0) this.#accountsFailed(error, accounts);
    const isMisconfigured = SourceNotConfiguredError.isInstance(error);
    if (wants.length > 0 && count > 0) this.#askAgain.push(wants);
    else if (wants.length > 1 && isMisconfigured) this.#askAgain.push(...wants.map((entry) => [entry]));
    else this.#wantsFailed(error, wants, mayHaveRun && !isMisconfigured);
  }

  #accountsFailed(error: unknown, accounts: TakenAccounts): void {
    const { runtime, leaseTtlMs } = this.#options;
    const dropped = giveBack(this.#accounts, accounts, runtime.now(), leaseTtlMs);
    if (dropped > 0) {
      const text = "accounting was dropped: its leases ended before the governor could be told";
      this.#warn("accounting_dropped", `${text} (${dropped} entries)`);
    }
    this.#isolating = true;
    this.#retry.later(error);
  }

  #wantsFailed(error: unknown, wants: readonly QueueEntry[], isOutage: boolean): void {
    // An outage is told to all who wait at once, not tick by tick.
    const told = isOutage && wants.length > 0 ? new Set([...wants, ...allEntries(this.#queue)]) : wants;
    for (const entry of told) this.#wantFailed(entry, error, isOutage && wants.includes(entry));
  }

  #wantFailed(entry: QueueEntry, error: unknown, mayHaveRun: boolean): void {
    const { want } = entry;
    const [first, second] = want.candidates;
    const sourceName = second === undefined ? first : undefined;
    const failure = admissionError("tick", error, this.#options.governor.scope, sourceName);
    if (mayHaveRun) this.#mayHold.add(entry);
    const isAsking = this.#instant?.entry === entry || this.#waiters.has(entry);
    const now = this.#options.runtime.now();
    if (isAsking && !SourceNotConfiguredError.isInstance(failure) && this.#waiters.hasGrace(entry, now)) {
      pause(this.#queue, entry);
      this.#retry.later(error);
      return;
    }
    dequeue(this.#queue, entry);
    if (this.#mayHold.has(entry)) this.#release(entry);
    if (this.#instant?.entry === entry) this.#instant.error = failure;
    else this.#waiters.reject(entry, failure);
  }

  /** The reply may be what got lost: whatever was granted goes back by its lease id. */
  #release(entry: QueueEntry): void {
    this.#mayHold.delete(entry);
    const { leaseId, candidates } = entry.want;
    if (candidates[0] !== undefined) addSettle(this.#accounts, releaseSettle(leaseId, candidates[0]), true);
  }

  #warn(kind: string, message: string): void {
    this.#options.warn("governor", kind, `scope ${this.#options.governor.scope}: ${message}`);
  }

  /** One timer at the earliest moment at which time alone could let a blocked group go on. */
  #setHintTimer(): void {
    const atMs = earliestUnblockMs(this.#queue);
    if (this.#hint?.atMs === atMs) return;
    this.#hint?.cancel();
    this.#hint = null;
    if (atMs === Infinity || this.#closed) return;
    const cancel = this.#options.runtime.setTimer(Math.max(0, atMs - this.#options.runtime.now()), () => {
      this.#hint = null;
      this.#wake();
    });
    this.#hint = { atMs, cancel };
  }
}
