import { inspect } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { OPENAI_PROFILE } from "../domain/profile.js";
import { Secret } from "../domain/secret.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import type { GatewayOptions, SourceOptions } from "./options.js";
import { inspectScope, resolveScope } from "./resolve.js";

const KEY = "sk-canary-5f1e0c9a77d3";
const SOURCE: SourceOptions = { name: "qwen_1", baseUrl: "http://h/v1//", apiKey: KEY, model: "m" };

function problemsOf(options: unknown): readonly ConfigProblem[] {
  return inspectScope(options as GatewayOptions).problems;
}

test("the defaults are those of the specification", () => {
  const { config, telemetry } = resolveScope({ scope: "LLM", sources: [SOURCE] });
  expect({ ...config, sources: [] }).toEqual({
    scope: "LLM",
    sources: [],
    retry: { maxAttempts: 4, backoffBaseMs: 500, backoffMaxMs: 20_000, maxRateLimited: 20 },
    breaker: {
      failThreshold: 5,
      failRate: 0.5,
      minSamples: 20,
      windowMs: 60_000,
      cooldownMs: 4_000,
      cooldownMaxMs: 30_000,
    },
    backpressure: {
      stallWindowMs: 300_000,
      quotaFull: "wait",
      whenOpen: "fail",
      backendGraceMs: 0,
      pollIntervalMs: 50,
    },
    global: { maxConcurrency: 0, rpm: 0, tpm: 0, limitRule: "smooth", strict: true, burstS: 1, burstTokensS: 3 },
    selector: "health_aware",
    scheduling: {
      pacer: true,
      sizeMatching: true,
      evacuate: true,
      hedge: false,
      affinity: false,
      priceWeight: 0,
      prefetchMs: 0,
      headers: true,
      evidence: true,
      overdue: true,
      ramp: true,
      fairness: true,
      retryBudget: true,
      deadlineRefusal: true,
      learnTokens: true,
    },
    failover: "on",
    deadlineMs: undefined,
    leaseTtlMs: 30_000,
    leaseRenewal: true,
  });
  expect({ ...config.sources[0], apiKey: "" }).toEqual({
    name: "qwen_1",
    provider: "qwen",
    baseUrl: "http://h/v1",
    apiKey: "",
    model: "m",
    profile: OPENAI_PROFILE,
    transport: "openai",
    ocrReader: "auto",
    timeoutMs: 120_000,
    ttftTimeoutMs: 60_000,
    interTokenTimeoutMs: 30_000,
    ...config.global,
    estTokens: undefined,
    tpmCharge: "actual",
    contextTokens: undefined,
    stream: true,
    requireDone: false,
    transient400: "off",
    extraBody: {},
    headers: {},
    weight: 1,
    priority: 0,
  });
  expect(telemetry).toEqual({ capture: "full", journal: "async", durability: "async" });
});

test("the profile comes from the host unless it is given, and must be known", () => {
  const relay = { ...OPENAI_PROFILE, name: "relay" };
  const profiles = { openai: OPENAI_PROFILE, relay };
  const profileFor = (baseUrl: string) => (baseUrl.includes("relay") ? relay : OPENAI_PROFILE);
  const make = (source: Partial<SourceOptions>): GatewayOptions => ({
    scope: "L",
    sources: [{ ...SOURCE, ...source }],
  });
  const profile = (source: Partial<SourceOptions>): string | undefined =>
    resolveScope(make(source), { profiles, profileFor }).config.sources[0]?.profile.name;
  expect(profile({})).toBe("openai");
  expect(profile({ baseUrl: "http://relay/v1" })).toBe("relay");
  expect(profile({ baseUrl: "http://relay/v1", profile: "openai" })).toBe("openai");
  const { problems } = inspectScope(make({ profile: "reley" }), { profiles, profileFor });
  expect(problems).toMatchObject([{ key: "sources[0].profile", value: '"reley"' }]);
  expect(problems[0]?.remedy).toContain("Did you mean relay?");
});

