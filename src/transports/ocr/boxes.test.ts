import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bareLatex, layoutBuilder, readBox, typeReader } from "./boxes.js";

const PAGE = { width: 200, height: 100 };

describe("a box", () => {
  test.each<[string, unknown, unknown]>([
    ["within its page", [20, 10, 100, 50], [0.1, 0.1, 0.5, 0.5]],
    ["as large as its page", [0, 0, 200, 100], [0, 0, 1, 1]],
    ["of numbers that are texts", ["20", " 10.0 ", "1e2", "+50"], [0.1, 0.1, 0.5, 0.5]],
    ["with left and right swapped", [100, 10, 20, 50], [0.1, 0.1, 0.5, 0.5]],
    ["upside down", [20, 50, 100, 10], [0.1, 0.1, 0.5, 0.5]],
    ["that begins left of and above its page", [-20, -900, 100, 50], [0, 0, 0.5, 0.5]],
    ["that ends right of and below its page", [20, 10, 201, 1_000], [0.1, 0.1, 1, 1]],
    ["that ends in no place at all", [0, 0, 1e308, 1e308], null],
    ["that begins in no place at all", [-1e9, 10, 100, 50], null],
    [
      "as two points",
      [
        [20, 10],
        [100, 50],
      ],
      [0.1, 0.1, 0.5, 0.5],
    ],
    [
      "as a polygon of four points",
      [
        [20, 12],
        [98, 10],
        [100, 48],
        [22, 50],
      ],
      [0.1, 0.1, 0.5, 0.5],
    ],
    ["as a polygon of eight numbers", [20, 12, 98, 10, 100, 48, 22, 50], [0.1, 0.1, 0.5, 0.5]],
    [
      "of texts in a polygon",
      [
        ["20", "10"],
        ["100", "50"],
      ],
      [0.1, 0.1, 0.5, 0.5],
    ],
    ["with a side that is no number", [20, 10, Number.NaN, 50], null],
    ["with an endless side", [20, 10, Number.POSITIVE_INFINITY, 50], null],
    ["with null, as a mended NaN reads", [20, 10, null, 50], null],
    ["with a bool", [20, 10, true, 50], null],
    ["with a comma for a point", ["20,5", 10, 100, 50], null],
    ["with a unit", ["20px", 10, 100, 50], null],
    ["with an empty text", ["", 10, 100, 50], null],
    ["with hexadecimal text", ["0x10", 10, 100, 50], null],
    ["with a text for endless", ["Infinity", 10, 100, 50], null],
    ["with three numbers", [20, 10, 100], null],
    ["with five numbers", [20, 10, 100, 50, 1], null],
    ["of a group without a body", [], null],
    ["of one point", [[20, 10]], null],
    [
      "of points in space",
      [
        [20, 10, 0],
        [100, 50, 0],
      ],
      null,
    ],
    ["of points and numbers", [[20, 10], 100, 50, 3], null],
    ["of boxes", [[20, 10, 100, 50]], null],
    ["that is a line", [20, 10, 20, 50], null],
    ["that is a point", [20, 10, 20, 10], null],
    ["beside its page", [300, 10, 400, 50], null],
    ["above its page", [20, -50, 100, -10], null],
    ["that is an object", { x0: 20, y0: 10, x1: 100, y1: 50 }, null],
    ["that is a text", "20 10 100 50", null],
    ["that is missing", undefined, null],
  ])("%s", (_name, raw, expected) => {
    expect(readBox(raw, PAGE)).toEqual(expected);
  });

  test("counted from the bottom of its page is turned", () => {
    expect(readBox([20, 90, 100, 50], { ...PAGE, origin: "bottom-left" })).toEqual([0.1, 0.1, 0.5, 0.5]);
    expect(readBox([20, 50, 100, 90], { ...PAGE, origin: "bottom-left" })).toEqual([0.1, 0.1, 0.5, 0.5]);
  });

  test("on a scale of its own is measured by that scale", () => {
    expect(readBox([100, 250, 500, 1000], { width: 1000, height: 1000 })).toEqual([0.1, 0.25, 0.5, 1]);
    expect(readBox([0, 0, 999, 999], { width: 999, height: 999 })).toEqual([0, 0, 1, 1]);
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, "200" as unknown as number])(
    "on a page whose width is %s is none",
    (width) => {
      expect(readBox([20, 10, 100, 50], { width, height: 100 })).toBeNull();
    },
  );
});

const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true });
const coordinate = fc.oneof(fc.double(), fc.integer({ min: -500, max: 1500 }), fc.float().map(String), anything);
const box = fc.oneof(
  fc.array(coordinate, { minLength: 3, maxLength: 9 }),
  fc.array(fc.array(coordinate, { minLength: 1, maxLength: 3 }), { maxLength: 6 }),
  anything,
);
const side = fc.oneof(fc.double(), fc.constantFrom(1, 612, 999, 1000, 5e-324, 1e308));
const origin = fc.constantFrom<"top-left" | "bottom-left">("top-left", "bottom-left");

