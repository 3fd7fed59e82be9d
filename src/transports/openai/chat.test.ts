import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { ChatEvent } from "../../domain/chat.js";
import { Secret } from "../../domain/secret.js";
import type { SourceConfig } from "../../domain/source.js";
import {
  type PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  TransientError,
} from "../../errors.js";
import type { ChatSink } from "../../ports/transport.js";
import { type Outcome, runtime, type SendOptions, send, TestContext, testSource } from "../attempt.test-helper.js";
import {
  type ReplayServer,
  type ScriptFor,
  startReplayServer,
  type UpstreamScript,
} from "../replay-server.test-helper.js";
import { createOpenAiChatTransport } from "./chat.js";
import { profiles } from "./profiles.js";

const SSE = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };
const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const delta = (content: string, finish: string | null = null, index = 0) =>
  frame({ model: "m", choices: [{ index, delta: { content }, finish_reason: finish }] });
const USAGE = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
const answer = (content: string, more: object = {}) =>
  JSON.stringify({
    model: "m",
    choices: [{ index: 0, message: { content }, finish_reason: "stop" }],
    usage: USAGE,
    ...more,
  });
const DONE = "data: [DONE]\n\n";

const transport = createOpenAiChatTransport({ runtime });
afterAll(() => transport.close());

let server: ReplayServer;
afterEach(() => server?.close());

async function serve(script: UpstreamScript | ScriptFor): Promise<ReplayServer> {
  server = await startReplayServer(script);
  return server;
}

async function attempt(
  script: UpstreamScript | ScriptFor,
  options: SendOptions = {},
  source: Partial<SourceConfig> = {},
): Promise<Outcome> {
  const { baseUrl } = await serve(script);
  return send(transport, testSource(baseUrl, source), options);
}

function okOf(outcome: Outcome) {
  if ("error" in outcome) throw outcome.error;
  return outcome.ok;
}

function errorOf<T extends PolyGatewayError>(outcome: Outcome, type: new (...args: never[]) => T, code: string): T {
  const error = "error" in outcome ? outcome.error : outcome.ok;
  expect(error).toBeInstanceOf(type);
  expect((error as T).code).toBe(code);
  return error as T;
}

async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 500 && !condition(); turn += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(condition()).toBe(true);
}

const chunks = (...texts: (string | Buffer)[]) =>
  texts.map((text) => (typeof text === "string" ? { utf8: text } : { bytes: text }));
const keepJson = (content: string): UpstreamScript => ({
  headers: JSON_TYPE,
  chunks: chunks(answer(content)),
  end: "keep",
});

describe("request", () => {
  it("carries credentials, own headers and the body, and nothing else of ours", async () => {
    const source = { headers: { "X-Title": "t" }, extraBody: { top_k: 1 } };
    okOf(await attempt(keepJson("hi"), { stream: false }, source));
    const [request] = server.requests;
    expect(request?.head.split("\r\n")[0]).toBe("POST /v1/chat/completions HTTP/1.1");
    expect(request?.head).toMatch(/authorization: Bearer sk-test-key-0001/);
    expect(request?.head).toMatch(/accept-encoding: identity/);
    expect(request?.head).toMatch(/x-title: t/);
    expect(JSON.parse(request?.body ?? "")).toEqual({
      model: "m-test",
      messages: [{ role: "user", content: "hi" }],
      top_k: 1,
    });
  });

  it("sends no Authorization for the key `none`, and the source's own where it has one", async () => {
    okOf(await attempt(keepJson("hi"), { stream: false }, { apiKey: new Secret("none") }));
    expect(server.requests[0]?.head).not.toMatch(/authorization/i);
    await server.close();
    okOf(await attempt(keepJson("hi"), { stream: false }, { headers: { Authorization: "Custom x" } }));
    expect(server.requests[0]?.head.match(/authorization: .*/gi)).toEqual(["authorization: Custom x"]);
  });

  it.each([
    ["key with a line break", { apiKey: new Secret("sk-SECRET-1\nx") }],
    ["key with NUL", { apiKey: new Secret("sk-SECRET-1\0") }],
    ["key outside latin-1", { apiKey: new Secret("sk-SECRET-1钥") }],
    ["header value", { headers: { "x-key": "sk-SECRET-1\r\nx: y" } }],
    ["header name", { headers: { "x\r\nsk-SECRET-1": "y" } }],
  ])("%s is refused locally, without its value", async (_name, source) => {
    const context = new TestContext();
    const outcome = await attempt(keepJson("hi"), { context }, source);
    const error = "error" in outcome ? (outcome.error as SourceDeadError) : undefined;
    expect(error).toBeInstanceOf(SourceDeadError);
    expect(JSON.stringify([error?.message, error?.stack, error])).not.toContain("SECRET");
    expect(server.requests).toHaveLength(0);
    expect(context.sent).toBe(0);
  });

  it("forgets a field of ours that the source refuses, and reports it for another try", async () => {
    const script: ScriptFor = ({ body }) =>
      body.includes("stream_options")
        ? {
            status: 400,
            headers: JSON_TYPE,
            chunks: chunks('{"error":{"message":"Argument not supported: stream_options"}}'),
          }
        : { headers: SSE, chunks: chunks(delta("ok", "stop"), DONE) };
    const { baseUrl } = await serve(script);
    const source = testSource(baseUrl);
    const error = errorOf(await send(transport, source), RequestRejectedError, "unsupported_param");
    expect(error.details).toEqual({ param: "stream_options", droppedByUs: true });
    expect(okOf(await send(transport, source)).content).toBe("ok");
    const own = await send(transport, source, { request: { extraBody: { stream_options: { include_usage: true } } } });
    expect(errorOf(own, RequestRejectedError, "unsupported_param").details).toEqual({ param: "stream_options" });
  });
});

