import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createScreen } from "./screen.js";

/** Few letters, so that words and texts meet, and one beyond latin-1 that shares its pair's place. */
const letters = (minLength: number, maxLength: number) =>
  fc
    .array(fc.constantFrom("a", "b", "c", "-", "\u4e2d", "\ud83d"), { minLength, maxLength })
    .map((all) => all.join(""));

describe("the screen for several words", () => {
  it("finds exactly the texts that hold one of them", () => {
    fc.assert(
      fc.property(fc.array(letters(2, 6), { maxLength: 6 }), letters(0, 60), (words, text) => {
        expect(createScreen(words)(text)).toBe(words.some((word) => text.includes(word)));
      }),
      { numRuns: 3_000 },
    );
  });

  it("finds a word at every place of a text, and none of its parts", () => {
    const words = ["sk-0123456789abcdef", "c2stMDEyMzQ1Njc4OWFiY2RlZg", "x".repeat(600)];
    const holds = createScreen(words);
    for (const word of words) {
      for (let before = 0; before < 40; before += 1) {
        expect(holds(`${".".repeat(before)}${word}.`)).toBe(true);
        expect(holds(`${".".repeat(before)}${word.slice(0, -1)}.${word.slice(1)}`)).toBe(false);
      }
    }
  });

  it("refuses words it can't screen for", () => {
    expect(() => createScreen(["key", "k"])).toThrow(RangeError);
    expect(createScreen([])("anything")).toBe(false);
  });
});
