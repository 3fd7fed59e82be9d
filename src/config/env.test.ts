import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { Secret } from "../domain/secret.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { inspectEnv, loadEnv, loadProcessSettings, scopesIn } from "./env.js";
import { resolveScope } from "./resolve.js";
import { PROCESS_FIELDS } from "./schema-process.js";
import { SOURCE_FIELDS } from "./schema-source.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-env-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const KEY = "sk-canary-5f1e0c9a77d3";
const GOOD = {
  LLM__QWEN__1__BASE_URL: "http://127.0.0.1:8080/v1/",
  LLM__QWEN__1__API_KEY: KEY,
  LLM__QWEN__1__MODEL: "m",
};

function problemsOf(env: Record<string, string>, scope = "LLM"): readonly ConfigProblem[] {
  return inspectEnv(scope, env).problems;
}

function problemOf(env: Record<string, string>): ConfigProblem {
  const problems = problemsOf({ ...GOOD, ...env });
  expect(problems).toHaveLength(1);
  return problems[0] as ConfigProblem;
}

describe("ten mistakes in one .env", () => {
  const text = `
LLM__QWEN__1__BASE_URL=127.0.0.1:8080/v1
LLM__QWEN__1__API_KEY="${KEY} "
LLM__QWEN__1__MODEL=m
LLM__QWEN__1__RPM=-60
LLM__QWEN__1__TIMEOUT_S=30s
LLM__QWEN__1__STRICT=maybe
LLM__QWEN__2__BASE_URL=https://user:${KEY}@api.example.com/v1
LLM__QWEN__2__API_KEY=${KEY}
LLM__QWEN__2__MODEL=m
LLM__QWEN__2__TPM=1000
LLM__QWEN__2__EST_TOKENS=2000
LLM__QWEN__2__MAX_CONCURENCY=8
LLM__RETRY__MAX_ATTEMPTS=0
LLM__SELECTOR=fastest
PGW_TELEMETRY_BACKEND=mysql
`;
  const expected = {
    LLM__QWEN__1__BASE_URL: "127.0.0.1:8080/v1",
    LLM__QWEN__1__API_KEY: "sk-…77d3",
    LLM__QWEN__1__RPM: "-60",
    LLM__QWEN__1__TIMEOUT_S: "30s",
    LLM__QWEN__1__STRICT: "maybe",
    LLM__QWEN__2__BASE_URL: "https://…@api.example.com/v1",
    LLM__QWEN__2__EST_TOKENS: "2000",
    LLM__QWEN__2__MAX_CONCURENCY: "8",
    LLM__RETRY__MAX_ATTEMPTS: "0",
    LLM__SELECTOR: "fastest",
    PGW_TELEMETRY_BACKEND: "mysql",
  };
  const dotenvPath = file("ten.env", text);

  function thrown(): ConfigError {
    try {
      loadEnv("LLM", {}, { dotenvPath });
    } catch (error) {
      return error as ConfigError;
    }
    throw new Error("nothing was thrown");
  }

  test("come in one error, each once with key, masked value and remedy", () => {
    const error = thrown();
    expect(error).toBeInstanceOf(ConfigError);
    expect(Object.fromEntries(error.problems.map(({ key, value }) => [key, value]))).toEqual(expected);
    expect(error.problems).toHaveLength(Object.keys(expected).length);
    for (const { key, remedy, problem } of error.problems) {
      expect(problem).not.toBe("");
      expect(remedy).toMatch(/[.?!]$/);
      expect(error.message).toContain(key);
      expect(error.message).toContain(remedy);
    }
    expect(error.problems.find(({ key }) => key.endsWith("CONCURENCY"))?.remedy).toContain(
      "LLM__QWEN__2__MAX_CONCURRENCY",
    );
  });

  test("never show the secret, however the error is printed", () => {
    const error = thrown();
    for (const text of [error.message, inspect(error, { depth: 9 }), JSON.stringify(error), String(error.stack)]) {
      expect(text).not.toContain(KEY);
      expect(text).not.toContain("canary");
    }
  });
});

