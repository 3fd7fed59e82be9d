import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedisCache } from "../../src/backends/redis/cache.js";
import { createSystemRuntime } from "../../src/backends/system.js";
import { ConfigError, GatewayClient, type GatewayOptions } from "../../src/index.js";
import { type SimulatedProvider, startSimulatedProvider } from "../../src/testing/index.js";
import { makeFolder, startCli } from "../cli-harness.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, startRedis } from "../services/redis.js";

const shared = await sharedRedis();
const url = shared?.url ?? "redis://none";
const PASSWORD = "sk-canary-redis-0123456789ab";
const request = { messages: [{ role: "user" as const, content: "hi" }], sampling: { temperature: 0 } };
let provider: SimulatedProvider;
let spaces = 0;
beforeAll(async () => {
  provider = await startSimulatedProvider();
});
afterAll(async () => provider[Symbol.asyncDispose]());

function space(): string {
  spaces += 1;
  return `client-${process.pid}-${spaces}`;
}

function options(more: Partial<GatewayOptions>): GatewayOptions {
  const source = { name: "acme_1", baseUrl: `${provider.baseUrl}`, apiKey: "none", model: "m" };
  return { scope: "LLM", sources: [source], ...more };
}

function environment(more: Record<string, string>): Record<string, string> {
  const source = "LLM__ACME__1__";
  return {
    [`${source}BASE_URL`]: `${provider.baseUrl}`,
    [`${source}API_KEY`]: "none",
    [`${source}MODEL`]: "m",
    ...more,
  };
}

/** Asks with each of the clients in turn; how many of the answers came from the cache. */
async function hits(clients: readonly GatewayClient[]): Promise<boolean[]> {
  const found: boolean[] = [];
  for (const client of clients) {
    found.push((await client.chat(request)).cacheHit === true);
    // An answer is kept beside the call.
    await client.close();
  }
  return found;
}

describe.skipIf(shared === null)("answers are shared through Redis", () => {
  test("by clients made in code, from the environment and from a file", async () => {
    const namespace = space();
    const folder = makeFolder();
    try {
      const file = join(folder.path, "polygateway.yaml");
      const source = `{ name: acme_1, baseUrl: "${provider.baseUrl}", apiKey: none, model: m }`;
      const lines = [
        "process: { redisUrlFile: redis.url, redisTimeoutMs: 500 }",
        "scopes:",
        `  LLM: { sources: [${source}], cache: { backend: redis, namespace: ${namespace} } }`,
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      const urlFile = join(folder.path, "redis.url");
      writeFileSync(urlFile, `${url}\n`);
      const env = environment({
        REDIS_URL_FILE: urlFile,
        LLM__CACHE__BACKEND: "redis",
        LLM__CACHE__NAMESPACE: namespace,
      });
      expect(
        await hits([
          new GatewayClient(options({ redis: { url }, cache: { backend: "redis", namespace } })),
          GatewayClient.fromEnv("LLM", { env }),
          GatewayClient.fromConfig(file, "LLM", { env: {} }),
        ]),
      ).toEqual([false, true, true]);
    } finally {
      folder.remove();
    }
    const keys = (await shared?.command("KEYS", `pgw:cache:1:${namespace}:*`)) as string[];
    expect(keys).toHaveLength(1);
    expect(Number(await shared?.command("PTTL", keys[0] ?? ""))).toBeGreaterThan(0);
  });

  test("not by those with another salt or namespace", async () => {
    const namespace = space();
    const client = (cache: object) =>
      new GatewayClient(options({ redis: { url }, cache: { backend: "redis", namespace, ...cache } }));
    expect(await hits([client({}), client({ salt: "s" }), client({ namespace: space() }), client({})])).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });

  test("a cache of the user's own is not closed by a client", async () => {
    const redis = new Redis(url);
    const cache = new RedisCache({ client: redis, namespace: space() });
    expect(await hits([new GatewayClient(options({ cache })), new GatewayClient(options({ cache }))])).toEqual([
      false,
      true,
    ]);
    await cache.close();
    expect(await redis.ping()).toBe("PONG");
    redis.disconnect();
  });
});

test.skipIf(shared === null)(
  "without Redis calls go on, it is said once, and Redis is used again when it is back",
  async () => {
    const own = await startRedis({ config: { requirepass: PASSWORD }, password: PASSWORD });
    const warnings: string[] = [];
    const runtime = createSystemRuntime({ log: (_level, message) => void warnings.push(message) });
    const redis = { url: `redis://:${PASSWORD}@127.0.0.1:${own.port}` };
    const client = new GatewayClient(options({ redis, cache: { backend: "redis" }, runtime }));
    const hit = async () => (await client.chat(request)).cacheHit;
    const filled = () => eventually(async () => expect(await hit()).toBe(true));
    try {
      await filled();
      await own.kill();
      for (let n = 0; n < 20; n += 1) expect(await hit()).not.toBe(true);
      await own.start();
      await filled();
      own.pause();
      for (let n = 0; n < 20; n += 1) expect(await hit()).not.toBe(true);
      own.resume();
      await filled();
      expect(warnings.filter((text) => text.includes("cache failed"))).toHaveLength(2);
      expect(warnings.join("\n")).not.toContain(PASSWORD);
    } finally {
      await client.close();
      await own.stop();
    }
  },
);

describe("configuration", () => {
  const problems = (env: Record<string, string>): string => {
    try {
      void GatewayClient.fromEnv("LLM", { env: environment(env) }).close();
      return "";
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as Error).message;
    }
  };

  test("what is kept in Redis needs an address, a good one, and shows no password", () => {
    expect(problems({ LLM__CACHE__BACKEND: "redis" })).toContain("LLM__CACHE__BACKEND");
    expect(problems({ LLM__CACHE__BACKEND: "redis" })).toContain("Set REDIS_URL");
    expect(problems({ PGW_CACHE_BACKEND: "redis" })).toContain("PGW_CACHE_BACKEND");
    const broken = problems({ LLM__CACHE__BACKEND: "redis", REDIS_URL: `http://u:${PASSWORD}@h/x` });
    expect(broken).toContain("REDIS_URL");
    expect(broken).not.toContain("canary");
    expect(() => new GatewayClient(options({ cache: { backend: "redis" } }))).toThrow("redis.url");
  });

  test("an address that nothing uses is left alone, whatever it is", () => {
    expect(problems({ REDIS_URL: "unix:///var/run/redis.sock" })).toBe("");
  });
});

