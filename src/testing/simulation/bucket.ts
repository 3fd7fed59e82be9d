const MINUTE_MS = 60_000;

/** A token bucket as providers enforce limits, full at the start. Its rate may follow a ramp. */
export class Bucket {
  readonly #perMs: number;
  readonly #bucketMs: number;
  readonly #shareAt: (atMs: number) => number;
  #level: number;
  #filledAtMs = 0;

  constructor(perMinute: number, bucketS: number, shareAt: (atMs: number) => number) {
    this.#perMs = perMinute / MINUTE_MS;
    this.#bucketMs = bucketS * 1_000;
    this.#shareAt = shareAt;
    this.#level = this.#capacityAt(0);
  }

  refill(nowMs: number): void {
    if (nowMs <= this.#filledAtMs) return;
    // The share changes linearly, so its value in the middle is its mean.
    const share = this.#shareAt((nowMs + this.#filledAtMs) / 2);
    const filled = this.#level + (nowMs - this.#filledAtMs) * this.#perMs * share;
    this.#level = Math.min(this.#capacityAt(nowMs), filled);
    this.#filledAtMs = nowMs;
  }

  /** Milliseconds until `amount` is there; 0 = now. More than the bucket holds passes when it is full. */
  waitMs(amount: number): number {
    const needed = Math.min(amount, this.#capacityAt(this.#filledAtMs));
    if (this.#level + 1e-9 >= needed) return 0;
    return (needed - this.#level) / (this.#perMs * this.#shareAt(this.#filledAtMs));
  }

  /** May go into debt: what an answer really used is charged when it is known. */
  charge(amount: number): void {
    this.#level -= amount;
  }

  /** A refused request takes what is there, and no more. */
  chargeRefused(amount: number): void {
    if (this.#level > 0) this.#level = Math.max(0, this.#level - amount);
  }

  limitPerMinute(): number {
    return Math.floor(this.#perMs * MINUTE_MS * this.#shareAt(this.#filledAtMs));
  }

  remaining(): number {
    return Math.max(0, Math.floor(this.#level));
  }

  #capacityAt(atMs: number): number {
    return Math.max(1, this.#perMs * this.#bucketMs * this.#shareAt(atMs));
  }
}
