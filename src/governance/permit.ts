import { isLastingFailure } from "../domain/lasting-failure.js";
import { endsAnyTime } from "../domain/refusal.js";
import type { Grant, Refusal, ScopeSnapshot, Want } from "../domain/tick.js";
import { GovernanceBackendError } from "../errors.js";
import type { Selector } from "../ports/selector.js";
import { textOf } from "./backend-errors.js";
import { type Call, patienceMs } from "./call.js";
import { deadlinePassed, endByRefusal, isAllDead, isAllOpen, stalled } from "./call-ends.js";
import type { Interruption } from "./interrupt.js";
import { markWait, NO_WAITS, type Wait, type WaitLog, type WaitMark, waitsSince } from "./wait-log.js";
import type { QueueEntry } from "./want-queue.js";

export interface Permit {
  readonly grant: Grant;
  /** In the queue, and until a start that was given ahead. */
  waitedMs: number;
  /** What that was for, without the time until a start that was given ahead; empty = it was never refused. */
  waits: readonly Wait[];
}

const BACKEND_RECHECK_MS = 1_000;

/**
 * Gets a permit for the next attempt; waits where the configuration allows it. Answers in the same turn when a slot is
 * free. Throws the call's end: a scope-level error, RequestRejectedError, or the caller's own abort reason.
 */
export function getPermit(call: Call, leaseId: string): Permit | Promise<Permit> {
  const { dispatcher, runtime, selector } = call.environment;
  if (selector !== null) return getOrderedPermit(call, leaseId, selector);
  const entry = new CallEntry(call, wantFor(call, leaseId, call.candidates, false));
  const answer = dispatcher.admit(entry);
  if (answer instanceof Promise) return waitForPermit(call, entry, answer, runtime.now());
  return permitFrom(call, answer, 0, NO_WAITS);
}

/** A user's selector sees the snapshot first. One that fails is done without: it is a preference, not a limit. */
async function getOrderedPermit(call: Call, leaseId: string, selector: Selector): Promise<Permit> {
  const { dispatcher, runtime } = call.environment;
  const askedMs = runtime.now();
  const snapshot = await orInterrupted(call, dispatcher.snapshot());
  if (call.interrupt.fired !== null) throw interruptionError(call, call.interrupt.fired);
  const order = orderBy(call, selector, snapshot);
  const entry = new CallEntry(call, wantFor(call, leaseId, order ?? call.candidates, order !== null));
  const answer = dispatcher.admit(entry);
  if (answer instanceof Promise) return waitForPermit(call, entry, answer, askedMs);
  return permitFrom(call, answer, runtime.now() - askedMs, NO_WAITS);
}

function orderBy(call: Call, selector: Selector, snapshot: ScopeSnapshot): readonly string[] | null {
  try {
    const order = selector.order(call.candidates, snapshot).filter((name) => call.candidates.includes(name));
    return order.length === 0 ? null : order;
  } catch (error) {
    const text = `the selector failed (${textOf(error)}); the governor selects instead`;
    call.environment.warn("selector", "failure", `scope ${call.environment.config.scope}: ${text}`);
    return null;
  }
}

/** What a call asks for. `remainingMs` is brought up to date while it waits. */
export type CallWant = Want & { remainingMs: number | undefined };

/** Every field in one fixed shape: one is made for every ask. */
export function wantFor(call: Call, leaseId: string, candidates: readonly string[], ordered: boolean): CallWant {
  const { environment, operation, options } = call;
  const leftMs = call.interrupt.isShared === true ? Infinity : call.interrupt.remainingMs();
  return {
    leaseId,
    callId: leaseId,
    candidates,
    ordered,
    failedHere: call.failedHere,
    limitedHere: call.limitedHere,
    estTokens: operation.estTokens,
    priority: options.priority ?? 0,
    waitedMs: 0,
    affinity: environment.affinity === null ? undefined : environment.affinity.sourceOf(options.sessionId),
    promptTokens: operation.promptTokens,
    maxTokens: operation.maxTokens,
    tag: options.tag ?? call.kind,
    retry: call.fails > call.failsPaid,
    hedge: false,
    remainingMs: leftMs === Infinity ? undefined : leftMs,
    skips: 0,
  };
}

class CallEntry implements QueueEntry {
  readonly want: CallWant;
  readonly sequence: number;
  readonly backendGraceMs: number;
  log: WaitLog | null = null;
  readonly #call: Call;
  #mark: WaitMark | null = null;

  constructor(call: Call, want: CallWant) {
    this.#call = call;
    this.want = want;
    this.sequence = call.sequence;
    this.backendGraceMs = call.environment.config.backpressure.backendGraceMs;
  }

