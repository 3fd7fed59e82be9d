import { describe, expect, it } from "vitest";
import { patternRisk } from "../../domain/pattern-risk.js";
import type { UpstreamLimits } from "../../domain/upstream-limits.js";
import { TransientError } from "../../errors.js";
import { testSource } from "../attempt.test-helper.js";
import { createRedactor } from "../redact.js";
import { classify, errorOf } from "./classify.js";
import { LIMIT_WORDING } from "./limited-by.js";
import { profiles } from "./profiles.js";

/** Which limit a refusal names, by the answers that reference-providers §2.3 lists. */

const NOW = Date.UTC(2026, 0, 15);

interface Answer {
  readonly status?: number;
  readonly embedded?: boolean;
  readonly limits?: UpstreamLimits;
}

type Profile = keyof typeof profiles;

function errorFor(profile: Profile, body: unknown, { status = 429, embedded = false, limits }: Answer = {}) {
  const config = testSource("http://127.0.0.1/v1", { profile: profiles[profile] });
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const refusal = { statusCode: status, embedded, text, header: () => undefined, limits };
  return errorOf(classify(refusal, config, NOW), refusal, config, createRedactor([config]));
}

function dimensionFor(profile: Profile, body: unknown, answer?: Answer): unknown {
  const error = errorFor(profile, body, answer);
  expect(error).toBeInstanceOf(TransientError);
  expect((error as TransientError).rateLimited).toBe(true);
  return error.details?.limitedBy;
}

const said = (message: string, more: object = {}) => ({ error: { message, ...more } });

describe("by code", () => {
  const cases: readonly [Profile, object, string][] = [
    ["glm", said("您的账户已达到上限", { code: "1302" }), "concurrency"],
    ["glm", said("您的账户已达到上限", { code: "1303" }), "requests"],
    ["openai", said("Rate limit reached", { type: "tokens", code: "rate_limit_exceeded" }), "tokens"],
    ["openai", said("Rate limit reached", { type: "requests", code: "rate_limit_exceeded" }), "requests"],
    ["ark", said("limited", { code: "RateLimitExceeded.EndpointRPMExceeded" }), "requests"],
    ["ark", said("limited", { code: "RateLimitExceeded.EndpointTPMExceeded" }), "tokens"],
    ["ark", said("limited", { code: "RateLimitExceeded.FoundationModelRPMExceeded" }), "requests"],
    ["ark", said("limited", { code: "ModelAccountTpmRateLimitExceeded" }), "tokens"],
    ["qwen", said("limited", { code: "limit_requests" }), "requests"],
    ["qwen", said("limited", { code: "Throttling.RateQuota" }), "requests"],
    ["qwen", said("limited", { code: "Throttling.BurstRate" }), "requests"],
    ["qwen", said("limited", { code: "Throttling.AllocationQuota" }), "tokens"],
    ["qwen", said("limited", { code: "insufficient_quota" }), "tokens"],
    ["relay", said("limited", { code: "Throttling.AllocationQuota", type: "rate_limit_error" }), "tokens"],
  ];
  it.each(cases)("%s %j", (profile, body, expected) => expect(dimensionFor(profile, body)).toBe(expected));

  it("minimax, inside a 200", () => {
    const body = { base_resp: { status_code: 1039, status_msg: "limited" } };
    expect(dimensionFor("minimax", body, { status: 200, embedded: true })).toBe("tokens");
  });

  it("wins over words", () => {
    expect(dimensionFor("glm", said("60 requests per minute", { code: "1302" }))).toBe("concurrency");
  });

  it("a code of one provider means nothing elsewhere", () => {
    expect(dimensionFor("openai", said("limited", { code: "1302" }))).toBeUndefined();
  });
});

