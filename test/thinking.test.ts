import { inspect } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import {
  AllSourcesExhausted,
  type CallRecord,
  type ChatRequest,
  ConfigError,
  createSystemRuntime,
  GatewayClient,
  type GatewayOptions,
  MemoryCache,
  profiles,
  RequestRejectedError,
  type SourceOptions,
} from "../src/index.js";
import { answerWith, chatBody, type Respond, sendJson, startRecordingServer } from "./support/recording-server.js";

/** Thinking, parameters and what a source can't do, from the public API to the wire. */

const messages = [{ role: "user", content: "hi" }];
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Given = Partial<SourceOptions> & { readonly respond?: Respond };

/** A client whose sources have a server each. */
async function start(sources: readonly Given[], more: Partial<GatewayOptions> = {}) {
  const servers = await Promise.all(sources.map(({ respond }) => startRecordingServer(respond ?? answerWith("ok"))));
  for (const server of servers) closers.push(() => server[Symbol.asyncDispose]());
  const records: CallRecord[] = [];
  const client = new GatewayClient({
    scope: "LLM",
    sources: sources.map(({ respond: _, ...source }, index) => ({
      name: `s${index + 1}`,
      baseUrl: servers[index]!.baseUrl,
      apiKey: "none",
      model: "m",
      priority: index,
      ...source,
    })),
    telemetry: {
      open: () => undefined,
      record: (record: CallRecord) => void records.push(record),
      flush: async () => {},
      close: async () => {},
    } as unknown as NonNullable<GatewayOptions["telemetry"]>,
    ...more,
  });
  closers.push(() => client.close());
  const bodies = (index = 0) => servers[index]!.seen.map(({ body }) => body);
  return { client, servers, records, bodies };
}

async function rejection(asked: Promise<unknown>): Promise<RequestRejectedError> {
  const error = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RequestRejectedError);
  return error as RequestRejectedError;
}

function refuse(status: number, message: string, more: object = {}): Respond {
  return (response) => sendJson(response, status, JSON.stringify({ error: { message, ...more } }));
}

const GLM_53 = { profile: "glm", model: "glm-5.3" };
const GLM_47 = { profile: "glm", model: "glm-4.7" };
const QWEN = { profile: "qwen", model: "qwen-plus" };

