import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { parseLayoutJson } from "./lenient-json.js";

test.each<[string, unknown]>([
  ['{"a":NaN}', { a: null }],
  ['{"a":[1,-Infinity,Infinity, NaN ]}', { a: [1, null, null, null] }],
  ['{"a":"NaN and \\"Infinity\\"","b":NaN}', { a: 'NaN and "Infinity"', b: null }],
  ["[-NaN,NaN,-Infinity]", [null, null, null]],
  ["NaN", null],
  ["-NaN", null],
  ["[NaNNaN]", undefined],
  ["[Nan]", undefined],
  ['{"a":"\\\\","b":NaN}', { a: "\\", b: null }],
  ["\ufeff[1]", [1]],
  ['{"a":NaN', undefined],
  ['"NaN', undefined],
  ["No middle.json file found", undefined],
  ["", undefined],
])("%s", (json, value) => {
  expect(parseLayoutJson(json)).toEqual(value);
});

test("what is JSON stays what it is, with numbers that are none in any place", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (value, text) => {
      const whole = { value, text };
      const json = JSON.stringify(whole);
      expect(parseLayoutJson(json)).toEqual(JSON.parse(json));
      expect(parseLayoutJson(`{"n":NaN,${json.slice(1)}`)).toEqual({ n: null, ...JSON.parse(json) });
    }),
  );
});

test("a text that only opens costs no more than its length, else this test times out", () => {
  expect(parseLayoutJson(`[NaN,"${'\\"'.repeat(5_000_000)}`)).toBeUndefined();
  expect(parseLayoutJson(`{"a":${"[".repeat(100_000)}NaN`)).toBeUndefined();
  expect(parseLayoutJson("[".repeat(40_000) + "]".repeat(40_000))).toBeUndefined();
});

test("what holds no such number is parsed once", () => {
  const parse = vi.spyOn(JSON, "parse");
  try {
    expect(parseLayoutJson('{"a":"cut')).toBeUndefined();
    expect(parse).toHaveBeenCalledTimes(1);
  } finally {
    parse.mockRestore();
  }
});