test("whatever comes, a box lies within its page and is never empty, or it is dropped", () => {
  fc.assert(
    fc.property(box, side, side, origin, (raw, width, height, from) => {
      const read = readBox(raw, { width, height, origin: from });
      if (read === null) return;
      const [x0, y0, x1, y1] = read;
      expect(read.every((value) => value >= 0 && value <= 1 && !Object.is(value, -0))).toBe(true);
      expect(x0 < x1 && y0 < y1).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("a good box survives in every notation", () => {
  const within = fc.integer({ min: 0, max: 999 });
  fc.assert(
    fc.property(within, within, within, within, (a, b, c, d) => {
      fc.pre(a !== c && b !== d);
      const frame = { width: 999, height: 999 };
      const expected = readBox([a, b, c, d], frame);
      expect(expected).not.toBeNull();
      expect(readBox([c, d, a, b].map(String), frame)).toEqual(expected);
      expect(readBox([a, b, c, b, c, d, a, d], frame)).toEqual(expected);
      expect(
        readBox(
          [
            [c, b],
            [a, d],
          ],
          frame,
        ),
      ).toEqual(expected);
      const flipped = readBox([a, 999 - b, c, 999 - d], { ...frame, origin: "bottom-left" });
      expect(flipped).toEqual(expected);
    }),
  );
});

describe("a layout", () => {
  test("has its pages by number, its elements by page and in the order they came, and counts what was dropped", () => {
    const layout = layoutBuilder();
    const second = layout.page({ page: 2, width: 10, height: 10, unit: "pixel" });
    const first = layout.page({ page: 1, width: 200, height: 100, unit: "point" });
    const text = { type: "text", rawType: "Text" } as const;
    expect(second?.add({ ...text, box: [1, 1, 2, 2], text: "c" })).toBe(true);
    expect(first?.add({ ...text, box: [20, 10, 100, 50], text: "a", score: 0.5 })).toBe(true);
    expect(first?.add({ ...text, box: [0, 0, Number.NaN, 1], text: "lost" })).toBe(false);
    expect(first?.add({ ...text, box: [20, 10, 100, 50], text: "b" })).toBe(true);
    layout.page({ page: 2, width: 100, height: 100, unit: "pixel" })?.add({ ...text, box: [50, 50, 100, 100] });
    layout.drop(2);
    expect(layout.finish()).toEqual({
      pages: [
        { page: 1, width: 200, height: 100, unit: "point" },
        { page: 2, width: 10, height: 10, unit: "pixel" },
      ],
      elements: [
        { ...text, bbox: [0.1, 0.1, 0.5, 0.5], page: 1, order: 0, text: "a", score: 0.5 },
        { ...text, bbox: [0.1, 0.1, 0.5, 0.5], page: 1, order: 1, text: "b" },
        { ...text, bbox: [0.1, 0.1, 0.2, 0.2], page: 2, order: 0, text: "c" },
        { ...text, bbox: [0.5, 0.5, 1, 1], page: 2, order: 1 },
      ],
      droppedElements: 3,
    });
  });

  test.each([
    { page: 1, width: 0, height: 10 },
    { page: 1, width: 10, height: Number.NaN },
    { page: 0, width: 10, height: 10 },
    { page: 1.5, width: 10, height: 10 },
  ])("has no page %j", (size) => {
    const layout = layoutBuilder();
    expect(layout.page({ ...size, unit: "pixel" })).toBeNull();
    expect(layout.finish()).toEqual({ pages: [], elements: [], droppedElements: 0 });
  });

  test("measures boxes by their own frame and leaves out what is no text, no score", () => {
    const layout = layoutBuilder();
    const page = layout.page({ page: 1, width: 1, height: 1, unit: "normalised" }, { width: 1000, height: 1000 });
    const raw = { type: "formula", rawType: "x".repeat(100), box: [100, 100, 200, 200] } as const;
    page?.add({ ...raw, text: 5, html: "  ", latex: "$$ E=mc^2 $$", score: 97 });
    page?.add({ ...raw, text: null, html: ["<table>"], latex: null, score: Number.NaN });
    const plain = { type: "formula", rawType: "x".repeat(60), bbox: [0.1, 0.1, 0.2, 0.2], page: 1 };
    expect(layout.finish().elements).toEqual([
      { ...plain, order: 0, latex: "E=mc^2" },
      { ...plain, order: 1 },
    ]);
  });

  test("never throws, whatever its elements hold", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(box, anything, anything, anything, anything)), (blocks) => {
        const layout = layoutBuilder();
        const page = layout.page({ page: 1, width: 612, height: 792, unit: "point" })!;
        for (const [raw, text, html, latex, score] of blocks) {
          page.add({ type: "text", rawType: "t", box: raw, text, html, latex, score });
        }
        const { elements, droppedElements } = layout.finish();
        expect(elements.length + droppedElements).toBe(blocks.length);
        expect(JSON.parse(JSON.stringify(elements))).toEqual(elements);
      }),
    );
  });
});

test.each<[unknown, unknown]>([
  ["$$E=mc^2$$", "E=mc^2"],
  [" $x$ ", "x"],
  ["\\[ a \\]", "a"],
  ["\\(a\\)", "a"],
  ["a + b", "a + b"],
  ["$", "$"],
  ["$$", ""],
  ["$a$ and $b$", "$a$ and $b$"],
  [7, 7],
])("LaTeX %j is %j without its marks", (raw, bare) => {
  expect(bareLatex(raw)).toEqual(bare);
});

test("a server's words are found without case, and unknown ones are kept", () => {
  const typeOf = typeReader({ doc_title: "title", page_footer: "footer" });
  expect(typeOf("doc_title")).toEqual({ type: "title", rawType: "doc_title" });
  expect(typeOf("Page-footer")).toEqual({ type: "footer", rawType: "Page-footer" });
  expect(typeOf("constructor")).toEqual({ type: "other", rawType: "constructor" });
  expect(typeOf(undefined)).toEqual({ type: "other", rawType: "unknown" });
});
