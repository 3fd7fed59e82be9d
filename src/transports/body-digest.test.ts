import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bodyDigest, composeMessage } from "./body-digest.js";

const pieces = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("🙂", " ", "\n\t ", "x".repeat(300), "漢字".repeat(400), "🙂".repeat(500)),
);
const bodies = fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(""));

function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed();
}

describe("bodyDigest", () => {
  it("collapses white space and keeps short bodies whole", () => {
    expect(bodyDigest(' \n{"a":\t1,\r\n "b": 2} ')).toBe('{"a": 1, "b": 2}');
    expect(bodyDigest("x".repeat(2_048))).toHaveLength(2_048);
  });

  it("keeps the first 1,400 and the last 600 units and counts the rest", () => {
    const body = `${"h".repeat(1_400)}${"m".repeat(500)}${"t".repeat(600)}`;
    expect(bodyDigest(body)).toBe(`${"h".repeat(1_400)}…(500 chars omitted)…${"t".repeat(600)}`);
  });

  it("moves a cut inside a surrogate pair inward, and the count follows", () => {
    const body = `${"h".repeat(1_399)}🙂${"m".repeat(500)}🙂${"t".repeat(599)}`;
    const digest = bodyDigest(body);
    expect(digest).toBe(`${"h".repeat(1_399)}…(504 chars omitted)…${"t".repeat(599)}`);
  });

  it("property: idempotent, at most 2,048 units, no character torn", () => {
    fc.assert(
      fc.property(bodies, (body) => {
        const digest = bodyDigest(body);
        expect(bodyDigest(digest)).toBe(digest);
        expect(digest.length).toBeLessThanOrEqual(2_048);
        if (!hasLoneSurrogate(body)) expect(hasLoneSurrogate(digest)).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  it("property: what was kept and what was omitted add up to the whole", () => {
    fc.assert(
      fc.property(bodies, (body) => {
        const whole = body.replace(/\s+/g, " ").trim();
        const digest = bodyDigest(body);
        fc.pre(whole.length > 2_048);
        const omitted = /…\((\d+) chars omitted\)…/.exec(digest)!;
        expect(digest.length - omitted[0].length + Number(omitted[1])).toBe(whole.length);
      }),
    );
  });
});

describe("composeMessage", () => {
  it("names source, label, status and digest", () => {
    expect(composeMessage("qwen_1", "rate limited", 429, "slow down")).toBe("qwen_1 rate limited: 429 | slow down");
    expect(composeMessage("qwen_1", "rate limited", 429)).toBe("qwen_1 rate limited: 429");
  });
});
