import { describe, expect, test } from "vitest";
import { objectsIn } from "./json-objects.js";

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
});
