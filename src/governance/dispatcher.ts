import type { Grant, LeaseId, Refusal, ScopeSnapshot, Settle, TickReply, Verdict } from "../domain/tick.js";
import { SourceNotConfiguredError } from "../errors.js";
import type { Governor } from "../ports/governor.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import {
  addSettle,
  addVerdict,
  emptyAccountingQueue,
  giveBack,
  hasPending,
  itemsOf,
  NO_ACCOUNTS,
  type TakenAccounts,
  takeAll,
} from "./accounting-queue.js";
import { admissionError, askGovernor } from "./backend-errors.js";
import { type BackendRetry, createBackendRetry } from "./backend-retry.js";
import { createLiveLeases, type LiveLeases } from "./live-leases.js";
import { unsentSettle } from "./unsent.js";
import { type Answer, createWaiters } from "./waiters.js";
import {
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

/** A tick carries at most this many wants (spec 10 "One port"). */
const MAX_WANTS = 32;
const NONE: readonly never[] = [];

export interface DispatcherOptions {
  readonly governor: Governor;
  readonly runtime: Runtime;
  /** host:pid:random. */
  readonly worker: string;
  readonly leaseTtlMs: number;
  readonly leaseRenewal: boolean;
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
  readonly #options: DispatcherOptions;
  readonly #queue = emptyWantQueue();
  readonly #accounts = emptyAccountingQueue();
  readonly #waiters = createWaiters();
  readonly #live: LiveLeases;
  readonly #retry: BackendRetry;
  readonly #unsubscribe: () => void;
  /** Entries whose tick failed in company; each is asked again by itself before it is told. */
  #alone: QueueEntry[] = [];
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
      this.#wake();
    });
    this.#retry = createBackendRetry(options.runtime, options.governor.scope, () => {
      resumeAll(this.#queue);
      this.#wake();
    });
    this.#unsubscribe = options.governor.onEvent(() => this.#wake());
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
    const now = this.#options.runtime.now();
    const group = enqueue(this.#queue, entry);
    if (this.#hint !== null && now >= this.#hint.atMs) unblockAll(this.#queue);
    if (this.#ticking || group.paused || group.blockedBy !== null) return this.#waitOrLeave(entry, group, now);
    const instant: Instant = { entry, answer: null, error: null };
    this.#instant = instant;
    this.#pump();
    this.#instant = null;
    if (instant.error !== null) throw instant.error;
    return instant.answer ?? this.#waitOrLeave(entry, group, now);
  }

  /** Takes a waiting entry out, e.g. because its caller left. A grant already on its way goes back by itself. */
  withdraw(entry: QueueEntry, reason: unknown): void {
    dequeue(this.#queue, entry);
    this.#waiters.reject(entry, reason);
  }

  settle(settle: Settle): void {
    this.#live.remove(settle.leaseId);
    addSettle(this.#accounts, settle);
    this.#wake();
  }

  /** A probe's verdict is sent at once; any other rides with the next tick, at the latest with the renewal. */
  verdict(verdict: Verdict): void {
    addVerdict(this.#accounts, verdict);
    if (verdict.probe) this.#wake();
  }

  /** Milliseconds since the scope's last progress. Rejects with GovernanceBackendError when the governor can't say. */
  async progressAgeMs(): Promise<number> {
    if (hasPending(this.#accounts)) {
      this.#sendVerdicts = true;
      this.#wake();
    }
    const { governor } = this.#options;
    return askGovernor("progress age", governor.scope, () => governor.progressAgeMs());
  }

  /** Rejects with GovernanceBackendError when the governor can't say. */
  async snapshot(): Promise<ScopeSnapshot> {
    const { governor } = this.#options;
    return askGovernor("snapshot", governor.scope, () => governor.snapshot());
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

  #waitOrLeave(entry: QueueEntry, group: WantGroup, sinceMs: number): Answer | Promise<Answer> {
    const refusal = group.blockedBy;
    if (refusal === null) group.untold.push(entry);
    else if (!entry.staysAfter(refusal)) {
      dequeue(this.#queue, entry);
      return refusal;
    }
    return this.#waiters.wait(entry, sinceMs);
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
  }

  /** Returns whether there was anything to do. */
  #tickOnce(): boolean {
    const alone = this.#alone.shift();
    if (alone !== undefined) {
      this.#tick(NO_ACCOUNTS, [alone]);
      return true;
    }
    const wants = nextToAsk(this.#queue, this.#wantsPerTick);
    // While an earlier failure is waited out, accounts stay back so that they can't spoil an admission.
    const accounts =
      !this.#retry.isPending() && (wants.length > 0 || this.#hasUrgentAccounts()) ? this.#take() : NO_ACCOUNTS;
    if (wants.length === 0 && accounts === NO_ACCOUNTS) return false;
    this.#tick(accounts, wants);
    return true;
  }

  #take(): TakenAccounts {
    this.#sendVerdicts = false;
    return takeAll(this.#accounts);
  }

  #hasUrgentAccounts(): boolean {
    const { settles, verdicts, renew } = this.#accounts;
    if (settles.length > 0 || renew.length > 0) return true;
    return verdicts.length > 0 && (this.#sendVerdicts || verdicts.some((v) => v.item.probe));
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
        wants: wants.length === 0 ? NONE : wants.map((entry) => entry.want),
      });
    } catch (error) {
      this.#tickFailed(error, accounts, wants);
      return;
    }
    if (!(reply instanceof Promise)) {
      this.#tickAnswered(reply, accounts, wants);
      return;
    }
    this.#wantsPerTick = MAX_WANTS;
    this.#inFlight = true;
    reply.then(
      (answer) => this.#landed(() => this.#tickAnswered(answer, accounts, wants)),
      (error) => this.#landed(() => this.#tickFailed(error, accounts, wants)),
    );
  }

  #landed(handle: () => void): void {
    this.#inFlight = false;
    handle();
    // An answer older than the news must not block what the news let go.
    if (this.#wokenMeanwhile) unblockAll(this.#queue);
    this.#wokenMeanwhile = false;
    this.#ticking = false;
    if (!this.#closed) this.#pump();
  }

  #tickAnswered(reply: TickReply, accounts: TakenAccounts, wants: readonly QueueEntry[]): void {
    this.#retry.succeeded();
    if (accounts.renew.length > 0) this.#countLostLeases(reply, accounts.renew);
    for (const grant of reply.grants) this.#granted(grant, wants);
    for (const refusal of reply.refusals) this.#refused(refusal, wants);
  }

  /** Renewals stand last in `applied`. */
  #countLostLeases(reply: TickReply, renewed: readonly LeaseId[]): void {
    const first = reply.applied.length - renewed.length;
    renewed.forEach((leaseId, index) => {
      if (reply.applied[first + index] !== false || !this.#live.remove(leaseId)) return;
      this.#leasesLost += 1;
      this.#warn("a permit was lost because its lease was not renewed in time; its call goes on", { leaseId });
    });
  }

  #granted(grant: Grant, wants: readonly QueueEntry[]): void {
    const entry = wants.find((candidate) => candidate.want.leaseId === grant.leaseId);
    if (entry === undefined) return;
    this.#live.add(grant.leaseId);
    // Withdrawn while the tick was in flight: nobody is left to use it.
    if (dequeue(this.#queue, entry)) this.#answer(entry, grant);
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
  #tickFailed(error: unknown, accounts: TakenAccounts, wants: readonly QueueEntry[]): void {
    const now = this.#options.runtime.now();
    const hadAccounts = accounts.settles.length + accounts.verdicts.length + accounts.renew.length > 0;
    const dropped = giveBack(this.#accounts, accounts, now, this.#options.leaseTtlMs);
    if (dropped > 0)
      this.#warn("accounting was dropped: its leases ended before the governor could be told", { dropped });
    if (hadAccounts) this.#retry.later(error);
    if (wants.length > 1 || (wants.length === 1 && hadAccounts)) {
      // What the accounts or a neighbour caused must not be taken out on a want.
      this.#alone.push(...wants);
      return;
    }
    for (const entry of wants) this.#wantFailed(entry, error, now);
  }

  #wantFailed(entry: QueueEntry, error: unknown, now: number): void {
    const { candidates } = entry.want;
    const failure = admissionError(
      "tick",
      error,
      this.#options.governor.scope,
      candidates.length === 1 ? candidates[0] : undefined,
    );
    if (!SourceNotConfiguredError.isInstance(failure) && this.#waiters.hasGrace(entry, now)) {
      pause(this.#queue, entry);
      this.#retry.later(error);
      return;
    }
    dequeue(this.#queue, entry);
    if (this.#instant?.entry === entry) this.#instant.error = failure;
    else this.#waiters.reject(entry, failure);
  }

  #warn(message: string, fields: Record<string, unknown>): void {
    this.#options.runtime.log("warn", message, { scope: this.#options.governor.scope, ...fields });
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
