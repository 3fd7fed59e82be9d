import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChatMessage } from "./chat.js";
import { estimatePromptTokens, estimateReservation, estimateTextTokens } from "./estimate.js";

test("four ASCII characters are one token, four CJK characters are three", () => {
  expect(estimateTextTokens("")).toBe(0);
  expect(estimateTextTokens("abcd".repeat(100))).toBe(100);
  expect(estimateTextTokens("你好世界".repeat(100))).toBe(300);
  expect(estimateTextTokens("안녕하세요")).toBe(4);
  expect(estimateTextTokens("добрый")).toBe(3);
  expect(estimateTextTokens("a")).toBe(1);
});

test("a prompt is its texts, 4 a message, 1,000 an image, its tool calls and the tools' JSON", () => {
  const text = "x".repeat(40);
  expect(estimatePromptTokens([{ role: "user", content: text }])).toBe(14);
  expect(estimatePromptTokens([{ role: "assistant", content: null }])).toBe(4);
  expect(
    estimatePromptTokens([
      {
        role: "user",
        content: [
          { type: "text", text },
          { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}` } },
        ],
      },
    ]),
  ).toBe(1_014);
  const tools = [{ type: "function", function: { name: "search", parameters: {} } }];
  const toolTokens = Math.ceil(JSON.stringify(tools).length / 4);
  expect(estimatePromptTokens([], tools)).toBe(toolTokens);
  expect(estimatePromptTokens([{ role: "assistant", tool_calls: tools }])).toBe(4 + toolTokens);
});

test("the reservation adds n × min(maxTokens, 1024)", () => {
  expect(estimateReservation(100, undefined)).toBe(1_124);
  expect(estimateReservation(100, { maxTokens: 50 })).toBe(150);
  expect(estimateReservation(100, { maxTokens: 8_000 })).toBe(1_124);
  expect(estimateReservation(100, { maxTokens: 50, n: 3 })).toBe(250);
});

test("every estimate is a whole number ≥ 0, whatever the input", () => {
  const part = fc.oneof(
    fc.record({ type: fc.constant("text"), text: fc.string({ unit: "binary" }) }),
    fc.record({ type: fc.constantFrom("image_url", "file") }),
  );
  const content = fc.oneof(fc.string({ unit: "binary" }), fc.constant(null), fc.constant(undefined), fc.array(part));
  const messages = fc.array(fc.record({ role: fc.string(), content }));
  fc.assert(
    fc.property(messages, fc.array(fc.jsonValue()), fc.double(), fc.double(), (given, tools, maxTokens, n) => {
      const promptTokens = estimatePromptTokens(given as ChatMessage[], tools);
      const reservation = estimateReservation(promptTokens, { maxTokens, n });
      expect(Number.isSafeInteger(promptTokens) && promptTokens >= 4 * given.length).toBe(true);
      expect(Number.isSafeInteger(reservation) && reservation >= promptTokens).toBe(true);
    }),
  );
});

test("splitting a text costs at most one token a piece", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(), (text, position) => {
      const cut = position % (text.length + 1);
      const pieces = estimateTextTokens(text.slice(0, cut)) + estimateTextTokens(text.slice(cut));
      expect(pieces - estimateTextTokens(text)).toBeGreaterThanOrEqual(0);
      expect(pieces - estimateTextTokens(text)).toBeLessThanOrEqual(1);
    }),
  );
});
