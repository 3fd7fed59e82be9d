import { describe, expect, it } from "vitest";
import { Secret } from "../../domain/secret.js";
import type { SourceConfig } from "../../domain/source.js";
import { RequestRejectedError, SourceDeadError, TransientError } from "../../errors.js";
import { testSource } from "../attempt.test-helper.js";
import { bodyDigest } from "../body-digest.js";
import { createRedactor } from "../redact.js";
import { classify, errorOf } from "./classify.js";

const NOW = Date.UTC(2026, 0, 15);

interface Extra {
  headers?: Record<string, string>;
  source?: Partial<SourceConfig>;
  embedded?: boolean;
}

function errorFor(statusCode: number, body: unknown, { headers = {}, source = {}, embedded = false }: Extra = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const config = testSource("http://127.0.0.1/v1", source);
  const refusal = { statusCode, embedded, text, header: (name: string) => headers[name] };
  return errorOf(classify(refusal, config, NOW), refusal, config, createRedactor([config])) as TransientError;
}

const plain = { error: { message: "something", type: "x", code: null } };

describe("by status", () => {
  const rejected = [400, 406, 411, 413, 415, 418, 422, 424, 426, 431, 451];
  const dead = [301, 302, 307, 308, 401, 402, 403, 404, 405, 410];
  const transient = [408, 409, 425, 429, 498, 499, 500, 502, 503, 504, 520, 521, 522, 524, 529, 530, 599];

  it.each(rejected)("%d is a rejected request", (status) => {
    const error = errorFor(status, plain);
    expect(error).toBeInstanceOf(RequestRejectedError);
    expect(error.code).toBe("bad_request");
  });

  it.each(dead)("%d is a dead source", (status) => {
    expect(errorFor(status, plain)).toBeInstanceOf(SourceDeadError);
  });

  it.each(transient)("%d passes", (status) => {
    const error = errorFor(status, plain);
    expect(error).toBeInstanceOf(TransientError);
    expect(error.rateLimited).toBe(status === 429 || status === 529);
  });

  it.each([...rejected, ...dead, ...transient])("%d: message, digest and status", (status) => {
    const body = `{"error": {"message": "head", "pad": "${"x ".repeat(3_000)}"}, "code": "last_words"}`;
    const error = errorFor(status, body);
    expect(error.statusCode).toBe(status);
    expect(error.bodyText).toBe(bodyDigest(body));
    expect(error.message.startsWith("src_1 ")).toBe(true);
    expect(error.message.endsWith(`: ${status} | ${error.bodyText}`)).toBe(true);
    expect(error.bodyText).toContain("head");
    expect(error.bodyText).toContain("last_words");
    expect(error.upstreamMessage).toBe("head");
  });
});

describe("by code and wording", () => {
  it.each([
    [400, { error: { message: "Model Not Exist", code: "invalid_request_error" } }, "model_not_found"],
    [
      400,
      { error: { message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" } },
      "auth",
    ],
    [400, { error: { message: "Access denied, account is in arrears", code: "Arrearage" } }, "quota"],
    [400, { error: { message: "too long", code: "context_length_exceeded" } }, "context_length"],
    [
      400,
      { error: { message: "This model's maximum context length is 8192 tokens, you asked for 9000" } },
      "context_length",
    ],
    [400, { error: { message: "This model does not support image input" } }, "unsupported_modality"],
    [400, { error: { message: "bad", code: "data_inspection_failed" } }, "content_filtered"],
    [
      400,
      { error: { message: "Unsupported parameter: 'max_tokens'", code: "unsupported_parameter", param: "max_tokens" } },
      "unsupported_param",
    ],
    [400, { error: { message: "temperature must be at most 2" } }, "bad_request"],
    [403, { error: { message: "Input flagged by moderation" } }, "content_filtered"],
    [403, { error: { message: "prompt exceeds the context window" } }, "context_length"],
    [404, { error: { message: "The model `m` does not exist", code: "model_not_found" } }, "model_not_found"],
    [
      404,
      { error: { message: "Invalid URL (POST /chat/completions)", type: "invalid_request_error" } },
      "endpoint_not_found",
    ],
    [404, "<html><title>404 Not Found</title></html>", "endpoint_not_found"],
    [404, { detail: "Not Found" }, "endpoint_not_found"],
    [405, plain, "model_not_found"],
    [405, { detail: "Method Not Allowed" }, "endpoint_not_found"],
    [405, { error: { message: "Not allowed to POST on /v1/chat" } }, "endpoint_not_found"],
    [404, "", "endpoint_not_found"],
    [429, { error: { message: "engine overloaded", type: "engine_overloaded_error" } }, "overloaded"],
    [
      429,
      { error: { message: "Request too large on tokens per min (TPM): Limit 30000, Requested 41000." } },
      "request_too_large_for_tier",
    ],
    [429, { error: { message: "Rate limit reached on requests per min. Limit: 3, Requested: 1" } }, "rate_limit"],
    [500, { error: { message: "insufficient balance on the moon" } }, "upstream_error"],
    [500, { error: { message: "x", code: "insufficient_quota" } }, "quota"],
    [503, { error: { message: "no available channel for model m" } }, "no_channel"],
    [200, { error: { message: "busy", code: "503" } }, "overloaded"],
    [200, { error: { message: "no key", code: 401 } }, "auth"],
    [200, { base_resp: { status_code: 1008, status_msg: "insufficient balance" } }, "quota"],
    [200, { object: "error", message: "wrong", type: "BadRequestError", code: 400 }, "bad_request"],
    [200, { x_groq: { error: "over capacity" } }, "overloaded"],
    [200, { error: "ENGINE_GONE" }, "upstream_error"],
  ] as const)("%d %j → %s", (status, body, code) => {
    expect(errorFor(status, body, { embedded: status === 200 }).code).toBe(code);
  });

  it("reads lists, nested and double-encoded messages", () => {
    expect(
      errorFor(422, { detail: [{ loc: ["body", "messages", 0], msg: "Field required" }, "and more"] }).upstreamMessage,
    ).toBe("body.messages.0: Field required; and more");
    const nested = { error: { message: JSON.stringify({ error: { message: "inner", code: "insufficient_quota" } }) } };
    const error = errorFor(429, nested);
    expect(error.code).toBe("quota");
    expect(error.upstreamMessage).toBe("inner");
  });

  it("classifies the unabridged text: a padded quota error stays a dead source", () => {
    const padding = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`key_${index}`, "padding"]));
    const text = JSON.stringify({ error: { message: "used up", ...padding, code: "insufficient_quota" } });
    expect(() => JSON.parse(bodyDigest(text))).toThrow();
    expect(errorFor(429, text)).toBeInstanceOf(SourceDeadError);
  });

  it("notes small facts", () => {
    expect(errorFor(400, { error: { message: "maximum context length is 8192 tokens" } }).details).toEqual({
      limit: 8_192,
    });
    expect(errorFor(413, { error: { message: "(TPM): Limit 8000, Requested 41000" } }).details).toEqual({
      limit: 8_000,
    });
    expect(errorFor(400, { error: { message: "Unrecognized request argument supplied: top_k" } }).details).toEqual({
      param: "top_k",
    });
  });
});

