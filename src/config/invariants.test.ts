import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { stringify } from "yaml";
import type { ScopeConfig } from "../domain/scope.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { inspectEnv, loadEnv } from "./env.js";
import { inspectFile, openConfigFile } from "./file.js";
import { limitConflicts, sameLimits } from "./invariants.js";
import type { GatewayOptions, SourceOptions } from "./options.js";
import { inspectScope, resolveScope } from "./resolve.js";

const SOURCE: SourceOptions = { name: "qwen_1", provider: "qwen", baseUrl: "http://h/v1", apiKey: "none", model: "m" };
const SOURCE_ENV = {
  LLM__QWEN__1__BASE_URL: "http://h/v1",
  LLM__QWEN__1__API_KEY: "none",
  LLM__QWEN__1__MODEL: "m",
};

interface Break {
  readonly name: string;
  readonly options: Partial<GatewayOptions>;
  readonly source?: Partial<SourceOptions>;
  readonly env: Record<string, string>;
  /** The two settings that disagree, as [constructor path, environment name], the first being the problem's key. */
  readonly keys: readonly (readonly [string, string])[];
  readonly values: { readonly code: readonly string[]; readonly env: readonly string[] };
}

const BREAKS: readonly Break[] = [
  {
    name: "TTFT timeout above the timeout",
    options: {},
    source: { timeoutMs: 10_000, ttftTimeoutMs: 20_000 },
    env: { LLM__QWEN__1__TIMEOUT_S: "10", LLM__QWEN__1__TTFT_TIMEOUT_S: "20" },
    keys: [
      ["sources[0].ttftTimeoutMs", "LLM__QWEN__1__TTFT_TIMEOUT_S"],
      ["sources[0].timeoutMs", "LLM__QWEN__1__TIMEOUT_S"],
    ],
    values: { code: ["20000", "10000"], env: ["20", "10"] },
  },
  {
    name: "inter-token timeout above the timeout",
    options: {},
    source: { interTokenTimeoutMs: 130_000 },
    env: { LLM__QWEN__1__INTER_TOKEN_TIMEOUT_S: "130" },
    keys: [
      ["sources[0].interTokenTimeoutMs", "LLM__QWEN__1__INTER_TOKEN_TIMEOUT_S"],
      ["sources[0].timeoutMs", "LLM__QWEN__1__TIMEOUT_S"],
    ],
    values: { code: ["130000", "120000 (default)"], env: ["130", "120 (default)"] },
  },
  {
    name: "TTFT timeout above the stall window",
    options: { backpressure: { stallWindowMs: 15_000 } },
    source: { ttftTimeoutMs: 16_000 },
    env: { LLM__BACKPRESSURE__STALL_WINDOW_S: "15", LLM__QWEN__1__TTFT_TIMEOUT_S: "16" },
    keys: [
      ["sources[0].ttftTimeoutMs", "LLM__QWEN__1__TTFT_TIMEOUT_S"],
      ["backpressure.stallWindowMs", "LLM__BACKPRESSURE__STALL_WINDOW_S"],
    ],
    values: { code: ["16000", "15000"], env: ["16", "15"] },
  },
  {
    name: "lease shorter than the timeout without renewal",
    options: { leaseRenewal: false, leaseTtlMs: 40_000 },
    source: { timeoutMs: 60_000 },
    env: { PGW_LEASE_RENEWAL: "off", PGW_LEASE_TTL_S: "40", LLM__QWEN__1__TIMEOUT_S: "60" },
    keys: [
      ["sources[0].timeoutMs", "LLM__QWEN__1__TIMEOUT_S"],
      ["leaseTtlMs", "PGW_LEASE_TTL_S"],
    ],
    values: { code: ["60000", "40000"], env: ["60", "40"] },
  },
  {
    name: "reservation above the source's TPM",
    options: {},
    source: { tpm: 100, estTokens: 101 },
    env: { LLM__QWEN__1__TPM: "100", LLM__QWEN__1__EST_TOKENS: "101" },
    keys: [
      ["sources[0].estTokens", "LLM__QWEN__1__EST_TOKENS"],
      ["sources[0].tpm", "LLM__QWEN__1__TPM"],
    ],
    values: { code: ["101", "100"], env: ["101", "100"] },
  },
  {
    name: "reservation above the scope's TPM",
    options: { global: { tpm: 50 } },
    source: { estTokens: 51 },
    env: { LLM__GLOBAL__TPM: "50", LLM__QWEN__1__EST_TOKENS: "51" },
    keys: [
      ["sources[0].estTokens", "LLM__QWEN__1__EST_TOKENS"],
      ["global.tpm", "LLM__GLOBAL__TPM"],
    ],
    values: { code: ["51", "50"], env: ["51", "50"] },
  },
  {
    name: "backoff base above its maximum",
    options: { retry: { backoffBaseMs: 30_000 } },
    env: { LLM__RETRY__BACKOFF_BASE_S: "30" },
    keys: [
      ["retry.backoffBaseMs", "LLM__RETRY__BACKOFF_BASE_S"],
      ["retry.backoffMaxMs", "LLM__RETRY__BACKOFF_MAX_S"],
    ],
    values: { code: ["30000", "20000 (default)"], env: ["30", "20 (default)"] },
  },
  {
    name: "lease under 3 s",
    options: { leaseTtlMs: 2_999 },
    env: { PGW_LEASE_TTL_S: "2.999" },
    keys: [["leaseTtlMs", "PGW_LEASE_TTL_S"]],
    values: { code: ["2999"], env: ["2.999"] },
  },
  ...[0, -0.1, 1.01, Number.NaN, Number.POSITIVE_INFINITY].map(
    (failRate): Break => ({
      name: `failure rate ${failRate}`,
      options: { breaker: { failRate } },
      env: { LLM__BREAKER__FAIL_RATE: String(failRate) },
      keys: [["breaker.failRate", "LLM__BREAKER__FAIL_RATE"]],
      values: { code: [String(failRate)], env: [String(failRate)] },
    }),
  ),
  ...[-1, 0.5, 2 ** 53].map(
    (rpm): Break => ({
      name: `RPM ${rpm}`,
      options: {},
      source: { rpm },
      env: { LLM__QWEN__1__RPM: String(rpm) },
      keys: [["sources[0].rpm", "LLM__QWEN__1__RPM"]],
      values: { code: [String(rpm)], env: [String(rpm)] },
    }),
  ),
];

