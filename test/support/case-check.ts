import { expect } from "vitest";
import {
  AllSourcesExhausted,
  type CallRecord,
  type ChatResponse,
  type PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  TransientError,
  type Usage,
} from "../../src/index.js";
import { attemptErrorOf, type Called, contentEvents, joinedText, replyOf } from "./calls.js";
import type { CaseExpectation, CaseUsage } from "./case-records.js";

/** Every expectation that a record can state about one call, checked as completely as it is stated. */

const CLASSES = {
  transient: TransientError,
  dead: SourceDeadError,
  rejected: RequestRejectedError,
  invalid: ResultInvalidError,
} as const;

function checkUsage(usage: Usage | null | undefined, expected: CaseUsage | null): void {
  if (expected === null) {
    // Unknown to the provider: estimated and marked, never a silent 0.
    expect(usage?.source ?? "estimated").toBe("estimated");
    return;
  }
  expect({
    promptTokens: usage?.promptTokens,
    completionTokens: usage?.completionTokens,
    totalTokens: usage?.totalTokens,
    cachedTokens: usage?.cachedPromptTokens,
    reasoningTokens: usage?.reasoningTokens,
  }).toEqual(expected);
  expect(usage?.source).toBe("measured");
}

function checkCalls(calls: ChatResponse["toolCalls"], expected: NonNullable<CaseExpectation["toolCalls"]>): void {
  const anyId = expected.map((one) => (one.id === "*" ? { ...one, id: expect.stringMatching(/\S/) } : one));
  expect(calls).toEqual(anyId);
  expect(new Set(calls.map((one) => one.id)).size).toBe(calls.length);
}

export function checkAnswer(reply: ChatResponse, expected: CaseExpectation): void {
  if (expected.cacheHit !== undefined) expect(reply.cacheHit).toBe(expected.cacheHit);
  if (reply.cacheHit) expect(reply).toMatchObject({ cost: 0, attempts: 0 });
  if (expected.content !== undefined) expect(reply.content).toBe(expected.content);
  if (expected.parsed !== undefined) expect(reply.parsed).toEqual(expected.parsed);
  expect(reply.thinking).toBe(expected.reasoning ?? "");
  checkCalls(reply.toolCalls, expected.toolCalls ?? []);
  if (expected.finishReason !== undefined) expect(reply.finishReason).toBe(expected.finishReason);
  if (expected.rawFinishReason !== undefined) expect(reply.rawFinishReason).toBe(expected.rawFinishReason);
  if (expected.usage !== undefined) checkUsage(reply.usage, expected.usage);
  for (const tokens of [reply.usage.promptTokens, reply.usage.completionTokens, reply.usage.totalTokens]) {
    expect(Number.isSafeInteger(tokens) && tokens >= 0).toBe(true);
  }
  if (expected.choices !== undefined) {
    expect(reply.choices?.map(({ content, finishReason }) => ({ content, finishReason }))).toEqual(expected.choices);
  }
}

/** What the consumer was handed piece by piece is the answer that `.final` tells. */
export function checkEvents({ events }: Called, reply: ChatResponse): void {
  expect(joinedText(events, "text-delta")).toBe(reply.content);
  expect(joinedText(events, "thinking-delta")).toBe(reply.thinking);
  const calls = events.filter((event) => event.type === "tool-call");
  expect(calls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args }))).toEqual(reply.toolCalls);
  const { finishReason, rawFinishReason, usage } = reply;
  expect(events.slice(-2)).toEqual([
    { type: "usage", usage },
    { type: "finish", finishReason, rawFinishReason },
  ]);
}

function checkRetryAfter(error: PolyGatewayError, { retryAfterS, toleranceS = 0.01 }: CaseExpectation): void {
  if (retryAfterS === undefined) return;
  const { retryAfterMs } = error as TransientError;
  if (retryAfterS === null) expect(retryAfterMs).toBeUndefined();
  else expect(Math.abs((retryAfterMs ?? Number.NaN) / 1_000 - retryAfterS)).toBeLessThanOrEqual(toleranceS);
}

