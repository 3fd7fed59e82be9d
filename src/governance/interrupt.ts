import type { Runtime } from "../ports/runtime.js";
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
  /** Milliseconds left until the deadline; Infinity without one. */
  remainingMs(): number;
  /** Calls back once, when it fires; the returned function takes the listener away. One listener at a time. */
  listen(listener: (interruption: Interruption) => void): () => void;
  /** Removes listener and timer. */
  dispose(): void;
}

const nothing = (): void => {};

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
  const endsAtMs = deadlineMs === undefined ? Infinity : runtime.now() + deadlineMs;
  let fired: Interruption | null = null;
  if (signal?.aborted === true) fired = { kind: "caller", reason: signal.reason };
  else if (cancellation?.cancelled === true) fired = { kind: "caller", reason: cancellation.reason };
  let listener: ((interruption: Interruption) => void) | null = null;

  function fire(interruption: Interruption): void {
    if (fired !== null) return;
    fired = interruption;
    const told = listener;
    listener = null;
    told?.(interruption);
  }

  const byCaller = (reason: unknown): void => fire({ kind: "caller", reason });
  const leaveSignal = signal === undefined || fired !== null ? nothing : onSignal(signal, byCaller);
  const leaveCancellation = cancellation === undefined || fired !== null ? nothing : cancellation.onCancel(byCaller);
  const cancelTimer =
    deadlineMs === undefined ? nothing : runtime.setTimer(deadlineMs, () => fire({ kind: "deadline" }));

  return {
    get fired() {
      return fired;
    },
    remainingMs: () => endsAtMs - runtime.now(),
    listen(next) {
      listener = next;
      return () => {
        if (listener === next) listener = null;
      };
    },
    dispose() {
      listener = null;
      leaveSignal();
      leaveCancellation();
      cancelTimer();
    },
  };
}
