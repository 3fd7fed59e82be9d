import { describe, expect, it } from "vitest";
import { MemoryCache } from "../src/backends/memory/cache.js";
import { MemoryGovernor } from "../src/backends/memory/governor.js";
import { RedisCache } from "../src/backends/redis/cache.js";
import { RedisGovernor } from "../src/backends/redis/governor.js";
import { createSystemRuntime } from "../src/backends/system.js";
import { ConfigError } from "../src/errors.js";
import type { AnswerCache } from "../src/index.js";
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
    ["RedisGovernor", () => new (RedisGovernor as unknown as new () => unknown)()],
    ["MemoryGovernor", () => new MemoryGovernor({} as never)],
    ["MemoryGovernor", () => new MemoryGovernor(5 as never)],
    ["SqliteRecorder", () => new SqliteRecorder(undefined as never)],
    ["PostgresRecorder", () => new PostgresRecorder(null as never)],
    ["JsonlRecorder", () => new JsonlRecorder([] as never)],
  ])("%s refuses what is no object", (_, make) => {
    expect(problemsOf(make).length).toBeGreaterThan(0);
  });
});

const nothing = Object.create(null);

describe("what plain JavaScript gives", () => {
  it.each([
    ["MemoryGovernor", { runtime: undefined }, "runtime is missing"],
    ["MemoryGovernor", { runtime: {} }, "runtime has no now()"],
    ["MemoryGovernor", { runtime: "now" }, "runtime has no now()"],
    ["RedisGovernor", { runtime: { now: 5 } }, "runtime has no now()"],
    ["RedisGovernor", { url: Symbol("x") }, "url is no text"],
    ["RedisGovernor", { url: nothing }, "url is no text"],
    ["RedisGovernor", { url: "redis://:%ZZ@h" }, "url has a % in user or password"],
    ["RedisGovernor", { options: 5 }, "options is 5, not an object"],
    ["RedisGovernor", { options: null }, "options is null, not an object"],
    ["RedisGovernor", { options: "redis://:hunter2@h" }, "options is a text, not an object"],
    ["RedisGovernor", { options: [] }, "options is (a list), not an object"],
    ["RedisGovernor", { url: undefined, options: { host: Symbol("x") } }, " can't be used"],
    ["RedisGovernor", { url: undefined, cluster: {} }, "cluster.nodes is no list of nodes"],
    ["RedisGovernor", { url: undefined, cluster: { nodes: [] } }, "cluster.nodes is no list of nodes"],
    ["RedisGovernor", { url: undefined, cluster: { nodes: [Symbol("x")] } }, "cluster.nodes is no list of nodes"],
    [
      "RedisGovernor",
      { url: undefined, cluster: { nodes: [6_379], options: 5 } },
      "cluster.options is 5, not an object",
    ],
    ["RedisGovernor", { url: undefined, cluster: 5 }, "cluster is 5, not an object"],
    ["RedisGovernor", { url: undefined, client: Symbol("x") }, "client is no ioredis client"],
    ["RedisGovernor", { url: undefined, client: null }, "client is no ioredis client"],
    ["RedisCache", { options: true }, "options is true, not an object"],
    ["RedisCache", { runtime: null }, "runtime has no now()"],
    ["RedisCache", { ttlMs: nothing }, "ttlMs is out of range"],
    ["RedisCache", { ttlMs: 2 ** 41 }, "ttlMs is out of range"],
    ["RedisCache", { maxValueBytes: Symbol("x") }, "maxValueBytes is out of range"],
    ["MemoryCache", { runtime: {} }, "runtime has no now()"],
    ["MemoryCache", { maxBytes: nothing }, "maxBytes is out of range"],
    ...["SqliteRecorder", "PostgresRecorder", "JsonlRecorder"].flatMap((title) => [
      ...[1e308, Number.NaN, -1, 0, "5", 5n, Symbol("x"), nothing].map(
        (queueSize) => [title, { queueSize }, "queueSize is out of range"] as const,
      ),
    ]),
    ["SqliteRecorder", { path: nothing }, "path is no file path"],
    ["JsonlRecorder", { path: Symbol("x") }, "path is no file path"],
    ["SqliteRecorder", { table: nothing }, "table is no table name"],
    ["PostgresRecorder", { table: "open_attempts" }, "table is no table name"],
    ["PostgresRecorder", { table: "a".repeat(49) }, "table is no table name"],
    ["PostgresRecorder", { dsn: "postgres://u:%ZZ@h/d" }, "dsn has a % in its password that begins no escape"],
  ] as const)("%s refuses %o: %s", (title, options, problem) => {
    const [found, ...more] = problemsOf(() => MAKERS[title]?.(options));
    expect(found).toContain(problem.startsWith(" ") ? `${title}${problem}` : `${title}.${problem}`);
    expect(more).toEqual([]);
    expect(found).not.toContain("hunter2");
  });

  it("is told with what was given, and what would do", () => {
    const refused = (queueSize: unknown) => () => new JsonlRecorder({ path: "x", queueSize } as never);
    expect(refused("5")).toThrow(
      'JsonlRecorder.queueSize = "5": is out of range. Use a whole number from 1 to 10000000',
    );
    expect(refused({})).toThrow("JsonlRecorder.queueSize = (an object): is out of range");
    expect(refused(Symbol("x"))).toThrow("JsonlRecorder.queueSize = (a symbol): is out of range");
  });

  it("undefined is not given", () => {
    for (const title of ["SqliteRecorder", "PostgresRecorder", "JsonlRecorder"]) {
      expect(problemsOf(() => MAKERS[title]?.({ queueSize: undefined }))).toEqual([]);
    }
  });
});

describe("what plain JavaScript asks a cache for", () => {
  const caches = {
    MemoryCache: () => new MemoryCache(),
    RedisCache: () => new RedisCache({ url, timeoutMs: 50 }),
  };
  it.each(Object.keys(caches) as (keyof typeof caches)[])("%s names what it takes", async (title) => {
    const cache: AnswerCache = caches[title]();
    for (const key of [{}, null, undefined, 5, Symbol("x"), nothing]) {
      await expect((async () => cache.get(key as never))()).rejects.toThrow(/^get\(\) takes a text as its key/);
      await expect((async () => cache.set(key as never, {} as never))()).rejects.toThrow(/^set\(\) takes a text/);
    }
    for (const answer of [undefined, null, 5, () => 1]) {
      await expect((async () => cache.set("k", answer as never))()).rejects.toThrow(/^set\(\) takes an answer/);
    }
    await cache.close?.();
  });
});