describe.skipIf(shared === null)("polygateway check", () => {
  async function check(env: Record<string, string>, ...args: string[]) {
    const folder = makeFolder();
    try {
      return await startCli(["check", ...args], { folder: folder.path, env: environment(env) }).finished;
    } finally {
      folder.remove();
    }
  }

  test("shows the health of Redis, and what is odd about it", async () => {
    const own = await startRedis({
      config: { requirepass: PASSWORD, maxmemory: "50mb", "maxmemory-policy": "allkeys-lru" },
      password: PASSWORD,
    });
    try {
      const env = { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:${own.port}`, LLM__CACHE__BACKEND: "redis" };
      const { code, stdout, stderr } = await check(env);
      expect(code).toBe(0);
      expect(stdout).toContain(`✓ Redis at redis://127.0.0.1:${own.port}, for the answer cache of scope LLM`);
      expect(stdout).toMatch(/redis \d+\.\S+, standalone, primary, answers in [\d.]+ ms, maxmemory 52,428,800 bytes/);
      expect(stdout).toContain("policy allkeys-lru, persistence none");
      expect(stdout).toMatch(/warning.*maxmemory-policy is allkeys-lru/);
      const json = await check(env, "--json");
      expect(JSON.parse(json.stdout)).toMatchObject({ ok: true, redis: { ok: true, facts: { role: "primary" } } });
      await own.command("REPLICAOF", "127.0.0.1", 1);
      const replica = await check(env);
      expect(replica.code).toBe(1);
      expect(replica.stdout).toContain("this is a replica");
      for (const text of [stdout, stderr, json.stdout, replica.stdout, replica.stderr]) {
        expect(text).not.toContain("canary");
      }
      const wrong = await check({ ...env, REDIS_URL: `redis://:wrong-${PASSWORD}@127.0.0.1:${own.port}` });
      expect(wrong.code).toBe(1);
      expect(wrong.stdout).toMatch(/✗ Redis at[\s\S]*WRONGPASS/);
      expect(wrong.stdout + wrong.stderr).not.toContain("canary");
    } finally {
      await own.stop();
    }
  });

  test("says nothing without an address; an unused one that can't be reached is no failure", async () => {
    expect((await check({})).stdout).not.toContain("Redis");
    const { code, stdout } = await check({ REDIS_URL: "redis://127.0.0.1:1" });
    expect(code).toBe(0);
    expect(stdout).toContain("✗ Redis at redis://127.0.0.1:1, not used by this configuration");
    const used = await check({ REDIS_URL: "redis://127.0.0.1:1", LLM__CACHE__BACKEND: "redis" });
    expect(used.code).toBe(1);
    expect(used.stderr).toContain("Redis at redis://127.0.0.1:1 can't be used");
  });
});