describe("who takes a call", () => {
  test("a source that can't do it is left out, whatever its priority", async () => {
    const { client, servers } = await start([GLM_53, GLM_47]);
    expect((await client.chat({ messages, thinking: false })).sourceName).toBe("s2");
    expect((await client.chat({ messages, thinking: true })).sourceName).toBe("s1");
    expect((await client.stream({ messages, thinking: false }).final).sourceName).toBe("s2");
    expect(servers.map(({ seen }) => seen.length)).toEqual([1, 2]);
  });

  test("a left-out source is named as incapable when the others fail", async () => {
    const { client } = await start([GLM_53, { ...GLM_47, respond: refuse(500, "no") }], { retry: { maxAttempts: 1 } });
    const error = await client.chat({ messages, thinking: false }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AllSourcesExhausted);
    expect((error as AllSourcesExhausted).perSourceReasons.s1).toMatchObject({
      reason: "incapable",
      lastError: { code: "unsupported_param", message: "glm-5.3 can't be kept from thinking" },
    });
  });

  test("none is able: one row, nothing sent, every source with its reason", async () => {
    const { client, servers, records } = await start([GLM_53, { profile: "kimi", model: "kimi-k3" }]);
    const error = await rejection(client.chat({ messages, thinking: false }));
    expect(error.code).toBe("unsupported_param");
    expect(error.operation).toBe("chat");
    expect(error.message).toContain("s1: glm-5.3 can't be kept from thinking; s2: kimi-k3");
    expect(servers.flatMap(({ seen }) => seen)).toEqual([]);
    expect(records.map(({ outcome, final, errorCode, sampling }) => [outcome, final, errorCode, sampling])).toEqual([
      ["rejected", true, "unsupported_param", '{"thinking":false}'],
    ]);
  });

  test("images don't go to a text-only provider; where nothing is known they do", async () => {
    const image = [
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] },
    ];
    const { client, servers } = await start([{ profile: "deepseek" }, { profile: "vllm" }]);
    expect((await client.chat({ messages: image })).sourceName).toBe("s2");
    expect((await client.chat({ messages })).sourceName).toBe("s1");
    const alone = await start([{ profile: "deepseek" }]);
    expect((await rejection(alone.client.chat({ messages: image }))).code).toBe("unsupported_modality");
    expect([servers[0]!.seen.length, alone.servers[0]!.seen.length]).toEqual([1, 0]);
  });

  test("a pinned parameter is refused with its value, never dropped", async () => {
    const { client, servers } = await start([{ profile: "kimi", model: "kimi-k2-thinking" }]);
    const error = await rejection(client.chat({ messages, sampling: { temperature: 0.2 } }));
    expect(error.message).toContain("kimi-k2-thinking takes only 1 for temperature");
    expect(error.details).toEqual({ param: "temperature" });
    await client.chat({ messages, sampling: { temperature: 1 } });
    expect(servers[0]!.seen.map(({ body }) => body.temperature)).toEqual([1]);
  });

  test.each<[Given, ChatRequest["sampling"], ChatRequest["thinking"], boolean]>([
    [{ model: "gpt-5.1" }, { temperature: 0 }, undefined, true],
    [{ model: "gpt-5.1" }, { temperature: 0 }, false, true],
    [{ model: "gpt-5.1" }, { temperature: 0 }, "high", false],
    [{ model: "gpt-5" }, { temperature: 0 }, undefined, false],
    [{ model: "gpt-5" }, { temperature: 1 }, undefined, true],
    [{ model: "o3" }, { stop: ["x"] }, undefined, false],
    [{ model: "gpt-4o" }, { stop: ["a", "b", "c", "d"] }, undefined, true],
    [{ model: "gpt-4o" }, { stop: ["a", "b", "c", "d", "e"] }, undefined, false],
    [{ model: "gpt-5", thinking: "low" }, { logprobs: true }, undefined, false],
    [{ profile: "xai", model: "grok-4" }, { stop: "x" }, undefined, false],
    [{ profile: "xai", model: "grok-4-fast-non-reasoning" }, { stop: "x" }, undefined, true],
    [{ profile: "glm", model: "glm-4.7" }, { temperature: 1.2 }, undefined, false],
    [{ profile: "mistral" }, { topK: 5 }, undefined, false],
    [{ model: "m" }, { topK: 5 }, undefined, true],
  ])("%j with %j and thinking %j: sent %s", async (source, sampling, thinking, sent) => {
    const { client, servers } = await start([source]);
    const asked = client.chat({ messages, sampling: sampling!, ...(thinking === undefined ? {} : { thinking }) });
    if (sent) await asked;
    else await rejection(asked);
    expect(servers[0]!.seen).toHaveLength(sent ? 1 : 0);
  });
});

