import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { OcrLayout } from "../../domain/ocr.js";
import { layoutBuilder } from "./boxes.js";
import { readContentList } from "./content-list.js";
import { type MiddleJsonOptions, readMiddleJson } from "./middle-json.js";

const SIZE = [612, 792];

function read(value: unknown, options?: MiddleJsonOptions): OcrLayout {
  const layout = layoutBuilder();
  expect(readMiddleJson(value, layout, options)).toBeNull();
  return layout.finish();
}

function problemOf(value: unknown): string | null {
  return readMiddleJson(value, layoutBuilder());
}

function span(content: string, more: Record<string, unknown> = {}) {
  return { bbox: [72, 60, 540, 84], type: "text", content, ...more };
}

function block(type: string, bbox: unknown, spans: unknown[], more: Record<string, unknown> = {}) {
  return { type, bbox, lines: [{ bbox, spans }], ...more };
}

const BOX = [61.2, 79.2, 306, 396];
const SHARES = [0.1, 0.1, 0.5, 0.5];

function onePage(page: Record<string, unknown>): unknown {
  return { pdf_info: [{ page_idx: 0, page_size: SIZE, ...page }] };
}

describe("a middle.json", () => {
  test("as MonkeyOCR writes it gives titles, texts, pictures, tables and formulas with their boxes", () => {
    const group = (kind: string, bbox: unknown, blocks: unknown[]) => ({ type: kind, bbox, index: 2, blocks });
    const layout = read(
      onePage({
        preproc_blocks: [
          block("title", [72, 60, 540, 84], [span("Annual report", { score: 1.0 })], { index: 0 }),
          group(
            "image",
            [72, 300, 300, 500],
            [
              block("image_body", [72, 300, 300, 500], [{ type: "image", score: 0.97, image_path: "ab.jpg" }]),
              block("image_caption", [72, 505, 300, 520], [span("Fig. 1")]),
              block("image_footnote", [72, 521, 300, 529], [span("by us")]),
            ],
          ),
          group(
            "table",
            [72, 530, 540, 640],
            [
              block(
                "table_body",
                [72, 530, 540, 640],
                [{ type: "table", html: "<table></table>", image_path: "e.jpg" }],
              ),
            ],
          ),
          block("interline_equation", [100, 650, 400, 680], [{ type: "interline_equation", content: "$$E=mc^2$$" }]),
        ],
        discarded_blocks: [block("discarded", [280, 770, 330, 782], [span("")])],
      }),
    );
    expect(layout.pages).toEqual([{ page: 1, width: 612, height: 792, unit: "point" }]);
    const facts = layout.elements.map(({ bbox, page, order, ...rest }) => rest);
    expect(facts).toEqual([
      { type: "title", rawType: "title", text: "Annual report", score: 1 },
      { type: "image", rawType: "image_body", score: 0.97 },
      { type: "caption", rawType: "image_caption", text: "Fig. 1" },
      { type: "footnote", rawType: "image_footnote", text: "by us" },
      { type: "table", rawType: "table_body", html: "<table></table>" },
      { type: "formula", rawType: "interline_equation", latex: "E=mc^2" },
      { type: "footer", rawType: "discarded" },
    ]);
    expect(layout.elements.map(({ order }) => order)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(layout.elements[0]?.bbox).toEqual([72 / 612, 60 / 792, 540 / 612, 84 / 792]);
    expect(layout.droppedElements).toBe(0);
  });

  test("has its texts where they lie, and only the lists from the paragraphs", () => {
    const merged = [span("one"), span("two", { cross_page: true })];
    const layout = read(
      onePage({
        preproc_blocks: [
          block("text", BOX, [span("one")], { index: 0 }),
          block("text", BOX, [span("a")], { index: 1 }),
          block("text", BOX, [span("b")], { index: 2 }),
          block("title", BOX, [span("c")], { index: 3 }),
        ],
        para_blocks: [
          block("text", BOX, merged, { index: 0 }),
          block("list", BOX, [], { index: 1, lines: [], lines_deleted: true }),
          block("list", BOX, [span("b")], { index: 7 }),
          block("list", BOX, [span("c")], { index: 3 }),
        ],
      }),
    );
    const facts = layout.elements.map(({ type, text }) => [type, text]);
    expect(facts).toEqual([
      ["text", "one"],
      ["list", "a"],
      ["text", "b"],
      ["title", "c"],
    ]);
  });

  test("with paragraphs alone skips what was merged away, on this page and from the next one", () => {
    const layout = read(
      onePage({
        para_blocks: [
          block("text", BOX, [span("one"), span("two", { cross_page: true })]),
          block("text", BOX, [], { lines: [], lines_deleted: true }),
          block("index", BOX, [span("1 Introduction 3")]),
        ],
      }),
    );
    expect(layout.elements.map(({ type, text }) => [type, text])).toEqual([
      ["text", "one"],
      ["list", "1 Introduction 3"],
    ]);
  });

  test("joins spans and lines, with blanks where the script sets them, and marks formulas within a text", () => {
    const lines = [
      {
        spans: [
          span("Let"),
          span("x", { type: "inline_equation" }),
          span("be"),
          span("$y$", { type: "inline_equation" }),
        ],
      },
      { spans: [span("第一"), span("行")] },
      { spans: [span("with "), span("a blank")] },
      { spans: [span("a=b", { type: "interline_equation" })] },
      { spans: [] },
    ];
    const layout = read(onePage({ preproc_blocks: [{ type: "text", bbox: BOX, lines }] }));
    expect(layout.elements[0]?.text).toBe("Let $x$ be $y$\n第一行\nwith a blank\n$$a=b$$");
  });

  test("of MinerU's later versions: levels, code, lists in groups, what is set aside by its name", () => {
    const layout = read(
      onePage({
        para_blocks: [
          block("title", BOX, [span("A")], { level: 1 }),
          block("title", BOX, [span("B")], { level: 2 }),
          {
            type: "list",
            bbox: BOX,
            blocks: [block("text", BOX, [span("item")]), block("ref_text", BOX, [span("[1]")])],
          },
          {
            type: "code",
            bbox: BOX,
            blocks: [block("code_body", BOX, [span("x = 1")]), block("code_caption", BOX, [])],
          },
          block("seal", BOX, [span("S")]),
        ],
        discarded_blocks: [
          block("header", BOX, [span("h")]),
          block("page_number", BOX, [span("3")]),
          block("page_footnote", BOX, [span("f")]),
          block("aside_text", [0, 0, 600, 20], [span("up")]),
          block("discarded", BOX, [span("middle")]),
          block("discarded", [], [span("nowhere")]),
        ],
      }),
    );
    expect(layout.elements.map(({ type, rawType }) => `${rawType} ${type}`)).toEqual([
      "title title",
      "title heading",
      "list list",
      "ref_text text",
      "code_body code",
      "code_caption caption",
      "seal other",
      "header header",
      "page_number page_number",
      "page_footnote footnote",
      "aside_text header",
      "discarded other",
    ]);
    expect(layout.droppedElements).toBe(1);
  });

  test("drops and counts what has no usable box, an empty group among it, and keeps the rest", () => {
    const layout = read(
      onePage({
        preproc_blocks: [
          block("text", [306, 396, 61.2, 79.2], [span("swapped")]),
          block("text", [null, 60, 540, 84], [span("NaN")]),
          block("text", [9_000, 60, 9_500, 84], [span("outside")]),
          { type: "image", bbox: [], blocks: [block("image_caption", BOX, [span("Fig.")])] },
          { type: "table", bbox: [], blocks: [] },
          "no block",
          null,
        ],
        discarded_blocks: [7, block("discarded", [{ toString: 1, valueOf: 1 }, {}, {}, {}], [])],
      }),
    );
    expect(layout.elements.map(({ text, bbox }) => [text, bbox])).toEqual([
      ["swapped", SHARES],
      ["Fig.", SHARES],
    ]);
    expect(layout.droppedElements).toBe(7);
  });

  test("has its pages by their number, or by their place, or all on the one that is told", () => {
    const page = { page_size: SIZE, preproc_blocks: [block("text", BOX, [span("x")])] };
    const pagesOf = (value: unknown, options?: MiddleJsonOptions) => read(value, options).pages.map(({ page }) => page);
    expect(
      pagesOf({
        pdf_info: [
          { ...page, page_idx: 4 },
          { ...page, page_idx: 2 },
        ],
      }),
    ).toEqual([3, 5]);
    expect(pagesOf({ pdf_info: [page, page] })).toEqual([1, 2]);
    expect(pagesOf({ pdf_info: [{ ...page, page_idx: 0 }] }, { page: 7 })).toEqual([7]);
  });

  test.each<[string, unknown, RegExp]>([
    ["is no object", [], /no pdf_info/],
    ["has none", {}, /no pdf_info/],
    ["has no page", { pdf_info: [] }, /no page/],
    ["has a page that is none", { pdf_info: [null] }, /entry 1 is no page/],
    ["has a page without size", { pdf_info: [{ page_idx: 0, page_size: SIZE }, { page_idx: 1 }] }, /page 2 tells no/],
    ["has a page of no height", { pdf_info: [{ page_size: [612, 0] }] }, /page 1 tells no usable page_size/],
    ["has a page whose size was NaN", { pdf_info: [{ page_size: [null, 792] }] }, /page 1 tells no usable page_size/],
    ["numbers a page by text", { pdf_info: [{ page_idx: "0", page_size: SIZE }] }, /entry 1 is no page/],
    ["numbers a page below 0", { pdf_info: [{ page_idx: -1, page_size: SIZE }] }, /entry 1 is no page/],
  ])("that %s can't be used", (_name, value, problem) => {
    expect(problemOf(value)).toMatch(problem);
  });

  test("tells each text as the server wrote it", () => {
    const texts: string[] = [];
    const value = onePage({
      preproc_blocks: [
        { type: "image", bbox: [], blocks: [block("image_caption", BOX, [span("Error: a"), span("b")])] },
      ],
      discarded_blocks: [block("discarded", BOX, [span("c")])],
    });
    read(value, { onText: (text) => texts.push(text) });
    expect(texts).toEqual(["Error: a", "b", "c"]);
  });

  test("nested without end is read to a depth", () => {
    let deep: Record<string, unknown> = block("text", BOX, [span("x")]);
    for (let n = 0; n < 20_000; n += 1) deep = { type: "list", bbox: BOX, blocks: [deep] };
    expect(read(onePage({ preproc_blocks: [deep] })).elements).toHaveLength(1);
  });
});

describe("a content_list", () => {
  test("has boxes from 0 to 1000 and captions within what they stand at", () => {
    const layout = layoutBuilder();
    const bbox = [100, 100, 500, 500];
    const blocks = [
      { type: "text", text: "Annual report", text_level: 1, bbox, page_idx: 0 },
      { type: "text", text: "Section", text_level: 2, bbox, page_idx: 0 },
      { type: "text", text: "All is well.", bbox, page_idx: 0 },
      { type: "equation", text: "$$E=mc^2$$", text_format: "latex", bbox, page_idx: 0 },
      { type: "image", img_path: "a.jpg", image_caption: ["Fig. 1"], image_footnote: [], bbox, page_idx: 1 },
      { type: "table", table_body: "<table></table>", table_caption: ["Tab. 1"], bbox, page_idx: 1 },
      { type: "code", sub_type: "code", code_body: "x = 1", code_caption: [], bbox, page_idx: 1 },
      { type: "list", list_items: ["one", "two", 3], bbox, page_idx: 1 },
      { type: "page_number", text: "2", bbox, page_idx: 1 },
      { type: "aside_text", text: "arXiv", bbox, page_idx: 1 },
      { type: "text", text: "nowhere", page_idx: 1 },
      { type: "text", text: "no page", bbox, page_idx: -1 },
      null,
    ];
    const texts: string[] = [];
    expect(readContentList(blocks, layout, (text) => texts.push(text))).toBeNull();
    const { pages, elements, droppedElements } = layout.finish();
    expect(pages.map(({ page, unit }) => [page, unit])).toEqual([
      [1, "normalised"],
      [2, "normalised"],
    ]);
    expect(elements.every((element) => element.bbox.join() === SHARES.join())).toBe(true);
    expect(elements.map(({ type, text, html, latex }) => [type, text ?? html ?? latex])).toEqual([
      ["title", "Annual report"],
      ["heading", "Section"],
      ["text", "All is well."],
      ["formula", "E=mc^2"],
      ["image", "Fig. 1"],
      ["table", "Tab. 1"],
      ["code", "x = 1"],
      ["list", "one\ntwo"],
      ["page_number", "2"],
      ["other", "arXiv"],
    ]);
    expect(elements[5]?.html).toBe("<table></table>");
    expect(droppedElements).toBe(3);
    expect(texts).toContain("nowhere");
  });

  test.each([[{}], [[]], [[null]], ["text"]])("that is %j can't be used", (value) => {
    expect(readContentList(value, layoutBuilder())).toMatch(/content_list/);
  });
});

test("whatever they hold, both are read or refused without an exception", () => {
  const words = fc.constantFrom("text", "list", "table", "interline_equation", "image", "image_body", "discarded");
  const any = fc.anything({ maxDepth: 1, maxKeys: 3 });
  const spans = fc.array(fc.oneof(any, fc.record({ type: words, content: any, html: any, score: any })));
  const lines = fc.oneof(any, fc.array(fc.oneof(any, fc.record({ spans: fc.oneof(any, spans) }))));
  const leaf = fc.record({ type: fc.oneof(words, any), bbox: any, lines, index: any, level: any });
  const blocks = fc.oneof(any, fc.array(fc.oneof(any, leaf, fc.record({ type: words, blocks: fc.array(leaf) }))));
  const page = fc.record(
    {
      page_size: fc.oneof(fc.constant(SIZE), any),
      preproc_blocks: blocks,
      para_blocks: blocks,
      discarded_blocks: blocks,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(page, any)), (pages) => {
      const middle = readMiddleJson({ pdf_info: pages }, layoutBuilder());
      const list = readContentList(pages, layoutBuilder());
      for (const problem of [middle, list]) expect(problem === null || problem.length > 10).toBe(true);
    }),
    { numRuns: 200 },
  );
});