describe("waiting", () => {
  it("a 503 with Retry-After is a rate limit, one without isn't", () => {
    expect(errorFor(503, plain, { headers: { "retry-after": "7" } })).toMatchObject({
      rateLimited: true,
      retryAfterMs: 7_000,
    });
    expect(errorFor(503, plain).rateLimited).toBe(false);
  });

  it("a wrong address says what to check", () => {
    expect(errorFor(404, "").message).toBe("src_1 model or endpoint not found (check BASE_URL): 404");
    expect(errorFor(307, "").message).toMatch(/check BASE_URL, redirects are not followed\): 307$/);
  });

  it("a 429 that asks for more than ten minutes is no rate limit", () => {
    expect(errorFor(429, plain, { headers: { "retry-after": "600" } })).toBeInstanceOf(TransientError);
    const error = errorFor(429, plain, { headers: { "retry-after": "601" } });
    expect(error).toBeInstanceOf(SourceDeadError);
    expect(error).toMatchObject({ code: "quota", retryAfterMs: 601_000 });
  });

  it("quota wording with more than a minute is no rate limit either", () => {
    const body = { error: { message: "Quota exceeded for this window" } };
    expect(errorFor(429, body, { headers: { "retry-after": "60" } }).code).toBe("rate_limit");
    expect(errorFor(429, body, { headers: { "retry-after": "61" } }).code).toBe("quota");
  });
});

describe("transient400", () => {
  const hiccup = { error: { message: "upstream connect error" } };

  it("off: a 400 is final", () => {
    expect(errorFor(400, hiccup)).toBeInstanceOf(RequestRejectedError);
  });

  it("relay: words about the service pass, words about the request don't", () => {
    const source = { transient400: "relay" } as const;
    expect(errorFor(400, hiccup, { source })).toBeInstanceOf(TransientError);
    expect(errorFor(400, { error: { message: "upstream: prompt is too long" } }, { source }).code).toBe(
      "context_length",
    );
    expect(errorFor(422, hiccup, { source })).toBeInstanceOf(RequestRejectedError);
  });

  it("a pattern is tried on the unabridged body, as often as needed", () => {
    const source = { transient400: /gremlin/g };
    const body = JSON.stringify({
      error: { message: "x", pad: "p".repeat(5_000), note: "a gremlin", more: "q".repeat(5_000) },
    });
    expect(errorFor(400, body, { source })).toBeInstanceOf(TransientError);
    expect(errorFor(400, body, { source })).toBeInstanceOf(TransientError);
  });
});

it("our own key is redacted from every text, also where the digest cuts", () => {
  const apiKey = new Secret("sk-CANARY-0123456789abcdef");
  const pad = "p".repeat(1_400 - '{"error":{"message":"'.length - 10);
  const body = `{"error":{"message":"${pad}${apiKey.reveal()} is wrong","param":"${apiKey.reveal()}"},"tail":"${"t".repeat(2_000)}"}`;
  const error = errorFor(400, body, { source: { apiKey } });
  const shown = JSON.stringify([error.message, error.bodyText, error.upstreamMessage, error.details, error]);
  for (let length = 8; length <= apiKey.reveal().length; length += 1) {
    expect(shown).not.toContain(apiKey.reveal().slice(0, length));
  }
});

it("hostile wording costs little", () => {
  const near = ["model ", "image ", "balance ", "quota ", "Limit 1 ", "parameter ", "credits ", "body."];
  for (const word of near) {
    const started = process.cpuUsage();
    errorFor(400, word.repeat(65_536 / word.length));
    expect(process.cpuUsage(started).user).toBeLessThan(1_000_000);
  }
});
