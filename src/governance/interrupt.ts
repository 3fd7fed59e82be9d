import type { Runtime } from "../ports/runtime.js";
import type { Cancellation } from "./cancellation.js";
import type { CallOptions } from "./operation.js";
import { onSignal } from "./signal-hub.js";

/** Why a call must stop now: its caller left (the signal's own reason), or its deadline passed. */
export type Interruption = { readonly kind: "caller"; readonly reason: unknown } | { readonly kind: "deadline" };

/**
 * What may end a call from outside, as one: one listener on the caller's signal or cancellation and one timer per call,
 * whatever the call is doing.
 */
export interface Interrupt {
  readonly fired: Interruption | null;
  /** Calls with more time may still join: what is left now says nothing of what will be. */
  readonly isShared?: boolean;
  /** Milliseconds left until the deadline; Infinity without one. */
  remainingMs(): number;
  /** Calls back once, when it fires; the returned function takes the listener away. One listener at a time. */
  listen(listener: (interruption: Interruption) => void): () => void;
  /** Removes listener and timer. */
  dispose(): void;
}

const nothing = (): void => {};
const DEADLINE: Interruption = { kind: "deadline" };

/** Shared by all calls that have neither signal nor deadline. */
const NEVER: Interrupt = {
  fired: null,
  remainingMs: () => Infinity,
  listen: () => nothing,
  dispose: nothing,
};

export function createInterrupt(
  runtime: Runtime,
  { signal, cancellation }: Pick<CallOptions, "signal" | "cancellation">,
  deadlineMs: number | undefined,
): Interrupt {
  if (signal === undefined && cancellation === undefined && deadlineMs === undefined) return NEVER;
  return new CallInterrupt(runtime, signal, cancellation, deadlineMs);
}

/** A class, because an object literal with a getter has a hidden class of its own every time it is made. */
class CallInterrupt implements Interrupt {
  readonly #runtime: Runtime;
  readonly #endsAtMs: number;
  readonly #leaveSignal: () => void = nothing;
  readonly #leaveCancellation: () => void = nothing;
  readonly #cancelTimer: () => void = nothing;
  #fired: Interruption | null = null;
  #listener: ((interruption: Interruption) => void) | null = null;

  constructor(
    runtime: Runtime,
    signal: AbortSignal | undefined,
    cancellation: Cancellation | undefined,
    deadlineMs: number | undefined,
  ) {
    this.#runtime = runtime;
    this.#endsAtMs = deadlineMs === undefined ? Infinity : runtime.now() + deadlineMs;
    if (signal?.aborted === true) this.#fired = { kind: "caller", reason: signal.reason };
    else if (cancellation?.cancelled === true) this.#fired = { kind: "caller", reason: cancellation.reason };
    if (deadlineMs !== undefined) this.#cancelTimer = runtime.setTimer(deadlineMs, () => this.#fire(DEADLINE));
    if (this.#fired !== null) return;
    const byCaller = (reason: unknown): void => this.#fire({ kind: "caller", reason });
    if (signal !== undefined) this.#leaveSignal = onSignal(signal, byCaller);
    if (cancellation !== undefined) this.#leaveCancellation = cancellation.onCancel(byCaller);
  }

  get fired(): Interruption | null {
    return this.#fired;
  }

  remainingMs(): number {
    return this.#endsAtMs - this.#runtime.now();
  }

  listen(listener: (interruption: Interruption) => void): () => void {
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }

  dispose(): void {
    this.#listener = null;
    this.#leaveSignal();
    this.#leaveCancellation();
    this.#cancelTimer();
  }

  #fire(interruption: Interruption): void {
    if (this.#fired !== null) return;
    this.#fired = interruption;
    const told = this.#listener;
    this.#listener = null;
    told?.(interruption);
  }
}
