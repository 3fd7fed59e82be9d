import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FinishReason } from "../domain/chat.js";
import { createAnswerSchema } from "./answer-schema.js";
import { readAnswer } from "./reader.js";
import { compileSchema } from "./validator.js";

const ANSWER = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] };
const ANY_OBJECT = { type: "object" };

function read(text: string, schema: unknown = ANSWER, { ended = "stop" as FinishReason, coerce = false } = {}) {
  const validator = compileSchema(schema);
  const options = { validator, standard: null, coerce, wrapping: "none" as const, objectRoot: false };
  return readAnswer(text, ended, createAnswerSchema(options));
}

const readAny = (text: string, ended: FinishReason = "stop") =>
  readAnswer(
    text,
    ended,
    createAnswerSchema({
      validator: null,
      standard: null,
      coerce: false,
      wrapping: "none" as const,
      objectRoot: false,
    }),
  );

describe("the answer is found", () => {
  it.each([
    ["the text itself", '{"answer":"x"}', "x"],
    ["a byte order mark and blanks", '\ufeff\n {"answer":"x"}\u00a0\n', "x"],
    ["a think block before it", '<think>maybe {"answer":"no"}</think>\n{"answer":"x"}', "x"],
    ["a thought block before it", '<thought>hm</thought>{"answer":"x"}', "x"],
    ["a tag inside the answer", '{"answer":"<think>x</think>"}', "<think>x</think>"],
    ["a fence", 'Here:\n```json\n{"answer":"x"}\n```\nHope this helps!', "x"],
    ["a fence without a language", '```\n{"answer":"x"}\n```', "x"],
    ["a fence on one line", '```json {"answer":"x"}```', "x"],
    ["tildes", '~~~json\n{"answer":"x"}\n~~~', "x"],
    ["a fence that was not closed", '```json\n{"answer":"x"}', "x"],
    ["four backticks around three", '````\n{"answer":"```js\\n1\\n```"}\n````', "```js\n1\n```"],
    ["the fence before the prose", 'Form {"answer":"string"}:\n```json\n{"answer":"x"}\n```', "x"],
    ["another fence first", '```bash\nls {a,b}\n```\n```json\n{"answer":"x"}\n```', "x"],
    ["a fence of JSON that doesn't fit", '```json\n{"input":1}\n```\n```json\n{"answer":"x"}\n```', "x"],
    ["a fenced text of JSON", '```json\n"{\\"answer\\":\\"x\\"}"\n```', "x"],
    ["prose around it", 'Sure! {"answer":"x"} Anything else?', "x"],
    ["a list before it", 'As [1] and [2, 3] say: {"answer":"x"}', "x"],
    ["code before it", 'function f() { return {a} } gives {"answer":"x"}', "x"],
    ["a template before it", 'Use {{name}} and {0}: {"answer":"x"}', "x"],
    ["brackets in a text", '{"answer":"} ] { ["}', "} ] { ["],
    ["a stray bracket behind it", '{"answer":"x"}}', "x"],
    ["two answers: the first", '{"answer":"x"}\n{"answer":"y"}', "x"],
    ["JSON in a text", '"{\\"answer\\":\\"x\\"}"', "x"],
  ])("%s", async (_, text, answer) => {
    expect(await read(text)).toEqual({ ok: true, value: { answer } });
  });

  it.each([
    ["raw line breaks", '{"answer":"a\n\tb\u0001"}', "a\n\tb\u0001"],
    ["inner quotes", '{"answer": "C’est une "idée" très bonne"}', 'C’est une "idée" très bonne'],
    ["a comma too many", '{"answer":"x",}', "x"],
    ["single quotes", "{'answer':'it is x'}", "it is x"],
    ["keys without quotes", '{answer:"x"}', "x"],
    ["comments", '{\n  // the "answer"\n  "answer": "x" /* } */\n}', "x"],
    ["in a fence, within prose", 'Well:\n```json\n{"answer":"a\nb",}\n```\n{"not":"this"}', "a\nb"],
    ["an ellipsis in a text", '{"answer":"wait…\n..."}', "wait…\n..."],
    [
      "backslashes that escape nothing",
      String.raw`{"answer":"50\% of \alpha in C:\users, it\'s"}`,
      String.raw`50\% of \alpha in C:\users, it's`,
    ],
    ["NaN in a text", '{"answer":"NaN\n"}', "NaN\n"],
  ])("repaired: %s", async (_, text, answer) => {
    expect(await read(text)).toEqual({ ok: true, value: { answer } });
  });
});