test("every problem comes at once, by its path, and without the key", () => {
  const options = {
    scope: "my scope",
    sources: [{ ...SOURCE, rpm: "60", timeoutMs: Number.NaN, modle: "x", apiKeys: KEY }, { name: "b" }, null],
    retry: 3,
    braker: {},
    failover: true,
    telemetryOptions: { capture: "some" },
    selector: {},
    governor: {},
    telemetry: [{}],
  };
  let error: unknown;
  try {
    resolveScope(options as unknown as GatewayOptions);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ConfigError);
  const byKey = Object.fromEntries((error as ConfigError).problems.map((problem) => [problem.key, problem]));
  expect(Object.keys(byKey).sort()).toEqual(
    [
      "scope",
      "braker",
      "failover",
      "governor",
      "retry",
      "selector",
      "telemetry",
      "telemetryOptions.capture",
      "sources[0].apiKeys",
      "sources[0].modle",
      "sources[0].rpm",
      "sources[0].timeoutMs",
      "sources[1].apiKey",
      "sources[1].baseUrl",
      "sources[1].model",
      "sources[2]",
    ].sort(),
  );
  expect(byKey["sources[0].rpm"]).toMatchObject({ value: '"60"', problem: "is not a number" });
  expect(byKey["sources[0].modle"]?.remedy).toBe("Did you mean sources[0].model?");
  expect(byKey.braker?.remedy).toBe("Did you mean breaker?");
  expect(inspect(error, { depth: 9 })).not.toContain("canary");
});

test.each([undefined, null, 1, "x", [], {}])("%j as options is a ConfigError", (options) => {
  expect(() => resolveScope(options as unknown as GatewayOptions)).toThrow(ConfigError);
});

test("a disabled source is left out and need not be complete, but its values are checked", () => {
  const half = { name: "half_1", disabled: true, rpm: -1 } as unknown as SourceOptions;
  expect(problemsOf({ scope: "L", sources: [SOURCE, half] }).map(({ key }) => key)).toEqual(["sources[1].rpm"]);
  const { config } = resolveScope({ scope: "L", sources: [{ ...half, rpm: 1 }, SOURCE] });
  expect(config.sources.map(({ name }) => name)).toEqual(["qwen_1"]);
});

test("positions in problems count disabled sources", () => {
  const off = { ...SOURCE, name: "off_1", disabled: true };
  const problems = problemsOf({ scope: "L", sources: [off, { ...SOURCE, timeoutMs: 5, ttftTimeoutMs: 6 }] });
  expect(problems.map(({ key }) => key)).toEqual(["sources[1].ttftTimeoutMs"]);
});

test("a pattern that remembers its last match is refused", () => {
  const problem = problemsOf({ scope: "L", sources: [{ ...SOURCE, transient400: /busy/g }] });
  expect(problem).toMatchObject([{ key: "sources[0].transient400", value: "/busy/g" }]);
});

test("a governor of another scope is refused; own objects are taken as they are", () => {
  const method = (): void => {};
  const governor = { scope: "OTHER", tick: method, onEvent: method, snapshot: method };
  expect(problemsOf({ scope: "L", sources: [SOURCE], governor })).toMatchObject([
    { key: "governor", problem: "belongs to scope OTHER" },
  ]);
  const own = { governor: { ...governor, scope: "L" }, selector: { order: method }, apiKey: undefined };
  const { apiKey: _, ...given } = own;
  const { config } = resolveScope({
    scope: "L",
    sources: [{ ...SOURCE, apiKey: new Secret(KEY) }],
    ...given,
  } as unknown as GatewayOptions);
  expect(config.selector).toBe("least_inflight");
  expect(config.sources[0]?.apiKey.reveal()).toBe(KEY);
});

test("given objects are copied, and may not reach a prototype", () => {
  const extraBody = { a: 1 };
  const { config } = resolveScope({ scope: "L", sources: [{ ...SOURCE, extraBody }] });
  expect(config.sources[0]?.extraBody).toEqual(extraBody);
  expect(config.sources[0]?.extraBody).not.toBe(extraBody);
  const polluting = JSON.parse('{"__proto__": {"polluted": true}}') as Record<string, unknown>;
  expect(problemsOf({ scope: "L", sources: [{ ...SOURCE, extraBody: polluting }] })).toHaveLength(1);
});

test("whatever is given, only a ConfigError comes out", () => {
  const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, maxDepth: 2 });
  const source = fc.record(
    {
      name: anything,
      baseUrl: anything,
      apiKey: anything,
      rpm: anything,
      timeoutMs: anything,
      transient400: anything,
      headers: anything,
    },
    { requiredKeys: [] },
  );
  const sources = fc.oneof(anything, fc.array(source, { maxLength: 2 }));
  const options = fc.record(
    { scope: anything, sources, retry: anything, global: anything, telemetry: anything, governor: anything },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(options, anything), (given) => {
      try {
        resolveScope(given as unknown as GatewayOptions);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
      }
    }),
    { numRuns: 1_000 },
  );
});
