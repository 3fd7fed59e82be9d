import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { takeSpans } from "./embedding-spans.js";
import { decodeBase64, readSpans, readVectors } from "./embedding-vectors.js";

/** The quick way over a large answer against the plain one: it may leave an answer alone, but never read another thing. */

const WIDTH = 512;
const COUNT = 16;

const base64Of = (seed: number) =>
  Buffer.from(Float32Array.from({ length: WIDTH }, (_, at) => Math.sin(seed * 1_000 + at)).buffer).toString("base64");

interface Item {
  readonly object: string;
  readonly index: unknown;
  readonly embedding: unknown;
}

const itemsOf = (): Item[] =>
  Array.from({ length: COUNT }, (_, index) => ({ object: "embedding", index, embedding: base64Of(index) }));

const answerOf = (data: readonly unknown[], more: object = {}) => ({ object: "list", data, model: "m", ...more });

const wanted = { count: COUNT, firstIndex: 0, dimensions: undefined };

function quick(text: string) {
  const spans = takeSpans(Buffer.from(text), decodeBase64);
  const data = (spans?.value as { data?: unknown } | null | undefined)?.data;
  return spans !== undefined && Array.isArray(data) ? readSpans(data, spans, wanted) : undefined;
}

function plain(text: string) {
  try {
    const { data } = JSON.parse(text) as { data?: unknown };
    return Array.isArray(data) ? readVectors(data, wanted) : undefined;
  } catch {
    return undefined;
  }
}

describe("a large answer of vectors in base64", () => {
  test.each([
    ["compact", JSON.stringify(answerOf(itemsOf()))],
    ["with spaces", JSON.stringify(answerOf(itemsOf()), null, 2)],
    ["in another order", JSON.stringify(answerOf(itemsOf().toReversed()))],
    ["index last", JSON.stringify(answerOf(itemsOf().map(({ embedding, index }) => ({ embedding, index }))))],
  ])("is read the quick way: %s", (_name, text) => {
    const vectors = quick(text);
    expect(vectors).toHaveLength(COUNT);
    expect(vectors).toEqual(plain(text));
    expect(vectors?.every((vector) => vector instanceof Float32Array && vector.buffer.byteLength === 4 * WIDTH)).toBe(
      true,
    );
  });

  const [first, ...rest] = itemsOf();
  test.each([
    ["numbers", JSON.stringify(answerOf(itemsOf().map((item) => ({ ...item, embedding: [1, 2] }))))],
    ["one of them numbers", JSON.stringify(answerOf([{ ...first, embedding: [0.5] }, ...rest]))],
    ["one short text", JSON.stringify(answerOf([{ ...first, embedding: "#1" }, ...rest]))],
    ["one in base64url", JSON.stringify(answerOf([{ ...first, embedding: `-_${base64Of(1).slice(2)}` }, ...rest]))],
    ["one not finite", JSON.stringify(answerOf([{ ...first, embedding: "//////".repeat(400) }, ...rest]))],
    ["letters beyond ASCII", JSON.stringify(answerOf(itemsOf(), { note: "é" }))],
    ["an escape", JSON.stringify(answerOf(itemsOf(), { note: 'a "quoted" word' }))],
    ["a vector elsewhere", JSON.stringify(answerOf(itemsOf(), { extra: { embedding: base64Of(99) } }))],
    [
      "two in one item",
      JSON.stringify(answerOf(itemsOf())).replace('"index":0', `"index":0,"embedding":"${base64Of(7)}"`),
    ],
    [
      "a key written with escapes",
      JSON.stringify(answerOf(itemsOf())).replace('"embedding":"', '"embeddin\\\\u0067":"'),
    ],
    [
      "a key that ends with the word",
      JSON.stringify(answerOf(itemsOf())).replace('"embedding":"', '"x\\\\"embedding":"'),
    ],
    ["marks as indexes", JSON.stringify(answerOf(itemsOf().map((item) => ({ ...item, index: "#0" }))))],
    ["cut", JSON.stringify(answerOf(itemsOf())).slice(0, -300)],
    ["one too many", JSON.stringify(answerOf([...itemsOf(), first]))],
    ["two widths", JSON.stringify(answerOf([{ ...first, embedding: base64Of(1).slice(0, 1_024) }, ...rest]))],
    ["a small one", JSON.stringify(answerOf(itemsOf().slice(0, 2)))],
  ])("is left to the plain way: %s", (_name, text) => {
    expect(quick(text)).toBeUndefined();
  });

  test("property: whatever is done to its bytes, the quick way reads what the plain way reads, or nothing", () => {
    const text = JSON.stringify(answerOf(itemsOf()));
    const pieces = [
      '"',
      "\\\\",
      "#0",
      '"embedding":"',
      '"embedding"',
      "{",
      "}",
      ",",
      ":",
      "[",
      "]",
      " ",
      "é",
      "null",
      "=",
      "-",
    ];
    const change = fc.record({
      at: fc.integer({ min: 0, max: text.length - 1 }),
      isNearKey: fc.boolean(),
      cut: fc.integer({ min: 0, max: 12 }),
      put: fc.constantFrom(...pieces, ""),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        let changed = text;
        for (const { at, isNearKey, cut, put } of changes) {
          // What matters lies between the vectors.
          const key = changed.indexOf('"index"', at);
          const place = isNearKey && key !== -1 ? key + (at % 40) - 10 : at;
          changed = changed.slice(0, place) + put + changed.slice(place + cut);
        }
        const vectors = quick(changed);
        if (vectors !== undefined) expect(vectors).toEqual(plain(changed));
      }),
      { numRuns: 500 },
    );
  });
});
