import { isPromiseLike } from "../domain/promise-like.js";
import { LOOK_AHEAD } from "../domain/scheduling/size-match.js";
import type { Grant, ScopeSnapshot, Settle, TickReply, Verdict } from "../domain/tick.js";
import type { GovernorEvent } from "../ports/governor.js";
import {
  accountCount,
  addSettle,
  addVerdict,
  isUrgent,
  NO_ACCOUNTS,
  type TakenAccounts,
  takeForTick,
} from "./accounting-queue.js";
import { admissionError, askGovernor } from "./backend-errors.js";
import { batchOf, createDesk, type Desk, type DispatcherOptions, leave, releaseIfHeld, warnOf } from "./desk.js";
import { Evacuation } from "./evacuation.js";
import { finishCalls, tellLeft } from "./finishing.js";
import { createHintTimer, type HintTimer } from "./hint-timer.js";
import { createLandings } from "./landings.js";
import { countLostLeases } from "./lost-leases.js";
import { createProgress, type Progress } from "./progress.js";
import { createStoreCheck, type StoreCheck } from "./store-check.js";
import { answerWants } from "./tick-answer.js";
import { nextAgain, tickFailed } from "./tick-failure.js";
import { unsentSettle } from "./unsent.js";
import type { Answer, Instant } from "./waiters.js";
import { type WaitingSummary, waitingSummary } from "./waiting-summary.js";
import { MAX_WANTS, nextToAsk } from "./want-batch.js";
import { dequeue, earliestUnblockMs, enqueue, type QueueEntry, unblockAll, type WantGroup } from "./want-queue.js";

const NONE: readonly never[] = [];

/**
 * The one queue of a process and scope in front of its governor (spec 10 §6): ordered by priority and first enqueue,
 * one tick in flight, one timer at the smallest hint, no polling. With a synchronous governor a free slot is granted
 * in the same turn.
 */
export class Dispatcher {
  /** Attempts of this process that wait for their first token. */
  readonly evacuation = new Evacuation();
  readonly #options: DispatcherOptions;
  readonly #desk: Desk;
  readonly #landings = createLandings();
  readonly #progress: Progress;
  readonly #hint: HintTimer;
  readonly #storeCheck: StoreCheck;
  readonly #unsubscribe: () => void;
  #sequence = 0;
  /** The governor answers later: a tick may be in flight. */
  #isAsynchronous = false;
  #ticking = false;
  #inFlight = false;
  #wokenMeanwhile = false;
  #leasesLost = 0;
  #closed = false;

