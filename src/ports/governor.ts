import type { GovernorEvent, ScopeSnapshot, TickBatch, TickReply } from "../domain/tick.js";

export type * from "../domain/tick.js";

/**
 * The one place where admission is decided and booked (ADR "one Governor port"). One call is one atomic step:
 * settles, verdicts and renewals first, then the wants in order. A refused want changes nothing.
 *
 * Errors: an unknown source name throws SourceNotConfiguredError, a batch of which something can't be taken although the
 * store is well RequestRejectedError; each is then asked by itself. Everything else that fails is a backend failure.
 */
export interface Governor {
  readonly scope: string;
  /** A memory governor answers synchronously, so that a free slot is granted in the same turn. */
  tick(batch: TickBatch): TickReply | Promise<TickReply>;
  /** Returns the function that ends the subscription. Listeners must not throw. */
  onEvent(listener: (event: GovernorEvent) => void): () => void;
  snapshot(): ScopeSnapshot | Promise<ScopeSnapshot>;
  /** Milliseconds since the last success or first token anywhere in the scope; Infinity when there never was one. */
  progressAgeMs(): number | Promise<number>;
  /** What makes limits unsafe in its store although it works, in words for people; empty = nothing is known. */
  dangers?(): Promise<readonly string[]>;
  /**
   * Who asks through it is told of its closing and gives back first what it holds; closing waits for that. Returns the
   * function that ends the subscription.
   */
  onClose?(finish: () => Promise<void>): () => void;
  close(): Promise<void>;
}
