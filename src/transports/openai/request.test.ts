import { afterEach, describe, expect, it } from "vitest";
import type { ChatRequest } from "../../domain/chat.js";
import type { SourceConfig } from "../../domain/source.js";
import { RequestRejectedError } from "../../errors.js";
import { testSource } from "../attempt.test-helper.js";
import { profiles } from "./profiles.js";
import { buildWireBody } from "./request.js";

const NOTHING_KNOWN = { dropped: new Set<string>(), names: {} };
const messages = [{ role: "user", content: "hi", vendor_knob: 1 }];

function wire(request: Partial<ChatRequest> = {}, source: Partial<SourceConfig> = {}, stream = false) {
  const config = testSource("http://127.0.0.1/v1", source);
  const full = { messages, ...request };
  return JSON.parse(
    buildWireBody(full, JSON.stringify(full.messages), stream, config, {
      ...NOTHING_KNOWN,
      names: config.profile.parameterNames,
    }).json,
  );
}

describe("wire body", () => {
  it("is the smallest that says it", () => {
    expect(wire()).toEqual({ model: "m-test", messages });
    expect(wire({}, {}, true)).toEqual({
      model: "m-test",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("reuses the messages verbatim", () => {
    const source = testSource("http://127.0.0.1/v1");
    const odd = '[ {"role":"user","content":"1.0" } ]';
    expect(buildWireBody({ messages }, odd, false, source, NOTHING_KNOWN).json).toContain(`"messages":${odd}`);
  });

  it("maps sampling to the wire names, renamed by the profile", () => {
    const sampling = {
      temperature: 0,
      topP: 0.5,
      topK: 3,
      minP: 0.1,
      maxTokens: 9,
      stop: ["x"],
      seed: 1,
      presencePenalty: 1,
      frequencyPenalty: 2,
      logitBias: { 5: 1 },
      logprobs: true,
      topLogprobs: 2,
      n: 2,
    };
    const { model: _m, messages: _ms, ...fields } = wire({ sampling });
    expect(fields).toEqual({
      temperature: 0,
      top_p: 0.5,
      top_k: 3,
      min_p: 0.1,
      max_tokens: 9,
      stop: ["x"],
      seed: 1,
      presence_penalty: 1,
      frequency_penalty: 2,
      logit_bias: { 5: 1 },
      logprobs: true,
      top_logprobs: 2,
      n: 2,
    });
    const profile = { ...profiles.openai!, parameterNames: { maxTokens: "max_completion_tokens" } };
    expect(wire({ sampling: { maxTokens: 9 } }, { profile })).toMatchObject({ max_completion_tokens: 9 });
    const usual = Object.freeze({ maxTokens: 9, seed: 2 });
    expect(wire({ sampling: usual }, { profile })).toMatchObject({ max_completion_tokens: 9, seed: 2 });
    expect(wire({ sampling: usual })).toMatchObject({ max_tokens: 9, seed: 2 });
    expect(wire({ sampling: Object.freeze({ maxTokens: 8 }) })).toMatchObject({ max_tokens: 8 });
  });

  it("call wins over source, deeply; lists are replaced", () => {
    const body = wire(
      { sampling: { temperature: 1 }, extraBody: { opts: { a: 2, deep: { y: 1 } }, list: [2] } },
      { extraBody: { temperature: 0, opts: { a: 1, b: 1, deep: { x: 1 } }, list: [1], kept: true } },
    );
    expect(body).toMatchObject({ temperature: 1, opts: { a: 2, b: 1, deep: { x: 1, y: 1 } }, list: [2], kept: true });
  });

  it("a caller's own stream_options stay, and nothing counts as ours", () => {
    const source = testSource("http://127.0.0.1/v1");
    const request = { messages, extraBody: { stream_options: { include_usage: false } } };
    const body = buildWireBody(request, "[]", true, source, NOTHING_KNOWN);
    expect(JSON.parse(body.json).stream_options).toEqual({ include_usage: false });
    expect(body.added).toEqual([]);
  });

  it("never changes its inputs", () => {
    const freeze = <T>(value: T): T => {
      if (typeof value === "object" && value !== null) for (const inner of Object.values(value)) freeze(inner);
      return Object.freeze(value);
    };
    const request = freeze({
      tools: [{ type: "function" }],
      responseFormat: { type: "json_object", validate: false },
      extraBody: { a: { b: 1 } },
    });
    expect(wire(request, { extraBody: freeze({ a: { c: 1 } }) }, true)).toMatchObject({
      a: { b: 1, c: 1 },
      tools: [{ type: "function" }],
      response_format: { type: "json_object" },
    });
  });
});

describe("hostile fields", () => {
  afterEach(() => {
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("__proto__ and constructor pollute nothing", () => {
    const evil = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"a":{"__proto__":{"polluted":1}}}',
    );
    const body = wire({ extraBody: evil }, { extraBody: evil });
    expect(Object.hasOwn(body, "__proto__")).toBe(false);
    expect(body.constructor).toEqual({ prototype: { polluted: 1 } });
  });

  it.each([
    [
      "a cycle",
      () => {
        const cycle: Record<string, unknown> = {};
        cycle.self = cycle;
        return { cycle };
      },
    ],
    ["a bigint", () => ({ big: 1n })],
    ["depth", () => JSON.parse(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`)],
    ["deep lists", () => ({ a: JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`) })],
    ["a reserved field", () => ({ stream: true })],
  ])("%s is refused locally", (_name, make) => {
    expect(() => wire({ extraBody: make() })).toThrow(RequestRejectedError);
  });
});
