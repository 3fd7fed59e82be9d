import { expect, test } from "vitest";
import { layoutBuilder } from "./boxes.js";
import { readContentList } from "./content-list.js";
import { readMiddleJson } from "./middle-json.js";
import { contentVerdict } from "./monkey-ocr-verdict.js";

/** Letters of all texts that are cut, trimmed or searched meanwhile: what the engine has to have in one piece. */
function lettersRead(work: () => void): number {
  const texts = String.prototype;
  const patterns = RegExp.prototype;
  const { slice, trim } = texts;
  const { test: search, exec } = patterns;
  let letters = 0;
  try {
    texts.slice = function (this: string, ...range) {
      letters += this.length;
      return slice.apply(this, range);
    };
    texts.trim = function (this: string) {
      letters += this.length;
      return trim.call(this);
    };
    patterns.test = function (text) {
      letters += text.length;
      return search.call(this, text);
    };
    patterns.exec = function (text) {
      letters += text.length;
      return exec.call(this, text);
    };
    work();
  } finally {
    Object.assign(texts, { slice, trim });
    Object.assign(patterns, { test: search, exec });
  }
  return letters;
}

const BOX = [10, 20, 300, 400];

function middleJson(blocks: readonly unknown[]): unknown {
  return { pdf_info: [{ page_idx: 0, page_size: [612, 792], preproc_blocks: blocks }] };
}

const repeated = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
const WORDS = { type: "text", content: "some words" };
const FORMULA = { type: "interline_equation", content: "$$a+b$$" };

test.each<[string, (count: number) => unknown]>([
  ["blocks", (count) => middleJson(repeated(count, { type: "text", bbox: BOX, lines: [{ spans: [WORDS] }] }))],
  [
    "lines of one block",
    (count) => middleJson([{ type: "text", bbox: BOX, lines: repeated(count, { spans: [WORDS] }) }]),
  ],
  [
    "spans of one line",
    (count) => middleJson([{ type: "text", bbox: BOX, lines: [{ spans: repeated(count, WORDS) }] }]),
  ],
  [
    "formulas of one line",
    (count) => middleJson([{ type: "interline_equation", bbox: BOX, lines: [{ spans: repeated(count, FORMULA) }] }]),
  ],
  [
    "formulas in one line of text",
    (count) => middleJson([{ type: "text", bbox: BOX, lines: [{ spans: repeated(count, FORMULA) }] }]),
  ],
])("a middle.json with twice as many %s takes twice the work", (_name, make) => {
  const cost = (count: number) => {
    const value = make(count);
    return lettersRead(() => {
      const layout = layoutBuilder();
      expect(readMiddleJson(value, layout, { onText: contentVerdict })).toBeNull();
      layout.finish();
    });
  };
  expect(cost(4_000) / cost(2_000)).toBeLessThan(2.1);
});

test("a content_list's blocks are looked through once each", () => {
  let looks = 0;
  const block = new Proxy(
    { type: "image", bbox: BOX, page_idx: 0, image_caption: ["Fig. 1"] },
    {
      ownKeys(fields) {
        looks += 1;
        return Reflect.ownKeys(fields);
      },
    },
  );
  expect(readContentList(repeated(100, block), layoutBuilder())).toBeNull();
  expect(looks).toBe(100);
});