describe("answers", () => {
  it("JSON to a stream request, a stream to a plain one, blank lines first", async () => {
    okOf(await attempt({ headers: SSE, chunks: chunks("\n", "\n", answer("json")) }));
    await server.close();
    const context = new TestContext();
    const script = { headers: JSON_TYPE, chunks: chunks("\n", `${delta("sse", "stop")}${DONE}`) };
    expect(okOf(await attempt(script, { stream: false, context })).content).toBe("sse");
    expect(context.firstTokens).toBe(1);
  });

  it("reports status, model, logprobs, times", async () => {
    const logprobs = (token: string) => ({
      choices: [{ index: 0, delta: { content: token }, logprobs: { content: [{ token }] } }],
    });
    const script = {
      headers: SSE,
      chunks: chunks(frame(logprobs("a")), frame(logprobs("b")), delta("", "stop"), DONE),
    };
    const context = new TestContext();
    const reply = okOf(await attempt(script, { context }));
    expect(reply).toMatchObject({
      content: "ab",
      statusCode: 200,
      modelReported: "m",
      logprobs: { content: [{ token: "a" }, { token: "b" }] },
    });
    expect(reply.ttftMs).toBeGreaterThanOrEqual(0);
    expect(reply.latencyMs).toBeGreaterThanOrEqual(reply.ttftMs ?? 0);
    expect([context.sent, context.firstTokens, context.listeners.size]).toEqual([1, 1, 0]);
  });

  it("a refusal is an answer", async () => {
    const body = JSON.stringify({ choices: [{ message: { content: null, refusal: "no" }, finish_reason: "stop" }] });
    expect(okOf(await attempt({ headers: JSON_TYPE, chunks: chunks(body) }))).toMatchObject({
      content: "",
      refusal: "no",
      usage: null,
    });
  });

  it("a frame that repeats the whole message adds nothing", async () => {
    const last = frame({ choices: [{ index: 0, message: { content: "whole" }, finish_reason: "stop" }] });
    expect(okOf(await attempt({ headers: SSE, chunks: chunks(delta("whole"), last, DONE) })).content).toBe("whole");
  });

  it("no completion tokens beside a text are no usage", async () => {
    const usage = { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 };
    expect(okOf(await attempt({ headers: JSON_TYPE, chunks: chunks(answer("text", { usage })) })).usage).toBeNull();
  });

  it("content_filter without a usable answer rejects the request, with one it stands", async () => {
    errorOf(
      await attempt({ headers: SSE, chunks: chunks(delta("", "content_filter"), DONE) }),
      RequestRejectedError,
      "content_filtered",
    );
    await server.close();
    const reply = okOf(await attempt({ headers: SSE, chunks: chunks(delta("part", "content_filter"), DONE) }));
    expect(reply.finishReason).toBe("content_filter");
  });

  it("an answer entirely inside reasoning is empty; cut by the limit it is invalid", async () => {
    const outcome = await attempt({ headers: SSE, chunks: chunks(delta("<think>a</think>", "stop"), DONE) });
    expect(errorOf(outcome, TransientError, "empty").partial?.thinking).toBe("a");
    await server.close();
    const cut = await attempt({ headers: SSE, chunks: chunks(delta("<think>a", "length"), DONE) });
    expect(errorOf(cut, ResultInvalidError, "truncated").rawText).toBe("<think>a");
  });
});

