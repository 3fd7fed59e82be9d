/** A binary min-heap: the smallest entry by `isBefore` is on top. Push and pop are O(log n), `peek` is O(1). */
export class BinaryHeap<T> {
  readonly #entries: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#entries.length;
  }

  peek(): T | undefined {
    return this.#entries[0];
  }

  push(entry: T): void {
    this.#entries.push(entry);
    this.#siftUp(this.#entries.length - 1);
  }

  pop(): T | undefined {
    const entries = this.#entries;
    const top = entries[0];
    const last = entries.pop();
    if (last !== undefined && entries.length > 0) {
      entries[0] = last;
      this.#siftDown(0);
    }
    return top;
  }

  /** Drops every entry that `keep` refuses. O(n). */
  retain(keep: (entry: T) => boolean): void {
    const entries = this.#entries;
    let kept = 0;
    for (const entry of entries) if (keep(entry)) entries[kept++] = entry;
    entries.length = kept;
    for (let index = (kept >> 1) - 1; index >= 0; index--) this.#siftDown(index);
  }

  #siftUp(start: number): void {
    const entries = this.#entries;
    const entry = entries[start]!;
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(entry, entries[parent]!)) break;
      entries[index] = entries[parent]!;
      index = parent;
    }
    entries[index] = entry;
  }

  #siftDown(start: number): void {
    const entries = this.#entries;
    const entry = entries[start]!;
    let index = start;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && this.#isBefore(entries[child + 1]!, entries[child]!)) child += 1;
      if (!this.#isBefore(entries[child]!, entry)) break;
      entries[index] = entries[child]!;
      index = child;
    }
    entries[index] = entry;
  }
}
