import { expect, test } from "vitest";
import { BlockRhythm } from "./text-pile.js";

/** Letters copied until `pieces` pieces of `letters` letters are one text, and the most pieces that ever waited. */
function copied(pieces: number, letters: number): { letters: number; mostWaiting: number } {
  const rhythm = new BlockRhythm();
  let copies = 0;
  let waiting = 0;
  let mostWaiting = 0;
  for (let n = 1; n <= pieces; n += 1) {
    waiting += 1;
    mostWaiting = Math.max(mostWaiting, waiting);
    if (!rhythm.isDue(letters)) continue;
    copies += n * letters;
    waiting = 0;
  }
  return { letters: copies, mostWaiting };
}

test("a long text of small pieces is copied a few times at most, and few pieces wait", () => {
  const { letters, mostWaiting } = copied(1_300_000, 1);
  expect(letters).toBeLessThan(8 * 1_300_000);
  expect(mostWaiting).toBeLessThan(1_300_000 / 3);
});

test("long pieces are no cost that a copy would save", () => {
  expect(copied(4_200, 4_000).letters).toBe(0);
});

test("a short answer is never copied", () => {
  expect(copied(4_000, 5)).toEqual({ letters: 0, mostWaiting: 4_000 });
});
