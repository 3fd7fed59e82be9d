import { inspect } from "node:util";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type ChatRequest,
  type JsonSchema,
  PricingTable,
  RequestRejectedError,
  type ResultInvalidError,
} from "../src/index.js";
import { call, replyOf, type Way } from "./support/calls.js";
import { CANARY_KEY, caseClient, sourceOf } from "./support/case-client.js";
import {
  answerWith,
  chatBody,
  type RecordingServer,
  type Respond,
  type SeenRequest,
  sendJson,
  startRecordingServer,
} from "./support/recording-server.js";
import { OBJECT_ONLY, PROMPT_ONLY } from "./support/weak-profiles.js";

/** Structured output over real HTTP, seen from the caller's and from the provider's side. */

const WAYS: readonly Way[] = ["chat", "stream"];
const hi: ChatRequest = { messages: [{ role: "user", content: "hi" }] };
const SCHEMA: JsonSchema = {
  type: "object",
  properties: { a: { type: "number" } },
  required: ["a"],
  additionalProperties: false,
};
const NATIVE = { type: "json_schema", json_schema: { name: "x", schema: SCHEMA, strict: true } };

interface Message {
  readonly role: string;
  readonly content: string;
}

const messagesOf = ({ body }: SeenRequest): Message[] => body.messages as Message[];
const formatOf = ({ body }: SeenRequest): string | undefined =>
  (body.response_format as { type: string } | undefined)?.type;

/** Answers one after the other, the last one for ever; a number is a status, an object a body of its own. */
function replies(...answers: (string | number | object)[]): Respond {
  let turn = 0;
  return (response, request) => {
    const answer = answers[Math.min(turn, answers.length - 1)]!;
    turn += 1;
    if (typeof answer === "string") answerWith(answer)(response, request);
    else if (typeof answer === "number") sendJson(response, answer, JSON.stringify({ error: { message: "refused" } }));
    else sendJson(response, 200, JSON.stringify(answer));
  };
}

const ended = (content: string, finish_reason: string, message: object = {}, completion_tokens = 3) => ({
  choices: [{ index: 0, message: { role: "assistant", content, ...message }, finish_reason }],
  usage: { prompt_tokens: 5, completion_tokens, total_tokens: 5 + completion_tokens },
});

function clientFor({ baseUrl }: RecordingServer, more: object = {}, options: object = {}) {
  return caseClient([sourceOf("s_1", baseUrl, more)], { retry: { maxAttempts: 1 }, ...options });
}

async function failure(work: Promise<unknown>): Promise<ResultInvalidError> {
  return work.then(
    (value) => {
      throw new Error(`expected a failure, got ${JSON.stringify(value)}`);
    },
    (error: unknown) => error as ResultInvalidError,
  );
}

const EVERY_KEYWORD = {
  $id: "https://example.com/s",
  type: ["object", "null"],
  properties: {
    a: true,
    b: { items: [{ minLength: 0 }], additionalItems: false },
    c: { prefixItems: [true], items: {} },
  },
  patternProperties: { "^x-": { contains: {}, minContains: 0, maxContains: 1, uniqueItems: false, minItems: 0 } },
  additionalProperties: { multipleOf: 0.5, minimum: 0, maximum: 9, exclusiveMinimum: -1, exclusiveMaximum: 9.5 },
  required: ["a"],
  propertyNames: { pattern: "^.", format: "regex", maxLength: 9 },
  dependentRequired: { b: ["c"] },
  dependentSchemas: { b: true },
  dependencies: { b: ["a"], c: { type: "object" } },
  allOf: [],
  anyOf: [true],
  oneOf: [{ not: false }],
  if: { const: null },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: true,
  else: { maxProperties: 9, minProperties: 0 },
};

/** A schema of a few lines that looks at one value 2^n times. */
function doubling(levels: number): JsonSchema {
  const $defs: Record<string, unknown> = { [`d${levels}`]: { type: "string" } };
  for (let at = 0; at < levels; at += 1) {
    const next = { $ref: `#/$defs/d${at + 1}` };
    $defs[`d${at}`] = { allOf: [next, next] };
  }
  return { type: "object", properties: { a: { $ref: "#/$defs/d0" } }, $defs };
}