describe("whose word counts", () => {
  test("nothing is sent where nobody says anything", async () => {
    const { client, bodies } = await start([GLM_47]);
    await client.chat({ messages });
    expect(Object.keys(bodies()[0]!)).toEqual(["model", "messages", "stream", "stream_options"]);
  });

  test("the call wins over EXTRA_BODY, EXTRA_BODY over the source's default, the call's extraBody over all", async () => {
    const extraBody = { thinking: { type: "enabled", budget_tokens: 9 }, reasoning_effort: "high", top_k: 3 };
    const { client, bodies } = await start([{ ...GLM_47, thinking: false, extraBody }]);
    await client.chat({ messages });
    await client.chat({ messages, thinking: false });
    await client.chat({ messages, thinking: true, extraBody: { thinking: { type: "adaptive" } } });
    const { thinking, reasoning_effort, top_k } = bodies()[0]!;
    expect({ thinking, reasoning_effort, top_k }).toEqual(extraBody);
    expect(bodies()[1]).toMatchObject({ thinking: { type: "disabled" }, top_k: 3 });
    expect(bodies()[1]).not.toHaveProperty("reasoning_effort");
    expect(bodies()[1]!.thinking).toEqual({ type: "disabled" });
    expect(bodies()[2]!.thinking).toEqual({ type: "adaptive" });
    expect(extraBody.thinking).toEqual({ type: "enabled", budget_tokens: 9 });
  });

  test("other settings beside a provider's switch stay", async () => {
    const extraBody = { chat_template_kwargs: { enable_thinking: true, style: "dry" } };
    const { client, bodies } = await start([{ profile: "vllm", extraBody }]);
    await client.chat({ messages, thinking: false });
    expect(bodies()[0]!.chat_template_kwargs).toEqual({ enable_thinking: false, style: "dry" });
  });

  test("a source's default holds for calls that don't say, and gives way to the call's own fields", async () => {
    const { client, bodies, records } = await start([{ ...QWEN, thinking: { budgetTokens: 500 } }]);
    await client.chat({ messages });
    await client.chat({ messages, thinking: false });
    await client.chat({ messages, extraBody: { enable_thinking: false } });
    expect(bodies().map((body) => [body.enable_thinking, body.thinking_budget])).toEqual([
      [true, 500],
      [false, undefined],
      [false, undefined],
    ]);
    expect(records.map(({ sampling }) => sampling)).toEqual([
      '{"thinking":{"budgetTokens":500}}',
      '{"thinking":false}',
      '{"enable_thinking":false}',
    ]);
  });

  test.each<[Given, ChatRequest["thinking"], number | undefined, object | null]>([
    [{ profile: "kimi", model: "kimi-k3" }, "medium", undefined, { reasoning_effort: "high" }],
    [{ profile: "kimi", model: "kimi-k3" }, { budgetTokens: 900 }, undefined, { reasoning_effort: "low" }],
    [QWEN, "low", undefined, { enable_thinking: true, thinking_budget: 1_024 }],
    [GLM_47, "high", undefined, { thinking: { type: "enabled" } }],
    [GLM_47, { budgetTokens: 10 }, undefined, { thinking: { type: "enabled" } }],
    [
      { profile: "siliconflow" },
      { budgetTokens: 99_999 },
      undefined,
      { enable_thinking: true, thinking_budget: 32_768 },
    ],
    [
      { profile: "anthropic", model: "claude-sonnet-4-5" },
      { budgetTokens: 9_000 },
      2_000,
      { thinking: { type: "enabled", budget_tokens: 1_999 } },
    ],
    [GLM_53, false, undefined, null],
    [{ model: "gpt-4o" }, "high", undefined, null],
    [GLM_47, "hihg", undefined, null],
  ])("nearest: %j for %j (maxTokens %s) is %j", async (source, thinking, maxTokens, fields) => {
    const { client, bodies } = await start([source]);
    const sampling = maxTokens === undefined ? {} : { sampling: { maxTokens } };
    const asked = client.chat({ messages, thinking: thinking!, thinkingFallback: "nearest", ...sampling });
    if (fields === null) await rejection(asked);
    else await asked;
    if (fields !== null) expect(bodies()[0]).toMatchObject(fields);
    else expect(bodies()).toEqual([]);
  });

  test("a budget that maxTokens leaves no room for is refused", async () => {
    const { client } = await start([{ profile: "anthropic", model: "claude-sonnet-4-5" }]);
    const asked = client.chat({ messages, thinking: { budgetTokens: 4_096 }, sampling: { maxTokens: 4_096 } });
    expect((await rejection(asked)).message).toContain("below maxTokens");
  });

  test.each<[unknown, string]>([
    [{ budgetTokens: 0 }, "budgetTokens"],
    [{ budgetTokens: 1.5 }, "budgetTokens"],
    [{ budget: 5 }, 'unknown field "budget"'],
    ["HIGH", "lower-case"],
    [7, "no way to think"],
    [null, "no way to think"],
    [["low"], "no way to think"],
  ])("thinking %j is a mistake", async (thinking, text) => {
    const { client } = await start([GLM_47]);
    const error = await rejection(client.chat({ messages, thinking } as ChatRequest));
    expect(error).toMatchObject({ code: "bad_request" });
    expect(error.message).toContain(text);
    const odd = { messages, thinkingFallback: "any" } as unknown as ChatRequest;
    expect((await rejection(client.chat(odd))).message).toContain('"nearest"');
  });
});

describe("streaming", () => {
  test.each<[Given, ChatRequest["thinking"], boolean]>([
    [QWEN, true, true],
    [QWEN, undefined, false],
    [QWEN, false, false],
    [{ profile: "qwen", model: "qwen3-8b" }, undefined, true],
    [{ profile: "qwen", model: "qwen3-8b" }, false, false],
    [{ profile: "qwen", model: "qwq-plus" }, undefined, true],
    [{ profile: "qwen", model: "qwen-plus", thinking: true }, undefined, true],
    [GLM_47, true, false],
  ])("%j with thinking %j and stream: false is streamed: %s", async (source, thinking, streamed) => {
    const { client, bodies } = await start([source]);
    const reply = await client.chat({ messages, stream: false, ...(thinking === undefined ? {} : { thinking }) });
    expect(reply.content).toBe("ok");
    expect(bodies()[0]!.stream === true).toBe(streamed);
  });
});