test("a good environment becomes the options of a constructor", () => {
  const { options, notes } = loadEnv("LLM", {
    ...GOOD,
    LLM__QWEN__1__TIMEOUT_S: "90.5",
    LLM__QWEN__1__TRANSIENT_400: "/busy|later/i",
    LLM__QWEN__1__EXTRA_BODY: '{"top_k": 20}',
    LLM__QWEN__1__HEADERS: '{"x-team": "search"}',
    LLM__QWEN__10__BASE_URL: "https://b/v1",
    LLM__QWEN__10__API_KEY: "none",
    LLM__QWEN__10__MODEL: "n",
    LLM__QWEN__2__BASE_URL: "https://c/v1",
    LLM__QWEN__2__API_KEY: "none",
    LLM__QWEN__2__MODEL: "n",
    LLM__BREAKER__COOLDOWN_S: "0",
    LLM__FAILOVER: "off",
    LLM__DEADLINE_S: "60",
    PGW_LEASE_TTL_S: "12",
    PGW_TELEMETRY_CAPTURE: "digest",
    https_proxy: "http://proxy:3128",
    UNRELATED: "x",
  });
  expect(options.sources.map(({ name }) => name)).toEqual(["qwen_1", "qwen_2", "qwen_10"]);
  expect(options).toMatchObject({
    scope: "LLM",
    breaker: { cooldownMs: 0 },
    failover: "off",
    deadlineMs: 60_000,
    leaseTtlMs: 12_000,
    telemetryOptions: { capture: "digest" },
    proxyEnv: { httpsProxy: "http://proxy:3128" },
  });
  const { config, telemetry } = resolveScope(options);
  expect(telemetry).toEqual({ capture: "digest", journal: "async", durability: "async" });
  expect(config.sources[0]).toMatchObject({
    provider: "qwen",
    baseUrl: "http://127.0.0.1:8080/v1",
    timeoutMs: 90_500,
    transient400: /busy|later/i,
    extraBody: { top_k: 20 },
    headers: { "x-team": "search" },
  });
  expect(config.sources[0]?.apiKey.reveal()).toBe(KEY);
  expect(inspect(options, { depth: 9 })).not.toContain(KEY);
  expect(notes).toEqual([]);
});

test("the real environment wins over .env", () => {
  const dotenvPath = file("floor.env", "LLM__QWEN__1__MODEL=from-file\nLLM__QWEN__1__RPM=7\n");
  const [source] = loadEnv("LLM", GOOD, { dotenvPath }).options.sources;
  expect(source).toMatchObject({ model: "m", rpm: 7 });
});

test("a line of .env that would be lost is an error with its line number", () => {
  const dotenvPath = file(
    "lost.env",
    "LLM__QWEN__1__RPM=7\nLLM__QWEN__1__TPM: 5\nLLM__QWEN__1__RPM=8\nOTHER=1\nOTHER=2\n",
  );
  const { problems } = inspectEnv("LLM", GOOD, { dotenvPath });
  expect(problems.map(({ key, problem }) => `${key} ${problem}`)).toEqual([
    `LLM__QWEN__1__TPM has no "=" in line 2 in ${dotenvPath}`,
    `LLM__QWEN__1__RPM is set in lines 1 and 3 in ${dotenvPath}`,
  ]);
});

