/** Bits of a pair of UTF-16 units; pairs that share them only cost a closer look. */
const PAIR_BITS = 12;
const PAIR_MASK = (1 << PAIR_BITS) - 1;
const MAX_SKIP = 255;

function pairOf(first: number, second: number): number {
  return ((first << 5) ^ second) & PAIR_MASK;
}

/**
 * Tells whether a text holds any of several words, looking at one place in as many units as the shortest word is long,
 * however many words there are (Wu and Manber, "A fast algorithm for multi-pattern searching", 1994). Exact: a place that
 * may end the beginning of a word is compared. The words need two units at least.
 */
export function createScreen(words: readonly string[]): (text: string) => boolean {
  if (words.length === 0) return () => false;
  const window = Math.min(...words.map((word) => word.length));
  if (window < 2) throw new RangeError("a word to screen for needs two units at least");
  const skips = new Uint8Array(PAIR_MASK + 1).fill(Math.min(window - 1, MAX_SKIP));
  for (const word of words) {
    for (let end = 1; end < window; end += 1) {
      const pair = pairOf(word.charCodeAt(end - 1), word.charCodeAt(end));
      skips[pair] = Math.min(skips[pair]!, window - 1 - end);
    }
  }
  return (text) => {
    for (let end = window - 1; end < text.length; ) {
      const skip = skips[pairOf(text.charCodeAt(end - 1), text.charCodeAt(end))]!;
      if (skip === 0 && words.some((word) => text.startsWith(word, end - window + 1))) return true;
      end += Math.max(skip, 1);
    }
    return false;
  };
}