test.each([
  "parameter.enable_thinking must be set to false for non-streaming calls",
  "This model only supports streaming",
  "This model must be used with stream=true",
])("a model that answers only streams is streamed from then on: %s", async (message) => {
  const respond: Respond = (response, request) =>
    request.body.stream === true
      ? answerWith("ok")(response, request)
      : sendJson(response, 400, JSON.stringify({ error: { message } }));
  const { client, bodies } = await start([{ profile: "qwen", model: "fresh", respond }], { retry: { maxAttempts: 1 } });
  expect((await client.chat({ messages, stream: false })).content).toBe("ok");
  expect((await client.chat({ messages, stream: false })).content).toBe("ok");
  expect(bodies().map(({ stream }) => stream)).toEqual([undefined, true, true]);
});

test("a source that thinks although it was asked not to is told of, once a minute", async () => {
  const warnings: string[] = [];
  const runtime = { ...createSystemRuntime(), log: (_level: string, message: string) => void warnings.push(message) };
  const thinks: Respond = (response) =>
    sendJson(
      response,
      200,
      JSON.stringify({ choices: [{ message: { reasoning: "hm", content: "ok" }, finish_reason: "stop" }] }),
    );
  const { client } = await start([{ profile: "vllm", respond: thinks }], { runtime });
  await client.chat({ messages });
  await client.chat({ messages, thinking: true });
  expect(warnings).toEqual([]);
  await client.chat({ messages, thinking: false });
  await client.stream({ messages, thinking: false }).final;
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("s1 was asked not to think and did");
});

describe("the cache", () => {
  test("other thinking is another answer", async () => {
    const { client, servers } = await start([QWEN], { cache: new MemoryCache() });
    for (const thinking of [undefined, true, false, { budgetTokens: 5 }, { budgetTokens: 6 }] as const) {
      const request = { messages, ...(thinking === undefined ? {} : { thinking }) };
      expect([(await client.chat(request)).cacheHit, (await client.chat(request)).cacheHit]).toEqual([false, true]);
    }
    expect(servers[0]!.seen).toHaveLength(5);
  });

  test("sources that think otherwise by default don't share", async () => {
    const cache = new MemoryCache();
    const quiet = await start([{ ...QWEN, thinking: false }], { cache });
    const loud = await start([{ ...QWEN, thinking: true }], { cache });
    await quiet.client.chat({ messages });
    expect((await loud.client.chat({ messages })).cacheHit).toBe(false);
  });
});

describe("what a source says about our choices", () => {
  const renaming =
    (from: string, to: string): Respond =>
    (response, { body }) =>
      body[from] === undefined
        ? sendJson(response, 200, chatBody("ok"))
        : sendJson(
            response,
            400,
            JSON.stringify({
              error: {
                message: `Unsupported parameter: '${from}' is not supported with this model. Use '${to}' instead.`,
                type: "invalid_request_error",
                param: from,
                code: "unsupported_parameter",
              },
            }),
          );

  test("the limit goes by the other name from then on, with the caller's number, in a single counted attempt", async () => {
    const { client, bodies, records } = await start([{ respond: renaming("max_tokens", "max_completion_tokens") }], {
      retry: { maxAttempts: 1 },
    });
    await client.chat({ messages, sampling: { maxTokens: 7 } });
    await client.chat({ messages, sampling: { maxTokens: 8 } });
    expect(bodies().map((body) => [body.max_tokens, body.max_completion_tokens])).toEqual([
      [7, undefined],
      [undefined, 7],
      [undefined, 8],
    ]);
    expect(records.map(({ outcome, final }) => [outcome, final])).toEqual([
      ["rejected", false],
      ["success", true],
      ["success", true],
    ]);
  });

  test("the other way round, and for calls at the same time", async () => {
    const source = { profile: "groq", respond: renaming("max_completion_tokens", "max_tokens") };
    const { client, bodies } = await start([source]);
    const calls = [1, 2, 3].map((maxTokens) => client.chat({ messages, sampling: { maxTokens } }));
    await Promise.all(calls);
    await client.chat({ messages, sampling: { maxTokens: 9 } });
    expect(bodies().at(-1)).toMatchObject({ max_tokens: 9 });
    expect(bodies().filter((body) => body.max_tokens !== undefined)).toHaveLength(4);
  });

  test("a source that takes neither name ends the call", async () => {
    const message = "Use max_tokens or max_completion_tokens? Neither is supported";
    const { client, servers } = await start([{ respond: refuse(400, message, { code: "unsupported_parameter" }) }]);
    await rejection(client.chat({ messages, sampling: { maxTokens: 7 } }));
    expect(servers[0]!.seen).toHaveLength(2);
  });

  test.each<[string, Partial<ChatRequest>]>([
    ["max_tokens is too large: 99999. This model supports at most 16384", { sampling: { maxTokens: 99_999 } }],
    ["max_tokens is not supported, use max_completion_tokens", { extraBody: { max_tokens: 7 } }],
    ["temperature is not supported with this model", { sampling: { temperature: 0 } }],
  ])("%s: the caller's own is never changed", async (message, request) => {
    const { client, servers } = await start([{ respond: refuse(400, message) }]);
    await rejection(client.chat({ messages, ...request }));
    expect(servers[0]!.seen).toHaveLength(1);
  });

  test("thinking that a source doesn't understand is never left out: another source takes the call", async () => {
    const message = "Unrecognized request argument supplied: enable_thinking";
    const { client, servers } = await start([
      { ...QWEN, model: "m", respond: refuse(400, message) },
      { ...GLM_47, model: "m" },
    ]);
    expect((await client.chat({ messages, thinking: false })).sourceName).toBe("s2");
    const alone = await start([{ ...QWEN, respond: refuse(400, message) }]);
    const error = await rejection(alone.client.chat({ messages, thinking: false }));
    expect(error.details).toMatchObject({ param: "thinking" });
    expect([servers[0]!.seen.length, alone.servers[0]!.seen.length]).toEqual([1, 1]);
  });
});