describe("ends", () => {
  const unproved = { headers: SSE, chunks: chunks(delta("part"), DONE) };

  it("[DONE] alone proves nothing on a relay", async () => {
    expect(okOf(await attempt(unproved)).finishReason).toBeNull();
    await server.close();
    errorOf(await attempt(unproved, {}, { profile: profiles.relay! }), TransientError, "truncated");
  });

  it("requireDone: a finish_reason alone proves nothing", async () => {
    const script = { headers: SSE, chunks: chunks(delta("x", "stop")) };
    expect(okOf(await attempt(script)).content).toBe("x");
    await server.close();
    errorOf(await attempt(script, {}, { requireDone: true }), TransientError, "truncated");
  });

  it.each(["reset", "hang"])("after a finish_reason, a socket that ends by %s costs nothing", async (end) => {
    const reply = okOf(
      await attempt({ headers: SSE, chunks: chunks(delta("x", "stop")), end }, {}, { interTokenTimeoutMs: 60_000 }),
    );
    expect(reply.content).toBe("x");
    await until(() => server.openSockets() === 0);
  });

  it("a cut inside the usage behind the last finish_reason loses the usage, not the answer", async () => {
    const usage = frame({ choices: [], usage: USAGE }).slice(0, 30);
    const cut = await attempt({ headers: SSE, chunks: chunks(delta("a"), delta("b", "stop"), usage), end: "close" });
    expect(okOf(cut)).toMatchObject({ content: "ab", finishReason: "stop", usage: null });
    const strict = await attempt(
      { headers: SSE, chunks: chunks(delta("a", "stop"), usage), end: "close" },
      {},
      { requireDone: true },
    );
    errorOf(strict, TransientError, "truncated");
  });

  it("with n = 2 the second choice is waited for", async () => {
    const script = {
      headers: SSE,
      chunks: [{ utf8: delta("a", "stop") }, { delayMs: 100, utf8: delta("b", "stop", 1) }, { utf8: DONE }],
    };
    const reply = okOf(await attempt(script, { request: { sampling: { n: 2 } } }));
    expect(reply.choices?.map(({ content }) => content)).toEqual(["a", "b"]);
  });

  it("an error event and errors in any frame end the stream, with what had arrived", async () => {
    const outcome = await attempt({
      headers: SSE,
      chunks: chunks(delta("part"), "event: error\ndata: gone\n\n", DONE),
    });
    expect(errorOf(outcome, TransientError, "upstream_error").partial?.content).toBe("part");
    await server.close();
    const bad = await attempt({ headers: SSE, chunks: chunks(delta("part"), 'data: {"a":1}}\n\n', DONE) });
    expect(errorOf(bad, TransientError, "malformed").partial?.content).toBe("part");
  });

  it("HTML is a wrong address", async () => {
    const outcome = await attempt({
      headers: { "content-type": "text/html" },
      chunks: chunks("<html><title>Portal</title></html>"),
    });
    expect(errorOf(outcome, SourceDeadError, "endpoint_not_found").upstreamMessage).toBe("Portal");
  });

  it("a redirect is not followed", async () => {
    const outcome = await attempt({ status: 307, headers: { location: "http://169.254.169.254/" } });
    errorOf(outcome, SourceDeadError, "endpoint_not_found");
    expect(server.requests).toHaveLength(1);
  });
});