describe("by words", () => {
  const cases: readonly [Profile, string, string | undefined][] = [
    [
      "openai",
      "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500. Please try again in 1s.",
      "tokens",
    ],
    ["openai", "Rate limit reached for m on requests per min (RPM): Limit 3, Used 3, Requested 1.", "requests"],
    [
      "azure",
      "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024 have exceeded token rate limit of your current OpenAI S0 pricing tier.",
      "tokens",
    ],
    ["azure", "Requests to the Operation have exceeded call rate limit of your current tier.", "requests"],
    [
      "anthropic",
      "This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested.",
      "tokens",
    ],
    ["anthropic", "This request would exceed your organization's rate limit of 50 requests per minute", "requests"],
    ["anthropic", "Number of request tokens has exceeded your per-minute rate limit", "tokens"],
    ["anthropic", "Number of requests has exceeded your per-minute rate limit", "requests"],
    ["anthropic", "Number of concurrent connections has exceeded your rate limit", "concurrency"],
    [
      "gemini",
      "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10",
      "requests",
    ],
    [
      "gemini",
      "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000",
      "tokens",
    ],
    ["kimi", "Your account request reached organization max RPM: 3, please try again after 1 seconds", "requests"],
    ["kimi", "Your account request reached organization TPM rate limit, current: 5, limit: 4", "tokens"],
    ["kimi", "Your account request reached organization max concurrency: 1", "concurrency"],
    ["siliconflow", "Request was rejected due to rate limiting. Details: TPM limit reached.", "tokens"],
    ["mistral", "Requests rate limit exceeded", "requests"],
    ["relay", "Too many concurrent requests: at most 4 requests per second", "concurrency"],
    ["relay", "limited to 60 requests/min", "requests"],
    ["relay", "only 5 requests per 10 seconds", "requests"],
    ["relay", "您当前使用该API的并发数过高，请降低并发", "concurrency"],
    ["relay", "您已达到总请求数限制：1分钟内最多请求60次", "requests"],
    ["relay", "the maximum for this model is 6.0 queries and 180000 tokens per minute", undefined],
    ["relay", "RPM or TPM limit reached", undefined],
    ["relay", "Too many requests", undefined],
    ["relay", "Rate limit exceeded, please slow down", undefined],
  ];
  it.each(cases)("%s: %s", (profile, message, expected) => expect(dimensionFor(profile, said(message))).toBe(expected));

  it("a body without any words names nothing", () => {
    expect(dimensionFor("openai", "")).toBeUndefined();
    expect(dimensionFor("openai", "<html><title>429 Too Many Requests</title></html>")).toBeUndefined();
  });
});

describe("by headers and by status", () => {
  const silent = said("Rate limit exceeded");

  it("the dimension of which nothing is left", () => {
    const none = { limitRequests: 5, limitTokens: 100, remainingRequests: 1, remainingTokens: 1 };
    expect(dimensionFor("relay", silent, { limits: { ...none, remainingRequests: 0 } })).toBe("requests");
    expect(dimensionFor("relay", silent, { limits: { ...none, remainingTokens: 0 } })).toBe("tokens");
    expect(dimensionFor("relay", silent, { limits: none })).toBeUndefined();
    expect(dimensionFor("relay", silent, { limits: { remainingRequests: 0, remainingTokens: 0 } })).toBeUndefined();
  });

  it("words win over headers", () => {
    expect(dimensionFor("relay", said("TPM limit"), { limits: { remainingRequests: 0 } })).toBe("tokens");
  });

  it("DeepSeek limits nothing but concurrency, unless its answer says otherwise", () => {
    expect(dimensionFor("deepseek", silent)).toBe("concurrency");
    expect(dimensionFor("deepseek", said("TPM limit"))).toBe("tokens");
  });
});

it("the facts of the headers go with every refusal, the dimension only with a rate limit", () => {
  const limits = { limitRequests: 5, remainingRequests: 0 };
  expect(errorFor("openai", said("requests per min"), { limits }).details).toEqual({ limits, limitedBy: "requests" });
  expect(errorFor("openai", said("bad key"), { status: 401, limits }).details).toEqual({ limits });
  expect(errorFor("openai", said("RPM of the server"), { status: 500, limits }).details).toEqual({ limits });
  expect(errorFor("openai", said("tokens per min", { code: "insufficient_quota" })).details).toBeUndefined();
});

it.each(LIMIT_WORDING)("%s takes time by the length of a text alone", ({ source, flags }) => {
  const { exponential, degree } = patternRisk(source, flags);
  expect(exponential).toBe(false);
  expect(degree).toBeLessThanOrEqual(1);
});
