import { afterAll, describe, expect, test } from "vitest";
import { RedisConnection, redisScript } from "../../src/backends/redis/connection.js";
import type { RedisFailure } from "../../src/backends/redis/failure.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, sharedRedisCluster, startRedis } from "../services/redis.js";
import { playedElsewhere } from "../support/case-skips.js";
import { startTcpProxy } from "../support/tcp-proxy.js";

/** The records of kind `store` that are about the connection to Redis, by their ids (test/data/cases.jsonl). */
const shared = await sharedRedis();
const cluster = await sharedRedisCluster();
const prefix = `pgw-test:store-cases:${process.pid}`;
const open: { close(): Promise<void> }[] = [];
afterAll(async () => void (await Promise.all(open.map((one) => one.close()))));

function connection(options: ConstructorParameters<typeof RedisConnection>[0]): RedisConnection {
  const made = new RedisConnection(options);
  open.push(made);
  return made;
}

async function throughProxy() {
  const proxy = await startTcpProxy(shared?.port ?? 0);
  open.push(proxy);
  return { proxy, redis: connection({ options: { host: "127.0.0.1", port: proxy.port } }) };
}

const COUNT = redisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");
const failureOf = (asked: Promise<unknown>): Promise<RedisFailure> =>
  asked.then(
    (reply) => {
      throw new Error(`it was answered: ${String(reply)}`);
    },
    (failure: unknown) => failure as RedisFailure,
  );

const BODIES: Readonly<Record<string, () => Promise<void>>> = {
  "rl-crossslot": async () => {
    const redis = connection({ cluster: { nodes: cluster?.seeds ?? [] } });
    const both = redisScript("redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000) return redis.call('EXISTS', KEYS[2])");
    const tagged = [`{${prefix}}:tokens`, `{${prefix}}:ts`];
    expect(await redis.run(both, tagged, ["v"])).toBe(0);
    const slots = await Promise.all(tagged.map((key) => redis.command("CLUSTER", "KEYSLOT", key)));
    expect(slots[0]).toBe(slots[1]);
    // Without a tag it is a failure with its name, and never an answer.
    const apart = await failureOf(redis.run(both, [`${prefix}:tokens`, `${prefix}:ts`], ["v"]));
    expect(apart.kind).toBe("crossslot");
  },
  "rl-noscript": async () => {
    const own = await startRedis();
    open.push({ close: () => own.stop() });
    const redis = connection({ url: own.url });
    expect(await redis.run(COUNT, ["k"], [1])).toBe(1);
    await own.command("SCRIPT", "FLUSH");
    // The server answers as if nothing had happened; only the script is gone.
    expect(await redis.command("PING")).toBe("PONG");
    expect(await redis.run(COUNT, ["k"], [1])).toBe(2);
  },
  "rl-pending-forever": async () => {
    const { proxy, redis } = await throughProxy();
    await redis.command("PING");
    proxy.swallowReplies(true);
    const inFlight = failureOf(redis.run(COUNT, [`${prefix}:pending`], [1]));
    proxy.cut();
    proxy.swallowReplies(false);
    expect(["cut", "timeout"]).toContain((await inFlight).kind);
    expect(await eventually(() => redis.command("PING"))).toBe("PONG");
    await redis.command("DEL", `${prefix}:pending`);
  },
  "rl-resend-twice": async () => {
    const { proxy, redis } = await throughProxy();
    const key = `${prefix}:twice`;
    expect(await redis.run(COUNT, [key], [0])).toBe(0);
    proxy.swallowReplies(true);
    const lost = failureOf(redis.run(COUNT, [key], [5]));
    await eventually(async () => expect(await shared?.command("GET", key)).toBe("5"));
    proxy.swallowReplies(false);
    proxy.cut();
    expect((await lost).mayHaveRun).toBe(true);
    await eventually(() => redis.command("PING"));
    expect(await redis.command("GET", key)).toBe("5");
    await redis.command("DEL", key);
  },
};

describe.skipIf(shared === null || cluster === null)("records of shared stores", () => {
  test.each(Object.entries(BODIES))("%s", (_id, body) => body());
});

test("every record that is said to be played here is", () => {
  expect(Object.keys(BODIES).sort()).toEqual([...(playedElsewhere["test/redis/store-cases.test.ts"] ?? [])].sort());
});