describe("timers", () => {
  const role = frame({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });

  it("first token: headers, comments and role chunks don't count", async () => {
    const script = { headers: SSE, chunks: chunks(role, ": hi\n\n"), end: "hang" };
    const error = errorOf(await attempt(script, {}, { ttftTimeoutMs: 200 }), TransientError, "ttft_timeout");
    expect(error.message).toContain("200 ms");
    await until(() => server.openSockets() === 0);
  });

  it("idle: says how much had arrived and keeps it", async () => {
    const outcome = await attempt(
      { headers: SSE, chunks: chunks(delta("a"), delta("b")), end: "hang" },
      {},
      { interTokenTimeoutMs: 150 },
    );
    const error = errorOf(outcome, TransientError, "idle_timeout");
    expect(error.message).toContain("after 2 chunks");
    expect(error.partial?.content).toBe("ab");
  });

  it("idle: endless comments end too", async () => {
    const pings = Array.from({ length: 60 }, () => ({ delayMs: 50, utf8: ": ping\n\n" }));
    const script = { headers: SSE, chunks: [{ utf8: delta("a") }, ...pings] };
    errorOf(await attempt(script, {}, { interTokenTimeoutMs: 100 }), TransientError, "idle_timeout");
  });

  it("total: a server that accepts and never answers, drips its head or sends 1xx for ever", async () => {
    const scripts: UpstreamScript[] = [
      { rawHead: "", end: "hang" },
      { rawHead: "HTTP/1.1 200 OK\r\n", chunks: Array.from({ length: 100 }, () => ({ delayMs: 30, utf8: "x" })) },
      {
        rawHead: "",
        chunks: Array.from({ length: 100 }, () => ({ delayMs: 30, utf8: "HTTP/1.1 102 Processing\r\n\r\n" })),
      },
    ];
    for (const script of scripts) {
      errorOf(await attempt(script, { stream: false }, { timeoutMs: 250 }), TransientError, "timeout");
      await until(() => server.openSockets() === 0);
      await server.close();
    }
  });

  it("an error body that never ends: the status is acted on", async () => {
    const script = { status: 429, headers: JSON_TYPE, chunks: chunks('{"error":{"message":"slow'), end: "hang" };
    const error = errorOf(await attempt(script), TransientError, "rate_limit");
    expect(error.rateLimited).toBe(true);
    await until(() => server.openSockets() === 0);
  });

  it("an error body that breaks off gives no text and no other class", async () => {
    const script = { status: 402, headers: JSON_TYPE, chunks: chunks('{"error":{"message":"x'), end: "reset" };
    expect(errorOf(await attempt(script), SourceDeadError, "quota").bodyText).toBe("");
  });
});

