/**
 * Size matching (spec 10 §5): where sources differ in how many tokens they allow a request, heavy calls go to those that are
 * short of requests and light ones to those that are short of tokens.
 */

/** Calls of one priority that are looked at for each grant. */
export const LOOK_AHEAD = 8;
/** A call passed over this often is served next. */
export const MOST_SKIPS = 24;
/** e^0.05: a smaller gain is not worth the change of order. */
const LEAST_GAIN = 1.0512710963760241;

/** Tokens a request that use up both limits of a source at once; 0 = one of them is not known. */
export function matchingSize(tokensPerMinute: number, requestsPerS: number): number {
  if (tokensPerMinute <= 0 || requestsPerS <= 0 || requestsPerS === Infinity) return 0;
  return tokensPerMinute / 60 / requestsPerS;
}

/** Is there something to match: a source below and one above the mean size of calls? */
export function isTwoSided(sizes: readonly number[], meanTokens: number): boolean {
  let below = false;
  let above = false;
  for (const size of sizes) {
    if (size === 0) continue;
    if (size < meanTokens) below = true;
    else if (size > meanTokens) above = true;
  }
  return below && above;
}

/** How far a call's size lies from the matching one, as a ratio ≥ 1: |ln| without the logarithm. */
export function mismatch(tokens: number, size: number): number {
  const ratio = Math.max(1, tokens) / size;
  return ratio < 1 ? 1 / ratio : ratio;
}

/** Does the second fit better than the first by enough to be served before it? */
export function fitsBetter(mismatchFirst: number, mismatchSecond: number): boolean {
  return mismatchSecond * LEAST_GAIN < mismatchFirst;
}