describe("profiles of one's own", () => {
  test("a whole object is used as it is, and later changes don't reach the source", async () => {
    const own = structuredClone({ ...profiles.glm!, name: "mine" }) as {
      -readonly [K in keyof typeof profiles.glm]: unknown;
    };
    const { client, bodies } = await start([{ profile: own as typeof profiles.glm & object, model: "x" }]);
    Object.assign(own, { thinking: [] });
    await client.chat({ messages, thinking: false });
    expect(bodies()[0]!.thinking).toEqual({ type: "disabled" });
  });

  test("single facts are laid over the named profile, or over the one of the host", async () => {
    const { client, servers } = await start([
      {
        profile: {
          extends: "zhipu",
          auth: { header: "x-key", scheme: "" },
          chatPath: "/talk",
          query: { v: "1" },
          parameterNames: { maxTokens: "max_out" },
          reasoningFields: ["musing"],
          usage: { fields: { prompt: ["in.all"] } },
        },
        apiKey: "sk-own-key-12345",
        respond: (response) =>
          sendJson(
            response,
            200,
            JSON.stringify({
              choices: [{ index: 0, message: { content: "ok", musing: "hm" }, finish_reason: "stop" }],
              usage: { in: { all: 11 }, completion_tokens: 2 },
            }),
          ),
      },
    ]);
    const reply = await client.chat({ messages, thinking: true, sampling: { maxTokens: 5 } });
    const [seen] = servers[0]!.seen;
    expect(seen!.url).toBe("/v1/talk?v=1");
    expect(seen!.headers["x-key"]).toBe("sk-own-key-12345");
    expect(seen!.body).toMatchObject({ max_out: 5, thinking: { type: "enabled" } });
    expect([reply.thinking, reply.usage.promptTokens]).toEqual(["hm", 11]);
  });

  test("a secret in the query of a profile is as secret as a key", async () => {
    const secret = "q-secret-77d3aa11";
    const { client } = await start(
      [
        {
          profile: { query: { key: secret }, auth: { header: "x-own", scheme: "Token" } },
          apiKey: "sk-own-key-12345",
          respond: (response, { url, headers }) =>
            sendJson(response, 400, JSON.stringify({ error: { message: `bad: ${url} ${headers["x-own"]}` } })),
        },
      ],
      { retry: { maxAttempts: 1 } },
    );
    const error = await rejection(client.chat({ messages }));
    expect(error.bodyText).toContain("[redacted]");
    expect(inspect(error, { depth: 9 })).not.toMatch(/77d3aa11|own-key-12345/);
  });

  test("every problem at once, by its place", () => {
    const profile = {
      extends: "gml",
      thinkng: [],
      hosts: "x",
      errorCodes: { "1": "nonsense" },
      errorRules: [{ words: "(" }],
    };
    const source = { name: "a", baseUrl: "http://127.0.0.1/v1", apiKey: "none", model: "m" };
    const make = () => new GatewayClient({ scope: "LLM", sources: [{ ...source, profile: profile as never }] });
    const found = problemsOf(make).map(({ problem, remedy }) => `${problem} ${remedy}`);
    expect(found).toHaveLength(6);
    for (const text of [
      "thinkng",
      "Did you mean thinking?",
      "no list at hosts",
      "errorCodes.1",
      "errorRules[0].words",
      "lacks errorRules[0].becomes",
      "Did you mean glm?",
    ]) {
      expect(found.join("\n")).toContain(text);
    }
  });
});

