import { afterEach, describe, expect, test, vi } from "vitest";
import { MAX_PARSED_BYTES } from "../json-weight.js";
import { objectsIn } from "./json-objects.js";

afterEach(() => {
  vi.restoreAllMocks();
});

describe("objects of a list that a model wrote", () => {
  test.each([
    ["a list", '[{"a":1},{"b":2}]', [{ a: 1 }, { b: 2 }], 0],
    ["entries that are none", '[{"a":1},2,[3],null]', [{ a: 1 }], 3],
    ["an object with one list of objects", '{"title":"x","elements":[{"a":1}]}', [{ a: 1 }], 0],
    ["an object with other lists", '{"bbox":[1,2,3,4],"text":"x"}', [{ bbox: [1, 2, 3, 4], text: "x" }], 0],
    ["an object with two lists of objects", '{"a":[{"x":1}],"b":[{"y":1}]}', [{ a: [{ x: 1 }], b: [{ y: 1 }] }], 0],
    ["a block of code", '```json\n[{"a":1}]\n```', [{ a: 1 }], 0],
    ["words around it", 'Here it is:\n[{"a":1}]\nDone.', [{ a: 1 }], 0],
    ["objects one after the other", '{"a":1}\n{"b":2}', [{ a: 1 }, { b: 2 }], 0],
    ["an end in the middle", '[{"a":1},{"b":"x', [{ a: 1 }], 1],
    ["braces and quotes inside a text", '[{"a":"} \\" {"},{"b":2},{"c"', [{ a: '} " {' }, { b: 2 }], 1],
    ["an object inside an object", '[{"a":{"b":1}},{"c"', [{ a: { b: 1 } }], 1],
    ["one that is no JSON", '[{"a":1},{"b":\\x},{"c":3}]', [{ a: 1 }, { c: 3 }], 1],
    ["an empty list", "[]", [], 0],
  ])("%s", (_name, text, objects, broken) => {
    expect(objectsIn(text)).toEqual({ objects, broken });
  });

  test.each(["", "no JSON", '"text"', "5", '{"a":"never ends', "{".repeat(50)])("%j holds none", (text) => {
    expect(objectsIn(text)).toBeNull();
  });

  test("takes linear time: a million braces, open or closed", () => {
    expect(objectsIn("{".repeat(1_000_000))).toBeNull();
    expect(objectsIn(`[${"{x}".repeat(300_000)}`)).toBeNull();
  });

  test("stops at the thousandth piece that is no JSON: each costs an error of the parser's", () => {
    const parse = vi.spyOn(JSON, "parse");
    expect(objectsIn(`[{"a":1},${"{x}".repeat(1_000)}]`)).toEqual({ objects: [{ a: 1 }], broken: 1_000 });
    parse.mockClear();
    expect(objectsIn(`[{"a":1},${"{x}".repeat(300_000)}]`)).toBeNull();
    expect(parse.mock.calls.length).toBeLessThan(1_100);
  });

  test("stops at objects that would fill the memory together, however small each of them is", () => {
    const parse = vi.spyOn(JSON, "parse");
    expect(objectsIn("{}".repeat(2_000_000))).toBeNull();
    expect(parse.mock.calls.length).toBeLessThanOrEqual(MAX_PARSED_BYTES / 56 + 2);
  });
});
