import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import {
  type ChatRequest,
  ConfigError,
  GatewayClient,
  type GatewayOptions,
  PolyGatewayError,
  RequestRejectedError,
  SourceDeadError,
  type SourceOptions,
} from "../src/index.js";
import { attemptErrorOf, call, replyOf, type Way } from "./support/calls.js";
import { CANARY_KEY, caseClient, sourceOf } from "./support/case-client.js";
import { startLoopbackProxy } from "./support/proxy.js";
import {
  answerWith,
  chatBody,
  deltaEvent,
  type RecordingServer,
  type Respond,
  sendJson,
  startRecordingServer,
} from "./support/recording-server.js";

/** What leaves for the provider, seen from the provider's side. */

const WAYS: readonly Way[] = ["chat", "stream"];
const hi: ChatRequest = { messages: [{ role: "user", content: "hi" }] };

function clientFor(
  { baseUrl }: RecordingServer,
  source: Partial<SourceOptions> = {},
  options: Partial<GatewayOptions> = {},
) {
  return caseClient([sourceOf("s_1", baseUrl, source)], { retry: { maxAttempts: 1 }, ...options });
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}

/** One call against a fresh server: the request as it arrived. */
async function sent(way: Way, request: ChatRequest, source: Partial<SourceOptions> = {}) {
  await using server = await startRecordingServer(answerWith('{"answer":"hello"}'));
  const { client } = clientFor(server, source);
  replyOf(await call(client, way, request));
  await client.close();
  expect(server.seen.length).toBe(1);
  return server.seen[0]!;
}

