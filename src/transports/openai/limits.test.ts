import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type PolyGatewayError, SourceDeadError, TransientError } from "../../errors.js";
import { type Outcome, runtime, send, TestContext, testSource } from "../attempt.test-helper.js";
import { type ReplayServer, startReplayServer, type UpstreamScript } from "../replay-server.test-helper.js";
import { createOpenAiChatTransport } from "./chat.js";
import { createOpenAiEmbeddingTransport } from "./embedding.js";

/** What the headers of an answer say of limits, on its way from the socket to the result or the error. */

const chat = createOpenAiChatTransport({ runtime });
const embeddings = createOpenAiEmbeddingTransport({ runtime });
afterAll(() => Promise.all([chat.close(), embeddings.close()]));

let server: ReplayServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const TOLD = {
  "X-RateLimit-Limit-Requests": "60",
  "x-ratelimit-remaining-requests": "0",
  "x-ratelimit-limit-tokens": "9000",
  "x-ratelimit-remaining-tokens": "8000",
};
const LIMITS = { limitRequests: 60, remainingRequests: 0, limitTokens: 9_000, remainingTokens: 8_000 };

const SSE = "text/event-stream";
const JSON_TYPE = "application/json";
const ANSWER = '{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}';
const STREAM = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const VECTORS = '{"object":"list","data":[{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":1,"total_tokens":1}}';
const REFUSED = '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}';

function script(utf8: string, type: string, status = 200, told: Record<string, string> = TOLD): UpstreamScript {
  return { status, headers: { "content-type": type, ...told }, chunks: [{ utf8 }] };
}

async function ask(upstream: UpstreamScript): Promise<Outcome> {
  server = await startReplayServer(upstream);
  return send(chat, testSource(server.baseUrl));
}

async function embed(upstream: UpstreamScript) {
  server = await startReplayServer(upstream);
  const context = new TestContext();
  const source = testSource(server.baseUrl);
  const attempt = { source, inputJson: '["a"]', count: 1, firstIndex: 0, dimensions: undefined, context };
  return embeddings.embed(attempt).then(
    (ok) => ({ ok }),
    (error: unknown) => ({ error }),
  );
}

function errorOf(outcome: object): PolyGatewayError {
  if (!("error" in outcome)) throw new Error("it answered");
  return outcome.error as PolyGatewayError;
}

describe("a good answer carries them", () => {
  it.each([
    ["a stream", script(STREAM, SSE)],
    ["a JSON answer", script(ANSWER, JSON_TYPE)],
  ])("%s", async (_, upstream) => {
    expect(await ask(upstream)).toMatchObject({ ok: { content: "hi", limits: LIMITS } });
  });

  it("embeddings", async () => {
    expect(await embed(script(VECTORS, JSON_TYPE))).toMatchObject({ ok: { dim: 2, limits: LIMITS } });
  });

  it("nothing when nothing is said", async () => {
    const outcome = await ask(script(STREAM, SSE, 200, {}));
    expect(outcome).toMatchObject({ ok: { content: "hi" } });
    expect((outcome as { ok: { limits?: unknown } }).ok.limits).toBeUndefined();
  });
});

describe("a refusal carries them, and which limit it was", () => {
  const details = { limits: LIMITS, limitedBy: "requests" };
  const streamed = `data: ${REFUSED}\n\n`;

  it.each([
    ["a status", script(REFUSED, JSON_TYPE, 429)],
    ["an error in a 200", script(REFUSED, JSON_TYPE)],
    ["an error in a stream", script(streamed, SSE)],
  ])("%s", async (_, upstream) => {
    const error = errorOf(await ask(upstream));
    expect(error).toBeInstanceOf(TransientError);
    expect(error).toMatchObject({ code: "rate_limit", rateLimited: true, details });
  });

  it.each([429, 200])("embeddings, status %d", async (status) => {
    const error = errorOf(await embed(script(REFUSED, JSON_TYPE, status)));
    expect(error).toMatchObject({ code: "rate_limit", rateLimited: true, details });
  });

  it("a dead key is no rate limit, but its headers count", async () => {
    const error = errorOf(await ask(script('{"error":{"message":"no such key"}}', JSON_TYPE, 401)));
    expect(error).toBeInstanceOf(SourceDeadError);
    expect(error.details).toEqual({ limits: LIMITS });
  });
});
