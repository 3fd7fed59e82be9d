import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UpstreamLimits } from "../domain/upstream-limits.js";
import { NO_HEADERS, rawHeaders } from "./headers.js";

const NOW = Date.UTC(2026, 0, 15);
const clock = { wallNow: () => NOW };

type Headers = readonly (readonly [string, string])[];

function read(headers: Headers): UpstreamLimits | undefined {
  return rawHeaders(headers.flat().map((text) => Buffer.from(text, "latin1"))).limits(clock);
}

function limitsOf(headers: Readonly<Record<string, string>>): UpstreamLimits | undefined {
  return read(Object.entries(headers));
}

describe("what providers write", () => {
  const cases: readonly [string, Record<string, string>, UpstreamLimits | undefined][] = [
    [
      "OpenAI",
      {
        "x-request-id": "req_1",
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-remaining-tokens": "29000",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-reset-tokens": "2s",
      },
      { limitRequests: 500, limitTokens: 30_000, remainingRequests: 499, remainingTokens: 29_000 },
    ],
    [
      "Groq: requests by the day, tokens by the minute",
      {
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-limit-tokens": "18000",
        "x-ratelimit-remaining-requests": "14370",
        "x-ratelimit-remaining-tokens": "17997",
        "x-ratelimit-reset-requests": "2m59.56s",
        "x-ratelimit-reset-tokens": "7.66s",
      },
      { limitTokens: 18_000, remainingRequests: 14_370, remainingTokens: 17_997 },
    ],
    [
      "Anthropic: moments",
      {
        "anthropic-ratelimit-requests-limit": "1000",
        "anthropic-ratelimit-requests-remaining": "999",
        "anthropic-ratelimit-requests-reset": "2026-01-15T00:00:01Z",
        "anthropic-ratelimit-tokens-limit": "80000",
        "anthropic-ratelimit-tokens-remaining": "79000",
        "anthropic-ratelimit-tokens-reset": "2026-01-15T04:00:00Z",
      },
      { limitRequests: 1_000, remainingRequests: 999, remainingTokens: 79_000 },
    ],
    ["Azure: only what is left", { "x-ratelimit-remaining-tokens": "0" }, { remainingTokens: 0 }],
    [
      "no dimension means requests",
      { "X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "19", "X-RateLimit-Reset": String(NOW + 20_000) },
      { limitRequests: 20, remainingRequests: 19 },
    ],
    [
      "no dimension, by the day",
      { "x-ratelimit-limit": "50", "x-ratelimit-remaining": "40", "x-ratelimit-reset": String(NOW / 1_000 + 7_200) },
      { remainingRequests: 40 },
    ],
    [
      "the named dimension wins over none",
      { "x-ratelimit-limit": "9", "x-ratelimit-limit-requests": "7", "x-ratelimit-remaining": "5" },
      { limitRequests: 7 },
    ],
    ["other windows in the name", { "x-ratelimit-limit-requests-day": "100" }, undefined],
    ["none of them", { "content-type": "text/event-stream", "x-request-id": "r", "x-runtime-in-ms": "17" }, undefined],
  ];
  it.each(cases)("%s", (_, headers, expected) => {
    expect(limitsOf(headers)).toEqual(expected);
    const shouted = Object.entries(headers).map(([name, value]) => [name.toUpperCase(), ` ${value} `] as const);
    expect(read(shouted)).toEqual(expected);
  });

  it("nothing before an answer has begun", () => {
    expect(NO_HEADERS.limits(clock)).toBeUndefined();
  });

  it("the first of two headers of one name counts", () => {
    const twice: Headers = [
      ["x-ratelimit-limit-tokens", "10"],
      ["x-ratelimit-limit-tokens", "20"],
    ];
    expect(read(twice)).toEqual({ limitTokens: 10 });
  });
});

describe("values", () => {
  it.each(["", "-1", "NaN", "Infinity", "1e9", "0x10", "10, 10;w=60", "many", "9".repeat(19), "1 000"])(
    "%j is none",
    (value) => expect(limitsOf({ "x-ratelimit-limit-tokens": value })).toBeUndefined(),
  );

  it("fractions are numbers; a limit of 0 is none, and its remainder says nothing", () => {
    expect(limitsOf({ "x-ratelimit-remaining-tokens": "0.5" })).toEqual({ remainingTokens: 0.5 });
    const zero = { "x-ratelimit-limit-tokens": "0", "x-ratelimit-remaining-tokens": "0" };
    expect(limitsOf(zero)).toBeUndefined();
    expect(limitsOf({ ...zero, "x-ratelimit-limit": "3" })).toEqual({ limitRequests: 3 });
  });
});

describe("a limit whose window is no minute is left out", () => {
  const cases: readonly [string, string, string, boolean][] = [
    ["90", "60s", "a minute", true],
    ["90", "90s", "a minute and some rounding", true],
    ["90", "91s", "longer", false],
    ["90", "1h0m0s", "an hour", false],
    ["2", "5m", "a minute, in debt", true],
    ["2", "11m", "no debt is as deep", false],
    ["0", "8h", "a day, used up", false],
    ["3", "5m", "not nearly used up", false],
    ["90", "soon", "unreadable", true],
    ["90", "2020-01-01T00:00:00Z", "past", true],
  ];
  it.each(cases)("%s of 100 left, reset %s: %s", (remaining, reset, _, isMinute) => {
    const headers = { limit: "100", remaining, reset };
    const named = Object.entries(headers).map(([fact, value]) => [`x-ratelimit-${fact}-requests`, value] as const);
    const expected = { ...(isMinute && { limitRequests: 100 }), remainingRequests: Number(remaining) };
    expect(read(named)).toEqual(expected);
  });

  it("also when nothing is said of what is left", () => {
    expect(limitsOf({ "x-ratelimit-limit": "100", "x-ratelimit-reset": "3600" })).toBeUndefined();
  });
});

it("property: whatever the headers hold, only non-negative finite numbers come out", () => {
  const dimension = fc.constantFrom("", "-requests", "-tokens");
  const name = fc.oneof(
    fc.tuple(fc.constantFrom("limit", "remaining", "reset"), dimension).map(([fact, of]) => `x-ratelimit-${fact}${of}`),
    fc.string({ maxLength: 40 }),
  );
  const value = fc.oneof(fc.double().map(String), fc.nat().map(String), fc.string({ maxLength: 30 }));
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 12 }), (headers) => {
      const limits = read(headers);
      if (limits === undefined) return;
      const numbers = Object.values(limits);
      expect(numbers.length).toBeGreaterThan(0);
      for (const number of numbers) expect(Number.isFinite(number) && number >= 0).toBe(true);
    }),
  );
});
