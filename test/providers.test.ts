import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import {
  AllSourcesExhausted,
  GatewayClient,
  type ProviderProfile,
  profiles,
  RequestRejectedError,
  SourceDeadError,
  type SourceOptions,
  TransientError,
} from "../src/index.js";
import { profileFor } from "../src/transports/openai/profiles.js";
import { DIALECTS, type Dialect } from "./support/dialects.js";
import { answerWith, type RecordingServer, sendJson, startRecordingServer } from "./support/recording-server.js";

const messages = [{ role: "user", content: "What is two and two?" }];
const KEY = "sk-provider-key-1";

function speak(dialect: Dialect, response: ServerResponse, asStream: boolean): void {
  if (!asStream) {
    sendJson(response, 200, JSON.stringify(dialect.body));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (dialect.comments) response.write(": keep-alive\n\n");
  for (const event of dialect.stream) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end("data: [DONE]\n\n");
}

function clientFor(server: RecordingServer, dialect: Dialect, source: Partial<SourceOptions> = {}) {
  const { profile, model } = dialect;
  return new GatewayClient({
    scope: "LLM",
    sources: [{ name: "src_1", baseUrl: server.baseUrl, apiKey: KEY, model, profile, ...source }],
    retry: { maxAttempts: 1 },
  });
}

test("every built-in profile has a fake here", () => {
  expect(DIALECTS.map(({ profile }) => profile).sort()).toEqual(Object.keys(profiles).sort());
});

describe.each(DIALECTS.map((dialect) => [dialect.profile, dialect] as const))("%s", (_name, dialect) => {
  test.each([true, false])("answers a call, stream %s", async (asStream) => {
    await using server = await startRecordingServer((response, { body }) =>
      speak(dialect, response, body.stream === true),
    );
    await using client = clientFor(server, dialect);
    const reply = await client.chat({ messages, sampling: { maxTokens: 5_000 }, stream: asStream });
    const { content, thinking, usage } = dialect.means;
    expect([reply.content, reply.thinking, reply.finishReason]).toEqual([content, thinking, "stop"]);
    expect(reply.usage).toMatchObject({
      promptTokens: usage.prompt,
      completionTokens: usage.completion,
      reasoningTokens: usage.reasoning,
      cachedPromptTokens: usage.cached,
      source: "measured",
    });
    const [seen] = server.seen;
    const [header, value] = dialect.auth ?? ["authorization", `Bearer ${KEY}`];
    expect(seen!.headers[header]).toBe(value);
    if (header !== "authorization") expect(seen!.headers.authorization).toBeUndefined();
    expect(seen!.url).toBe(dialect.url ?? "/v1/chat/completions");
    expect(seen!.body).toEqual({
      model: dialect.model,
      messages,
      [dialect.limitName ?? "max_tokens"]: 5_000,
      ...(asStream ? { stream: true } : {}),
      ...(asStream && (dialect.asksUsage ?? true) ? { stream_options: { include_usage: true } } : {}),
    });
  });

  test.each(dialect.thinking)("thinking %j is %j", async (...row) => {
    const [thinking, fields, model = dialect.model] = row as unknown as Dialect["thinking"][number];
    await using server = await startRecordingServer(answerWith("Four."));
    await using client = clientFor(server, dialect, { model });
    const asked = client.chat({ messages, thinking });
    if (fields === null) {
      const error = await asked.catch((reason: unknown) => reason as RequestRejectedError);
      expect(error).toBeInstanceOf(RequestRejectedError);
      expect(error).toMatchObject({ code: "unsupported_param", details: { param: "thinking" } });
      expect((error as Error).message).toContain("src_1");
      expect(server.seen).toEqual([]);
      return;
    }
    await asked;
    const {
      model: _model,
      messages: _messages,
      stream: _stream,
      stream_options: _options,
      ...rest
    } = server.seen[0]!.body;
    expect(rest).toEqual(fields);
  });

  test.each(dialect.errors)("%d %j is %s %s", async (...row) => {
    const [status, body, kind, code, retryAfter] = row as unknown as Dialect["errors"][number];
    const text = typeof body === "string" ? body : JSON.stringify(body);
    await using server = await startRecordingServer((response) =>
      sendJson(response, status, text, retryAfter === undefined ? {} : { "retry-after": retryAfter }),
    );
    await using client = clientFor(server, dialect);
    const thrown = await client.chat({ messages }).catch((reason: unknown) => reason as Error);
    const error = thrown instanceof AllSourcesExhausted ? (thrown.cause as TransientError) : (thrown as TransientError);
    expect({ code: error.code, limited: error.rateLimited === true }).toEqual({
      code,
      limited: kind === "RateLimited",
    });
    const classes = {
      Transient: TransientError,
      RateLimited: TransientError,
      SourceDead: SourceDeadError,
      RequestRejected: RequestRejectedError,
    };
    expect(error).toBeInstanceOf(classes[kind]);
  });
});

test("a used-up allowance rests until the moment in its text, by the provider's clock", async () => {
  const body = { error: { code: "1308", message: "已达到 5 小时的使用上限。您的限额将在 2099-01-15 18:00:00 重置。" } };
  await using server = await startRecordingServer((response) => sendJson(response, 429, JSON.stringify(body)));
  await using client = clientFor(server, DIALECTS.find(({ profile }) => profile === "glm")!);
  const thrown = await client.chat({ messages }).catch((reason: unknown) => reason as AllSourcesExhausted);
  const cause = (thrown as AllSourcesExhausted).cause as SourceDeadError;
  expect(Math.abs(cause.retryAfterMs! + Date.now() - Date.parse("2099-01-15T18:00:00+08:00"))).toBeLessThan(60_000);
});

describe("hosts", () => {
  const hosted = Object.values(profiles).filter(({ hosts }) => hosts.length > 0);

  test.each(hosted.map((profile) => [profile.address, profile.name]))("%s selects %s", (address, name) => {
    expect(profileFor(address).name).toBe(name);
  });

  test.each([
    ["https://x.openai.azure.com/openai/v1", "azure"],
    ["https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"],
    ["https://api.z.ai/api/paas/v4", "glm"],
    ["https://api.moonshot.ai/v1", "kimi"],
    ["https://api.minimax.io/v1", "minimax"],
    ["https://API.DeepSeek.com/v1", "deepseek"],
    ["https://evil-openai.azure.com.example.net/v1", "openai"],
    ["http://127.0.0.1:11434/v1", "openai"],
    ["not an address", "openai"],
  ])("%s selects %s", (address, name) => {
    expect(profileFor(address).name).toBe(name);
  });

  test("no two profiles claim the same name or host", () => {
    const claims = Object.values(profiles).flatMap(({ name, aliases, hosts }) => [name, ...aliases, ...hosts]);
    expect(new Set(claims).size).toBe(claims.length);
  });
});

test("profiles are plain JSON, frozen to the ground, and name only fields they have", () => {
  const assertFrozen = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    expect(Object.isFrozen(value)).toBe(true);
    for (const inner of Object.values(value)) assertFrozen(inner);
  };
  assertFrozen(profiles);
  expect(JSON.parse(JSON.stringify(profiles))).toEqual(profiles);
  for (const [name, profile] of Object.entries<ProviderProfile>(profiles)) {
    expect(profile.name).toBe(name);
    for (const field of profile.unconfirmed) expect(Object.keys(profile)).toContain(field);
  }
});