test("a pattern that may take for ever is refused, wherever it stands", () => {
  const models = "^(a+)+$";
  const profile = {
    extends: "openai",
    errorRules: [
      { words: "^(a|a)*$", becomes: "overloaded" },
      { words: "rate.*limit.*exceeded", becomes: "overloaded" },
    ],
    thinking: [{ models, on: {} }],
    parameters: [{ models, names: {} }],
  };
  const source = { name: "a", baseUrl: "http://127.0.0.1/v1", apiKey: "none", model: "m" };
  const make = () => new GatewayClient({ scope: "LLM", sources: [{ ...source, profile: profile as never }] });
  const found = problemsOf(make).map(({ problem }) => problem);
  expect(found).toHaveLength(3);
  for (const place of ["errorRules[0].words", "thinking[0].models", "parameters[0].models"]) {
    expect(found.join("\n")).toContain(`has a pattern at ${place} that may take for ever`);
  }
});

function problemsOf(make: () => unknown) {
  try {
    make();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe("from the environment", () => {
  const BASE = {
    LLM__A__1__BASE_URL: "https://open.bigmodel.cn/api/paas/v4",
    LLM__A__1__API_KEY: "sk-some-key-123",
    LLM__A__1__MODEL: "glm-5.3",
  };
  const problems = (env: Record<string, string>) =>
    problemsOf(() => GatewayClient.fromEnv("LLM", { env: { ...BASE, ...env } }));

  test.each([
    [{ LLM__A__1__THINKING: "on" }, 0],
    [{ LLM__A__1__THINKING: "high" }, 0],
    [{ LLM__A__1__THINKING: "off" }, 1],
    [{ LLM__A__1__THINKING: "4096" }, 1],
    [{ LLM__A__1__THINKING: '{"budgetTokens": 5}' }, 1],
    [{ LLM__A__1__THINKING: '{"budgetTokens": 5' }, 1],
    [{ LLM__A__1__THINKING: '{"budgetTokens": 4096}', LLM__A__1__PROFILE: "qwen", LLM__A__1__MODEL: "qwen-plus" }, 0],
    [{ LLM__A__1__THINKING: "off", LLM__A__1__PROFILE: '{"thinking": [{"off": {}, "on": {}}]}' }, 0],
    [{ LLM__A__1__PROFILE: '{"extends": "dashscope", "streamOptions": false}' }, 0],
    [{ LLM__A__1__PROFILE: '{"streamOptions": "no"}' }, 1],
    [{ LLM__A__1__PROFILE: '{"streamOptions": ' }, 1],
    [{ LLM__A__1__PROFILE: "one-api" }, 0],
    [{ LLM__A__1__PROFILE: "onapi" }, 1],
  ] as const)("%j has %d problems", (env, count) => {
    const found = problems(env as Record<string, string>);
    expect(found).toHaveLength(count);
    for (const { key } of found) expect(Object.keys(env)).toContain(key);
  });

  test("a default that can't be done says so, in the same words in code", () => {
    const [fromEnv] = problems({ LLM__A__1__THINKING: "off" });
    expect(fromEnv).toMatchObject({
      key: "LLM__A__1__THINKING",
      value: "off",
      problem: "can't be done: glm-5.3 can't be kept from thinking",
    });
    const source = {
      name: "a_1",
      baseUrl: BASE.LLM__A__1__BASE_URL,
      apiKey: "none",
      model: "glm-5.3",
      thinking: false,
    };
    const [fromCode] = problemsOf(() => new GatewayClient({ scope: "LLM", sources: [source] }));
    expect(fromCode).toMatchObject({ key: "sources[0].thinking", problem: fromEnv!.problem });
  });
});
