import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bodyKind } from "./body-kind.js";
import { findEmbeddedFault } from "./fault.js";
import { finishFailure, normaliseFinishReason, rawFinishReason } from "./finish-reason.js";
import { looksCut } from "./looks-cut.js";
import { profileFor, profiles } from "./profiles.js";
import { splitReasoning, TagScanner } from "./reasoning-tags.js";
import { normaliseArguments, ToolCallCollector } from "./tool-calls.js";
import { normaliseUsage } from "./usage.js";

const tags = profiles.openai!.reasoningTags;

describe("usage", () => {
  it.each([
    [{ prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }, [5, 3, 8, null, null]],
    [{ input_tokens: "5", output_tokens: "3" }, [5, 3, 8, null, null]],
    [{ prompt_tokens: 12, total_tokens: 12 }, [12, 0, 12, null, null]],
    [{ completion_tokens: 2, total_tokens: 12 }, [10, 2, 12, null, null]],
    [{ prompt_tokens: 5, completion_tokens: 3, reasoning_tokens: 2, cached_tokens: 4 }, [5, 3, 8, 2, 4]],
    [
      {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 303,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
      [12, 291, 303, 290, null],
    ],
    [
      { prompt_tokens: 12, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: 290 } },
      [12, 291, 303, 290, null],
    ],
    [{ prompt_tokens: 5, completion_tokens: 3, total_tokens: 8, num_cached_tokens: 2 }, [5, 3, 8, null, 2]],
  ])("%j", (raw, [prompt, completion, total, reasoning, cached]) => {
    expect(normaliseUsage(raw)).toEqual({
      promptTokens: prompt,
      completionTokens: completion,
      totalTokens: total,
      reasoningTokens: reasoning,
      cachedPromptTokens: cached,
      source: "measured",
    });
  });

  it.each([
    [{ prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cache_write_tokens: 4 } }, 4, 9],
    [{ prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cache_creation_input_tokens: "4" } }, 4, 9],
    [{ prompt_tokens: 9, completion_tokens: 1, cache_creation_input_tokens: 20 }, 20, 29],
    [{ prompt_tokens: 9, completion_tokens: 1, cache_creation_input_tokens: 0 }, undefined, 9],
  ])("%j was written into the cache", (raw, written, prompt) => {
    expect(normaliseUsage(raw)?.cacheWriteTokens).toBe(written);
    expect(normaliseUsage(raw)?.promptTokens).toBe(prompt);
  });

  it.each([
    null,
    undefined,
    7,
    [],
    {},
    { prompt_tokens: 5 },
    { total_tokens: 5 },
    { prompt_tokens: 0, completion_tokens: 0 },
    { prompt_tokens: -5, completion_tokens: 3 },
    { prompt_tokens: "x", completion_tokens: Number.NaN },
  ])("%j is no usage", (raw) => {
    expect(normaliseUsage(raw)).toBeNull();
  });

  it("property: whole, finite, never negative, completion holds the reasoning", () => {
    const value = fc.oneof(fc.double(), fc.integer(), fc.string(), fc.constant(null));
    const raw = fc.record(
      {
        prompt_tokens: value,
        completion_tokens: value,
        total_tokens: value,
        cached_tokens: value,
        completion_tokens_details: fc.record({ reasoning_tokens: value }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(raw, (fields) => {
        const usage = normaliseUsage(fields);
        if (usage === null) return;
        for (const tokens of [usage.promptTokens, usage.completionTokens, usage.totalTokens]) {
          expect(Number.isFinite(tokens) && tokens >= 0).toBe(true);
        }
        expect(usage.completionTokens).toBeGreaterThanOrEqual(usage.reasoningTokens ?? 0);
        expect(usage.promptTokens).toBeGreaterThanOrEqual(usage.cachedPromptTokens ?? 0);
      }),
    );
  });
});

it("finish reasons", () => {
  expect(
    ["stop", "eos", "end_turn", "LENGTH", "tool_use", "sensitive", "odd", "constructor"].map(normaliseFinishReason),
  ).toEqual(["stop", "stop", "stop", "length", "tool_calls", "content_filter", "unknown", "unknown"]);
  expect(["", "null", null, undefined, 3].map(rawFinishReason)).toEqual([null, null, null, null, null]);
  expect(["error", "network_error", "insufficient_system_resource", "abort", "stop", null].map(finishFailure)).toEqual([
    "upstream_error",
    "network",
    "overloaded",
    "upstream_error",
    undefined,
    undefined,
  ]);
});