const folder = mkdtempSync(join(tmpdir(), "pgw-invariants-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As a file of one scope, with `process` where the environment has it process-wide too. */
function fileProblems({ options, source }: Break): readonly ConfigProblem[] {
  const path = join(folder, "polygateway.yaml");
  const { leaseTtlMs, leaseRenewal, ...scope } = options;
  const process = JSON.parse(JSON.stringify({ leaseTtlMs, leaseRenewal }));
  writeFileSync(path, stringify({ scopes: { LLM: { ...scope, sources: [{ ...SOURCE, ...source }] } }, process }));
  return inspectFile(openConfigFile(path), "LLM", {}).problems;
}

function codeProblems({ options, source }: Break): readonly ConfigProblem[] {
  return inspectScope({ scope: "LLM", ...options, sources: [{ ...SOURCE, ...source }] }).problems;
}

test.each(BREAKS)("$name is found through constructor, environment and file alike", (broken) => {
  const code = codeProblems(broken);
  const env = inspectEnv("LLM", { ...SOURCE_ENV, ...broken.env }).problems;
  expect(code).toHaveLength(1);
  expect(env).toHaveLength(1);
  const file = fileProblems(broken);
  expect(file).toHaveLength(1);
  // The file's paths are those of code, below the scope or the process, each with its line.
  const inFile = (text: string): string => text.replace(/\S*polygateway\.yaml:\d+ (scopes\.LLM|process)\./g, "");
  for (const [list, at, values] of [
    [code, 0, broken.values.code],
    [env, 1, broken.values.env],
    [file.map((each) => ({ ...each, key: inFile(each.key), problem: inFile(each.problem) })), 0, broken.values.code],
  ] as const) {
    const [problem] = list;
    expect(problem?.key).toBe(broken.keys[0]?.[at]);
    expect(problem?.value).toBe(values[0]);
    for (const [index, key] of broken.keys.entries()) {
      if (index > 0) expect(problem?.problem).toBe(`is above ${key[at]} = ${values[index]}`);
    }
    expect(problem?.remedy).not.toBe("");
  }
});

test("all broken rules come at once, and once each", () => {
  const pairs = BREAKS.filter(({ keys }) => keys.length === 2);
  const env = Object.assign({}, ...pairs.map((broken) => broken.env), SOURCE_ENV) as Record<string, string>;
  expect(() => loadEnv("LLM", env)).toThrow(ConfigError);
  const found = inspectEnv("LLM", env).problems.map(({ key, problem }) => `${key} ${problem}`);
  expect(new Set(found).size).toBe(found.length);
  expect(new Set(found.map((text) => text.split(" ")[0]))).toEqual(new Set(pairs.map(({ keys }) => keys[0]?.[1])));
});

test("a scope without a source is refused, one emptied by DISABLED is not", () => {
  expect(inspectScope({ scope: "LLM", sources: [] }).problems.map(({ key }) => key)).toEqual(["sources"]);
  expect(inspectEnv("LLM", {}).problems.map(({ key }) => key)).toEqual(["LLM"]);
  const disabled = inspectScope({ scope: "LLM", sources: [{ ...SOURCE, disabled: true }] });
  expect(disabled.problems).toEqual([]);
  expect(disabled.config.sources).toEqual([]);
  expect(disabled.notes.some(({ text }) => text.includes("no_sources"))).toBe(true);
  expect(loadEnv("LLM", { ...SOURCE_ENV, LLM__QWEN__1__DISABLED: "on" }).options.sources).toHaveLength(1);
});

test("names are unique, in code and when two prefixes give one name", () => {
  const code = inspectScope({ scope: "LLM", sources: [SOURCE, SOURCE] }).problems;
  expect(code).toMatchObject([{ key: "sources[1].name", value: "qwen_1" }]);
  expect(code[0]?.problem).toContain("sources[0].name");
  const second = Object.fromEntries(
    Object.entries(SOURCE_ENV).map(([key, value]) => [key.replace("QWEN", "qwen"), value]),
  );
  const env = inspectEnv("LLM", { ...SOURCE_ENV, ...second }).problems;
  expect(env).toMatchObject([{ key: "LLM__qwen__1", value: "qwen_1" }]);
  expect(env[0]?.problem).toContain("LLM__QWEN__1");
});

test("a source limit above the scope's is only a warning that names both", () => {
  const { problems, notes } = inspectEnv("LLM", { ...SOURCE_ENV, LLM__QWEN__1__RPM: "100", LLM__GLOBAL__RPM: "60" });
  expect(problems).toEqual([]);
  expect(notes).toContainEqual({
    key: "LLM__QWEN__1__RPM",
    level: "warning",
    text: "100 is above LLM__GLOBAL__RPM = 60, so it can never be used up",
  });
});

test("a short timeout shortens the default timers that must fit into it", () => {
  const [source] = resolveScope({ scope: "LLM", sources: [{ ...SOURCE, timeoutMs: 10_000 }] }).config.sources;
  expect(source).toMatchObject({ timeoutMs: 10_000, ttftTimeoutMs: 10_000, interTokenTimeoutMs: 10_000 });
});

test("stall window and timeout are not coupled, and with renewal on a lease may be shorter than a timeout", () => {
  const options: GatewayOptions = {
    scope: "LLM",
    sources: [{ ...SOURCE, timeoutMs: 600_000, ttftTimeoutMs: 1_000 }],
    backpressure: { stallWindowMs: 2_000 },
    leaseTtlMs: 3_000,
  };
  expect(inspectScope(options).problems).toEqual([]);
});

test("a value that is broken by itself is not used to accuse another", () => {
  const { problems } = inspectEnv("LLM", {
    ...SOURCE_ENV,
    LLM__QWEN__1__TIMEOUT_S: "ten",
    LLM__QWEN__1__TTFT_TIMEOUT_S: "200",
  });
  expect(problems.map(({ key }) => key)).toEqual(["LLM__QWEN__1__TIMEOUT_S"]);
});

test("clients may share a governor only with equal limits", () => {
  const make = (rpm: number, name = "qwen_1", globalRpm = 0): ScopeConfig =>
    resolveScope({ scope: "LLM", global: { rpm: globalRpm }, sources: [{ ...SOURCE, name, rpm }] }).config;
  expect(limitConflicts(make(5), make(5))).toEqual([]);
  expect(limitConflicts(make(5), make(9, "other_1"))).toEqual([]);
  expect(limitConflicts(make(5), make(6))).toMatchObject([{ key: "source qwen_1: rpm", value: "5" }]);
  expect(limitConflicts(make(5, "qwen_1", 1), make(5, "qwen_1", 2))).toMatchObject([{ key: "global: rpm" }]);
  const limits = make(5).sources[0];
  expect(limits && sameLimits(limits, { ...limits, strict: false })).toBe(false);
  expect(limits && sameLimits(limits, { ...limits, weight: 3 } as typeof limits)).toBe(true);
});
