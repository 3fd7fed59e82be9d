import { describe, expect, it } from "vitest";
import { MemoryCache } from "../src/backends/memory/cache.js";
import { MemoryGovernor } from "../src/backends/memory/governor.js";
import { RedisCache } from "../src/backends/redis/cache.js";
import { RedisGovernor } from "../src/backends/redis/governor.js";
import { createSystemRuntime } from "../src/backends/system.js";
import { ConfigError } from "../src/errors.js";
import { JsonlRecorder } from "../src/telemetry/jsonl.js";
import { PostgresRecorder } from "../src/telemetry/postgres.js";
import { SqliteRecorder } from "../src/telemetry/sqlite.js";

/** Options as plain JavaScript gives them: nonsense is refused with its name, never kept for a later surprise. */

const runtime = createSystemRuntime();
const url = "redis://127.0.0.1:1";

const MAKERS: Record<string, (options: object) => unknown> = {
  RedisGovernor: (options) => new RedisGovernor({ scope: "LLM", url, ...options } as never),
  MemoryGovernor: (options) => new MemoryGovernor({ scope: "LLM", sources: [], runtime, ...options } as never),
  RedisCache: (options) => new RedisCache({ url, ...options } as never),
  MemoryCache: (options) => new MemoryCache(options as never),
  SqliteRecorder: (options) => new SqliteRecorder({ path: "calls.db", ...options } as never),
  PostgresRecorder: (options) => new PostgresRecorder({ dsn: "postgres://h/d", ...options } as never),
  JsonlRecorder: (options) => new JsonlRecorder({ path: "calls.jsonl", ...options } as never),
};

function problemsOf(make: () => unknown): readonly string[] {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).problems.map(({ key, problem, remedy }) => {
      expect(remedy).not.toBe("");
      return `${key} ${problem}`;
    });
  }
  return [];
}

const GOVERNED: readonly (readonly [options: object, problem: RegExp])[] = [
  [{ selector: "fastest" }, /\.selector is not one of/],
  [{ selector: 5 }, /\.selector /],
  [{ breaker: { failThreshold: "many" } }, /\.breaker\.failThreshold is not a/],
  [{ breaker: { failRate: 7 } }, /\.breaker\.failRate /],
  [{ breaker: { failTreshold: 3 } }, /\.breaker\.failTreshold is not a known option/],
  [{ breaker: "strict" }, /\.breaker is not an object/],
  [{ prices: { s: "cheap" } }, /\.prices\.s is not a/],
  [{ prices: { s: -1 } }, /\.prices\.s /],
  [{ prices: { s: Number.NaN } }, /\.prices\.s /],
  [{ prices: 5 }, /\.prices is not an object/],
  [{ global: { rpm: -1 } }, /\.global\.rpm /],
  [{ global: { maxConcurrency: 1.5 } }, /\.global\.maxConcurrency /],
  [{ scheduling: { pacer: "yes" } }, /\.scheduling\.pacer is not true or false/],
  [{ scheduling: { pacing: true } }, /\.scheduling\.pacing is not a known option/],
  [{ leaseTtlMs: "30s" }, /\.leaseTtlMs /],
  [{ leaseTtlMs: 10 }, /\.leaseTtlMs /],
  [{ scope: "" }, /\.scope /],
  [{ scope: undefined }, /\.scope is missing/],
  [{ sources: {} }, /\.sources is not a list/],
  [{ sources: [{ name: "s", rpm: "60" }] }, /\.sources\[0\]\.rpm /],
  [{ sources: [{ rpm: 60 }] }, /\.sources\[0\]\.name is missing/],
  [{ sources: [{ name: "s" }, { name: "s" }] }, /\.sources\[1\]\.name is the name of another source/],
  [{ sources: [null] }, /\.sources\[0\] is not an object/],
  [{ selectr: "health_aware" }, /\.selectr is not a known option/],
];

describe.each(["RedisGovernor", "MemoryGovernor"])("%s", (title) => {
  it.each(GOVERNED)("refuses %o", (options, problem) => {
    const found = problemsOf(() => MAKERS[title]?.(options));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(problem);
    expect(found[0]).toMatch(new RegExp(`^${title}\\.`));
  });

  it("tells everything at once", () => {
    const all = { selector: 1, prices: 1, breaker: { failRate: 7 }, global: { tpm: "x" } };
    expect(problemsOf(() => MAKERS[title]?.(all))).toHaveLength(4);
  });
});

describe("the others", () => {
  it.each([
    ["RedisGovernor", { timeoutMs: "250" }],
    ["RedisCache", { timeoutMs: "250" }],
    ["RedisCache", { ttlMs: "1d" }],
    ["RedisCache", { namespace: 5 }],
    ["RedisCache", { salt: null }],
    ["RedisCache", { maxValueBytes: 0 }],
    ["MemoryCache", { maxBytes: "1" }],
    ["SqliteRecorder", { path: " " }],
    ["SqliteRecorder", { table: ["llm_calls"] }],
    ["SqliteRecorder", { queueSize: "5" }],
    ["PostgresRecorder", { statementTimeoutMs: 0 }],
    ["PostgresRecorder", { table: 5 }],
    ["JsonlRecorder", { queueSize: 1.5 }],
    ["JsonlRecorder", { path: " " }],
  ])("%s refuses %o", (title, options) => {
    const found = problemsOf(() => MAKERS[title]?.(options));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^${title}\\.${Object.keys(options)[0]} `));
  });

  it.each(Object.keys(MAKERS))("%s refuses options that it doesn't know, without telling their value", (title) => {
    const found = problemsOf(() => MAKERS[title]?.({ pasword: "hunter2-hunter2" }));
    expect(found).toEqual([`${title}.pasword is not a known option`]);
  });

  it.each([
    ["RedisCache", () => new RedisCache(undefined as never)],
    ["RedisGovernor", () => new RedisGovernor(null as never)],
    ["MemoryGovernor", () => new MemoryGovernor(5 as never)],
    ["SqliteRecorder", () => new SqliteRecorder(undefined as never)],
    ["PostgresRecorder", () => new PostgresRecorder(null as never)],
    ["JsonlRecorder", () => new JsonlRecorder([] as never)],
  ])("%s refuses what is no object", (_, make) => {
    expect(problemsOf(make).length).toBeGreaterThan(0);
  });
});