describe("values", () => {
  test.each([
    ["on", true],
    ["TRUE", true],
    ["1", true],
    ["off", false],
    ["False", false],
    ["0", false],
  ])("%s is a flag", (text, value) => {
    expect(loadEnv("LLM", { ...GOOD, LLM__QWEN__1__STREAM: text }).options.sources[0]?.stream).toBe(value);
  });

  test.each(["", " ", "NaN", "Infinity", "1e999", "0x10", "1_000", "1,000", "ten", "--1", "99999999999999999999"])(
    "%j is no RPM: a limit is never lost by accident",
    (text) => {
      expect(problemOf({ LLM__QWEN__1__RPM: text }).key).toBe("LLM__QWEN__1__RPM");
    },
  );

  test.each(["{", "[1]", "null", '"x"', '{"__proto__": {"polluted": 1}}'])("%j is no EXTRA_BODY", (text) => {
    const problem = problemOf({ LLM__QWEN__1__EXTRA_BODY: text });
    expect(problem.key).toBe("LLM__QWEN__1__EXTRA_BODY");
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each([
    ["ftp://h/v1", "is not an http(s) address"],
    ["h/v1", "is not an http(s) address"],
    ["localhost:8080", "is not an http(s) address"],
    ["http://u:p@h/v1", "has a user name or password in it"],
    ["http://u@h/v1", "has a user name or password in it"],
    ["http://h/v1?key=1", "has a query or a fragment"],
    ["http://h/ v1", "has spaces or control characters"],
  ])("%s as BASE_URL", (text, problem) => {
    expect(problemOf({ LLM__QWEN__1__BASE_URL: text })).toMatchObject({ key: "LLM__QWEN__1__BASE_URL", problem });
  });

  test.each([`${KEY}\n`, `${KEY}\r`, `a\u0000${KEY}`, `${KEY}\u007f`, ` ${KEY}`, `${KEY}💥`, ""])(
    "a key that would break its header is refused: %j",
    (text) => {
      expect(problemOf({ LLM__QWEN__1__API_KEY: text }).key).toBe("LLM__QWEN__1__API_KEY");
    },
  );

  test("a header may not smuggle a line in, nor show its content in the error", () => {
    const problem = problemOf({ LLM__QWEN__1__HEADERS: `{"x-a": "${KEY}\\r\\nx-b: 1"}` });
    expect(problem.problem).toContain("x-a");
    expect(JSON.stringify(problem)).not.toContain("canary");
  });
});

describe("secrets from files", () => {
  test("the file's content is the key, without its last line end", () => {
    const path = file("key.txt", `${KEY}\r\n`);
    const { LLM__QWEN__1__API_KEY: _, ...rest } = GOOD;
    const [source] = loadEnv("LLM", { ...rest, LLM__QWEN__1__API_KEY_FILE: path }).options.sources;
    expect(source?.apiKey instanceof Secret && source.apiKey.reveal()).toBe(KEY);
  });

  test("a missing file, a file beside a value and a broken content are told by the name of the key", () => {
    const { LLM__QWEN__1__API_KEY: _, ...rest } = GOOD;
    const missing = join(folder, "none.txt");
    expect(problemsOf({ ...rest, LLM__QWEN__1__API_KEY_FILE: missing })).toMatchObject([
      { key: "LLM__QWEN__1__API_KEY_FILE", value: missing, problem: "names a file that doesn't exist" },
    ]);
    expect(problemOf({ LLM__QWEN__1__API_KEY_FILE: missing }).problem).toBe("is given beside LLM__QWEN__1__API_KEY");
    const broken = problemsOf({ ...rest, LLM__QWEN__1__API_KEY_FILE: file("two.txt", `${KEY}\nmore`) });
    expect(broken).toHaveLength(1);
    expect(JSON.stringify(broken)).not.toContain("canary");
  });

  test("only secrets can come from a file", () => {
    expect(problemOf({ LLM__QWEN__1__MODEL_FILE: "/m" }).problem).toBe("is not a known key");
  });
});

test.each([
  ["LLM__QWEN__1__MODLE", "Did you mean LLM__QWEN__1__MODEL?"],
  ["LLM__RETRY__MAX_ATEMPTS", "Did you mean LLM__RETRY__MAX_ATTEMPTS?"],
  ["LLM__RETRYS__MAX_ATTEMPTS", "Did you mean LLM__RETRY__MAX_ATTEMPTS?"],
  ["LLM__SELECTR", "Did you mean LLM__SELECTOR?"],
  ["LLM__QWEN__MODEL", "Write LLM__QWEN__1__MODEL."],
  ["LLM__QWEN__A__MODEL", "Write LLM__QWEN__1__MODEL."],
  ["PGW_TELEMETRY_BACKENDS", "Did you mean PGW_TELEMETRY_BACKEND?"],
])("%s is an unknown key", (key, remedy) => {
  expect(problemOf({ [key]: "x" }).remedy).toContain(remedy);
});

test("the value of an unknown key is not shown where it may be a secret", () => {
  for (const key of ["LLM__QWEN__1__API_KEYS", "LLM__QWEN__1__TOKEN", "LLM__QWEN__1__APIKEY", "PGW_TELEMETRY_PG_DSM"]) {
    expect(JSON.stringify(problemOf({ [key]: "hunter2-hunter2" }))).not.toContain("hunter2-");
  }
});

test("a key that landed under another name stays hidden", () => {
  const plain = "plainsecret1";
  const { problems } = inspectEnv("LLM", {
    ...GOOD,
    LLM__X__1__API_KEY: plain,
    LLM__QWEN__1__TIMEOUT_S: KEY,
    LLM__SELECTOR: `Bearer ${KEY}`,
    LLM__FAILOVER: plain,
    LLM__QWEN__1__BASE_URL: `h/${"x".repeat(70)}/${plain}`,
  });
  const byKey = Object.fromEntries(problems.map(({ key, value }) => [key, value]));
  expect(byKey.LLM__QWEN__1__TIMEOUT_S).toBe("sk-…77d3");
  expect(byKey.LLM__FAILOVER).toBe("…ret1");
  expect(JSON.stringify(problems)).not.toMatch(/canary|plainsec/);
});

describe("flat names of older configurations", () => {
  test("n retries are n + 1 attempts, timeouts go to every source, a cooldown of 0 is a value", () => {
    const { options, notes } = loadEnv("LLM", {
      ...GOOD,
      LLM_MAX_RETRIES: "0",
      LLM_TIMEOUT: "50",
      LLM_TTFT_TIMEOUT: "20",
      LLM_INTER_TOKEN_TIMEOUT: "10",
      LLM_CIRCUIT_BREAKER_THRESHOLD: "7",
      LLM_CIRCUIT_BREAKER_COOLDOWN: "0",
    });
    expect(options.retry).toEqual({ maxAttempts: 1 });
    expect(options.breaker).toEqual({ failThreshold: 7, cooldownMs: 0 });
    expect(options.sources[0]).toMatchObject({ timeoutMs: 50_000, ttftTimeoutMs: 20_000, interTokenTimeoutMs: 10_000 });
    expect(notes.filter(({ level }) => level === "warning")).toEqual([]);
  });

  test("the structured name wins and the conflict is told; equal values are no conflict", () => {
    const both = {
      ...GOOD,
      LLM_MAX_RETRIES: "3",
      LLM__RETRY__MAX_ATTEMPTS: "9",
      LLM_TIMEOUT: "50",
      LLM__QWEN__1__TIMEOUT_S: "50",
    };
    const { options, notes } = loadEnv("LLM", both);
    expect(options.retry?.maxAttempts).toBe(9);
    expect(notes.filter(({ level }) => level === "warning")).toEqual([
      { key: "LLM_MAX_RETRIES", level: "warning", text: "3 is overruled by LLM__RETRY__MAX_ATTEMPTS = 9" },
    ]);
  });

  test("rules name the flat key, and a misspelt one is not lost silently", () => {
    const { problems } = inspectEnv("LLM", { ...GOOD, LLM_TIMEOUT: "5", LLM__QWEN__1__TTFT_TIMEOUT_S: "6" });
    expect(problems).toMatchObject([{ key: "LLM__QWEN__1__TTFT_TIMEOUT_S", problem: "is above LLM_TIMEOUT = 5" }]);
    expect(problemOf({ LLM_MAX_RETRIES: "-1" }).key).toBe("LLM_MAX_RETRIES");
    const { notes } = loadEnv("LLM", { ...GOOD, LLM_MAX_RETRYS: "3" });
    expect(notes).toContainEqual({
      key: "LLM_MAX_RETRYS",
      level: "warning",
      text: "is not read; did you mean LLM_MAX_RETRIES?",
    });
  });
});

test.each<Record<string, string>>([{ PGW_TELEMETRY_BACKEND: "otel" }])(
  "%j is refused: not available in this version",
  (env) => {
    expect(problemOf(env).problem).toContain("not available in this version");
  },
);

test("a broken address of Redis is not quoted: its end may be of the password", () => {
  for (const url of ["redis://user:abcd", "redis://:S3cr3tPw@", "redis://:longpass/abc", "http://:S3cr3tPw@h"]) {
    const problem = problemOf({ ...GOOD, PGW_LIMITER_BACKEND: "redis", REDIS_URL: url });
    expect(problem).toMatchObject({ key: "REDIS_URL", value: `(${url.length} characters)` });
  }
});

test("limits in Redis need its address and give permits ahead, and backends must agree", () => {
  const both = { ...GOOD, PGW_LIMITER_BACKEND: "redis", PGW_BREAKER_BACKEND: "redis" };
  expect(problemOf(both)).toMatchObject({
    key: "PGW_LIMITER_BACKEND",
    problem: "needs the address of Redis, and none is given",
  });
  const reached = { ...both, REDIS_URL: "redis://127.0.0.1:6379" };
  const resolved = (env: Record<string, string>) => resolveScope(loadEnv("LLM", env).options);
  expect(resolved(reached).limiterBackend).toBe("redis");
  expect(resolved(reached).config.scheduling.prefetchMs).toBe(1_000);
  expect(resolved({ ...reached, LLM__SCHEDULING__PREFETCH_S: "0" }).config.scheduling.prefetchMs).toBe(0);
  const { PGW_BREAKER_BACKEND: _same, ...limiterAlone } = reached;
  expect(resolved(limiterAlone).limiterBackend).toBe("redis");
  const mixed = problemsOf({ ...GOOD, PGW_LIMITER_BACKEND: "redis", PGW_BREAKER_BACKEND: "memory" });
  expect(mixed.find(({ key }) => key === "PGW_BREAKER_BACKEND")?.problem).toBe(
    "differs from PGW_LIMITER_BACKEND = redis",
  );
});

test("known keys without effect are accepted, checked and said once", () => {
  const env = {
    ...GOOD,
    LLM__BREAKER__PROBE_TTL_S: "9",
  };
  const { notes } = loadEnv("LLM", env);
  expect(notes.find(({ key }) => key.includes("PROBE_TTL"))?.text).toContain("ignored");
  expect(notes.filter(({ key }) => key.includes("PROBE_TTL"))).toHaveLength(1);
  expect(problemOf({ LLM__BREAKER__PROBE_TTL_S: "soon" }).key).toBe("LLM__BREAKER__PROBE_TTL_S");
});

test("the cache of a scope: its own backend wins over that of the process, and what decides nothing is said", () => {
  const cacheOf = (env: Record<string, string>) => loadEnv("LLM", { ...GOOD, ...env }).options.cache;
  expect(cacheOf({})).toBeUndefined();
  expect(cacheOf({ PGW_CACHE_BACKEND: "memory" })).toEqual({ backend: "memory" });
  expect(cacheOf({ PGW_CACHE_BACKEND: "memory", LLM__CACHE__BACKEND: "none" })).toEqual({ backend: "none" });
  const all = { BACKEND: "memory", TTL_S: "5", NAMESPACE: "n", SALT: "s", MAX_BYTES: "1000", COALESCE: "on" };
  const named = Object.fromEntries(Object.entries(all).map(([name, value]) => [`LLM__CACHE__${name}`, value]));
  expect(cacheOf(named)).toEqual({
    backend: "memory",
    ttlMs: 5_000,
    namespace: "n",
    salt: "s",
    maxBytes: 1_000,
    coalesce: true,
  });
  const { notes } = loadEnv("LLM", { ...GOOD, LLM__CACHE__TTL_S: "5", LLM__CACHE__SALT: "s" });
  expect(notes.filter(({ key }) => key.includes("CACHE"))).toEqual([
    { key: "LLM__CACHE__TTL_S", level: "warning", text: "has no effect while LLM__CACHE__BACKEND is none" },
    { key: "LLM__CACHE__SALT", level: "warning", text: "has no effect while LLM__CACHE__BACKEND is none" },
  ]);
  expect(problemOf({ LLM__CACHE__MAX_BYTES: "0" }).key).toBe("LLM__CACHE__MAX_BYTES");
  expect(problemOf({ LLM__CACHE__TTL_S: "0" }).key).toBe("LLM__CACHE__TTL_S");
});

test("overrides win, group by group, and keep their paths in problems", () => {
  const env = { ...GOOD, LLM__RETRY__MAX_ATTEMPTS: "9", LLM__RETRY__BACKOFF_MAX_S: "30" };
  const { options } = loadEnv("LLM", env, {
    overrides: { retry: { maxAttempts: 2 }, deadlineMs: 5, governor: undefined },
  });
  expect(options.retry).toEqual({ maxAttempts: 2, backoffMaxMs: 30_000 });
  expect(options.deadlineMs).toBe(5);
  const { problems } = inspectEnv("LLM", env, { overrides: { retry: { backoffBaseMs: 40_000 } } });
  expect(problems).toMatchObject([
    { key: "retry.backoffBaseMs", value: "40000", problem: "is above LLM__RETRY__BACKOFF_MAX_S = 30" },
  ]);
  const own = { name: "own", baseUrl: "http://h", apiKey: "none", model: "m" };
  expect(loadEnv("LLM", {}, { overrides: { sources: [own] } }).options.sources).toEqual([own]);
});

test("a scope nobody described is told with the scopes there are", () => {
  expect(problemsOf(GOOD, "llm")).toMatchObject([{ key: "llm", problem: "no source is configured for this scope" }]);
  expect(problemsOf(GOOD, "llm")[0]?.remedy).toContain("Did you mean scope LLM?");
  expect(problemsOf(GOOD, "OCR")[0]?.remedy).toContain("OCR__{PROVIDER}__1__BASE_URL");
  expect(problemsOf(GOOD, "A B")[0]?.key).toBe("scope");
  expect(problemsOf(GOOD, "A__B")[0]?.key).toBe("scope");
});

test("scopes are found by their sources, and lists of other programs are no scopes", () => {
  expect(
    scopesIn({
      ...GOOD,
      OCR_BIG__X__2__API_KEY_FILE: "/k",
      Serilog__WriteTo__0__Name: "Console",
      EMPTY__RETRY__MAX_ATTEMPTS: "2",
      npm_config__x: "1",
    }),
  ).toEqual(["LLM", "OCR_BIG"]);
});

test("process-wide settings can be read without any source", () => {
  expect(loadProcessSettings({})).toMatchObject({
    telemetryBackends: undefined,
    sqlitePath: "./polygateway.db",
    journal: undefined,
    logLevel: "warn",
  });
  const { telemetryBackends, journal } = loadProcessSettings({
    PGW_TELEMETRY_BACKEND: "jsonl, sqlite",
    PGW_JOURNAL: "before_send",
  });
  expect(telemetryBackends).toEqual(["jsonl", "sqlite"]);
  expect(journal).toBe("before_send");
  expect(loadProcessSettings({ PGW_TELEMETRY_BACKEND: "none" }).telemetryBackends).toEqual([]);
  expect(() => loadProcessSettings({ PGW_TELEMETRY_BACKEND: "none,sqlite", PGW_JOURNAL: "never" })).toThrow(
    /2 problems/,
  );
});

describe("fuzz", () => {
  const fields = [...Object.values(SOURCE_FIELDS), ...Object.values(PROCESS_FIELDS)].map(({ env }) => env ?? "NAME");
  const nasty = fc.constantFrom(
    "",
    " ",
    "false",
    "-1",
    "1e400",
    "\uFEFF1",
    "{",
    '{"__proto__":1}',
    "/(/",
    "/a/zz",
    "__proto__",
    "\u0000",
    "http://[::1",
    `${KEY}`,
  );
  const value = fc.oneof(
    nasty,
    fc.string({ maxLength: 30 }),
    fc.integer().map(String),
    fc.double().map(String),
    fc.json({ maxDepth: 1 }),
  );
  const word = fc.oneof(
    fc.constantFrom("__proto__", "constructor", "RETRY", "BREAKER", "GLOBAL", "CACHE", "QWEN", "1", "0", ...fields),
    fc.string({ maxLength: 6 }),
  );
  const name = fc.oneof(
    fc
      .tuple(fc.constantFrom("1", "2"), fc.constantFrom(...fields))
      .map(([number, field]) => `LLM__QWEN__${number}__${field}`),
    fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => `LLM__${words.join("__")}`),
    fc.constantFrom(...fields),
    fc.string({ maxLength: 12 }).map((text) => `PGW_${text}`),
    fc.string({ maxLength: 8 }),
  );

  test("whatever the environment holds, only a ConfigError without the secret comes out", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 12 }), (entries) => {
        const env = { ...GOOD, ...Object.fromEntries(entries) };
        try {
          resolveScope(loadEnv("LLM", env).options);
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error;
          // The fuzzer may make a name out of anything, but it never makes one out of the key.
          expect(error.message).not.toContain(KEY);
          for (const problem of error.problems) expect(problem.key).not.toBe("");
        }
        expect(({} as Record<string, unknown>).polluted).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  test("a key that was put under another name is not quoted", () => {
    for (const name of ["THINKING", "PROFILE", "EXTRA_BODY", "TRANSIENT_400", "LIMIT_RULE", "RPM", "TIMEOUT_S"]) {
      for (const value of [KEY, `{"${KEY}":1}`, `{"extends":"${KEY}"}`, `/${KEY}(/`]) {
        const { problems } = inspectEnv("LLM", { ...GOOD, [`LLM__QWEN__1__${name}`]: value });
        expect(JSON.stringify(problems), `${name}=${value}`).not.toContain(KEY);
      }
    }
  });

  test("what the environment accepts, the constructor accepts", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 4 }), (entries) => {
        const { problems, options } = inspectEnv("LLM", { ...GOOD, ...Object.fromEntries(entries) });
        if (problems.length === 0) expect(resolveScope(options).config.sources.length).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 500 },
    );
  });
});
