import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveScope } from "../config/resolve.js";
import { type CacheKeyInput, cacheKey, isCacheable } from "./cache-key.js";
import { OPENAI_PROFILE } from "./profile.js";
import type { SourceConfig } from "./source.js";

const source = (changes: Partial<SourceConfig> = {}): SourceConfig => ({
  ...resolveScope({
    scope: "LLM",
    sources: [{ name: "s_1", baseUrl: "http://127.0.0.1:9/v1", apiKey: "k", model: "m" }],
  }).config.sources[0]!,
  ...changes,
});

const messages = [{ role: "user", content: "hi" }];
const keyOf = (request: CacheKeyInput["request"] = {}, changes: Partial<CacheKeyInput> = {}) =>
  cacheKey({
    request,
    messagesJson: JSON.stringify(messages),
    sources: [source()],
    namespace: "",
    salt: "",
    ...changes,
  });

const image = (data: string) => [
  {
    role: "user",
    content: [
      { type: "text", text: "what?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
    ],
  },
];

describe("the cache key", () => {
  const plain = keyOf();

  test.each<[string, string | null]>([
    ["another text", keyOf({}, { messagesJson: JSON.stringify([{ role: "user", content: "ho" }]) })],
    ["a system prompt", keyOf({}, { messagesJson: JSON.stringify([{ role: "system", content: "x" }, ...messages]) })],
    ["a field of a message", keyOf({}, { messagesJson: JSON.stringify([{ ...messages[0], name: "Ann" }]) })],
    ["tools", keyOf({ tools: [{ type: "function", function: { name: "f" } }] })],
    ["a tool choice", keyOf({ toolChoice: "none" })],
    ["a temperature", keyOf({ sampling: { temperature: 0 } })],
    ["a seed", keyOf({ sampling: { seed: 1 } })],
    ["a response format", keyOf({ responseFormat: { type: "json_object" } })],
    ["a field of one provider", keyOf({ extraBody: { top_k: 3 } })],
    ["a namespace", keyOf({}, { namespace: "tenant" })],
    ["a salt", keyOf({}, { salt: "secret" })],
    ["another model", keyOf({}, { sources: [source({ model: "m2" })] })],
    ["another dialect", keyOf({}, { sources: [source({ profile: { ...OPENAI_PROFILE, name: "relay" } })] })],
    ["another standing field", keyOf({}, { sources: [source({ extraBody: { seed: 7 } })] })],
    ["a larger pool", keyOf({}, { sources: [source(), source({ model: "m2" })] })],
    ["an image", keyOf({}, { messagesJson: JSON.stringify(image("AAAA")) })],
    ["another image", keyOf({}, { messagesJson: JSON.stringify(image("AAAB")) })],
  ])("%s gives a key of its own", (_, key) => {
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(key).not.toBe(plain);
  });

  test("all of these differ from each other", () => {
    const keys = [
      keyOf({ sampling: { temperature: 0 } }),
      keyOf({ extraBody: { temperature: 0 } }),
      keyOf({}, { namespace: "a", salt: "b" }),
      keyOf({}, { namespace: "b", salt: "a" }),
      keyOf({}, { namespace: "ab" }),
      keyOf({}, { messagesJson: JSON.stringify(image("AAAA")) }),
      keyOf({}, { messagesJson: JSON.stringify(image("AAAB")) }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  test.each<[string, string | null]>([
    ["who calls", keyOf({ extraBody: { user: "u", metadata: { a: 1 } } })],
    ["how it is delivered", keyOf({ extraBody: { stream: true, stream_options: { include_usage: true } } })],
    ["empty settings", keyOf({ sampling: {}, tools: [], extraBody: {} })],
    ["a setting that is undefined", keyOf({ sampling: { temperature: undefined } as object })],
    [
      "the name, key and address of a source",
      keyOf({}, { sources: [source({ name: "other", baseUrl: "http://x/v1" })] }),
    ],
    ["a second source of the same kind", keyOf({}, { sources: [source(), source({ name: "s_2" })] })],
  ])("%s changes nothing", (_, key) => {
    expect(key).toBe(plain);
  });

  test("the order of fields never matters (property)", () => {
    const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });
    fc.assert(
      fc.property(json, (extraBody) => {
        const turned = Object.fromEntries(Object.entries(extraBody).reverse());
        expect(keyOf({ extraBody: turned })).toBe(keyOf({ extraBody }));
      }),
    );
  });

  test("what has no canonical form is not cached", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 500; level += 1) deep = [deep];
    expect(keyOf({ extraBody: { deep } })).toBeNull();
  });
});

describe("what is worth keeping", () => {
  const good = { content: "yes", toolCalls: [], finishReason: "stop" } as const;

  test.each([
    ["a whole answer", good, true],
    ["calls of tools", { content: "", toolCalls: [{}], finishReason: "tool_calls" }, true],
    ["a cut answer", { ...good, finishReason: "length" }, false],
    ["a filtered one", { ...good, finishReason: "content_filter" }, false],
    ["an unknown end", { ...good, finishReason: "unknown" }, false],
    ["an end without a reason", { ...good, finishReason: null }, false],
    ["an empty one", { ...good, content: " \n" }, false],
    ["a refusal", { ...good, refusal: "no" }, false],
    ["two whole choices", { ...good, choices: [good, good] }, true],
    ["choices of which one was cut", { ...good, choices: [good, { ...good, finishReason: "length" }] }, false],
    ["choices of which one is empty", { ...good, choices: [good, { ...good, content: "" }] }, false],
  ] as const)("%s: %j → %s", (_, answer, expected) => {
    expect(isCacheable(answer)).toBe(expected);
  });

  test("fewer choices than were asked for are no whole answer", () => {
    expect(isCacheable(good, 2)).toBe(false);
    expect(isCacheable({ ...good, choices: [good, good] }, 2)).toBe(true);
  });
});