describe("what is cut is never completed", () => {
  it.each([
    ["a text", '{"answer":"and then'],
    ["a key", '{"answer":"x","oth'],
    ["behind a comma", '{"answer":"x",'],
    ["an escape", '{"answer":"smile \\ud8'],
    ["an inner object that would fit", '{"inner":{"answer":"x"}'],
    ["a list of fitting ones", '[{"answer":"x"},{"answer":"y"}'],
    ["in a fence", '```json\n{"answer":"x"\n```'],
    ["behind a whole one", '{"answer":"draft"} No, better: {"answer":"fin'],
    ["single quotes", "{'answer':'x"],
    ["JSON in a text", '"{\\"answer\\":\\"x\\"}'],
    ["a bracket that doesn't match", '{"answer":["x"}'],
    ["a comment", '{"answer":"x" /* and'],
  ])("%s", async (_, text) => {
    for (const schema of [ANSWER, ANY_OBJECT, true]) {
      expect(await read(text, schema)).toMatchObject({ ok: false, code: "malformed" });
      expect(await read(text, schema, { ended: "length" })).toMatchObject({ ok: false, code: "truncated" });
    }
  });

  it("after `length` only a whole document counts", async () => {
    expect(await read('{"answer":"x"}', ANSWER, { ended: "length" })).toEqual({ ok: true, value: { answer: "x" } });
    expect(await read("12", { type: "number" }, { ended: "length" })).toMatchObject({ code: "truncated" });
    expect(await read('{"answer":"x"} and', ANSWER, { ended: "length" })).toMatchObject({ code: "truncated" });
    expect(await read('{"answer":"x",}', ANSWER, { ended: "length" })).toMatchObject({ code: "truncated" });
  });

  it("an ellipsis stands for what was left out", async () => {
    const list = { type: "object", properties: { items: { type: "array" } } };
    expect(await read('{"items":[1,2,...]}', list)).toMatchObject({ ok: false, code: "malformed" });
    expect(await read('{"items":[1,2, …]}', list)).toMatchObject({ ok: false, code: "malformed" });
    for (const text of ['{"items": }', '{"items":, "b":1}', '{"items":[1,,2]}', '{"items":[,1]}']) {
      expect(await read(text, true)).toMatchObject({ ok: false, code: "malformed" });
    }
  });
});

describe("what is no JSON", () => {
  it.each([
    "",
    "   ",
    "I can't do that.",
    "<think>never closed",
    "NaN",
    "{",
    "[",
    "}",
    '"',
    "```",
    "```json",
    "undefined",
    "{answer}",
  ])("%j", async (text) => {
    expect(await read(text)).toMatchObject({ ok: false, code: "malformed" });
  });

  it("NaN and Infinity are no numbers; null where the schema allows null", async () => {
    const score = (type: unknown) => ({ type: "object", properties: { score: { type } }, required: ["score"] });
    for (const word of ["NaN", "-Infinity", "Infinity", "+NaN"]) {
      expect(await read(`{"score": ${word}}`, score("number"))).toMatchObject({ code: "malformed" });
      expect(await read(`{"score": ${word}}`, score("string"))).toMatchObject({ code: "malformed" });
      expect(await read(`{"score": ${word}}`, score(["number", "null"]))).toEqual({ ok: true, value: { score: null } });
    }
    expect(await read('{"score": 1e999}', score("number"))).toMatchObject({ code: "malformed" });
  });

  it("a whole number that can't be held is not taken for another one", async () => {
    const id = (type: string) => ({ type: "object", properties: { id: { type } } });
    expect(await read('{"id":12345678901234567890}', id("integer"))).toMatchObject({ ok: false, code: "schema" });
    expect(await read('{"id":9007199254740991}', id("integer"))).toMatchObject({ ok: true });
    expect(await read('{"id":1.5e300}', id("number"))).toEqual({ ok: true, value: { id: 1.5e300 } });
  });

  it("depth is bounded, whoever nests", async () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    expect(await read(nested(100), ANY_OBJECT)).toMatchObject({ ok: true });
    expect(await read(nested(200_000), ANY_OBJECT)).toMatchObject({ ok: false, code: "malformed" });
    expect(await read(`${"[".repeat(1e6)}${"]".repeat(1e6)}`, true)).toMatchObject({ ok: false, code: "malformed" });
    expect(await read(`x ${"[".repeat(1e5)}1,${"]".repeat(1e5)}`, true)).toMatchObject({ ok: false });
    const recursive = { $ref: "#/$defs/t", $defs: { t: { type: "object", properties: { a: { $ref: "#/$defs/t" } } } } };
    expect(await read(`${'{"a":'.repeat(190)}{}${"}".repeat(190)}`, recursive)).toMatchObject({ ok: true });
  });
});

