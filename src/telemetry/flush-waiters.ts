interface FlushWaiter {
  readonly seq: number;
  readonly resolve: () => void;
}

/** Callers of `flush()`: each waits until nothing that was queued before is outstanding. */
export class FlushWaiters {
  #waiting: FlushWaiter[] = [];

  get count(): number {
    return this.#waiting.length;
  }

  /** `seq` = the newest entry that is waited for. */
  add(seq: number, resolve: () => void): void {
    this.#waiting.push({ seq, resolve });
  }

  /** Tells those whose entries are all older than the oldest outstanding one. */
  settle(oldestSeq: number): void {
    if (this.#waiting.length === 0) return;
    const settled = this.#waiting.filter(({ seq }) => seq < oldestSeq);
    this.#waiting = this.#waiting.filter(({ seq }) => seq >= oldestSeq);
    for (const { resolve } of settled) resolve();
  }

  settleAll(): void {
    this.settle(Infinity);
  }
}