  constructor(options: DispatcherOptions) {
    const { governor, runtime } = options;
    this.#options = options;
    this.#desk = createDesk(options, {
      wake: () => this.#wake(),
      giveBack: (grant) => this.settle(unsentSettle(grant)),
    });
    this.#progress = createProgress(governor, runtime);
    this.#storeCheck = createStoreCheck(governor, (text) => warnOf(this.#desk, "store", text));
    this.#hint = createHintTimer(runtime, () => this.#wake());
    this.#unsubscribe = governor.onEvent((event) => this.#hear(event));
  }

  /** The queue position of a new call. */
  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  /**
   * Asks for a permit. Answers at once when the governor does; else waits in the queue. Gives a grant, or the refusal
   * after which `entry.staysAfter` said no; throws or rejects with GovernanceBackendError, SourceNotConfiguredError, or
   * RequestRejectedError where the governor can't take this want.
   */
  admit(entry: QueueEntry): Answer | Promise<Answer> {
    const { queue, waiters, refusal } = this.#desk;
    if (refusal !== null) throw admissionError("tick", refusal, this.#options.governor.scope);
    const group = enqueue(queue, entry);
    if (this.#hint.isDue()) unblockAll(queue);
    if (this.#ticking || group.paused || group.blockedBy !== null) return this.#waitOrLeave(entry, group);
    const instant: Instant = { entry, answer: null, error: null, told: false };
    waiters.instant = instant;
    this.#pump();
    waiters.instant = null;
    if (instant.error !== null) throw instant.error;
    if (instant.answer !== null) return instant.answer;
    return instant.told ? waiters.wait(entry, this.#options.runtime.now()) : this.#waitOrLeave(entry, group);
  }

  /** Takes a waiting entry out, e.g. because its caller left. A grant already on its way goes back by itself. */
  withdraw(entry: QueueEntry, reason: unknown): void {
    dequeue(this.#desk.queue, entry);
    this.#desk.waiters.reject(entry, reason);
    releaseIfHeld(this.#desk, entry);
    // Those behind it have not been asked while it stood at the head.
    if (!this.#ticking && !this.#closed) this.#pump();
  }

  settle(settle: Settle, nowMs = this.#options.runtime.now()): void {
    this.#addSettle(settle, nowMs);
    this.#wake();
  }

  /** Gives a permit back unused. Told together with what is asked next, at the latest with `flush`. */
  giveBack(grant: Grant): void {
    this.#addSettle(unsentSettle(grant), this.#options.runtime.now());
  }

  flush(): void {
    if (accountCount(this.#desk.accounts) > 0) this.#wake();
  }

  #addSettle(settle: Settle, nowMs: number): void {
    const { live, starts, accounts } = this.#desk;
    const goodUntilMs = live.remove(settle.leaseId);
    const wasOver = goodUntilMs !== undefined && nowMs >= goodUntilMs;
    starts.remove(settle.leaseId);
    if (settle.outcome === "success") this.#progress.note(nowMs);
    addSettle(accounts, settle, false, wasOver);
  }

  /** A first token that changes nothing rides with the next tick, at the latest with the renewal. */
  verdict(verdict: Verdict): void {
    addVerdict(this.#desk.accounts, verdict);
    if (verdict.kind !== "overdue") this.#progress.note(this.#options.runtime.now());
    if (isUrgent(verdict)) this.#wake();
  }

  /** Asked when a scheduled grant is due: whether the state of its source changed, or it cools, since the grant came. */
  isStale(grant: Grant): boolean {
    return this.#desk.starts.isStale(grant);
  }

  /** Milliseconds since the scope's last progress. Throws or rejects with GovernanceBackendError when the governor can't say. */
  progressAgeMs(): number | Promise<number> {
    const { accounts } = this.#desk;
    if (accountCount(accounts) > 0) {
      accounts.isUrgent = true;
      this.#wake();
    }
    return this.#progress.ageMs();
  }

  /** The progress age where the governor answers synchronously; null where it would have to be asked. */
  knownProgressAgeMs(): number | null {
    return this.#isAsynchronous ? null : this.#progress.knownAgeMs();
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
    return this.#landings.after(accountCount(this.#desk.accounts) > 0 ? 2 : 1);
  }

  waiting(): WaitingSummary {
    const { count, oldestMs } = this.#desk.waiters.summary(this.#options.runtime.now());
    return waitingSummary(this.#desk.queue, count, oldestMs);
  }

  /** Its lease is held, and not over. */
  isGood = ({ leaseId }: Grant): boolean => this.#desk.live.isGood(leaseId, this.#options.runtime.now());

  /** Permits this process holds, and leases it lost while it still worked on them. */
  leases(): { live: number; lost: number } {
    return { live: this.#desk.live.count(), lost: this.#leasesLost };
  }

  /** Lets what holds a permit end and refuses all else; see finishing.ts. */
  finish(refusal: Error): Promise<void> {
    return finishCalls(this.#desk, refusal, { wake: () => this.#wake(), told: () => this.told() });
  }

  close(): void {
    // Once: who was finished has told it.
    if (!this.#closed && this.#desk.refusal === null) tellLeft(this.#desk);
    this.#closed = true;
    this.#unsubscribe();
    this.#hint.stop();
    this.#desk.live.stop();
    this.#desk.retry.stop();
  }

  #waitOrLeave(entry: QueueEntry, group: WantGroup): Answer | Promise<Answer> {
    const refusal = group.blockedBy;
    if (refusal === null) group.untold.add(entry);
    else if (!entry.staysAfter(refusal)) {
      leave(this.#desk, entry, refusal);
      return refusal;
    }
    return this.#desk.waiters.wait(entry, this.#options.runtime.now());
  }

  #hear({ type, source, worker, evacuateAfterMs }: GovernorEvent): void {
    if (type !== "capacity") this.#desk.starts.newsOf(source);
    if (evacuateAfterMs !== undefined) this.evacuation.run(source, evacuateAfterMs, this.#options.runtime.now());
    if (worker !== undefined && worker !== this.#options.worker) return;
    // A cooldown frees nothing; it only concerns grants that have not started yet.
    if (type !== "cooling") this.#wake();
  }

  #wake(): void {
    if (this.#closed) return;
    unblockAll(this.#desk.queue);
    if (this.#ticking) this.#wokenMeanwhile = true;
    else this.#pump();
  }

  /** Ticks until nothing is left to say or ask; with an asynchronous governor, until one tick is in flight. */
  #pump(): void {
    this.#ticking = true;
    while (!this.#inFlight && this.#tickOnce());
    if (this.#inFlight) return;
    this.#ticking = false;
    if (!this.#closed) this.#hint.set(earliestUnblockMs(this.#desk.queue));
    this.#landings.allTold();
  }

  /** Returns whether there was anything to do. */
  #tickOnce(): boolean {
    const { queue, accounts, retry } = this.#desk;
    const again = nextAgain(this.#desk);
    const wants = again ?? nextToAsk(queue, this.#isAsynchronous ? MAX_WANTS : LOOK_AHEAD);
    const taken = again === null ? takeForTick(accounts, wants.length > 0, retry.isPending()) : NO_ACCOUNTS;
    if (wants.length === 0 && taken === NO_ACCOUNTS) return false;
    // Accounts that failed once never ride with a want again; nor do others while it is to be seen whether permits can be had.
    if ((accounts.isolating || retry.isOutage()) && taken !== NO_ACCOUNTS) this.#tick(taken, NONE);
    else this.#tick(taken, wants);
    return true;
  }

  #tick(accounts: TakenAccounts, wants: readonly QueueEntry[]): void {
    const { governor, runtime } = this.#options;
    let reply: TickReply | Promise<TickReply>;
    try {
      reply = governor.tick(batchOf(this.#options, accounts, wants));
    } catch (error) {
      tickFailed(this.#desk, error, accounts, wants, false);
      return;
    }
    if (!isPromiseLike(reply)) {
      this.#tickAnswered(reply, accounts, wants, null);
      return;
    }
    const sentMs = runtime.now();
    this.#isAsynchronous = true;
    this.#inFlight = true;
    Promise.resolve(reply).then(
      (answer) => this.#landed(() => this.#tickAnswered(answer, accounts, wants, sentMs)),
      (error) => this.#landed(() => tickFailed(this.#desk, error, accounts, wants, true)),
    );
  }

  #landed(handle: () => void): void {
    this.#inFlight = false;
    handle();
    this.#landings.landed();
    // An answer older than the news must not block what the news let go.
    if (this.#wokenMeanwhile) unblockAll(this.#desk.queue);
    this.#wokenMeanwhile = false;
    this.#ticking = false;
    if (!this.#closed) this.#pump();
  }

  /** `sentMs`: when the tick left; null when it was answered in the same turn. */
  #tickAnswered(reply: TickReply, accounts: TakenAccounts, wants: readonly QueueEntry[], sentMs: number | null): void {
    const desk = this.#desk;
    desk.retry.succeeded(wants.length > 0 ? "wants" : "accounts");
    if (sentMs !== null) this.#storeCheck.answered(sentMs);
    if (accounts !== NO_ACCOUNTS) this.#leasesLost += countLostLeases(desk, reply, accounts, sentMs);
    if (wants.length === 0) return;
    desk.waiters.answered();
    answerWants(desk, reply, wants, sentMs);
  }
}