const ROOMY: ChatRequest = {
  messages: [
    { role: "developer", content: "Be brief.", cache_control: { type: "ephemeral" } },
    {
      role: "user",
      name: "ann",
      content: [
        { type: "text", text: 'é漢🙂\u2028 \\ "' },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
        { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
        { type: "file", file: { file_id: "f-1" }, vendor: [1.5, null, { deep: true }] },
      ],
    },
    {
      role: "assistant",
      content: null,
      reasoning_content: "thought before",
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a": 1}' }, extra: "kept" }],
    },
    { role: "tool", tool_call_id: "c1", content: "1" },
  ],
  tools: [{ type: "function", function: { name: "f", strict: true, parameters: { type: "object" } }, vendor: 1 }],
  toolChoice: { type: "function", function: { name: "f" } },
  responseFormat: { type: "json_object" },
};

describe.each(WAYS)("%s(): the request", (way) => {
  it("goes to the chat address with our headers and asks for no compression", async () => {
    const { method, url, headers } = await sent(way, hi, { headers: { "X-Title": "t" } });
    expect([method, url]).toEqual(["POST", "/v1/chat/completions"]);
    expect(headers).toMatchObject({
      authorization: `Bearer ${CANARY_KEY}`,
      "accept-encoding": "identity",
      "content-type": "application/json",
      "x-title": "t",
    });
  });

  it("has no Authorization for the key `none`, and the source's own where it has one", async () => {
    expect((await sent(way, hi, { apiKey: "none" })).headers.authorization).toBeUndefined();
    const own = await sent(way, hi, { apiKey: "none", headers: { Authorization: "Basic abc", "api-key": "k-1" } });
    expect(own.headers).toMatchObject({ authorization: "Basic abc", "api-key": "k-1" });
  });

  it("carries messages, tools and formats as they were given, and changes none of them", async () => {
    const before = structuredClone(ROOMY);
    const { text, body } = await sent(way, deepFreeze(structuredClone(ROOMY)));
    expect(text).toContain(`"messages":${JSON.stringify(ROOMY.messages)}`);
    expect(body).toMatchObject({
      tools: ROOMY.tools,
      tool_choice: ROOMY.toolChoice,
      response_format: ROOMY.responseFormat,
    });
    expect(ROOMY).toEqual(before);
  });

  it("names sampling as the wire does and passes unknown fields through", async () => {
    const { body } = await sent(way, {
      ...hi,
      sampling: {
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
      },
      extraBody: { enable_thinking: false, vendor: { knob: [1] } },
    });
    const { model, messages, stream: _stream, stream_options: _options, ...fields } = body;
    expect([model, messages]).toEqual(["m-test", hi.messages]);
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
      enable_thinking: false,
      vendor: { knob: [1] },
    });
  });

  it("lays the call over the source's EXTRA_BODY, objects deeply", async () => {
    const extraBody = { temperature: 1, seed: 7, vendor: { a: 1, b: { c: 2, d: 3 }, list: [1, 2] } };
    const request = {
      ...hi,
      sampling: { temperature: 0 },
      extraBody: { vendor: { b: { c: 9 }, list: [3] }, top_p: 1 },
    };
    const { body } = await sent(way, deepFreeze(request), { extraBody: deepFreeze(extraBody) });
    expect(body).toMatchObject({ temperature: 0, seed: 7, top_p: 1 });
    expect(body.vendor).toEqual({ a: 1, b: { c: 9, d: 3 }, list: [3] });
  });

  it("is safe against __proto__, which stays what it is in a message", async () => {
    const evil = JSON.parse('{"__proto__":{"polluted":1},"vendor":{"__proto__":{"polluted":2},"kept":3}}');
    const message = JSON.parse('{"role":"user","content":"hi","__proto__":{"role":"system"}}');
    const { text, body } = await sent(
      way,
      { messages: [message], extraBody: evil },
      { extraBody: { vendor: { a: 1 } } },
    );
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(text).not.toContain("polluted");
    expect(body.vendor).toEqual({ a: 1, kept: 3 });
    expect(text).toContain(`"messages":[${JSON.stringify(message)}]`);
    await expect(sent(way, hi, { extraBody: evil })).rejects.toThrow(ConfigError);
  });

  it("asks for usage in streams, unless the caller says something else", async () => {
    const asked = await sent(way, hi);
    expect(asked.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    const own = await sent(way, { ...hi, extraBody: { stream_options: { include_usage: false } } });
    expect(own.body.stream_options).toEqual({ include_usage: false });
    if (way === "stream") return;
    for (const plain of [await sent(way, { ...hi, stream: false }), await sent(way, hi, { stream: false })]) {
      expect(plain.body).toEqual({ model: "m-test", messages: hi.messages });
    }
  });

  it("drops a parameter of ours that the source refuses, remembers it, and sends again even when one send is allowed", async () => {
    const respond: Respond = (response, request) => {
      if (request.body.stream_options === undefined) answerWith("without")(response, request);
      else sendJson(response, 400, '{"error":{"message":"Unknown parameter: \'stream_options\'.","code":null}}');
    };
    await using server = await startRecordingServer(respond);
    const { client, recorder } = clientFor(server);
    expect(replyOf(await call(client, way, hi))).toMatchObject({ content: "without", attempts: 2 });
    expect(replyOf(await call(client, way, hi))).toMatchObject({ content: "without", attempts: 1 });
    expect(server.seen.map(({ body }) => body.stream_options !== undefined)).toEqual([true, false, false]);
    expect(recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([
      ["rejected", false],
      ["success", true],
      ["success", true],
    ]);
    const called = await call(client, way, { ...hi, extraBody: { stream_options: { include_usage: true } } });
    expect(attemptErrorOf(called)).toBeInstanceOf(RequestRejectedError);
    expect(attemptErrorOf(called)).toMatchObject({ code: "unsupported_param", details: { param: "stream_options" } });
    expect(server.seen.length).toBe(4);
    await client.close();
  });

  it("follows no redirect: neither key nor prompt reaches another address", async () => {
    await using other = await startRecordingServer();
    for (const status of [301, 302, 303, 307, 308]) {
      await using server = await startRecordingServer((response) => {
        response.writeHead(status, { location: `${other.baseUrl}/chat/completions` });
        response.end();
      });
      const { client } = clientFor(server);
      const error = attemptErrorOf(await call(client, way, hi));
      expect(error).toBeInstanceOf(SourceDeadError);
      expect(error).toMatchObject({ code: "endpoint_not_found", statusCode: status });
      expect(server.seen.length).toBe(1);
      await client.close();
    }
    expect(other.sockets.total).toBe(0);
  });
});

describe("what can't be put on the wire", () => {
  const problems: readonly (readonly [string, Partial<SourceOptions>])[] = [
    ["a key with a line break", { apiKey: `${CANARY_KEY}\r\nx-evil: 1` }],
    ["a key with a NUL", { apiKey: `${CANARY_KEY}\0` }],
    ["a header value with a line break", { headers: { "api-key": `${CANARY_KEY}\nx-evil: 1` } }],
    ["a header name with a line break", { headers: { "x-a\r\nx-evil": CANARY_KEY } }],
    ["a header value beyond latin-1", { headers: { "x-token": `${CANARY_KEY}漢` } }],
  ];

  it.each(problems)("%s is refused, nothing is sent and the key isn't shown", async (_what, source) => {
    await using server = await startRecordingServer();
    let thrown: unknown;
    try {
      const { client } = clientFor(server, source);
      thrown = (await call(client, "chat", hi)).error;
      await client.close();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(Error);
    expect(inspect(thrown, { depth: 10 })).not.toContain(CANARY_KEY.slice(0, 12));
    expect(server.seen).toEqual([]);
    expect(ConfigError.isInstance(thrown) || SourceDeadError.isInstance((thrown as Error).cause)).toBe(true);
  });
});

/** Every form in which a provider may echo what it was sent. */
const FORMS = [CANARY_KEY, Buffer.from(CANARY_KEY).toString("base64"), encodeURIComponent(`Bearer ${CANARY_KEY}`)];

function echoing(kind: "refusal" | "page" | "garbage" | "stream-error" | "cut" | "answer"): Respond {
  const text = FORMS.join(" ");
  return (response) => {
    if (kind === "refusal") sendJson(response, 401, JSON.stringify({ error: { message: text, param: CANARY_KEY } }));
    if (kind === "garbage") sendJson(response, 200, JSON.stringify({ unexpected: text }));
    if (kind === "answer") sendJson(response, 200, chatBody(text));
    if (kind === "page") {
      response.writeHead(200, { "content-type": "text/html" });
      response.end(`<html><title>${CANARY_KEY}</title>${text}</html>`);
    }
    if (kind === "stream-error" || kind === "cut") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(deltaEvent(kind === "cut" ? text : "so far"));
      response.end(kind === "cut" ? "" : `data: {"error":{"message":"${text}","code":"server_error"}}\n\n`);
    }
  };
}

describe("our key, echoed by the provider", () => {
  const kinds = ["refusal", "page", "garbage", "stream-error", "cut", "answer"] as const;

  it.each(kinds.flatMap((kind) => WAYS.map((way) => [kind, way] as const)))(
    "in a %s appears in no error and no row of %s()",
    async (kind, way) => {
      await using server = await startRecordingServer(echoing(kind));
      const { client, recorder } = clientFor(server);
      const { error } = await call(client, way, hi);
      expect(error === undefined).toBe(kind === "answer");
      const failure = attemptErrorOfOrNull(error);
      // What the model said is the caller's; everything that we say or keep is clean.
      const { partial: _partial, ...told } = { ...failure };
      const rows = JSON.stringify(recorder.rows, (_key, value) => (typeof value === "bigint" ? String(value) : value));
      const shown = [
        String((error as Error | undefined)?.stack),
        String(failure?.stack),
        JSON.stringify(told),
        inspect(await client.snapshot(), { depth: 10 }),
        rows,
      ].join("\n");
      for (const form of [...FORMS, CANARY_KEY.slice(3)]) expect(shown).not.toContain(form);
      expect(recorder.rows.length).toBeGreaterThan(0);
      await client.close();
    },
  );
});

function attemptErrorOfOrNull(error: unknown): PolyGatewayError | null {
  if (!PolyGatewayError.isInstance(error)) return null;
  return PolyGatewayError.isInstance(error.cause) ? error.cause : error;
}

describe("a proxy", () => {
  const answers = async (client: GatewayClient): Promise<void> => {
    for (const way of WAYS) expect(replyOf(await call(client, way, hi)).content).toBe("hello");
    await client.close();
  };

  it("is used when it is given, and passed by where NO_PROXY says so", async () => {
    await using server = await startRecordingServer();
    await using proxy = await startLoopbackProxy();
    await answers(clientFor(server, {}, { proxyEnv: { httpProxy: proxy.url } }).client);
    expect(new Set(proxy.targets)).toEqual(new Set([`127.0.0.1:${server.port}`]));
    expect(server.seen.length).toBe(2);
    const throughProxy = proxy.targets.length;
    await answers(clientFor(server, {}, { proxyEnv: { httpProxy: proxy.url, noProxy: "127.0.0.1" } }).client);
    expect(proxy.targets.length).toBe(throughProxy);
    expect(server.seen.length).toBe(4);
  });

  it("is taken from the environment when none is given", async () => {
    await using server = await startRecordingServer();
    await using proxy = await startLoopbackProxy();
    const names = ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"];
    const before = new Map(names.map((name) => [name, process.env[name]]));
    try {
      for (const name of names) delete process.env[name];
      process.env.HTTP_PROXY = proxy.url;
      const sources = [sourceOf("s_1", server.baseUrl)];
      const client = new GatewayClient({ scope: "LLM", sources });
      delete process.env.HTTP_PROXY;
      await answers(client);
    } finally {
      for (const [name, value] of before) if (value !== undefined) process.env[name] = value;
    }
    expect(proxy.targets.length).toBeGreaterThan(0);
  });

  it("that is gone is the network's fault, not the request's", async () => {
    await using server = await startRecordingServer();
    const proxy = await startLoopbackProxy();
    await proxy[Symbol.asyncDispose]();
    const { client } = clientFor(server, {}, { proxyEnv: { httpProxy: proxy.url } });
    expect(attemptErrorOf(await call(client, "chat", hi))).toMatchObject({ name: "TransientError", code: "network" });
    expect(server.seen).toEqual([]);
    await client.close();
  });
});
