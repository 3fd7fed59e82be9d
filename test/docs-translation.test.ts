import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** A translation says the same, line by line: what a reader types, follows and counts is held against the original. */

const read = (page: string): string => readFileSync(join(import.meta.dirname, "..", page), "utf8");

interface Line {
  /** Heading level, item, table row with its cells, paragraph, code or nothing. */
  readonly kind: string;
  readonly code: readonly string[];
  readonly links: readonly string[];
  readonly numbers: readonly string[];
  readonly isBold: boolean;
}

/** A comment of a block, in shell or JavaScript; the `//` of an address has no space before it. */
const COMMENT = /(?:^|\s+)(?:#|\/\/) .*$/;
/** Each page links to the other language. */
const LANGUAGES = /^\[(?:中文|English)\]\(README[\w.-]*\)$/;

function kindOf(line: string): string {
  if (line === "") return "nothing";
  if (line.startsWith("|")) return `row of ${line.split("|").length - 2} cells`;
  if (line.startsWith("- ")) return "item";
  const heading = /^#+ /.exec(line)?.[0];
  return heading === undefined ? "paragraph" : `heading ${heading.length - 1}`;
}

const allOf = (pattern: RegExp, line: string): string[] =>
  [...line.matchAll(pattern)].map(([whole, part]) => part ?? whole).sort();

function factsOf(page: string): Line[] {
  let isInBlock = false;
  return read(page)
    .split("\n")
    .map((line) => {
      const numbers = allOf(/\d+(?:[.,_]\d+)*/g, line);
      const isFence = line.startsWith("```");
      const isCode = isFence || isInBlock;
      if (isFence) isInBlock = !isInBlock;
      if (isCode) return { kind: "code", code: [line.replace(COMMENT, "")], links: [], numbers, isBold: false };
      if (LANGUAGES.test(line)) return { kind: "language", code: [], links: [], numbers, isBold: false };
      const code = allOf(/`([^`]+)`/g, line);
      const links = allOf(/\]\(([^)\s]+)\)/g, line);
      return { kind: kindOf(line), code, links, numbers, isBold: line.includes("**") };
    });
}

test("README.zh-CN.md has the lines, code, links and numbers of README.md", () => {
  const [original, translated] = [factsOf("README.md"), factsOf("README.zh-CN.md")];
  // With their places, so that a difference tells where it is.
  const numbered = (lines: readonly Line[]) => lines.map((line, index) => ({ line: index + 1, ...line }));
  expect(numbered(translated)).toEqual(numbered(original));
  expect(translated.filter(({ kind }) => kind === "code").length).toBeGreaterThan(50);
});

test("README.zh-CN.md holds nothing that was left in English", () => {
  const original = new Set(read("README.md").split("\n"));
  const kinds = factsOf("README.zh-CN.md").map(({ kind }) => kind);
  const isProse = (line: string, at: number): boolean => kinds[at] !== "code" || COMMENT.test(line);
  // Names and what stands in backticks are the same in both; three words in a row are a sentence.
  const sentence = /[a-z]{2,} [a-z]{2,} [a-z]{2,}/;
  const same = read("README.zh-CN.md")
    .split("\n")
    .filter((line, at) => isProse(line, at) && original.has(line) && sentence.test(line.replace(/`[^`]*`/g, "")));
  expect(same).toEqual([]);
});

test("both pages link to each other, at the same place", () => {
  const at = (page: string, link: string): number => read(page).split("\n").indexOf(link);
  expect(at("README.md", "[中文](README.zh-CN.md)")).toBe(2);
  expect(at("README.zh-CN.md", "[English](README.md)")).toBe(2);
});
