import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { FrameParser } from "./frame-parser.js";

const frame = (delta: Record<string, unknown>, more: Record<string, unknown> = {}): string =>
  JSON.stringify({ id: "x", choices: [{ index: 0, delta, finish_reason: null }], ...more });

/** Every frame as JSON.parse gives it, told at the moment it is parsed. */
function parseAll(frames: readonly string[]): unknown[] {
  const parser = new FrameParser();
  return frames.map((data) => {
    try {
      return structuredClone(parser.parse(data));
    } catch (error) {
      return (error as Error).name;
    }
  });
}

const expected = (frames: readonly string[]): unknown[] =>
  frames.map((data) => {
    try {
      return JSON.parse(data);
    } catch (error) {
      return (error as Error).name;
    }
  });

describe("frames of one stream", () => {
  it.each([
    ["plain text", ["a", " b", "", "ü", "語", "\u2028", "\ud800"].map((content) => frame({ content }))],
    ["what JSON escapes", ['say "', "\\", "\n", "\u0000", "c:\\n"].map((content) => frame({ content }))],
    ["text in the place of the end", [frame({ content: "a" }), frame({ content: "b" }).replace('"b"', '"b","c":"d"')]],
    ["a control character as it is", [frame({ content: "a" }), frame({ content: "b" }).replace("b", "\n")]],
    ["a quote as it is", [frame({ content: "a" }), frame({ content: "b" }).replace('"b"', '"b""')]],
    ["blanks between the parts", ["a", "b", "c"].map((c) => frame({ content: c }).replaceAll(":", ": "))],
    ["thought before text", [frame({ content: null, reasoning_content: "a" }), frame({ content: "b" })]],
    ["a key of the same name before", ["a", "b"].map((content) => `{"content":"a",${frame({ content }).slice(1)}`)],
    ["the key twice", ["a", "b"].map((c) => frame({ content: c }).replace('"content"', '"content":"a","content"'))],
    ["usage at the end", [frame({ content: "a" }), frame({ content: "b" }), frame({}, { choices: [], usage: {} })]],
    ["frames cut short", [frame({ content: "a" }), frame({ content: "b" }).slice(0, -1), ""]],
    ["nothing but the text between the ends", [frame({ content: "aaaa" }), frame({ content: "a" }).slice(0, 30)]],
  ])("are what JSON.parse makes of them: %s", (_, frames) => {
    expect(parseAll(frames)).toEqual(expected(frames));
    expect(parseAll([...frames, ...frames])).toEqual(expected([...frames, ...frames]));
  });

  it("are what JSON.parse makes of them, whatever they hold", () => {
    const text = fc.oneof(fc.string({ maxLength: 14, unit: "binary" }), fc.constantFrom("a", '"', "content", '","'));
    const delta = fc.record(
      { content: text, reasoning_content: text, tool_calls: fc.constant([{ index: 0 }]), note: text },
      { requiredKeys: [], noNullPrototype: true },
    );
    const logprobs = fc.option(fc.constant({ content: [1] }));
    const whole = fc
      .record({ delta, index: fc.nat(1), logprobs }, { noNullPrototype: true })
      .map((choice) => JSON.stringify({ id: "x", choices: [choice] }));
    const broken = fc
      .tuple(whole, fc.nat(80), text)
      .map(([data, at, piece]) => data.slice(0, at) + piece + data.slice(at + 1));
    fc.assert(
      fc.property(fc.array(fc.oneof(whole, whole, broken), { maxLength: 12 }), (frames) => {
        expect(parseAll(frames)).toEqual(expected(frames));
      }),
    );
  });

  it("that differ in their text alone are parsed once, and once more for the proof", () => {
    const spy = vi.spyOn(JSON, "parse");
    const parser = new FrameParser();
    for (let at = 0; at < 100; at += 1) parser.parse(frame({ content: ` word${at}` }));
    expect(spy).toHaveBeenCalledTimes(2);
    spy.mockRestore();
  });

  it("that are all new cost no more than three proofs", () => {
    const spy = vi.spyOn(JSON, "parse");
    const parser = new FrameParser();
    for (let at = 0; at < 100; at += 1) parser.parse(frame({ content: "a" }, { at }));
    expect(spy.mock.calls.length).toBeLessThanOrEqual(100 + 4);
    spy.mockRestore();
  });

  it("that are large are not kept", () => {
    const parser = new FrameParser();
    const data = frame({ content: "a" }, { padding: "x".repeat(5_000) });
    expect(parser.parse(data)).not.toBe(parser.parse(data));
  });

  it("keep what they hold beside the text: log probabilities and tool calls are new objects each time", () => {
    const parser = new FrameParser();
    const data = JSON.stringify({ choices: [{ delta: { content: "a" }, logprobs: { content: [1] } }] });
    expect(parser.parse(data)).not.toBe(parser.parse(data));
    const called = frame({ content: "a", tool_calls: [{ index: 0 }] });
    expect(parser.parse(called)).not.toBe(parser.parse(called));
  });
});