describe("hostile keys", () => {
  it("__proto__ and constructor stay keys", async () => {
    const closed = { type: "object", properties: { a: {} }, additionalProperties: false };
    expect(await read('{"__proto__":{"x":1}}', closed)).toMatchObject({ ok: false, code: "schema" });
    expect(await read('{"constructor":1,"toString":2}', closed)).toMatchObject({ ok: false, code: "schema" });
    const open = await read('{"__proto__":{"polluted":1}}', ANY_OBJECT);
    expect(Object.keys((open as { value: object }).value)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    const needs = { type: "object", required: ["toString"] };
    expect(await read("{}", needs)).toMatchObject({ ok: false, code: "schema" });
    const nested = { type: "object", properties: JSON.parse('{"__proto__":{"type":"object"}}') };
    const unwrapped = await read('{"__proto__":"{\\"b\\":1}"}', nested);
    expect(JSON.stringify((unwrapped as { value: unknown }).value)).toBe('{"__proto__":{"b":1}}');
  });

  it("half a surrogate pair breaks nothing", async () => {
    expect(await read('{"answer":"\\ud83d"}')).toEqual({ ok: true, value: { answer: "\ud83d" } });
    const result = await read('{"\\ud83d":1}', { type: "object", additionalProperties: { type: "string" } });
    expect(result.ok).toBe(false);
  });

  it("of a key that comes twice the last one counts", async () => {
    expect(await read('{"answer":"x","answer":"y"}')).toEqual({ ok: true, value: { answer: "y" } });
  });
});

describe("properties", () => {
  const json = fc.jsonValue({ maxDepth: 4 });
  const container = json.filter((value) => typeof value === "object" && value !== null);
  /** Prose of models, which may hold anything but what begins like JSON. */
  const prose = fc.array(fc.constantFrom("Sure", "!", "Here", "it's", "is", "(see", "1)", "\n", "–", "#", "{", "[x]"), {
    maxLength: 6,
  });

  it("any document comes back from a fence, prose and a think block", async () => {
    await fc.assert(
      fc.asyncProperty(
        container,
        prose,
        prose,
        fc.boolean(),
        fc.boolean(),
        async (value, before, after, fence, think) => {
          const text = JSON.stringify(value, null, 1);
          const words = (list: string[]) => list.filter((word) => word !== "{").join(" ");
          const middle = fence ? `\n\`\`\`json\n${text}\n\`\`\`\n` : ` ${text} `;
          const whole = `${think ? "<think>so {\n</think>" : ""}${words(before)}${middle}${words(after)}`;
          expect(await readAny(whole)).toEqual({ ok: true, value: JSON.parse(text) });
        },
      ),
      { numRuns: 500 },
    );
  });

  it("no strict beginning of a document is an answer", async () => {
    await fc.assert(
      fc.asyncProperty(
        container,
        fc.boolean(),
        fc.boolean(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (value, fence, twice, part) => {
          const text = twice ? JSON.stringify(JSON.stringify(value)) : JSON.stringify(value);
          const cut = text.slice(0, Math.floor(part * (text.length - 1)));
          const whole = fence ? `\`\`\`json\n${cut}` : cut;
          for (const ended of ["stop", "length"] as const) {
            expect((await read(whole, { type: ["object", "array"] }, { ended })).ok).toBe(false);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("nothing makes it throw", async () => {
    const piece = fc.constantFrom(
      ...['{"', '"}', "{", "}", "[", "]", '"', "'", "\\", "\\u", ":", ",", "```", "json\n", "//", "/*", "*/", "\n"],
      ...["<think>", "</think>", "NaN", "…", "...", "1e999", "null", "\ud800", "“", "”", "x", '"a":', "(", "+", " "],
    );
    const schemas = [ANSWER, ANY_OBJECT, { type: "array", items: ANSWER, uniqueItems: true }, true];
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 40 }), fc.constantFrom(...schemas), async (pieces, schema) => {
        const result = await read(pieces.join(""), schema, { coerce: true });
        expect(typeof result.ok).toBe("boolean");
      }),
      { numRuns: 3_000 },
    );
  });
});