describe("reasoning tags", () => {
  const cases = [
    ["<think>a</think>b", "a", "b"],
    ["\n <think>\na\n</think>\n\nb <think>c</think>", "a", "b <think>c</think>"],
    ["◁think▷a◁/think▷b", "a", "b"],
    ["<thought>a</thought> b", "a", "b"],
    ["<think>never ends", "never ends", ""],
    ["why\n</think>\n\nb", "why", "b"],
    ["plain", "", "plain"],
    ['{"a":"<think>x</think>"}', "", '{"a":"<think>x</think>"}'],
    ["the tag `</think>` ends it", "", "the tag `</think>` ends it"],
    ["<thin", "", "<thin"],
  ] as const;

  it.each(cases)("%j", (text, thinking, content) => {
    expect(splitReasoning(text, tags)).toEqual({ thinking, content });
  });

  it("property: a consumer that reads along sees the same split, wherever the text is cut", () => {
    const pieces = fc.constantFrom(
      "<think>",
      "</think>",
      "<thi",
      "nk>",
      "a",
      "\n",
      " ",
      "◁think▷",
      "◁/think▷",
      "<",
      "b",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), fc.integer({ min: 1, max: 4 }), (parts, size) => {
        const text = parts.join("");
        const seen = { thinking: "", text: "" };
        const scanner = new TagScanner(tags, (kind, piece) => {
          seen[kind] += piece;
        });
        for (let at = 0; at < text.length; at += size) scanner.push(text.slice(at, at + size));
        scanner.end();
        const whole = splitReasoning(text, tags, false);
        expect(seen.thinking.trim()).toBe(whole.thinking);
        expect(seen.text.trim()).toBe(whole.content.trim());
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("tool arguments", () => {
  it.each([
    ["", "{}"],
    ["  ", "{}"],
    ["null", "{}"],
    ['{"q":"a"}', '{"q":"a"}'],
    ['"{\\"q\\":\\"a\\"}"', '{"q":"a"}'],
    ['{"q":"a"}{"q":"a"}', '{"q":"a"}'],
    ['{"q":"a"}"{\\"q\\":\\"a\\"}"', '{"q":"a"}'],
    ['{}{"q":"a"}', '{"q":"a"}'],
    ['{"q":"a"}{"q":"b"}', '{"q":"a"}{"q":"b"}'],
    ['{"q":"del', '{"q":"del'],
  ])("%j → %j", (text, expected) => {
    expect(normaliseArguments(text)).toBe(expected);
  });
});

describe("tool calls", () => {
  const collect = (deltas: unknown[]) => {
    const calls = new ToolCallCollector("call_x_");
    for (const delta of deltas) calls.addDelta(delta);
    return calls.calls();
  };
  const call = (name: string, args: string) => ({ name, arguments: args });

  it("a server that numbers every call 0 tells them apart by id", () => {
    const deltas = [
      { index: 0, id: "a", function: call("f", "{}") },
      { index: 0, id: "b", function: call("f", '{"x":1}') },
    ];
    expect(collect(deltas).map(({ id }) => id)).toEqual(["a", "b"]);
  });

  it("interleaved calls are kept apart by index", () => {
    const deltas = [
      { index: 0, id: "a", function: call("f", '{"x"') },
      { index: 1, id: "b", function: call("g", '{"y"') },
      { index: 0, function: { arguments: ":1}" } },
      { index: 1, function: { arguments: ":2}" } },
    ];
    expect(collect(deltas)).toEqual([
      { id: "a", name: "f", arguments: '{"x":1}' },
      { id: "b", name: "g", arguments: '{"y":2}' },
    ]);
  });

  it("without index and id, a named delta after a whole call starts another", () => {
    const deltas = [
      { function: call("f", '{"x":1}') },
      { function: call("f", '{"x"') },
      { function: { arguments: ":2}" } },
    ];
    expect(collect(deltas)).toEqual([
      { id: "call_x_0", name: "f", arguments: '{"x":1}' },
      { id: "call_x_1", name: "f", arguments: '{"x":2}' },
    ]);
  });

  it("a changing id without a name is the same call; a late name counts", () => {
    const deltas = [
      { index: 0, id: "r1", function: { arguments: '{"x"' } },
      { index: 0, id: "r2", function: { arguments: ":1" } },
      { index: 0, function: { name: "late", arguments: "}" } },
    ];
    expect(collect(deltas)).toEqual([{ id: "r1", name: "late", arguments: '{"x":1}' }]);
  });

  it("ids are unique in the answer", () => {
    const calls = new ToolCallCollector("call_x_");
    calls.addWhole({ id: "same", function: call("f", "{}") });
    calls.addWhole({ id: "same", function: call("g", "{}") });
    expect(new Set(calls.calls().map(({ id }) => id)).size).toBe(2);
  });

  it("property: never throws, whatever a delta holds", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (deltas) => {
        const calls = new ToolCallCollector("x");
        for (const delta of deltas) calls.addDelta(delta);
        calls.calls(true);
        calls.hasCut();
      }),
    );
  });
});

it("what a body is", () => {
  const kind = (text: string, type = "") => bodyKind(Buffer.from(text), { get: () => type, limits: () => undefined });
  expect(kind('{"a":1}', "text/event-stream")).toBe("json");
  expect(kind("data: x", "application/json")).toBe("sse");
  expect(kind("da")).toBe("sse");
  expect(kind(": hi")).toBe("sse");
  expect(kind("\n\n")).toBe("blank");
  expect(kind("\n\n", "text/event-stream")).toBe("blank");
  expect(kind("\ufeff <!DOCTYPE html>", "text/event-stream")).toBe("html");
  expect(kind("oops")).toBe("json");
});

it("property: a JSON object that is cut looks cut, a whole one doesn't", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (value, part) => {
        const text = JSON.stringify(value);
        expect(looksCut(text)).toBe(false);
        expect(looksCut(text.slice(0, Math.max(1, Math.floor(text.length * part))))).toBe(true);
      },
    ),
  );
});

it("ordinary frames carry no error, and nothing makes the search throw", () => {
  const ordinary = [
    { choices: [{ delta: { content: "x" } }], error: null },
    { choices: [], error: {}, base_resp: { status_code: 0 } },
    { code: 200, message: "success", choices: [{ delta: {} }] },
    { id: "x", choices: null, usage: { prompt_tokens: 1 } },
    { "html-message": "gone" },
  ];
  for (const frame of ordinary) expect(findEmbeddedFault(frame)).toBeUndefined();
  fc.assert(fc.property(fc.jsonValue(), (frame) => void findEmbeddedFault(frame)));
});

it("profiles by host", () => {
  expect(profileFor("https://api.openai.com/v1").name).toBe("openai");
  expect(profileFor("not a url").name).toBe("openai");
});
