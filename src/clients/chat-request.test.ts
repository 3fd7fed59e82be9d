import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChatRequest, Sampling } from "../domain/chat.js";
import { RequestRejectedError } from "../errors.js";
import { checkRequest } from "./chat-request.js";

const ok: ChatRequest = { messages: [{ role: "user", content: "hi" }] };

function problemOf(request: unknown): string {
  try {
    checkRequest(request as ChatRequest, "chat");
  } catch (error) {
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "bad_request", operation: "chat" });
    return (error as Error).message;
  }
  throw new Error("accepted");
}

const deep = (levels: number): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < levels; i += 1) value = [value];
  return value;
};
const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;

test.each([
  ["nothing at all", undefined, "object with messages"],
  ["null", null, "object with messages"],
  ["a text", "hi", "object with messages"],
  ["no messages", {}, "at least one message"],
  ["an empty list", { messages: [] }, "at least one message"],
  ["messages as text", { messages: "hi" }, "at least one message"],
  ["a hole", { messages: [ok.messages[0], undefined] }, "messages[1]"],
  ["a message without a role", { messages: [{ content: "hi" }] }, "messages[0]"],
  ["an empty role", { messages: [{ role: "" }] }, "messages[0]"],
  ["a number that is none", { ...ok, sampling: { temperature: Number.NaN } }, "sampling.temperature"],
  ["an endless number", { ...ok, sampling: { maxTokens: Infinity } }, "sampling.maxTokens"],
  ["a parameter in its wire spelling", { ...ok, sampling: { max_tokens: 5 } }, "unknown parameter sampling.max_tokens"],
  ["a parameter that no provider has", { ...ok, sampling: { toString: 5 } }, "unknown parameter sampling.toString"],
  ["a priority that is none", { ...ok, priority: "high" }, "priority"],
  ["a failover that is none", { ...ok, failover: "sometimes" }, "failover must be on or off"],
  ["a deadline that is none", { ...ok, deadlineMs: Number.NaN }, "deadlineMs"],
  ["a deadline in the past", { ...ok, deadlineMs: -1 }, "deadlineMs must not be negative"],
  ["a hole in the parts", { messages: [{ role: "user", content: new Array(4_000_000_000) }] }, "list of parts"],
  ["a hole in the tools", { ...ok, tools: new Array(4_000_000_000) }, "tools has an empty place"],
  ["a cycle in the tools", { ...ok, tools: [cyclic] }, "tools can't be written as JSON"],
  ["a bigint in the extra body", { ...ok, extraBody: { seed: 1n } }, "extraBody can't be written as JSON"],
  ["a cycle in the format", { ...ok, responseFormat: cyclic }, "responseFormat can't be written as JSON"],
  ["a cycle in the tool choice", { ...ok, toolChoice: cyclic }, "toolChoice can't be written as JSON"],
  ["messages nested too deeply", { messages: [{ role: "user", content: deep(100_000) }] }, "nested too deeply"],
])("%s is refused by the field's name", (_, request, problem) => {
  expect(problemOf(request)).toContain(problem);
});

test("what is accepted comes back as the messages' JSON, once, untouched", () => {
  const request: ChatRequest = {
    messages: [{ role: "system", content: null, extra: { kept: true } }, ...ok.messages],
    sampling: { temperature: 0, stop: ["\n"] },
    tools: [{ type: "function" }],
    priority: -3,
    deadlineMs: 0,
  };
  const before = JSON.stringify(request);
  expect(checkRequest(request, "chat").messagesJson).toBe(JSON.stringify(request.messages));
  expect(JSON.stringify(request)).toBe(before);
});

test("what the caller changes afterwards doesn't reach a later attempt", () => {
  const sampling: Record<string, unknown> = { temperature: 0, seed: undefined };
  const checked = checkRequest({ ...ok, sampling }, "chat");
  sampling.temperature = 2;
  expect(checked.sampling).toEqual({ temperature: 0 });
});

test("parameters are those of their own call, whatever the call before had", () => {
  const value = fc.constantFrom<unknown>(0, 1, true, "x", undefined, ["x"]);
  const names = ["temperature", "stop", "seed"] as const;
  const samplings = fc.record(Object.fromEntries(names.map((name) => [name, value])), {
    requiredKeys: [],
    noNullPrototype: true,
  });
  fc.assert(
    fc.property(fc.array(samplings, { maxLength: 6 }), (calls) => {
      for (const sampling of calls) {
        const checked = checkRequest({ ...ok, sampling: sampling as Sampling }, "chat").sampling;
        expect(checked).toStrictEqual(sampling);
        expect(checked).not.toBe(sampling);
      }
    }),
  );
});

test.each([
  ["a list", {}, []],
  ["a parameter that nobody knows", { seed: 1 }, { seed: 1, toString: Object.prototype.toString }],
  ["a number that is none", { seed: 1 }, { seed: Number.NaN }],
])("%s is refused right after parameters that were fine", (_, fine, sampling) => {
  checkRequest({ ...ok, sampling: fine as Sampling }, "chat");
  expect(problemOf({ ...ok, sampling })).toContain("sampling");
});
