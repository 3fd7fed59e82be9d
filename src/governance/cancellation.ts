/**
 * A caller's wish to leave, where it is our own code that leaves: one per stream, and an AbortController costs more to
 * make and to collect than the whole admission (spec reference-performance §8).
 */
export class Cancellation {
  #cancelled = false;
  #reason: unknown = undefined;
  #listener: ((reason: unknown) => void) | null = null;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** The first reason counts. */
  cancel(reason: unknown): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#reason = reason;
    const listener = this.#listener;
    this.#listener = null;
    listener?.(reason);
  }

  /** Calls back once, when it is cancelled later; one listener. The returned function takes it away. */
  onCancel(listener: (reason: unknown) => void): () => void {
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }
}
