/** What calls of one kind really use (spec 10 §8); a book a model, by tag. */
export interface TokenRecord {
  samples: number;
  /** Actual over estimated prompt tokens. */
  inRatio: number;
  /** Output tokens. */
  outTokens: number;
  /** Mean absolute deviations of the two. */
  inDeviation: number;
  outDeviation: number;
}

export interface TokenBook {
  get(tag: string): TokenRecord | undefined;
  add(tag: string, record: TokenRecord): void;
}

const ALPHA = 0.05;
/** Before so many samples the estimate stays what it was. */
const LEAST_SAMPLES = 20;
/** Tags are the caller's: one a call must not fill a store. */
export const MOST_TOKEN_RECORDS = 4_096;

export function newTokenBook(): TokenBook {
  const records = new Map<string, TokenRecord>();
  return {
    get: (tag) => records.get(tag),
    add(tag, record) {
      if (records.size >= MOST_TOKEN_RECORDS) for (const oldest of records.keys()) if (records.delete(oldest)) break;
      records.set(tag, record);
    },
  };
}

/** null while too little is known. */
export function learnedTokens(
  book: TokenBook,
  tag: string,
  promptTokens: number,
  maxTokens: number | undefined,
): number | null {
  const known = book.get(tag);
  if (known === undefined || known.samples < LEAST_SAMPLES) return null;
  return Math.max(1, Math.ceil(promptTokens * known.inRatio + Math.min(maxTokens ?? Infinity, known.outTokens)));
}

/** Output tokens expected of a call of this kind; null while too little is known. */
export function learnedOutTokens(book: TokenBook, tag: string): number | null {
  const known = book.get(tag);
  return known === undefined || known.samples < LEAST_SAMPLES ? null : known.outTokens;
}

export function learnTokens(
  book: TokenBook,
  tag: string,
  estimatedIn: number,
  actualIn: number,
  actualOut: number,
): void {
  const ratio = actualIn / Math.max(1, estimatedIn);
  if (!Number.isFinite(ratio) || !Number.isFinite(actualOut) || ratio < 0 || actualOut < 0) return;
  const known = book.get(tag);
  if (known === undefined) {
    book.add(tag, { samples: 1, inRatio: ratio, outTokens: actualOut, inDeviation: 0, outDeviation: 0 });
    return;
  }
  // A true mean at first: the very first call must not weigh for long.
  const alpha = Math.max(ALPHA, 1 / (known.samples + 1));
  known.samples += 1;
  known.inDeviation += alpha * (Math.abs(ratio - known.inRatio) - known.inDeviation);
  known.outDeviation += alpha * (Math.abs(actualOut - known.outTokens) - known.outDeviation);
  known.inRatio += alpha * (ratio - known.inRatio);
  known.outTokens += alpha * (actualOut - known.outTokens);
}