  staysAfter(refusal: Refusal): boolean {
    this.#call.lastRefusal = refusal;
    return mayWait(this.#call, refusal);
  }

  waits(nowMs: number): void {
    this.#mark = this.log === null ? null : markWait(this.log, nowMs);
  }

  /** Since `waits`. */
  waitedFor(nowMs: number): readonly Wait[] {
    return this.log === null || this.#mark === null ? NO_WAITS : waitsSince(this.log, this.#mark, nowMs);
  }

  refresh(): void {
    const { want } = this;
    if (want.remainingMs !== undefined) want.remainingMs = this.#call.interrupt.remainingMs();
  }
}

/**
 * Does waiting make sense after this refusal? (spec 02 §2, the loop) A refusal for fairness is no full quota: the sources
 * have room, it is another worker's turn or the fleet's retries are used up, which passes as others go on. So even with
 * `fail_fast` the call waits, as long as its patience and its deadline last.
 */
function mayWait(call: Call, refusal: Refusal): boolean {
  const { backpressure } = call.environment.config;
  if (refusal.kind === "never" || refusal.kind === "deadline" || isAllDead(refusal)) return false;
  if (isAllOpen(refusal)) {
    if (backpressure.whenOpen === "fail") return false;
  } else if (backpressure.quotaFull === "fail_fast" && refusal.kind !== "fairness") return false;
  const earliestMs = refusal.passedOver.some((passed) => endsAnyTime(passed.reason)) ? 0 : refusal.waitHintMs;
  return earliestMs <= call.interrupt.remainingMs() && isWithinPatience(call, earliestMs);
}

/** The allowance of a call in a scope that makes progress is renewed by it, whatever the call has waited so far. */
function isWithinPatience(call: Call, earliestMs: number): boolean {
  const { runtime, dispatcher, config } = call.environment;
  const { stallWindowMs } = config.backpressure;
  const nowMs = runtime.now();
  if (earliestMs <= patienceMs(call, nowMs)) return true;
  const progressAgeMs = dispatcher.knownProgressAgeMs();
  // Only asking could tell; the stall rule does so when the allowance runs out.
  if (progressAgeMs === null) return earliestMs <= stallWindowMs;
  if (progressAgeMs < stallWindowMs) call.patienceUntilMs = nowMs + stallWindowMs - progressAgeMs;
  return earliestMs <= patienceMs(call, nowMs);
}

function permitFrom(call: Call, answer: Grant | Refusal, waitedMs: number, waits: readonly Wait[]): Permit {
  if ("kind" in answer) throw endByRefusal(call, answer);
  call.lastRefusal = null;
  call.failsPaid = call.fails;
  return { grant: answer, waitedMs, waits };
}

async function waitForPermit(
  call: Call,
  entry: CallEntry,
  answer: Promise<Grant | Refusal>,
  askedMs: number,
): Promise<Permit> {
  const { dispatcher, runtime } = call.environment;
  entry.waits(runtime.now());
  const stopListening = call.interrupt.listen((i) => dispatcher.withdraw(entry, interruptionError(call, i)));
  const stopPatience = watchPatience(call, (error) => dispatcher.withdraw(entry, error));
  try {
    const granted = await answer;
    const nowMs = runtime.now();
    return permitFrom(call, granted, nowMs - askedMs, entry.waitedFor(nowMs));
  } catch (error) {
    call.endedWaits = entry.waitedFor(runtime.now());
    throw error;
  } finally {
    stopListening();
    stopPatience();
  }
}

/** Checks the stall rule whenever the call's own allowance runs out while it waits. */
function watchPatience(call: Call, giveUp: (error: unknown) => void): () => void {
  const { runtime } = call.environment;
  let stopped = false;
  const arm = (delayMs: number) => runtime.setTimer(delayMs, () => void check());
  const check = async (): Promise<void> => {
    const error = await stallError(call).catch((failure: unknown) => failure);
    if (stopped) return;
    const isOutage = GovernanceBackendError.isInstance(error) && !isLastingFailure(error);
    const recheck = isOutage && call.environment.config.backpressure.backendGraceMs > 0;
    if (error !== null && !recheck) return giveUp(error);
    cancel = arm(recheck ? BACKEND_RECHECK_MS : Math.max(1, patienceMs(call, runtime.now())));
  };
  let cancel = arm(Math.max(0, patienceMs(call, runtime.now())));
  return () => {
    stopped = true;
    cancel();
  };
}

/**
 * Stalled needs both: this call's window is used up AND the scope made no progress for as long (spec 02 §2).
 * Progress elsewhere extends the call's patience instead. Resolves with the error, or null when the call may go on.
 */
export async function stallError(call: Call): Promise<Error | null> {
  const { runtime, dispatcher, config } = call.environment;
  const { stallWindowMs } = config.backpressure;
  if (patienceMs(call, runtime.now()) > 0) return null;
  const progressAgeMs = await dispatcher.progressAgeMs();
  const nowMs = runtime.now();
  if (progressAgeMs < stallWindowMs) {
    call.patienceUntilMs = nowMs + stallWindowMs - progressAgeMs;
    return null;
  }
  const snapshot = await dispatcher.snapshot();
  return stalled(call, nowMs, snapshot.sources);
}

/** The caller's own reason passes untouched; a deadline is an end like the others. */
export function interruptionError(call: Call, interruption: Interruption): unknown {
  return interruption.kind === "caller" ? interruption.reason : deadlinePassed(call);
}

/** The answer, or the interruption that comes first: a store that hangs must not hold a caller who left. */
export function orInterrupted<T>(call: Call, work: T | Promise<T>): T | Promise<T> {
  if (!(work instanceof Promise)) return work;
  return new Promise((resolve, reject) => {
    const stopListening = call.interrupt.listen((interruption) => reject(interruptionError(call, interruption)));
    work.finally(stopListening).then(resolve, reject);
  });
}
