import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createIdSet } from "./done-set.js";

describe("id set", () => {
  it("answers like a Set for any sequence of ids", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), fc.array(fc.string()), (added, asked) => {
        const ids = createIdSet();
        const truth = new Set<string>();
        for (const id of added) {
          expect(ids.add(id)).toBe(!truth.has(id));
          truth.add(id);
        }
        for (const id of [...added, ...asked]) expect(ids.has(id)).toBe(truth.has(id));
        expect(ids.size).toBe(truth.size);
      }),
    );
  });

  it("tells a million look-alike ids apart", () => {
    const ids = createIdSet();
    for (let i = 0; i < 500_000; i++) {
      if (!ids.add(`line-${i}`)) throw new Error(`line-${i} taken for another`);
      if (!ids.add(`request-00000000-${i.toString(16).padStart(8, "0")}`)) throw new Error(`${i} taken for another`);
    }
    for (let i = 0; i < 500_000; i++) if (!ids.has(`line-${i}`)) throw new Error(`line-${i} forgotten`);
    expect(ids.has("line-500000")).toBe(false);
    expect(ids.size).toBe(1_000_000);
  });
});
