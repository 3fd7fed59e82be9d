import { describe, expect, it } from "vitest";
import { createAnswerSchema } from "../src/structured/answer-schema.js";
import { readAnswer } from "../src/structured/reader.js";
import { compileSchema } from "../src/structured/validator.js";

/**
 * What a hostile reply costs: eight times the text may take about eight times the time, whatever it holds. Ratios of the
 * best of three runs; quadratic work would show as 64.
 */

const schema = createAnswerSchema({
  validator: compileSchema({
    type: "object",
    properties: { answer: { type: "array", items: { type: "string" }, uniqueItems: true } },
    required: ["answer"],
  }),
  standard: null,
  coerce: true,
  wrapping: "none",
  objectRoot: false,
});

const HOSTILE: Readonly<Record<string, (units: number) => string>> = {
  "opening brackets": (n) => "[".repeat(n),
  "opening braces": (n) => "{".repeat(n),
  "braces and quotes": (n) => '{"'.repeat(n / 2),
  "braces and apostrophes": (n) => "{'".repeat(n / 2),
  "empty lists": (n) => "[]".repeat(n / 2),
  "nested lists": (n) => "[".repeat(n / 2) + "]".repeat(n / 2),
  "nested objects": (n) => '{"a":'.repeat(n / 5),
  fences: (n) => "```\n".repeat(n / 4),
  "fences with quotes": (n) => '```"'.repeat(n / 4),
  citations: (n) => "[1] ".repeat(n / 4),
  "wrong items": (n) => `{"answer":[${"1,".repeat(n / 2)}1]}`,
  "broken objects": (n) => '{"a":1,}'.repeat(n / 8),
  "line breaks in a text": (n) => `{"answer":["${"x\n".repeat(n / 2)}"]}`,
  comments: (n) => '{"a"/*'.repeat(n / 6),
  tags: (n) => "<think>".repeat(n / 7),
  blanks: (n) => `{${" ".repeat(n)}`,
  backslashes: (n) => "\\".repeat(n),
};

async function bestMs(text: string): Promise<number> {
  let best = Infinity;
  for (let run = 0; run < 3; run += 1) {
    const startedMs = performance.now();
    await readAnswer(text, "stop", schema);
    best = Math.min(best, performance.now() - startedMs);
  }
  return best;
}

describe("reading is linear", () => {
  it.each(Object.keys(HOSTILE))("%s", async (name) => {
    const make = HOSTILE[name]!;
    const small = await bestMs(make(200_000));
    const large = await bestMs(make(1_600_000));
    // Below a few milliseconds there is nothing to compare.
    expect(large / Math.max(small, 4)).toBeLessThan(32);
  });

  it("10 MB of it are read to the end", async () => {
    for (const make of Object.values(HOSTILE)) expect((await readAnswer(make(1e7), "stop", schema)).ok).toBeDefined();
  }, 120_000);
});