/** What can be waited for is told as AllSourcesExhausted, unless the consumer had already been handed something. */
function checkWrapping(called: Called, attemptError: PolyGatewayError): void {
  const { error } = called;
  const canWait = TransientError.isInstance(attemptError) || SourceDeadError.isInstance(attemptError);
  if (!canWait || contentEvents(called.events).length > 0) {
    expect(error).toBe(attemptError);
    return;
  }
  expect(error).toBeInstanceOf(AllSourcesExhausted);
  const { reason, bodyText, perSourceReasons } = error as AllSourcesExhausted;
  const limited = TransientError.isInstance(attemptError) && attemptError.rateLimited === true;
  const dead = SourceDeadError.isInstance(attemptError);
  expect(reason).toBe(dead ? "all_sources_dead" : limited ? "quota_exhausted" : "retry_exhausted");
  expect(bodyText).toBe("");
  expect(Object.keys(perSourceReasons).length).toBeGreaterThan(0);
}

export function checkFailure(called: Called, expected: CaseExpectation): void {
  const error = attemptErrorOf(called);
  expect(error).toBeInstanceOf(CLASSES[expected.outcome as keyof typeof CLASSES]);
  checkWrapping(called, error);
  if (expected.reason !== undefined) expect(error.code).toBe(expected.reason);
  if (expected.message !== undefined) expect(error.upstreamMessage).toBe(expected.message);
  if (expected.param !== undefined) expect(error.details?.param).toBe(expected.param);
  if (expected.limit !== undefined) expect(error.details?.limit).toBe(expected.limit);
  if (expected.affordableTokens !== undefined) expect(error.details?.affordableTokens).toBe(expected.affordableTokens);
  if (expected.partialContent !== undefined) expect(error.partial?.content ?? "").toBe(expected.partialContent);
  if (expected.reasoning !== undefined) expect(error.partial?.thinking).toBe(expected.reasoning);
  if (expected.toolCalls !== undefined) expect(error.partial?.toolCalls ?? []).toEqual(expected.toolCalls);
  if (expected.usage !== undefined) checkUsage(error.partial?.usage as Usage | null | undefined, expected.usage);
  if (called.way === "stream") expect(error.partial?.content ?? "").toContain(joinedText(called.events, "text-delta"));
  checkRetryAfter(error, expected);
}

export function checkOutcome(called: Called, expected: CaseExpectation, left: Error): void {
  if (expected.outcome === "aborted") {
    expect(called.reply).toBeUndefined();
    expect(called.error).toBe(left);
  } else if (expected.outcome === "ok") {
    const reply = replyOf(called);
    checkAnswer(reply, expected);
    if (called.way === "stream") checkEvents(called, reply);
  } else checkFailure(called, expected);
}

const FINAL_OUTCOMES = { ok: "success", rejected: "rejected", invalid: "invalid", aborted: "cancelled" } as const;

/** A hit has one row of its own, sent nothing and cost nothing. */
export function checkHit(rows: readonly CallRecord[], sends: number): void {
  expect(sends).toBe(0);
  expect(rows).toMatchObject([
    { outcome: "cache_hit", final: true, costNanos: 0n, sourceName: null, attempt: null, error: null },
  ]);
}

/** One row per send, one of all rows is the final one, and that one says how the call ended. */
export function checkRows(rows: readonly CallRecord[], sends: number, { outcome, telemetry }: CaseExpectation): void {
  const attempts = rows.filter((row) => row.attempt !== null);
  const final = rows.filter((row) => row.final);
  expect(attempts.length).toBe(sends);
  expect(final.length).toBe(1);
  if (outcome !== "transient" && outcome !== "dead") expect(final[0]!.outcome).toBe(FINAL_OUTCOMES[outcome]);
  else expect(attempts.at(-1)!.outcome).toMatch(outcome === "dead" ? /^source_dead$/ : /^transient$|^rate_limited$/);
  if (outcome === "ok") expect(final[0]!.error).toBeNull();
  else expect(final[0]!.error).not.toBeNull();
  if (telemetry === undefined) return;
  const row = attempts.at(-1)!;
  expect(row.response).toBe(telemetry.partialContent);
  expect(row.usageSource).toBe(telemetry.usage.estimated ? "estimated" : "measured");
  expect(row.promptTokens).toBeGreaterThan(0);
  expect(row.completionTokens).toBeGreaterThan(0);
}
