import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDurationMs, parseRetryAfterMs } from "./retry-after.js";

const NOW = Date.UTC(2026, 0, 15, 12, 0, 0);

function parse(headers: Record<string, string>, body = "", rateLimited = true): number | null {
  return parseRetryAfterMs({ header: (name) => headers[name], body, wallNowMs: NOW, rateLimited });
}

describe("headers", () => {
  it.each([
    [{ "retry-after": "120" }, 120_000],
    [{ "retry-after": "1.5" }, 1_500],
    [{ "retry-after": "0.0004" }, 1],
    [{ "retry-after": "1e9" }, 1e12],
    [{ "retry-after": "1e308" }, Number.MAX_SAFE_INTEGER],
    [{ "retry-after": "20s" }, 20_000],
    [{ "retry-after": "Thu, 15 Jan 2026 12:00:07 GMT" }, 7_000],
    [{ "retry-after": "Thursday, 15-Jan-26 12:00:09 GMT" }, 9_000],
    [{ "retry-after-ms": "1200", "retry-after": "2" }, 1_200],
    [{ "retry-after-ms": "", "retry-after": "9" }, 9_000],
    [{ "retry-after-ms": "NaN", "retry-after": "9" }, 9_000],
    [{ "retry-after": "-3" }, null],
    [{ "retry-after": "0" }, null],
    [{ "retry-after": "" }, null],
    [{ "retry-after": "soon" }, null],
    [{ "retry-after": "Thu, 15 Jan 2026 11:00:00 GMT" }, null],
    [{ "retry-after": "-3", "x-ratelimit-reset-requests": "6m0s" }, 360_000],
    [{ "x-ratelimit-reset-tokens": "250ms" }, 250],
    [{ "x-ratelimit-reset-tokens": "1m2.5s" }, 62_500],
    [{ "x-ratelimit-reset": String(NOW / 1_000 + 30) }, 30_000],
    [{ "x-ratelimit-reset": String(NOW + 5_000) }, 5_000],
    [{ "x-ratelimit-reset-requests": "2026-01-15T12:00:11Z" }, 11_000],
    [{}, null],
  ])("%j → %s", (headers, expected) => {
    expect(parse(headers as Record<string, string>)).toBe(expected);
  });

  it("only a dimension that is used up says when to come back", () => {
    const headers = {
      "x-ratelimit-remaining-requests": "14399",
      "x-ratelimit-reset-requests": "23h",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "7.66s",
    };
    expect(parse(headers)).toBe(7_660);
  });

  it("rate-limit headers say nothing about other failures", () => {
    expect(parse({ "x-ratelimit-reset-requests": "6m0s" }, "", false)).toBeNull();
  });
});

describe("body", () => {
  it.each([
    ["Limit 6000, Used 5100. Please try again in 3.25s.", 3_250],
    ["try again in 1m2.5s", 62_500],
    ["Please retry after 20 seconds.", 20_000],
    ["try again in 880ms", 880],
    ['{"error":{"details":[{"retryDelay":"37s"}]}}', 37_000],
    ["try again later", null],
    ["try again in a while", null],
    ["try again in 0s", null],
  ])("%s → %s", (body, expected) => {
    expect(parse({}, body)).toBe(expected);
  });
});

it("durations", () => {
  expect(parseDurationMs("6m0s")).toBe(360_000);
  expect(parseDurationMs("x5s")).toBeNull();
  expect(parseDurationMs("5 parsecs")).toBeNull();
});

it("property: never negative, NaN or a throw, whatever the texts hold", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
      const wait = parse({ "retry-after-ms": a, "retry-after": b, "x-ratelimit-reset-tokens": a }, c);
      expect(wait === null || (Number.isFinite(wait) && wait > 0)).toBe(true);
    }),
  );
});

it("is linear on a megabyte of near matches", () => {
  for (const near of [
    "try again in ",
    "retry after 1",
    '"retryDelay": "',
    "try again in 1s1s1s1s1s1s1s ",
    "1".repeat(40),
  ]) {
    const started = process.cpuUsage();
    parse(
      { "retry-after": near.repeat(2_000), "x-ratelimit-reset-tokens": near },
      near.repeat(1_000_000 / near.length),
    );
    expect(process.cpuUsage(started).user).toBeLessThan(1_000_000);
  }
});
