import type { Grant, Refusal } from "../domain/tick.js";
import type { CancelTimer } from "../ports/runtime.js";
import { Attempt } from "./attempt.js";
import { type Call, sourceNamed } from "./call.js";
import { bookBeside, endOutrun } from "./failure.js";
import type { Interruption } from "./interrupt.js";
import { OpenedStream } from "./operation.js";
import { interruptionError, wantFor } from "./permit.js";
import { send, UNSENT } from "./send.js";
import { unsentSettle } from "./unsent.js";
import { NO_WAITS } from "./wait-log.js";
import type { QueueEntry } from "./want-queue.js";

/** null = this attempt runs alone, which costs nothing. */
export function hedgeOf(attempt: Attempt): Hedge | null {
  const { call, grant } = attempt;
  const { scheduling, retry } = call.environment.config;
  if (!(call.options.hedge ?? scheduling.hedge) || call.hedged) return null;
  if (retry.maxAttempts === 1 || typeof grant.hedgeAfterMs !== "number") return null;
  return call.sources.length > 1 ? new Hedge(attempt) : null;
}

/**
 * One attempt, and a second one beside it when the first shows no token for too long (spec 10 §7). The first success is
 * the call's, the other one ends as consumed. When one fails, the other goes on; the failure of the last one is judged.
 */
export class Hedge {
  /** Whose answer, or failure, the loop goes on with. */
  decisive: Attempt;
  readonly #call: Call;
  readonly #first: Attempt;
  readonly #running: Attempt[] = [];
  #resolve: (answer: unknown) => void = nothing;
  #reject: (error: unknown) => void = nothing;
  #isOver = false;
  /** Rows of the other attempt that have to be written before the call is told. */
  readonly #rows: Promise<void>[] = [];
  #asking: QueueEntry | null = null;
  /** Given ahead of its start. */
  #scheduled: { readonly grant: Grant; readonly cancel: CancelTimer } | null = null;

  constructor(first: Attempt) {
    this.#call = first.call;
    this.#first = first;
    this.decisive = first;
  }

  /** As a lone attempt answers: resolves or rejects with what became of `decisive`. */
  answer(): Promise<unknown> {
    this.#first.onHedgeDue = () => this.#ask();
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#run(this.#first);
    });
  }

  /** The call is to stop: caller or deadline. After an answer this reaches the attempt that gave it. */
  interrupt(interruption: Interruption): void {
    this.#stopAsking();
    const reason = interruptionError(this.#call, interruption);
    for (const attempt of [...this.#running]) attempt.abort(interruption, reason);
  }

  #run(attempt: Attempt): void {
    this.#running.push(attempt);
    send(attempt).then(
      (answer) => this.#answered(attempt, answer),
      (error: unknown) => this.#failed(attempt, error),
    );
  }

  #ask(): void {
    const { candidates, environment } = this.#call;
    const others = candidates.filter((name) => name !== this.#first.source.name);
    if (this.#isPointless() || others.length === 0) return;
    const entry = new HedgeEntry(this.#call, others);
    try {
      const answer = environment.dispatcher.admit(entry);
      if (answer instanceof Promise) {
        this.#asking = entry;
        answer.then((told) => this.#told(told), nothing);
      } else this.#told(answer);
    } catch {
      // Nobody could say; the attempt that runs is all there is.
    }
  }

  #isPointless(): boolean {
    const { aborted, firstTokenMs } = this.#first;
    return this.#isOver || aborted || firstTokenMs !== null || this.#call.interrupt.fired !== null;
  }

  #told(answer: Grant | Refusal): void {
    this.#asking = null;
    if ("kind" in answer) return;
    if (answer.startInMs > 0) this.#schedule(answer);
    else this.#begin(answer, true);
  }

  #schedule(grant: Grant): void {
    const { runtime, dispatcher } = this.#call.environment;
    const cancel = runtime.setTimer(grant.startInMs, () => {
      this.#scheduled = null;
      this.#begin(grant, !dispatcher.isStale(grant));
    });
    this.#scheduled = { grant, cancel };
  }

  #begin(grant: Grant, isValid: boolean): void {
    const call = this.#call;
    if (!isValid || this.#isPointless()) {
      call.environment.dispatcher.settle(unsentSettle(grant));
      return;
    }
    call.hedged = true;
    const second = new Attempt(call, sourceNamed(call, grant.source)!, grant, 0, NO_WAITS);
    second.beside = this.#first;
    this.#run(second);
  }

  #stopAsking(): void {
    const { dispatcher } = this.#call.environment;
    if (this.#asking !== null) dispatcher.withdraw(this.#asking, null);
    this.#asking = null;
    if (this.#scheduled === null) return;
    this.#scheduled.cancel();
    dispatcher.settle(unsentSettle(this.#scheduled.grant));
    this.#scheduled = null;
  }

  #answered(attempt: Attempt, answer: unknown): void {
    if (this.#isOver) forget(answer);
    else if (answer === undefined || answer === null)
      this.#failed(attempt, new TypeError("the transport gave no answer"));
    // It has gone back and is booked.
    else if (answer === UNSENT && this.#running.length > 1) this.#leave(attempt);
    else this.#won(attempt, answer);
  }

  #won(attempt: Attempt, answer: unknown): void {
    this.#end(attempt);
    for (const other of this.#running) if (other !== attempt) this.#keep(endOutrun(other));
    this.#running.length = 0;
    // From here on an interruption is this attempt's alone.
    this.#running.push(attempt);
    this.#whenKept(() => this.#resolve(answer));
  }

  #failed(attempt: Attempt, error: unknown): void {
    if (this.#isOver) return;
    if (this.#running.length === 1) {
      this.#end(attempt);
      this.#whenKept(() => this.#reject(error));
      return;
    }
    this.#leave(attempt);
    this.#keep(bookBeside(attempt, error));
  }

  #keep(row: Promise<void> | undefined): void {
    if (row !== undefined) this.#rows.push(row);
  }

  #whenKept(settle: () => void): void {
    if (this.#rows.length === 0) settle();
    else void Promise.all(this.#rows).then(settle);
  }

  #leave(attempt: Attempt): void {
    this.#running.splice(this.#running.indexOf(attempt), 1);
  }

  #end(decisive: Attempt): void {
    this.#isOver = true;
    this.decisive = decisive;
    this.#stopAsking();
  }
}

/** It never waits: what can't begin now would come too late. */
class HedgeEntry implements QueueEntry {
  readonly want;
  readonly sequence: number;
  readonly backendGraceMs = 0;

  constructor(call: Call, candidates: readonly string[]) {
    const want = wantFor(call, call.environment.runtime.uuid(), candidates, false);
    this.want = { ...want, hedge: true };
    this.sequence = call.sequence;
  }

  staysAfter(): boolean {
    return false;
  }
}

const nothing = (): void => {};

/** An answer that came in the very moment in which the other attempt's was taken. Nobody reads it. */
function forget(answer: unknown): void {
  if (answer instanceof OpenedStream) answer.done.catch(nothing);
}