describe("every kind of schema", () => {
  const asked = async (schema: never, options = {}, answer = '{"a":1}') => {
    await using server = await startRecordingServer(replies(answer));
    const { client } = clientFor(server);
    const { value } = await client.structured(hi, schema, { maxReasks: 0, ...options });
    await client.close();
    const { json_schema: sent } = server.seen[0]!.body.response_format as { json_schema: { schema: unknown } };
    return { value, sent: sent.schema };
  };
  const wire = { ...SCHEMA };

  it.each([
    ["JSON Schema", SCHEMA, {}],
    ["zod", z.object({ a: z.number() }), {}],
    ["zod, strict", z.strictObject({ a: z.number() }), {}],
    ["arktype", type({ a: "number" }), {}],
    ["valibot", v.object({ a: v.number() }), { jsonSchema: SCHEMA }],
    ["JSON Schema, draft-07", { ...SCHEMA, $schema: "http://json-schema.org/draft-07/schema#" }, {}],
  ])("%s", async (_, schema, options) => {
    expect(await asked(schema as never, options)).toEqual({ value: { a: 1 }, sent: wire });
  });

  it("a schema of a zod that can't tell its JSON Schema is converted", async () => {
    const whole = z.object({ a: z.number() });
    const { jsonSchema: _no, ...standard } = whole["~standard"] as object as Record<string, unknown>;
    const old = Object.create(whole, {
      "~standard": { value: standard },
      toJSONSchema: { value: undefined },
    });
    expect(await asked(old as never)).toEqual({ value: { a: 1 }, sent: wire });
  });

  it("the schema's own output is the value: transforms and async checks", async () => {
    const schema = z.object({ a: z.string().transform((text) => text.length) });
    expect((await asked(schema as never, {}, '{"a":"four"}')).value).toEqual({ a: 4 });
    const later = z.object({ a: z.number().refine(async (a) => a > 1, "more than 1") });
    const error = await failure(asked(later as never));
    expect(error.issues).toEqual([{ path: "a", expected: "a value without this problem: more than 1", got: "1" }]);
  });

  it("the value has the type of the schema", async () => {
    await using server = await startRecordingServer(replies('{"a":1}'));
    const { client } = clientFor(server);
    const fromZod: { a: number } = (await client.structured(hi, z.object({ a: z.number() }))).value;
    const fromArk: { a: number } = (await client.structured(hi, type({ a: "number" }))).value;
    const options = { jsonSchema: SCHEMA };
    const fromValibot: { a: number } = (await client.structured(hi, v.object({ a: v.number() }), options)).value;
    const given: { a: number } = (await client.structured<{ a: number }>(hi, SCHEMA)).value;
    expect([fromZod, fromArk, fromValibot, given]).toEqual([{ a: 1 }, { a: 1 }, { a: 1 }, { a: 1 }]);
    await client.close();
  });

  it.each([
    ["recursion that goes deeper", { properties: { a: { type: "number" }, next: { $ref: "#" } } }],
    [
      "keys that are called like keywords",
      { properties: { a: { type: "number" }, type: {}, $dynamicRef: {}, enum: {} } },
    ],
    ["notes that look like schemas", { type: "object", default: { type: 5 }, "x-note": { type: 5, properties: null } }],
    [
      "draft 4",
      { $schema: "http://json-schema.org/draft-04/schema#", properties: { a: { minimum: 0, exclusiveMinimum: true } } },
    ],
    ["every kind of keyword", EVERY_KEYWORD],
    [
      "references to one part from many places",
      { anyOf: Array(50).fill({ $ref: "#/$defs/a" }), $defs: { a: { type: "object" } } },
    ],
  ])("taken: %s", async (_, schema) => {
    expect((await asked(schema as never)).value).toEqual({ a: 1 });
  });

  it("a text that is too long for its pattern doesn't fit, and says so", async () => {
    const schema = { properties: { a: { type: "string", pattern: "a+b" } }, patternProperties: { y$: {} } };
    expect((await asked(schema as never, {}, `{"a":"${"a".repeat(9_999)}b"}`)).value).toBeDefined();
    const error = await failure(asked(schema as never, {}, `{"a":"${"a".repeat(10_000)}b"}`));
    expect(error.issues).toContainEqual(
      expect.objectContaining({ path: "a", expected: "a text of at most 10000 characters" }),
    );
    const key = await failure(asked(schema as never, {}, `{"${"x".repeat(10_001)}":1}`));
    expect(JSON.stringify(key.issues)).toContain("at most 10000 characters");
    expect((await asked({ properties: { a: { pattern: "b$" } } } as never, {}, '{"a":"ab"}')).value).toEqual({
      a: "ab",
    });
    expect(await failure(asked({ properties: { a: { pattern: "^b" } } } as never, {}, '{"a":"ab"}'))).toMatchObject({
      issues: [{ path: "a", expected: "a text that matches the pattern of the schema" }],
    });
  });

  it("parts that refer to themselves several times are followed so far and no further", async () => {
    const next = { anyOf: [{ $ref: "#/$defs/n" }, { $ref: "#/$defs/n" }] };
    const schema = { ...next, $defs: { n: { type: "object", properties: { n: next } } } };
    const deep = (levels: number): string => `${'{"n":'.repeat(levels)}{}${"}".repeat(levels)}`;
    expect((await asked(schema as never, {}, deep(8))).value).toEqual(JSON.parse(deep(8)));
    const error = await failure(asked(schema as never, {}, deep(40)));
    expect(JSON.stringify(error.issues)).toContain("refer to each other too often");
    const list = { type: "array", items: { $ref: "#/$defs/n" }, $defs: { n: { type: "number" } } };
    const numbers = Array(200_000).fill(1);
    expect((await asked(list as never, {}, JSON.stringify(numbers))).value).toEqual(numbers);
  });

  it("a schema that throws is a misfit, not a crash", async () => {
    const validate = () => Promise.reject(new Error("broken check"));
    const schema = { "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input: () => SCHEMA } } };
    const error = await failure(asked(schema as never));
    expect(error).toMatchObject({ code: "schema" });
    expect(JSON.stringify(error.issues)).toContain("broken check");
  });

  it.each([
    ["valibot without a JSON Schema", v.object({ a: v.number() }), {}, /valibot.*jsonSchema/],
    ["what can't be JSON", z.object({ d: z.date() }), {}, /Date.*jsonSchema/],
    ["a reference that leads nowhere", { $ref: "#/$defs/none" }, {}, /#\/\$defs\/none/],
    ["a reference to somewhere else", { $ref: "https://example.com/s.json" }, {}, /example\.com/],
    ["properties that are none", { type: "object", properties: null }, {}, /#\/properties must be an object/],
    ["a key without a schema", { properties: { a: null } }, {}, /#\/properties\/a must be a schema/],
    ["values that are no list", { properties: { a: { enum: 5 } } }, {}, /#\/properties\/a\/enum must be a list/],
    ["no values at all", { enum: [] }, {}, /#\/enum must be a list of at least one value, not \[\]/],
    ["alternatives that are no list", { anyOf: { type: "string" } }, {}, /#\/anyOf must be a list/],
    ["an alternative that is none", { anyOf: [true, 5] }, {}, /#\/anyOf\/1 must be a schema .*, not 5/],
    ["no alternatives", { oneOf: [] }, {}, /#\/oneOf must be a list of at least one schema/],
    ["a wrong schema behind a reference", { $ref: "#/x/y", x: { y: { items: 5 } } }, {}, /#\/x\/y\/items must be/],
    [
      "a wrong one in a list",
      { prefixItems: [{ required: "zzz" }] },
      {},
      /#\/prefixItems\/0\/required must be a list of/,
    ],
    ["a count that is none", { minLength: "3" }, {}, /minLength must be a whole number/],
    ["a bound that is none", { minimum: "3" }, {}, /minimum must be a number/],
    ["a bound of draft 4", { exclusiveMinimum: true }, {}, /exclusiveMinimum must be a number \(.*draft 4/],
    ["a flag that is none", { uniqueItems: "yes" }, {}, /uniqueItems must be true or false/],
    ["a pattern that is no text", { pattern: 5 }, {}, /pattern must be a text/],
    ["a reference that is no text", { $ref: 5 }, {}, /\$ref must be a text/],
    ["a misspelt type", { properties: { a: { type: "objekt" } } }, {}, /#\/properties\/a\/type: "objekt" is no type/],
    ["a reference to itself", { allOf: [{ $ref: "#" }] }, {}, /leads back to itself/],
    [
      "references in a circle",
      {
        type: "object",
        properties: { a: { $ref: "#/$defs/x" } },
        $defs: { x: { $ref: "#/$defs/y" }, y: { not: { $ref: "#/$defs/x" } } },
      },
      {},
      /leads back to itself/,
    ],
    [
      "what would not be enforced: dynamic",
      { properties: { a: { $dynamicRef: "#x" } }, $defs: { q: { $dynamicAnchor: "x", type: "string" } } },
      {},
      /#\/properties\/a uses \$dynamicRef/,
    ],
    ["what would not be enforced: recursive", { items: { $recursiveRef: "#" } }, {}, /#\/items uses \$recursiveRef/],
    ["references that double", doubling(18), {}, /multiply/],
    [
      "a pattern that takes for ever",
      { properties: { a: { pattern: "^(a+)+$" } } },
      {},
      /#\/properties\/a\/pattern: .*\^\(a\+\)\+\$ may take for ever/,
    ],
    [
      "a pattern of keys that does",
      { patternProperties: { "^(a|a)*$": {} } },
      {},
      /patternProperties: the pattern .* may take for ever/,
    ],
    ["a pattern of the fifth power", { pattern: "^.*a.*a.*a.*a.*a$" }, {}, /may take for ever/],
    ["a broken pattern", { type: "string", pattern: "(" }, {}, /can't be used/],
    ["no schema", "object", {}, /Standard Schema/],
    ["nothing", undefined, {}, /Standard Schema/],
    ["an unknown option", SCHEMA, { reasks: 1 }, /maxReasks/],
    ["an unknown strategy", SCHEMA, { strategy: "tools" }, /auto, native or prompt/],
    ["a wrong number", SCHEMA, { maxReasks: -1 }, /maxReasks/],
    ["a wrong name", SCHEMA, { name: "a b" }, /name/],
    ["a wrong switch", SCHEMA, { coerce: "yes" }, /coerce/],
  ])("refused before anything is sent: %s", async (_, schema, options, text) => {
    await using server = await startRecordingServer();
    const { client } = clientFor(server);
    const error = await failure(client.structured(hi, schema as never, options as never));
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "bad_request", operation: "chat" });
    expect(error.message).toMatch(text);
    expect(server.seen).toEqual([]);
    await client.close();
  });

  it.each([
    ["n > 1", { sampling: { n: 2 } }],
    ["a response format", { responseFormat: { type: "json_object" } }],
    ["a response format in extraBody", { extraBody: { response_format: { type: "json_object" } } }],
  ])("refused: %s", async (_, more) => {
    await using server = await startRecordingServer();
    const { client } = clientFor(server);
    expect(await failure(client.structured({ ...hi, ...more }, SCHEMA))).toMatchObject({ code: "bad_request" });
    expect(server.seen).toEqual([]);
    await client.close();
  });
});

describe("what providers are told", () => {
  const sent = async (schema: JsonSchema, options = {}, source = {}) => {
    await using server = await startRecordingServer(replies("no"));
    const { client } = clientFor(server, source);
    await failure(client.structured(hi, schema, { maxReasks: 0, ...options }));
    await client.close();
    const [request] = server.seen as [SeenRequest];
    const format = request.body.response_format as { type: string; json_schema?: Record<string, unknown> } | undefined;
    return { format, described: format?.json_schema, prompt: messagesOf(request)[0]! };
  };

  it("a name, strict where the schema is, nothing in the prompt", async () => {
    const { described, prompt } = await sent(SCHEMA, { name: "my_answer" });
    expect(described).toEqual({ name: "my_answer", schema: SCHEMA, strict: true });
    expect(prompt).toEqual(hi.messages[0]);
  });

  it("a key that may be left out stays so: not strict, and not closed", async () => {
    const schema = { type: "object", properties: { a: { type: "number" }, b: { type: "string" } }, required: ["a"] };
    expect((await sent(schema)).described).toEqual({ name: "answer", schema, strict: false });
    const open = { type: "object", additionalProperties: { type: "number" } };
    expect((await sent(open)).described).toEqual({ name: "answer", schema: open, strict: false });
  });

  it("an object that says nothing of other keys is closed, so that it can be enforced", async () => {
    const { additionalProperties: _, ...loose } = SCHEMA;
    expect((await sent(loose)).described).toEqual({ name: "answer", schema: SCHEMA, strict: true });
  });

  it.each([
    ["a list", { type: "array", items: { type: "number" } }, "[1,2]", [1, 2]],
    ["a number", { type: "number" }, "12", 12],
    ["a choice", { enum: ["yes", "no"] }, '"yes"', "yes"],
    ["a union", { anyOf: [SCHEMA, { type: "null" }] }, "null", null],
    ["anything", {}, '{"value":{"value":1}}', { value: 1 }],
  ])("%s is asked for inside an object, and comes without it", async (_, schema, bare, value) => {
    const { described } = await sent(schema);
    expect(described!.schema).toMatchObject({ type: "object", required: ["value"], additionalProperties: false });
    for (const answer of [JSON.stringify({ value }), JSON.stringify(JSON.stringify({ value })), bare]) {
      // A text is anything too.
      if (answer.startsWith('"{') && Object.keys(schema).length === 0) continue;
      await using server = await startRecordingServer(replies(answer));
      const { client } = clientFor(server);
      const got = await client.structured(hi, schema, { maxReasks: 0 });
      if (answer !== bare || Object.keys(schema).length > 0) expect(got.value).toEqual(value);
      expect(got.reply.parsed).toEqual(got.value);
      await client.close();
    }
  });

  it("what providers don't know is told in the prompt instead", async () => {
    const schema = {
      type: "object",
      properties: {
        title: { type: "string", maxLength: 20, description: "short" },
        tags: { type: "array", items: { type: "string" }, uniqueItems: true },
        kind: { oneOf: [{ const: "a" }, { const: "b" }] },
      },
      required: ["title", "tags", "kind"],
      not: { required: ["x"] },
    };
    const { described, prompt } = await sent(schema);
    expect(described).toMatchObject({ strict: true });
    expect(JSON.stringify(described)).not.toMatch(/maxLength|uniqueItems|oneOf|not/);
    expect(prompt.role).toBe("system");
    expect(prompt.content).toContain('title: {"maxLength":20}');
    expect(prompt.content).toContain('tags: {"uniqueItems":true}');
    expect(prompt.content).toContain('the whole answer: {"not":{"required":["x"]}}');
  });

  it("references are written out, recursive ones kept under safe names", async () => {
    const tree = {
      $ref: "#/definitions/Tree%20of%20things",
      definitions: {
        "Tree of things": {
          type: "object",
          properties: {
            name: { $ref: "#/definitions/a~1b", description: "its name" },
            left: { anyOf: [{ $ref: "#/definitions/Tree of things", description: "left" }, { type: "null" }] },
          },
          required: ["name", "left"],
          additionalProperties: false,
        },
        "a/b": { type: "string" },
      },
    };
    const { described } = await sent(tree);
    expect(described!.strict).toBe(true);
    const node = {
      type: "object",
      properties: {
        name: { type: "string", description: "its name" },
        left: { anyOf: [{ $ref: "#/$defs/Tree_of_things" }, { type: "null" }] },
      },
      required: ["name", "left"],
      additionalProperties: false,
    };
    expect(described!.schema).toEqual({ ...node, $defs: { Tree_of_things: node } });
    await using server = await startRecordingServer(replies('{"name":"x","left":{"name":"y","left":null}}'));
    const { client } = clientFor(server);
    expect((await client.structured(hi, tree)).value).toMatchObject({ left: { name: "y" } });
    await client.close();
  });

  it("parts that all hold become one where that means the same", async () => {
    const part = (name: string) => ({ type: "object", properties: { [name]: { type: "number" } }, required: [name] });
    const joined = await sent({ allOf: [part("a"), part("b")] });
    expect(joined.described).toMatchObject({ strict: true, schema: { required: ["a", "b"] } });
    const closed = await sent({ ...part("a"), allOf: [{ ...part("a"), additionalProperties: false }] });
    expect(closed.prompt.content).toContain("allOf");
  });

  it("a schema that grows without bound when written out is not", async () => {
    const $defs: Record<string, unknown> = { d40: { type: "string" } };
    for (let at = 0; at < 40; at += 1) {
      const next = { $ref: `#/$defs/d${at + 1}` };
      $defs[`d${at}`] = { type: "object", properties: { x: next, y: next }, required: ["x", "y"] };
    }
    const { described } = await sent({ type: "object", properties: { a: { $ref: "#/$defs/d0" } }, $defs });
    expect(JSON.stringify(described).length).toBeLessThan(1_000_000);
  });

  it("neither the caller's schema nor the request is changed", async () => {
    const freeze = <T>(value: T): T => {
      if (typeof value === "object" && value !== null) for (const inner of Object.values(value)) freeze(inner);
      return Object.freeze(value);
    };
    const schema = freeze({ ...SCHEMA, properties: { a: { $ref: "#/$defs/n" } }, $defs: { n: { type: "integer" } } });
    const request = freeze({
      messages: [{ role: "system", content: "s" }, ...hi.messages],
      sampling: { maxTokens: 9 },
    });
    await using server = await startRecordingServer(replies("no", ended("", "length"), '{"a":1}'));
    const { client } = clientFor(server);
    await client.structured(request, schema, { strategy: "prompt" });
    expect(server.seen).toHaveLength(3);
    await client.close();
  });

  it.each([
    ["none", undefined, "json_schema", false],
    [OBJECT_ONLY, undefined, "json_object", true],
    [PROMPT_ONLY, undefined, undefined, true],
    ["none", "prompt", undefined, true],
  ] as const)("profile %s, strategy %s", async (profile, strategy, format, inPrompt) => {
    const options = strategy === undefined ? {} : { strategy };
    const got = await sent(SCHEMA, options, profile === "none" ? {} : { profile });
    expect(got.format?.type).toBe(format);
    expect(got.prompt.content.includes(JSON.stringify(SCHEMA))).toBe(inPrompt);
    expect(/json/i.test(got.prompt.content)).toBe(inPrompt);
  });

  it("the instruction joins a system message that is there", async () => {
    const forms: [ChatRequest["messages"][number], string][] = [
      [{ role: "system", content: "Be brief." }, "Be brief.\n\nAnswer with"],
      [{ role: "developer", content: [{ type: "text", text: "Be brief." }] }, '"text":"Answer with'],
    ];
    for (const [first, text] of forms) {
      await using server = await startRecordingServer(replies('{"a":1}'));
      const { client } = clientFor(server);
      await client.structured({ messages: [first, ...hi.messages] }, SCHEMA, { strategy: "prompt" });
      const messages = messagesOf(server.seen[0]!);
      expect(messages.map(({ role }) => role)).toEqual([first.role, "user"]);
      const { content } = messages[0]! as { content: unknown };
      expect(typeof content === "string" ? content : JSON.stringify(content)).toContain(text);
      await client.close();
    }
  });
});

describe("asking again", () => {
  it("the reply and what is wrong go back; only the last of them", async () => {
    await using server = await startRecordingServer(replies('{"a":"x"}', '{"b":1}', '{"a":1}'));
    const { client } = clientFor(server);
    expect(await client.structured(hi, SCHEMA)).toMatchObject({ value: { a: 1 }, asks: 3 });
    const [, second, third] = server.seen.map(messagesOf) as [Message[], Message[], Message[]];
    expect(second).toEqual([
      ...hi.messages,
      { role: "assistant", content: '{"a":"x"}' },
      { role: "user", content: expect.stringContaining('- a: expected number, got "x"') },
    ]);
    expect(third).toHaveLength(3);
    expect(third[1]!.content).toBe('{"b":1}');
    expect(third[2]!.content).toContain("- a: expected a value, since the key is required, got nothing");
    expect(third[2]!.content).toContain("- b: expected no such key, got 1");
    await client.close();
  });

  it("the list of what is wrong stays short, whatever came", async () => {
    const schema = { type: "object", additionalProperties: { type: "number" } };
    const answer = JSON.stringify(
      Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, "x".repeat(5_000)])),
    );
    await using server = await startRecordingServer(replies(answer, "{}"));
    const { client } = clientFor(server);
    await client.structured(hi, schema);
    const [, reply, again] = messagesOf(server.seen[1]!) as [Message, Message, Message];
    expect(again.content.split("\n- ")).toHaveLength(21);
    expect(again.content.length).toBeLessThan(6_000);
    expect(reply.content.length).toBeLessThan(33_000);
    await client.close();
  });

  it.each([
    [0, 1],
    [1, 2],
    [undefined, 3],
    [5, 6],
  ])("maxReasks %s: %i asks", async (maxReasks, asks) => {
    await using server = await startRecordingServer(replies("no"));
    const { client } = clientFor(server);
    const error = await failure(client.structured(hi, SCHEMA, maxReasks === undefined ? {} : { maxReasks }));
    expect(error).toMatchObject({ code: "malformed", rawText: "no", details: { asks } });
    expect(server.seen).toHaveLength(asks);
    await client.close();
  });

  it("a cut answer is asked for with twice the room, and with nothing said of it", async () => {
    const limits = async (sampling: ChatRequest["sampling"] | undefined, extraBody = {}, tokens = 3) => {
      await using server = await startRecordingServer(replies(ended('{"a":', "length", {}, tokens)));
      const { client } = clientFor(server);
      const request = { ...hi, ...(sampling && { sampling }), extraBody };
      const error = await failure(client.structured(request, SCHEMA));
      expect(error.code).toBe("truncated");
      for (const seen of server.seen) expect(messagesOf(seen)).toEqual(hi.messages);
      await client.close();
      return server.seen.map(({ body }) => body.max_completion_tokens ?? body.max_tokens);
    };
    expect(await limits({ maxTokens: 100 })).toEqual([100, 200, 400]);
    expect(await limits(undefined)).toEqual([undefined, 2_048, 4_096]);
    expect(await limits(undefined, {}, 30_000)).toEqual([undefined, 60_000, 120_000]);
    expect(await limits({ maxTokens: 100_000 })).toEqual([100_000, 131_072]);
    expect(await limits({ maxTokens: 200_000 })).toEqual([200_000]);
    expect(await limits(undefined, { max_completion_tokens: 50 })).toEqual([50, 100, 200]);
  });

  it("all of it spent on reasoning is the same", async () => {
    await using server = await startRecordingServer(
      replies(ended("", "length", { reasoning_content: "hm" }), '{"a":1}'),
    );
    const { client } = clientFor(server);
    const got = await client.structured({ ...hi, sampling: { maxTokens: 10 } }, SCHEMA);
    expect(got).toMatchObject({ value: { a: 1 }, asks: 2 });
    expect(server.seen.map(({ body }) => body.max_tokens)).toEqual([10, 20]);
    await client.close();
  });

  it("a model that can't give more room has the last word with what it said", async () => {
    const refusal: Respond = (response) =>
      sendJson(
        response,
        400,
        JSON.stringify({ error: { message: "max_tokens must be at most 10", param: "max_tokens" } }),
      );
    let turn = 0;
    await using server = await startRecordingServer((response, request) => {
      turn += 1;
      if (turn === 1) sendJson(response, 200, JSON.stringify(ended('{"a":', "length")));
      else refusal(response, request);
    });
    const { client } = clientFor(server);
    const error = await failure(client.structured({ ...hi, sampling: { maxTokens: 10 } }, SCHEMA));
    expect(error).toMatchObject({ name: "ResultInvalidError", code: "truncated", rawText: '{"a":' });
    expect(error.cause).toBeInstanceOf(RequestRejectedError);
    expect(error.message).toContain("max_tokens must be at most 10");
    await client.close();
  });

  it("a refusal is final", async () => {
    const refusing = ended("", "stop", { content: null, refusal: "I can't help with that." });
    await using server = await startRecordingServer(replies(refusing));
    const { client, recorder } = clientFor(server);
    const error = await failure(client.structured(hi, SCHEMA));
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error).toMatchObject({ code: "refused", upstreamMessage: "I can't help with that." });
    expect(server.seen).toHaveLength(1);
    expect(recorder.rows).toMatchObject([{ outcome: "rejected", final: true }]);
    await client.close();
  });

  it("so is a filter that withheld the answer, and a call of tools", async () => {
    const calls = [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }];
    const cases = [
      [ended("I was saying", "content_filter"), "content_filtered"],
      [ended("", "tool_calls", { tool_calls: calls }), "malformed"],
    ] as const;
    for (const [answer, code] of cases) {
      await using server = await startRecordingServer(replies(answer));
      const { client } = clientFor(server);
      expect(await failure(client.structured(hi, SCHEMA))).toMatchObject({ code });
      expect(server.seen).toHaveLength(1);
      await client.close();
    }
  });

  it("tokens and money of all asks are told", async () => {
    const pricing = { costNanos: (_model: string, { totalTokens }: { totalTokens: number }) => BigInt(totalTokens) };
    await using server = await startRecordingServer(replies("no", '{"a":1}'));
    const { client } = clientFor(server, { stream: false }, { pricing });
    const got = await client.structured(hi, SCHEMA);
    expect(got.usage).toMatchObject({ promptTokens: 10, completionTokens: 6, totalTokens: 16, source: "measured" });
    expect(got.cost).toBe(16e-9);
    await client.close();
  });

  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const withImage = { messages: [{ role: "user", content: [{ type: "text", text: "q" }, image] }] };
  const noUsage = (content: string) => ({
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  });

  it.each([
    ["images", withImage, replies("no", "no", '{"a":1}')],
    ["no usage reported", hi, replies(noUsage("no"), noUsage("no"), noUsage('{"a":1}'))],
    ["attempts that were retried", hi, replies("no", ended("", "stop"), 500, '{"a":1}')],
    ["useless to the end", hi, replies("no")],
    ["a refusal at the end", hi, replies("no", ended("", "stop", { refusal: "I won't" }))],
    ["a source that fails at the end", hi, replies("no", "no", 401)],
  ])("they are the sum over the rows, to the last nano-unit: %s", async (_, request, respond) => {
    await using server = await startRecordingServer(respond);
    const prices = { inputPer1M: 10_000, outputPer1M: 10_000, perImage: 0.1 };
    const pricing = new PricingTable({ [sourceOf("s_1", "").model]: prices });
    const options = { pricing, retry: { maxAttempts: 3, backoffBaseMs: 1, backoffMaxMs: 1 } };
    const { client, recorder } = clientFor(server, { profile: OBJECT_ONLY, stream: false }, options);
    const got = await client.structured(request as ChatRequest, SCHEMA).catch((error) => error.details);
    await client.close();
    const billed = recorder.rows.filter(({ promptTokens }) => promptTokens !== null);
    expect(billed.length).toBeGreaterThan(1);
    expect(got.cost).toBe(Number(billed.reduce((sum, row) => sum + row.costNanos!, 0n)) / 1e9);
    expect(got.usage.promptTokens).toBe(billed.reduce((sum, row) => sum + row.promptTokens!, 0));
    expect(got.usage.completionTokens).toBe(billed.reduce((sum, row) => sum + row.completionTokens!, 0));
  });

  it("a price that is unknown for one of them leaves the sum unknown", async () => {
    let turn = 0;
    const pricing = { costNanos: () => (++turn === 1 ? null : 5n) };
    await using server = await startRecordingServer(replies("no", '{"a":1}'));
    const { client } = clientFor(server, {}, { pricing });
    expect((await client.structured(hi, SCHEMA)).cost).toBeNull();
    await client.close();
  });

  it("what is bent and what isn't", async () => {
    const schema = {
      type: "object",
      properties: {
        n: { type: "number" },
        i: { type: "integer" },
        b: { type: "boolean" },
        s: { type: "string" },
        o: { type: "array", items: { type: "object", properties: { n: { type: "number" } } } },
      },
    };
    const read = async (answer: string, coerce: boolean) => {
      await using server = await startRecordingServer(replies(answer));
      const { client } = clientFor(server);
      const got = await client.structured(hi, schema, { coerce, maxReasks: 0 }).then(
        ({ value }) => value,
        (error: ResultInvalidError) => error.code,
      );
      await client.close();
      return got;
    };
    const bent = '{"n":"12.50","i":"7","b":"true","s":12,"o":"[{\\"n\\":\\"1\\"}]"}';
    expect(await read(bent, false)).toBe("schema");
    expect(await read('{"n":"12.50"}', true)).toEqual({ n: 12.5 });
    expect(await read('{"n":"12.50","i":"7","b":"true","s":12}', true)).toEqual({ n: 12.5, i: 7, b: true, s: "12" });
    expect(await read('{"o":"[{\\"n\\":1}]"}', false)).toEqual({ o: [{ n: 1 }] });
    const stays = ['{"i":"7.5"}', '{"n":"12 €"}', '{"n":""}', '{"n":"0x10"}', '{"n":"NaN"}', '{"b":"yes"}', '{"b":1}'];
    for (const answer of [...stays, '{"i":"12345678901234567890"}', '{"s":null}', '{"s":1e300}', '{"n":true}']) {
      expect([answer, await read(answer, true)]).toEqual([answer, "schema"]);
    }
  });
});

describe("a source that refuses what its profile promises", () => {
  const refusing =
    (refused: readonly string[], message: (type: string) => string, field = "message"): Respond =>
    (response, request) => {
      const type = formatOf(request);
      if (type === undefined || !refused.includes(type)) answerWith('{"a":1}')(response, request);
      else
        sendJson(response, 400, JSON.stringify({ error: { [field]: message(type), type: "invalid_request_error" } }));
    };
  const plain = (type: string) => `response_format type ${type} is unavailable now`;

  it("is asked by weaker means, at once and from then on, with a lease and row for each try and no attempt lost", async () => {
    await using server = await startRecordingServer(refusing(["json_schema"], plain));
    const { client, recorder } = clientFor(server);
    expect(await client.structured(hi, SCHEMA)).toMatchObject({ value: { a: 1 }, asks: 1, reply: { attempts: 2 } });
    expect(await client.structured(hi, SCHEMA)).toMatchObject({ value: { a: 1 }, reply: { attempts: 1 } });
    expect(server.seen.map(formatOf)).toEqual(["json_schema", "json_object", "json_object"]);
    expect(recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([
      ["rejected", false],
      ["success", true],
      ["success", true],
    ]);
    expect(recorder.rows[0]!.messages).not.toContain("JSON Schema");
    expect(recorder.rows[1]!.messages).toContain("JSON Schema");
    await client.close();
  });

  it.each([
    ["it refuses everything", ["json_schema", "json_object"], plain, ["json_schema", "json_object", undefined]],
    [
      "in other words",
      ["json_schema"],
      () => "Structured output is not supported with this model",
      ["json_schema", "json_object"],
    ],
    [
      "as a parameter",
      ["json_schema"],
      () => "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
      ["json_schema", "json_object"],
    ],
  ] as const)("%s", async (_, refused, message, seen) => {
    await using server = await startRecordingServer(refusing(refused, message));
    const { client } = clientFor(server);
    expect((await client.structured(hi, SCHEMA)).value).toEqual({ a: 1 });
    expect(server.seen.map(formatOf)).toEqual(seen);
    await client.close();
  });

  it("a schema that is refused says nothing of the next one", async () => {
    const message = () => "Invalid schema for response_format 'answer': too many properties";
    await using server = await startRecordingServer(refusing(["json_schema"], message));
    const { client } = clientFor(server);
    await client.structured(hi, SCHEMA);
    await client.structured(hi, SCHEMA);
    expect(server.seen.map(formatOf)).toEqual(["json_schema", "json_object", "json_schema", "json_object"]);
    await client.close();
  });

  it("any other refusal stands, even one that quotes the request", async () => {
    await using server = await startRecordingServer((response, { body }) => {
      sendJson(response, 400, JSON.stringify({ error: { message: "messages too odd" }, input: body }));
    });
    const { client } = clientFor(server, { stream: false });
    expect(await failure(client.structured(hi, SCHEMA))).toMatchObject({ code: "bad_request" });
    expect(server.seen).toHaveLength(1);
    await client.close();
  });

  it("what was asked for by name is not weakened: strategy native, and a caller's own format", async () => {
    await using server = await startRecordingServer(refusing(["json_schema"], plain));
    const { client } = clientFor(server);
    expect(await failure(client.structured(hi, SCHEMA, { strategy: "native" }))).toMatchObject({
      name: "RequestRejectedError",
    });
    for (const way of WAYS) {
      const { error } = await call(client, way, { ...hi, responseFormat: NATIVE });
      expect(error).toMatchObject({ name: "RequestRejectedError" });
    }
    expect(server.seen.map(formatOf)).toEqual(["json_schema", "json_schema", "json_schema"]);
    await client.close();
  });

  it("one source's weakness is not another's", async () => {
    await using weak = await startRecordingServer(refusing(["json_schema"], plain));
    await using strong = await startRecordingServer(replies('{"a":1}'));
    const sources = [sourceOf("weak", weak.baseUrl), sourceOf("strong", strong.baseUrl)];
    let first = "weak";
    const order = (names: readonly string[]) => [...names].sort((a, b) => Number(b === first) - Number(a === first));
    const { client } = caseClient(sources, { selector: { order } });
    await client.structured(hi, SCHEMA);
    first = "strong";
    await client.structured(hi, SCHEMA);
    expect(weak.seen.map(formatOf)).toEqual(["json_schema", "json_object"]);
    expect(strong.seen.map(formatOf)).toEqual(["json_schema"]);
    await client.close();
  });
});

describe.each(WAYS)("%s() with a response format", (way) => {
  const asked = async (answer: string | object, request: Partial<ChatRequest>, source = {}) => {
    await using server = await startRecordingServer(replies(answer));
    const { client, recorder } = clientFor(server, source);
    const called = await call(client, way, { ...hi, ...request });
    await client.close();
    return { called, rows: recorder.rows, seen: server.seen };
  };

  it("reads and checks the answer, and asks once", async () => {
    const { called } = await asked('Sure:\n```json\n{"a":1}\n```', { responseFormat: NATIVE });
    expect(replyOf(called)).toMatchObject({ parsed: { a: 1 }, content: 'Sure:\n```json\n{"a":1}\n```' });
    const { called: bad, rows, seen } = await asked('{"a":"x"}', { responseFormat: NATIVE });
    expect(bad.error).toMatchObject({
      name: "ResultInvalidError",
      code: "schema",
      rawText: '{"a":"x"}',
      issues: [{ path: "a", expected: "number", got: '"x"' }],
      partial: { content: '{"a":"x"}' },
      sourceName: "s_1",
    });
    expect(seen).toHaveLength(1);
    expect(rows).toMatchObject([{ outcome: "invalid", final: true, errorCode: "schema", response: '{"a":"x"}' }]);
    expect(rows[0]!.completionTokens).toBeGreaterThan(0);
  });

  it("a JSON object without a schema", async () => {
    const responseFormat = { type: "json_object" };
    expect(replyOf((await asked('{"x":[1]}', { responseFormat })).called).parsed).toEqual({ x: [1] });
    expect((await asked("[1]", { responseFormat })).called.error).toMatchObject({ code: "schema" });
    expect((await asked("hello", { responseFormat })).called.error).toMatchObject({ code: "malformed" });
    expect((await asked('{"x":', { responseFormat })).called.error).toMatchObject({ code: "malformed" });
  });

  it("a credential that the model says again stands in no error", async () => {
    const { called } = await asked(`{"a":"${"x".repeat(50)}${CANARY_KEY}"}`, { responseFormat: NATIVE });
    expect(called.error).toMatchObject({ code: "schema", issues: [{ path: "a" }] });
    expect(inspect(called.error, { depth: 9 })).not.toContain(CANARY_KEY.slice(0, 9));
    expect(JSON.stringify(called.error)).not.toContain(CANARY_KEY.slice(0, 9));
  });

  it("goes out as it was given, but for our own switch", async () => {
    const odd = { ...NATIVE, json_schema: { ...NATIVE.json_schema, vendor: 1 } };
    const { seen } = await asked('{"a":1}', { responseFormat: { ...odd, validate: true } });
    expect(seen[0]!.body.response_format).toEqual(odd);
    expect(messagesOf(seen[0]!)).toEqual(hi.messages);
  });

  it("validate: false switches it off", async () => {
    const { called, seen } = await asked("hello", { responseFormat: { ...NATIVE, validate: false } });
    expect(replyOf(called)).not.toHaveProperty("parsed");
    expect(seen[0]!.body.response_format).toEqual(NATIVE);
    const wrong = await asked("hello", { responseFormat: { ...NATIVE, validate: "no" } });
    expect(wrong.called.error).toMatchObject({ code: "bad_request" });
  });

  it("other formats are the provider's own business", async () => {
    for (const responseFormat of [{ type: "text" }, { type: "grammar", grammar: "x" }, null]) {
      expect(replyOf((await asked("hello", { responseFormat })).called)).not.toHaveProperty("parsed");
    }
  });

  it.each([
    ["json_object", "must be an object"],
    [7, "must be an object"],
    [{ type: 7 }, "type must be a text"],
    [{}, "type must be a text"],
    [{ type: "json_scheme" }, "did you mean json_schema"],
    [{ type: "jsonObject" }, "did you mean json_object"],
    [{ type: "json_schema" }, "has no schema"],
    [{ type: "json_schema", jsonSchema: { name: "a", schema: {} } }, "has no schema"],
    [{ type: "object", properties: {} }, "is a JSON Schema alone"],
    [{ type: "json_schema", json_schema: { name: "a", schema: { type: "objekt" } } }, "no type of JSON Schema"],
  ])("%j is a mistake that is refused before anything is sent", async (responseFormat, problem) => {
    const { seen, called } = await asked("{}", { responseFormat });
    expect(called.error).toMatchObject({ name: "RequestRejectedError", code: "bad_request" });
    expect((called.error as Error).message).toContain(problem);
    expect(seen).toEqual([]);
  });

  it("tool calls and refusals are no final text", async () => {
    const calls = [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }];
    const called = replyOf(
      (await asked(ended("", "tool_calls", { tool_calls: calls }), { responseFormat: NATIVE })).called,
    );
    expect(called.toolCalls).toHaveLength(1);
    expect(called).not.toHaveProperty("parsed");
    const spoken = ended("Let me look.", "tool_calls", { tool_calls: calls });
    expect(replyOf((await asked(spoken, { responseFormat: NATIVE })).called).content).toBe("Let me look.");
    const refusal = ended("", "stop", { content: null, refusal: "no" });
    const refused = replyOf((await asked(refusal, { responseFormat: NATIVE })).called);
    expect(refused).toMatchObject({ refusal: "no" });
    expect(refused).not.toHaveProperty("parsed");
  });

  it("a source that can't is asked in words", async () => {
    const { seen, called } = await asked('{"a":1}', { responseFormat: NATIVE }, { profile: OBJECT_ONLY });
    expect(seen[0]!.body.response_format).toEqual({ type: "json_object" });
    expect(messagesOf(seen[0]!)[0]!.content).toContain(JSON.stringify(SCHEMA));
    expect(replyOf(called).parsed).toEqual({ a: 1 });
    const object = await asked('{"a":1}', { responseFormat: { type: "json_object" } }, { profile: PROMPT_ONLY });
    expect(object.seen[0]!.body).not.toHaveProperty("response_format");
    expect(messagesOf(object.seen[0]!)[0]!.content).toMatch(/JSON object/);
  });

  it("a schema that can't be used is refused before anything is sent", async () => {
    for (const schema of [{ $ref: "#/none" }, { pattern: "(" }, 7]) {
      const { called, seen } = await asked("{}", { responseFormat: { type: "json_schema", json_schema: { schema } } });
      expect(called.error).toMatchObject({ name: "RequestRejectedError", code: "bad_request" });
      expect(seen).toEqual([]);
    }
  });

  it("null is an answer where the schema says so", async () => {
    const schema = { type: ["object", "null"] };
    const reply = replyOf(
      (await asked("null", { responseFormat: { type: "json_schema", json_schema: { schema } } })).called,
    );
    expect(reply).toMatchObject({ parsed: null });
  });
});

describe("stream() with a response format", () => {
  it("hands the deltas over as they come and tells at the end that they don't fit", async () => {
    await using server = await startRecordingServer(replies('{"a":"x"}'));
    const { client } = clientFor(server);
    const stream = client.stream({ ...hi, responseFormat: NATIVE });
    const texts: string[] = [];
    const reading = (async () => {
      for await (const event of stream) if (event.type === "text-delta") texts.push(event.text);
    })();
    expect(await failure(reading)).toMatchObject({ code: "schema", partial: { content: '{"a":"x"}' } });
    expect(texts.join("")).toBe('{"a":"x"}');
    expect(await failure(stream.final)).toMatchObject({ code: "schema" });
    await client.close();
  });

  it("n > 1: the first choice counts", async () => {
    const body = JSON.parse(chatBody('{"a":1}')) as { choices: object[] };
    body.choices.push({ index: 1, message: { role: "assistant", content: "hm" }, finish_reason: "stop" });
    await using server = await startRecordingServer(replies(body));
    const { client } = clientFor(server, { stream: false });
    const reply = await client.chat({ ...hi, responseFormat: NATIVE, sampling: { n: 2 } });
    expect(reply).toMatchObject({ parsed: { a: 1 } });
    expect(reply.choices).toHaveLength(2);
    await client.close();
  });
});