describe("sockets", () => {
  it("are reused after plain answers, streams and errors", async () => {
    const body = `${delta("x", "stop")}${DONE}`;
    const chunked = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`;
    let turn = 0;
    const { baseUrl } = await serve(() => {
      turn += 1;
      if (turn % 3 === 0) return keepJson("plain");
      if (turn % 3 === 1) return { status: 500, headers: JSON_TYPE, chunks: chunks("{}"), end: "keep" };
      return { rawHead: chunked, chunks: [{ delayMs: 20, utf8: "0\r\n\r\n" }], end: "hang" };
    });
    for (let call = 0; call < 9; call += 1) {
      await send(transport, testSource(baseUrl));
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    expect(server.requests).toHaveLength(9);
    expect(server.socketsSeen()).toBe(1);
  });

  it("what follows [DONE] is drained in small measure, then the socket is closed", async () => {
    const script = { headers: SSE, chunks: chunks(delta("x", "stop"), DONE, "x".repeat(200_000)), end: "hang" };
    expect(okOf(await attempt(script)).content).toBe("x");
    await until(() => server.openSockets() === 0);
  });

  it("a dead reused socket is stale, a dead fresh one is the network", async () => {
    const { baseUrl } = await serve(({ requestOnSocket }, socket) => {
      if (requestOnSocket > 0) socket.resetAndDestroy();
      return requestOnSocket > 0 ? undefined : keepJson("one");
    });
    okOf(await send(transport, testSource(baseUrl)));
    await new Promise((resolve) => setTimeout(resolve, 20));
    errorOf(await send(transport, testSource(baseUrl)), TransientError, "stale_socket");
    okOf(await send(transport, testSource(baseUrl)));
    await server.close();
    const fresh = await attempt((_request, socket) => {
      socket.resetAndDestroy();
      return undefined;
    });
    errorOf(fresh, TransientError, "network");
  });

  it("nobody listens: network, nothing sent", async () => {
    const { baseUrl } = await serve(keepJson("x"));
    await server.close();
    const context = new TestContext();
    errorOf(await send(transport, testSource(baseUrl), { context }), TransientError, "network");
    expect(context.sent).toBe(0);
  });

  it("200 failing answers with bodies nobody needs leave no sockets behind", async () => {
    const { baseUrl } = await serve(() => ({
      status: 500,
      headers: JSON_TYPE,
      chunks: chunks("x".repeat(100_000)),
      end: "keep",
    }));
    const source = testSource(baseUrl);
    for (let call = 0; call < 20; call += 1) {
      await Promise.all(Array.from({ length: 10 }, () => send(transport, source)));
    }
    expect(server.requests).toHaveLength(200);
    await until(() => server.openSockets() <= 10);
  });

  it("an abort closes the socket at once and passes its reason untouched", async () => {
    const { baseUrl } = await serve({ headers: SSE, chunks: chunks(delta("one two")), end: "hang" });
    const context = new TestContext();
    const pending = send(transport, testSource(baseUrl), { context });
    await until(() => context.firstTokens === 1);
    expect(context.partialSoFar?.().content).toBe("one two");
    const reason = Symbol("left");
    context.abort(reason);
    const outcome = await pending;
    expect("error" in outcome && outcome.error).toBe(reason);
    await until(() => server.openSockets() === 0);
    expect(context.listeners.size).toBe(0);
  });

  it("an abort before the connection stands sends nothing", async () => {
    const { baseUrl } = await serve(keepJson("x"));
    const context = new TestContext();
    const pending = send(transport, testSource(baseUrl), { context });
    context.abort("left");
    expect(await pending).toEqual({ error: "left" });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.requests).toHaveLength(0);
    expect(context.sent).toBe(0);
  });
});

describe("hostile answers", () => {
  const big = answer("x".repeat(20_000));

  it.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["x-gzip", gzipSync],
    ["br, gzip", (text: string) => gzipSync(brotliCompressSync(text))],
  ] as const)("%s is inflated, cut it is truncated", async (coding, compress) => {
    const bytes = compress(big);
    const headers = { ...JSON_TYPE, "content-encoding": coding };
    const half = bytes.subarray(0, Math.floor(bytes.length / 2));
    expect(okOf(await attempt({ headers, chunks: chunks(bytes) })).content).toHaveLength(20_000);
    await server.close();
    expect(
      okOf(await attempt({ headers, chunks: Array.from(bytes, (byte) => ({ bytes: Buffer.from([byte]) })) })).content,
    ).toHaveLength(20_000);
    await server.close();
    errorOf(await attempt({ headers, chunks: chunks(half) }), TransientError, "truncated");
    await server.close();
    errorOf(await attempt({ headers, chunks: chunks(half), end: "keep" }), TransientError, "truncated");
  });

  it("a compressed stream is read as it comes", async () => {
    const bytes = gzipSync(`${delta("a")}${delta("b", "stop")}${DONE}`);
    const headers = { ...SSE, "content-encoding": "gzip" };
    expect(okOf(await attempt({ headers, chunks: chunks(bytes) })).content).toBe("ab");
  });

  it.each([
    ["a bomb", { "content-encoding": "br" }, brotliCompressSync(Buffer.alloc(100 * 1_024 * 1_024, " "))],
    ["a chain", { "content-encoding": "gzip, gzip, gzip" }, gzipSync("{}")],
    ["an unknown coding", { "content-encoding": "zstd" }, Buffer.from("x")],
    ["no gzip at all", { "content-encoding": "gzip" }, Buffer.from(big)],
    ["17 MiB of plain JSON", {}, Buffer.alloc(17 * 1_024 * 1_024, "[")],
    ["a 9 MiB line", SSE, Buffer.concat([Buffer.from("data: "), Buffer.alloc(9 * 1_024 * 1_024, "x")])],
    ["a huge head", { "x-pad": "x".repeat(40_000) }, Buffer.from(big)],
    [
      "deep JSON",
      {},
      Buffer.from(
        `{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}}]}}]}`,
      ),
    ],
  ])("%s is malformed", async (_name, headers, bytes) => {
    const rss = process.memoryUsage().rss;
    errorOf(
      await attempt({ headers: { ...JSON_TYPE, ...headers }, chunks: chunks(bytes) }),
      TransientError,
      "malformed",
    );
    await until(() => server.openSockets() === 0);
    expect(process.memoryUsage().rss - rss).toBeLessThan(64 * 1_024 * 1_024 + bytes.length);
  });

  it("an endless error body is read up to 64 KiB", async () => {
    const script = {
      status: 500,
      headers: JSON_TYPE,
      chunks: Array.from({ length: 500 }, () => ({ utf8: "e".repeat(65_536) })),
    };
    expect(errorOf(await attempt(script), TransientError, "upstream_error").bodyText).toContain(
      `(${65_536 - 2_000} chars omitted)`,
    );
    await until(() => server.openSockets() === 0);
  });

  it("a content-length that lies is an error, not a short answer", async () => {
    const json = answer("hello");
    const lie = (length: number) => ({
      rawHead: `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`,
      chunks: chunks(json),
    });
    errorOf(await attempt(lie(json.length - 5)), TransientError, "truncated");
    await server.close();
    errorOf(await attempt(lie(json.length + 5)), TransientError, "truncated");
  });

  it("odd shapes stay inside the taxonomy", async () => {
    const bodies = [
      "null",
      "7",
      '"text"',
      "[]",
      "{}",
      '{"choices":null}',
      '{"choices":[null]}',
      '{"choices":[{"message":7}]}',
      '{"choices":[{"delta":null}]}',
      "oops",
      '{"choices":[{"index":"a","message":{"content":{"a":1},"tool_calls":[null,7]},"finish_reason":7}]}',
    ];
    for (const body of bodies) {
      for (const headers of [JSON_TYPE, SSE]) {
        const text = headers === SSE ? `data: ${body}\n\n${DONE}` : body;
        const outcome = await attempt({ headers, chunks: chunks(text) });
        expect("error" in outcome && outcome.error).toBeInstanceOf(TransientError);
        await server.close();
      }
    }
  });
});

describe("a consumer that reads along", () => {
  class Collector implements ChatSink {
    readonly batches: ChatEvent[][] = [];
    ready: (() => void) | undefined;
    accept = true;

    push(events: readonly ChatEvent[]): boolean {
      this.batches.push([...events]);
      return this.accept;
    }

    whenReady(resume: () => void): void {
      this.ready = resume;
    }

    get events(): ChatEvent[] {
      return this.batches.flat();
    }
  }

  it("gets all events of one read at once, then the end", async () => {
    const sink = new Collector();
    const tool = frame({
      choices: [
        { index: 0, delta: { tool_calls: [{ index: 0, id: "t1", function: { name: "f", arguments: '{"a"' } }] } },
      ],
    });
    const more = frame({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] } }],
    });
    const end = frame({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }], usage: USAGE });
    const text = `${delta("<think>hm</think>\n\nHi")}${tool}${more}`;
    okOf(await attempt({ headers: SSE, chunks: [{ utf8: text }, { delayMs: 30, utf8: `${end}${DONE}` }] }, { sink }));
    expect(sink.batches).toHaveLength(2);
    expect(sink.events).toEqual([
      { type: "thinking-delta", text: "hm" },
      { type: "text-delta", text: "Hi" },
      { type: "tool-call-delta", index: 0, id: "t1", name: "f", argumentsDelta: '{"a"' },
      { type: "tool-call-delta", index: 0, id: "t1", name: "f", argumentsDelta: ":1}" },
      { type: "tool-call", index: 0, id: "t1", name: "f", arguments: '{"a":1}' },
      { type: "usage", usage: expect.objectContaining({ promptTokens: 5 }) },
      { type: "finish", finishReason: "tool_calls", rawFinishReason: "tool_calls" },
    ]);
  });

  it("gets the same events from a JSON answer", async () => {
    const sink = new Collector();
    okOf(await attempt({ headers: JSON_TYPE, chunks: chunks(answer("Hi")) }, { sink }));
    expect(sink.events.map(({ type }) => type)).toEqual(["text-delta", "usage", "finish"]);
  });

  it("gets nothing for empty and role-only chunks, nor of a read that fails before anything was delivered", async () => {
    const sink = new Collector();
    const role = frame({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });
    const failing = `${role}${delta("a")}${frame({ error: { message: "x", code: 503 } })}`;
    errorOf(await attempt({ headers: SSE, chunks: chunks(failing) }, { sink }), TransientError, "overloaded");
    expect(sink.events).toEqual([]);
  });

  it("is waited for: the socket is paused, and no timer blames the source", async () => {
    const sink = new Collector();
    sink.accept = false;
    const pieces = Array.from({ length: 200 }, () => ({ utf8: delta("x".repeat(30_000)) }));
    const { baseUrl } = await serve({ headers: SSE, chunks: [...pieces, { utf8: `${delta("", "stop")}${DONE}` }] });
    const pending = send(transport, testSource(baseUrl, { interTokenTimeoutMs: 100, timeoutMs: 5_000 }), { sink });
    await until(() => sink.ready !== undefined);
    const before = sink.batches.length;
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(sink.batches).toHaveLength(before);
    sink.accept = true;
    sink.ready?.();
    const reply = okOf(await pending);
    expect(reply.content).toHaveLength(6_000_000);
    expect(reply.latencyMs).toBeLessThan(5_000);
  });

  it.each(["close", "reset"])("may be behind when the connection ends by %s", async (end) => {
    const sink = new Collector();
    sink.accept = false;
    const { baseUrl } = await serve({ headers: SSE, chunks: chunks(delta("a"), delta("b", "stop")), end });
    const source = testSource(baseUrl, { interTokenTimeoutMs: 100 });
    const pending = send(transport, source, { sink });
    await until(() => sink.ready !== undefined);
    await new Promise((resolve) => setTimeout(resolve, 200));
    sink.accept = true;
    sink.ready?.();
    const outcome = await pending;
    if (end === "close") expect(okOf(outcome).content).toBe("ab");
    await server.close();
    const cut = await attempt({ headers: SSE, chunks: chunks(delta("a")), end }, { sink });
    errorOf(cut, TransientError, end === "close" ? "truncated" : "network");
  });

  it("may be ready again at once, and the socket is fit for the next call", async () => {
    const sink: ChatSink = { push: () => false, whenReady: (resume) => resume() };
    const body = Array.from({ length: 300 }, () => delta("x".repeat(3_000))).join("") + delta("", "stop") + DONE;
    const { baseUrl } = await serve(() => ({ headers: SSE, chunks: chunks(body), end: "keep" }));
    for (let call = 0; call < 3; call += 1) {
      expect(okOf(await send(transport, testSource(baseUrl), { sink })).content).toHaveLength(900_000);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(server.socketsSeen()).toBe(1);
  });

  it("may leave while it is waited for", async () => {
    const sink = new Collector();
    sink.accept = false;
    const context = new TestContext();
    const { baseUrl } = await serve({ headers: SSE, chunks: chunks(delta("a")), end: "hang" });
    const pending = send(transport, testSource(baseUrl), { sink, context });
    await until(() => sink.ready !== undefined);
    context.abort("left");
    expect(await pending).toEqual({ error: "left" });
    sink.ready?.();
    await until(() => server.openSockets() === 0);
  });
});

describe("proxy", () => {
  it("is used when a proxy variable is set, passed by where NO_PROXY says so", async () => {
    const { port } = await serve((request, socket) => {
      if (!request.head.startsWith("CONNECT")) return keepJson("through");
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      return undefined;
    });
    const proxied = createOpenAiChatTransport({
      runtime,
      proxyEnv: { httpProxy: `http://127.0.0.1:${port}`, noProxy: "127.0.0.1" },
    });
    try {
      expect(okOf(await send(proxied, testSource("http://somewhere.invalid/v1"))).content).toBe("through");
      expect(server.requests.map(({ head }) => head.split(" ")[0])).toEqual(["CONNECT", "POST"]);
      expect(okOf(await send(proxied, testSource(server.baseUrl))).content).toBe("through");
      expect(server.requests.at(-1)?.head).toMatch(/^POST/);
      expect(server.requests).toHaveLength(3);
    } finally {
      await proxied.close();
    }
  });
});
