import type { SourceConfig } from "../domain/source.js";
import type { Grant, Verdict } from "../domain/tick.js";
import { type PartialReply, TransientError } from "../errors.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import type { AttemptContext } from "../ports/transport.js";
import { type Call, mayMoveOn } from "./call.js";
import type { Evacuee } from "./evacuation.js";
import type { Interruption } from "./interrupt.js";
import type { AttemptMark } from "./stall-clock.js";
import type { Wait } from "./wait-log.js";

type AbortListener = (reason: unknown) => void;

/**
 * One send to one source, as its transport sees it and as the books need it.
 * A class for its hot path: ten thousand in flight share one set of methods.
 */
export class Attempt implements AttemptContext, Evacuee {
  readonly call: Call;
  readonly source: SourceConfig;
  readonly grant: Grant;
  readonly waitedMs: number;
  /** What that wait was for; empty = nothing refused it. */
  readonly waits: readonly Wait[];
  /** The attempt that showed no token, beside which this one was sent; null = it is no hedge. */
  beside: Attempt | null = null;
  /** 1-based within the call. */
  readonly number: number;
  readonly startedMs: number;
  readonly mark: AttemptMark;
  aborted = false;
  abortReason: unknown = undefined;
  interruption: Interruption | null = null;
  sent = false;
  /** 0 until it is sent. */
  sentAtMs = 0;
  firstTokenMs: number | null = null;
  partialSoFar: (() => PartialReply) | null = null;
  /** The permit has been given back. */
  settled = false;
  /** Its source tripped before the first token came; the call goes elsewhere. */
  evacuated = false;
  /** Told when a second attempt may be sent beside this one; null = nobody asks. */
  onHedgeDue: (() => void) | null = null;
  /** Its permit had outlived its lease before the first byte left: nothing was sent, and the call asks again. */
  isTooLate = false;
  #isOverdue = false;
  #isWatched = false;
  #cancelOverdue: CancelTimer | null = null;
  #cancelHedge: CancelTimer | null = null;
  /** The transport's own listener, nearly always the only one. */
  #listener: AbortListener | null = null;
  #furtherListeners: Set<AbortListener> | null = null;

  constructor(call: Call, source: SourceConfig, grant: Grant, waitedMs: number, waits: readonly Wait[]) {
    this.call = call;
    this.source = source;
    this.grant = grant;
    this.waitedMs = waitedMs;
    this.waits = waits;
    this.startedMs = this.runtime.now();
    this.mark = call.clock.begin(this.startedMs);
    call.attempts += 1;
    this.number = call.attempts;
  }

  get callId(): string {
    return this.grant.leaseId;
  }

  get requestId(): string {
    return this.call.requestId;
  }

  get operation(): string {
    return this.call.kind;
  }

  get runtime(): Runtime {
    return this.call.environment.runtime;
  }

  onAbort(listener: AbortListener): () => void {
    if (this.aborted) {
      listener(this.abortReason);
      return () => {};
    }
    if (this.#listener === null) {
      this.#listener = listener;
    } else {
      this.#furtherListeners ??= new Set();
      this.#furtherListeners.add(listener);
    }
    return () => {
      if (this.#listener === listener) this.#listener = null;
      else this.#furtherListeners?.delete(listener);
    };
  }

  /**
   * A permit that is older than its lease is sent nothing with: somebody else may have it by now (spec 02 §3), wherever the
   * process was frozen since the permit was asked for.
   */
  get mayBeSent(): boolean {
    const { grant, call } = this;
    const isYoung = this.runtime.now() - this.startedMs < grant.leaseTtlMs;
    return isYoung && call.environment.dispatcher.isGood(grant);
  }

  markSent(): void {
    if (this.sent) return;
    // A process may be frozen while a connection is being opened.
    if (!this.mayBeSent) {
      this.isTooLate = true;
      this.abort(null, new Error("returned unsent: the permit was older than its lease"));
      return;
    }
    this.sent = true;
    const { scheduling } = this.call.environment.config;
    const { firstTokenDueMs, hedgeAfterMs } = this.grant;
    const dueMs = scheduling.overdue ? (firstTokenDueMs ?? null) : null;
    const hedgeMs = this.onHedgeDue === null ? null : (hedgeAfterMs ?? null);
    const mayLeave = scheduling.evacuate && mayMoveOn(this.call);
    if (dueMs === null && hedgeMs === null && !mayLeave) return;
    // An answer that comes as a whole has no first token to wait for.
    if (this.call.operation.streams?.(this.source) === true) this.#watch(dueMs, hedgeMs, mayLeave);
  }

  #watch(dueMs: number | null, hedgeMs: number | null, mayLeave: boolean): void {
    const { runtime } = this;
    this.sentAtMs = runtime.now();
    this.#isWatched = true;
    if (dueMs !== null) this.#cancelOverdue = runtime.setTimer(dueMs, () => this.#overdue(dueMs));
    if (hedgeMs !== null) this.#cancelHedge = runtime.setTimer(hedgeMs, () => this.onHedgeDue?.());
    if (mayLeave) this.call.environment.dispatcher.evacuation.add(this.source.name, this);
  }

  /** Nothing is to be done any more about a first token that stays away. */
  stopWatching(): void {
    if (!this.#isWatched) return;
    this.#isWatched = false;
    this.#cancelOverdue?.();
    this.#cancelHedge?.();
    this.call.environment.dispatcher.evacuation.remove(this.source.name, this);
  }

  /** Evidence before any timeout (spec 10 §4); a probe has failed by it. */
  #overdue(dueMs: number): void {
    if (!this.grant.probe) {
      this.#isOverdue = true;
      this.#tell("overdue", null);
      return;
    }
    this.#giveUp(`the probe had no first token after ${Math.round(dueMs)} ms`);
  }

  evacuate(waitedMs: number): void {
    // Once in a call: where everything trips, it must come to an end somewhere.
    if (this.call.evacuated) return;
    this.call.evacuated = true;
    this.evacuated = true;
    this.#giveUp(`its breaker opened while this attempt had no token after ${Math.round(waitedMs)} ms`);
  }

  #giveUp(why: string): void {
    const sourceName = this.source.name;
    this.abort(
      null,
      new TransientError(`${sourceName} transient failure: ${why}`, { code: "ttft_timeout", sourceName }),
    );
  }

  markFirstToken(): void {
    if (this.firstTokenMs !== null) return;
    this.firstTokenMs = this.runtime.now() - this.startedMs;
    this.stopWatching();
    this.#tell(this.#isOverdue ? "overdue_reversed" : "first_token", this.firstTokenMs);
  }

  /** The whole answer came although its first token seemed overdue. */
  reverseOverdue(): void {
    if (this.#isOverdue) this.#tell("overdue_reversed", null);
  }

  #tell(kind: Verdict["kind"], ttftMs: number | null): void {
    const { leaseId, source, epoch, probe } = this.grant;
    const { dispatcher } = this.call.environment;
    if (ttftMs === null) dispatcher.verdict({ leaseId, source, epoch, probe, kind });
    else dispatcher.verdict({ leaseId, source, epoch, probe, kind, ttftMs });
  }

  /**
   * Ends the attempt from outside; the transport closes its socket and rejects with `reason`. `interruption` null = the
   * loop itself gives it up, and the call goes on.
   */
  abort(interruption: Interruption | null, reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.stopWatching();
    this.abortReason = reason;
    this.interruption = interruption;
    const first = this.#listener;
    const further = this.#furtherListeners;
    this.#listener = null;
    this.#furtherListeners = null;
    first?.(reason);
    for (const listener of further ?? []) listener(reason);
  }
}
