import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson } from "./canonical-json.js";

/** The same value with every object's keys in reverse order. */
function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys);
  if (typeof value !== "object" || value === null) return value;
  const reversed: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value).reverse()) reversed[key] = reverseKeys((value as Record<string, unknown>)[key]);
  return reversed;
}

describe("canonical JSON", () => {
  test("keys are sorted at every level, array order stays", () => {
    expect(canonicalJson({ b: 1, a: { d: [3, 1], c: null } })).toBe('{"a":{"c":null,"d":[3,1]},"b":1}');
  });

  test("it reads back as the same value, and key order does not matter", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(reverseKeys(value))).toBe(text);
      }),
    );
  });

  test("it leaves out what JSON leaves out", () => {
    const value = { u: undefined, f: () => {}, n: Number.NaN, d: new Date(0), a: [undefined], s: new String("boxed") };
    expect(canonicalJson(value)).toBe('{"a":[null],"d":"1970-01-01T00:00:00.000Z","n":null,"s":"boxed"}');
    expect(canonicalJson(undefined)).toBe("null");
    expect(() => canonicalJson({ b: 1n })).toThrow(TypeError);
  });

  test("a key named __proto__ is kept and changes no prototype", () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true},"a":1}');
    expect(canonicalJson(value)).toBe('{"__proto__":{"polluted":true},"a":1}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test("cycles and endless nesting are a RangeError, not a full stack", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    expect(() => canonicalJson(cyclic)).toThrow(RangeError);
    expect(() => canonicalJson(JSON.parse("[".repeat(5_000) + "]".repeat(5_000)))).toThrow(RangeError);
    const endless = { toJSON: (): unknown => endless };
    expect(() => canonicalJson(endless)).toThrow(RangeError);
    expect(() => canonicalJson(JSON.parse("[".repeat(200) + "]".repeat(200)))).not.toThrow();
  });
});
