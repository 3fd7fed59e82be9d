import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { ChatCompletion, ChatRequest } from "../../domain/chat.js";
import type { SourceConfig } from "../../domain/source.js";
import {
  type PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  TransientError,
} from "../../errors.js";
import { runtime, send, TestContext, testSource } from "../attempt.test-helper.js";
import { type ReplayServer, startReplayServer, type UpstreamScript } from "../replay-server.test-helper.js";
import { createOpenAiChatTransport } from "./chat.js";

/** Every `upstream` record of the chat families, byte for byte, against a real socket. */

type Fields = Record<string, unknown>;

interface CaseRecord {
  readonly id: string;
  readonly family: string;
  readonly kind: string;
  readonly title: string;
  readonly upstream: UpstreamScript;
  readonly request: { readonly body: Fields; readonly clientOptions?: Fields };
  readonly expect: Fields;
}

const FAMILIES = new Set([
  "sse-framing",
  "http-error",
  "stream-error",
  "timeout-abort",
  "chunk-shape",
  "reasoning",
  "usage",
  "tool-calls",
]);

const records = readFileSync(new URL("../../../test/data/cases.jsonl", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => JSON.parse(line) as CaseRecord)
  .filter((record) => record.kind === "upstream" && FAMILIES.has(record.family));

const CLASSES = {
  transient: TransientError,
  dead: SourceDeadError,
  rejected: RequestRejectedError,
  invalid: ResultInvalidError,
} as const;

/** Minutes of waiting are scaled down, as the records say; no timer of ours or of undici may fire meanwhile. */
function scaled(script: UpstreamScript): UpstreamScript {
  const short = (delayMs = 0) => (delayMs > 60_000 ? 1_300 : delayMs);
  return {
    ...script,
    headersDelayMs: short(script.headersDelayMs),
    chunks: (script.chunks ?? []).map((chunk) => ({ ...chunk, delayMs: short(chunk.delayMs) })),
  };
}

function requestOf(body: Fields): Partial<ChatRequest> {
  const n = body.n as number | undefined;
  const maxTokens = body.max_tokens as number | undefined;
  return {
    sampling: { ...(n === undefined ? {} : { n }), ...(maxTokens === undefined ? {} : { maxTokens }) },
    ...(body.tools === undefined ? {} : { tools: body.tools as unknown[] }),
    ...(body.response_format === undefined ? {} : { responseFormat: body.response_format }),
    // The record's own stream_options, so that they are the caller's and not ours.
    ...(body.stream_options === undefined ? {} : { extraBody: { stream_options: body.stream_options } }),
  };
}

function sourceOf(baseUrl: string, options: Fields): SourceConfig {
  return testSource(baseUrl, {
    ...(options.idleTimeoutMs === undefined ? {} : { interTokenTimeoutMs: options.idleTimeoutMs as number }),
    ...(options.firstTokenTimeoutMs === undefined ? {} : { ttftTimeoutMs: options.firstTokenTimeoutMs as number }),
    ...(options.totalTimeoutMs === undefined ? {} : { timeoutMs: options.totalTimeoutMs as number }),
    ...(options.transient400 === undefined ? {} : { transient400: options.transient400 as "relay" }),
  });
}

function checkUsage(usage: ChatCompletion["usage"], expected: Fields): void {
  expect(usage).not.toBeNull();
  expect({
    promptTokens: usage?.promptTokens,
    completionTokens: usage?.completionTokens,
    totalTokens: usage?.totalTokens,
    cachedTokens: usage?.cachedPromptTokens,
    reasoningTokens: usage?.reasoningTokens,
  }).toEqual(expected);
}

function checkCalls(calls: ChatCompletion["toolCalls"], expected: Fields[]): void {
  const anyId = expected.map((call) => (call.id === "*" ? { ...call, id: expect.stringMatching(/\S/) } : call));
  expect(calls).toEqual(anyId);
  expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
}

function checkAnswer(answer: ChatCompletion, expected: Fields): void {
  if (expected.content !== undefined) expect(answer.content).toBe(expected.content);
  if (expected.parsed !== undefined) expect(JSON.parse(answer.content)).toEqual(expected.parsed);
  expect(answer.thinking).toBe(expected.reasoning ?? "");
  checkCalls(answer.toolCalls, (expected.toolCalls as Fields[]) ?? []);
  if (expected.finishReason !== undefined) expect(answer.finishReason).toBe(expected.finishReason);
  if (expected.rawFinishReason !== undefined) expect(answer.rawFinishReason).toBe(expected.rawFinishReason);
  if (expected.usage) checkUsage(answer.usage, expected.usage as Fields);
  if (expected.choices !== undefined) {
    expect(answer.choices?.map(({ content, finishReason }) => ({ content, finishReason }))).toEqual(expected.choices);
  }
}

function checkRetryAfter(error: PolyGatewayError, expected: Fields): void {
  if (expected.retryAfterS === undefined) return;
  const { retryAfterMs } = error as TransientError;
  if (expected.retryAfterS === null) expect(retryAfterMs).toBeUndefined();
  else {
    const toleranceS = (expected.toleranceS as number) ?? 0.01;
    expect(Math.abs((retryAfterMs ?? Number.NaN) / 1_000 - (expected.retryAfterS as number))).toBeLessThanOrEqual(
      toleranceS,
    );
  }
}

function checkError(error: unknown, expected: Fields): void {
  expect(error).toBeInstanceOf(CLASSES[expected.outcome as keyof typeof CLASSES]);
  const typed = error as PolyGatewayError;
  if (expected.reason !== undefined) expect(typed.code).toBe(expected.reason);
  if (expected.message !== undefined) expect(typed.upstreamMessage).toBe(expected.message);
  if (expected.param !== undefined) expect(typed.details?.param).toBe(expected.param);
  if (expected.affordableTokens !== undefined) expect(typed.details?.affordableTokens).toBe(expected.affordableTokens);
  if (expected.partialContent !== undefined) expect(typed.partial?.content ?? "").toBe(expected.partialContent);
  if (expected.reasoning !== undefined) expect(typed.partial?.thinking).toBe(expected.reasoning);
  if (expected.toolCalls !== undefined) expect(typed.partial?.toolCalls ?? []).toEqual(expected.toolCalls);
  if (expected.usage) checkUsage(typed.partial?.usage as ChatCompletion["usage"], expected.usage as Fields);
  checkRetryAfter(typed, expected);
}

async function untilClosed(server: ReplayServer): Promise<void> {
  for (let turn = 0; turn < 200 && server.openSockets() > 0; turn += 1) await new Promise((r) => setTimeout(r, 10));
  expect(server.openSockets()).toBe(0);
}

describe("cases of the chat families", () => {
  const transport = createOpenAiChatTransport({ runtime });
  afterAll(() => transport.close());

  it("are all here", () => {
    expect(records.length).toBeGreaterThanOrEqual(88);
  });

  it.concurrent.each(records.map((record) => [record.id, record] as const))("%s", async (_id, record) => {
    const server = await startReplayServer(scaled(record.upstream));
    try {
      const options = record.request.clientOptions ?? {};
      const context = new TestContext();
      const left = new Error("the caller left");
      const abortAfterMs = options.abortAfterMs as number | undefined;
      if (abortAfterMs === 0) context.abort(left);
      else if (abortAfterMs !== undefined) runtime.setTimer(abortAfterMs, () => context.abort(left));
      const outcome = await send(transport, sourceOf(server.baseUrl, options), {
        request: requestOf(record.request.body),
        stream: record.request.body.stream === true,
        context,
      });
      if (record.expect.outcome === "aborted" && record.id !== "abt-no-retry-after-leave") {
        expect("error" in outcome && outcome.error).toBe(left);
        await untilClosed(server);
      } else if (record.expect.outcome === "ok") {
        if ("error" in outcome) throw outcome.error;
        checkAnswer(outcome.ok, record.expect);
      } else if (record.id !== "abt-no-retry-after-leave") {
        expect("ok" in outcome ? outcome.ok : undefined).toBeUndefined();
        checkError("error" in outcome && outcome.error, record.expect);
      }
      if (record.expect.upstreamRequests !== undefined) {
        expect(server.requests.length).toBe(record.expect.upstreamRequests);
      }
      expect(context.listeners.size).toBe(0);
    } finally {
      await server.close();
    }
  });
});
