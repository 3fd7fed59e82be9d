import type { SourceName } from "../domain/tick.js";

/** An attempt that waits for its first token and may be sent elsewhere. */
export interface Evacuee {
  readonly sentAtMs: number;
  /** Gives up; whether it does is its own decision. */
  evacuate(waitedMs: number): void;
}

/**
 * The attempts of this process that wait for their first token, by source. When a source trips, those that have waited
 * long enough leave it (spec 10 §4 "Evacuation").
 */
export class Evacuation {
  readonly #waiting = new Map<SourceName, Set<Evacuee>>();

  add(source: SourceName, evacuee: Evacuee): void {
    const there = this.#waiting.get(source);
    if (there === undefined) this.#waiting.set(source, new Set([evacuee]));
    else there.add(evacuee);
  }

  remove(source: SourceName, evacuee: Evacuee): void {
    this.#waiting.get(source)?.delete(evacuee);
  }

  run(source: SourceName, afterMs: number, nowMs: number): void {
    for (const evacuee of this.#waiting.get(source) ?? []) {
      const waitedMs = nowMs - evacuee.sentAtMs;
      if (waitedMs > afterMs) evacuee.evacuate(waitedMs);
    }
  }

  count(): number {
    let count = 0;
    for (const there of this.#waiting.values()) count += there.size;
    return count;
  }
}
