import { countOf } from "../domain/count-of.js";
import type { Warn } from "../governance/warn.js";

/** How many texts the sources of a client were found to take in one request. */
export interface LearnedBatchLimits {
  /** The smallest of them; Infinity while every batch was taken. */
  readonly smallest: number;
  /** A refusal told it; only a smaller number than the one known counts. */
  learn(sourceName: string, max: number): void;
  /** By source name; sources that refused none are not in it. */
  all(): Readonly<Record<string, number>>;
}

export function createBatchLimits(scope: string, warn: Warn): LearnedBatchLimits {
  // A Map, since a source may be named like a property of every object.
  const known = new Map<string, number>();
  return {
    get smallest() {
      return Math.min(...known.values());
    },
    learn(sourceName, max) {
      if (max >= (known.get(sourceName) ?? Number.POSITIVE_INFINITY)) return;
      known.set(sourceName, max);
      const text = `${sourceName} takes at most ${countOf(max, "text")} a request: batches of scope ${scope} are cut to that from now on. BATCH_SIZE ${max} saves the refused request.`;
      warn("embedding", `batch_limit:${sourceName}`, text);
    },
    all: () => Object.fromEntries(known),
  };
}
