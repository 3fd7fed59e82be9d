import { type AddressInfo, createServer } from "node:net";
import { inspect } from "node:util";
import { Cluster, Redis } from "ioredis";
import { afterAll, describe, expect, test } from "vitest";
import { RedisConnection, redisScript } from "../../src/backends/redis/connection.js";
import { classifyRedisError, type RedisFailure } from "../../src/backends/redis/failure.js";
import { ConfigError } from "../../src/errors.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, sharedRedisCluster, startRedis, startRedisCluster } from "../services/redis.js";
import { startTcpProxy } from "../support/tcp-proxy.js";

const shared = await sharedRedis();
const sharedCluster = await sharedRedisCluster();
const prefix = `pgw-test:connection:${process.pid}`;
const open: { close(): Promise<void> }[] = [];
afterAll(async () => void (await Promise.all(open.map((one) => one.close()))));

function connection(options: ConstructorParameters<typeof RedisConnection>[0]): RedisConnection {
  const made = new RedisConnection(options);
  open.push(made);
  return made;
}

async function failureOf(asked: Promise<unknown>): Promise<RedisFailure> {
  const error = await asked.then(
    (reply) => new Error(`it was answered: ${String(reply)}`),
    (failed: unknown) => failed,
  );
  expect((error as Error).name, String(error)).toBe("RedisFailure");
  return error as RedisFailure;
}

const ECHO = redisScript("return {KEYS[1], ARGV[1]}");

describe.skipIf(shared === null)("on a server", () => {
  const url = shared?.url ?? "";

  test("commands, binary ones and scripts are answered; it connects with the first", async () => {
    const redis = connection({ url: `${url}/3` });
    expect(redis.shown).toBe(`${url}/3`);
    const bytes = Buffer.from([0, 255, 13, 10]);
    expect(await redis.command("SET", `${prefix}:bin`, bytes, "PX", 60_000)).toBe("OK");
    expect(await redis.commandBuffer("GET", `${prefix}:bin`)).toEqual(bytes);
    expect(await redis.run(ECHO, ["k"], [bytes])).toEqual([Buffer.from("k"), bytes]);
    expect(redis.ok).toBe(true);
  });

  test("a client of the user's own is used and stays open", async () => {
    const client = new Redis(shared?.port ?? 0);
    const redis = connection({ client });
    expect(await redis.command("PING")).toBe("PONG");
    await redis.close();
    expect(await client.ping()).toBe("PONG");
    expect(["ready", "error", "end"].map((event) => client.listenerCount(event))).toEqual([0, 0, 0]);
    expect((await failureOf(redis.command("PING"))).message).toContain("closed");
    client.disconnect();
  });

  test("a connection that is cut again and again: commands wait for the next one", async () => {
    const proxy = await startTcpProxy(shared?.port ?? 0);
    const redis = connection({ options: { host: "127.0.0.1", port: proxy.port } });
    let answered = 0;
    for (let round = 0; round < 100; round += 1) {
      if (round % 5 === 4) proxy.cut();
      // Whether the reset is seen before the command is sent is up to the network.
      answered += await redis.command("PING").then(
        () => 1,
        (error: RedisFailure) => Number(error.kind !== "cut"),
      );
    }
    expect(answered).toBeGreaterThan(75);
    expect(await redis.command("PING")).toBe("PONG");
    expect(proxy.accepted).toBeGreaterThan(10);
    await proxy.close();
    await eventually(async () => expect(redis.ok).toBe(false));
    expect((await failureOf(redis.command("PING"))).kind).toBe("unreachable");
  });

  test("a reply that is lost is in doubt, and nothing is sent twice", async () => {
    const proxy = await startTcpProxy(shared?.port ?? 0);
    const redis = connection({ options: { host: "127.0.0.1", port: proxy.port } });
    await redis.command("PING");
    proxy.swallowReplies(true);
    const lost = failureOf(redis.command("INCR", `${prefix}:once`));
    await eventually(async () => expect(await shared?.command("GET", `${prefix}:once`)).toBe("1"));
    proxy.swallowReplies(false);
    proxy.cut();
    expect(await lost).toMatchObject({ kind: "cut", mayHaveRun: true });
    expect(await eventually(() => redis.command("INCR", `${prefix}:once`))).toBe(2);
    await redis.command("DEL", `${prefix}:once`);
    await proxy.close();
  });

  test("a way that swallows every reply is given up and taken anew", async () => {
    const proxy = await startTcpProxy(shared?.port ?? 0);
    const redis = connection({ options: { host: "127.0.0.1", port: proxy.port } });
    await redis.command("PING");
    proxy.swallowReplies(true);
    expect(await failureOf(redis.command("PING"))).toMatchObject({ kind: "timeout", mayHaveRun: true });
    const { accepted } = proxy;
    await eventually(async () => expect(proxy.accepted).toBeGreaterThan(accepted));
    proxy.swallowReplies(false);
    await eventually(() => redis.command("PING"));
    await proxy.close();
  });

  test("SCRIPT FLUSH is not noticed", async () => {
    const own = await startRedis();
    open.push({ close: () => own.stop() });
    const redis = connection({ url: own.url });
    for (let round = 0; round < 5; round += 1) {
      expect(await redis.run(ECHO, ["k"], ["v"])).toEqual([Buffer.from("k"), Buffer.from("v")]);
      await own.command("SCRIPT", "FLUSH");
    }
  });

  test("foreign values and broken scripts are named by their kind", async () => {
    const redis = connection({ url });
    await redis.command("SET", `${prefix}:text`, "x", "PX", 60_000);
    const wrong = await failureOf(redis.command("ZADD", `${prefix}:text`, 1, "m"));
    expect(wrong).toMatchObject({ kind: "wrongtype", redisCode: "WRONGTYPE", mayHaveRun: false });
    const inScript = redisScript("return redis.call('ZADD', KEYS[1], 1, 'm')");
    expect((await failureOf(redis.run(inScript, [`${prefix}:text`], []))).kind).toBe("wrongtype");
    expect((await failureOf(redis.run(redisScript("return nil + 1"), [], []))).kind).toBe("script");
    expect((await failureOf(redis.run(redisScript("no lua"), [], []))).kind).toBe("script");
    expect((await failureOf(redis.command("NO-SUCH-COMMAND"))).kind).toBe("other");
  });
});

describe.skipIf(shared === null)("on a server with troubles", () => {
  test("killed: at once; back: used again; paused: by the deadline", async () => {
    const own = await startRedis();
    open.push({ close: () => own.stop() });
    const redis = connection({ url: own.url });
    await redis.command("PING");
    await own.kill();
    await eventually(async () => expect(redis.ok).toBe(false));
    for (let n = 0; n < 1_000; n += 1) expect((await failureOf(redis.command("PING"))).kind).toBe("unreachable");
    await own.start();
    await eventually(() => redis.command("PING"), 1_000);
    own.pause();
    expect((await failureOf(redis.command("SET", "late", "1"))).kind).toBe("timeout");
    own.resume();
    await eventually(() => redis.command("PING"), 1_000);
    expect(await redis.command("GET", "late")).toBe("1");
    // Longer than a silent connection is kept.
    own.pause();
    const kinds = new Set<string>();
    for (let n = 0; n < 8; n += 1) kinds.add((await failureOf(redis.command("PING"))).kind);
    expect([...kinds]).toContain("timeout");
    own.resume();
    await eventually(() => redis.command("PING"), 1_000);
  });

  test("read-only, without replicas, out of memory, busy: each by its kind, and over when it is over", async () => {
    const own = await startRedis();
    open.push({ close: () => own.stop() });
    const redis = connection({ url: own.url });
    const write = () => redis.command("SET", "k", "v");
    await own.command("CONFIG", "SET", "min-replicas-to-write", 1);
    expect((await failureOf(write())).kind).toBe("noreplicas");
    await own.command("CONFIG", "SET", "min-replicas-to-write", 0);
    await write();
    await own.command("CONFIG", "SET", "maxmemory", 1);
    expect(await failureOf(write())).toMatchObject({ kind: "oom", redisCode: "OOM" });
    expect((await failureOf(redis.run(redisScript("return redis.call('SET', KEYS[1], 1)"), ["k"], []))).kind).toBe(
      "oom",
    );
    await own.command("CONFIG", "SET", "maxmemory", 0);
    await own.command("REPLICAOF", "127.0.0.1", 1);
    // Every refused write may cost a connection; not each does.
    const kinds: string[] = [];
    for (let n = 0; n < 20; n += 1) kinds.push((await failureOf(write())).kind);
    expect(kinds.filter((kind) => kind === "readonly").length).toBeGreaterThanOrEqual(18);
    await own.command("REPLICAOF", "NO", "ONE");
    await eventually(write);
    await own.command("CONFIG", "SET", "busy-reply-threshold", 20);
    const endless = failureOf(redis.run(redisScript("while true do end"), [], []));
    expect((await endless).kind).toBe("timeout");
    const other = connection({ url: own.url, timeoutMs: 1_000 });
    expect((await failureOf(other.command("GET", "k"))).kind).toBe("busy");
    await own.command("SCRIPT", "KILL");
    await eventually(write);
  });

  test("credentials: refused ones are told without the password, rights that are missing too", async () => {
    const secret = `hunter2-${process.pid}-äß/`;
    const own = await startRedis({ config: { requirepass: JSON.stringify(secret) }, password: secret });
    open.push({ close: () => own.stop() });
    const encoded = encodeURIComponent(secret);
    const right = connection({ url: `redis://:${encoded}@127.0.0.1:${own.port}` });
    expect(await right.command("PING")).toBe("PONG");
    await right.command("ACL", "SETUSER", "reader", "on", ">reader-pass", "+@read", "+@connection", "+info", "~*");
    const reader = connection({ url: `redis://reader:reader-pass@127.0.0.1:${own.port}` });
    expect(await failureOf(reader.command("SET", "k", "v"))).toMatchObject({ kind: "noperm", redisCode: "NOPERM" });
    await right.command("ACL", "SETUSER", "writer", "on", ">writer-pass", "+@all", "-set", "~*");
    const writer = connection({ url: `redis://writer:writer-pass@127.0.0.1:${own.port}` });
    const set = redisScript("return redis.call('SET', KEYS[1], '1')");
    expect(await failureOf(writer.run(set, ["k"], []))).toMatchObject({ kind: "noperm", isLasting: true });
    for (const url of [`redis://:wrong-${encoded}@127.0.0.1:${own.port}`, own.url]) {
      const redis = connection({ url });
      const failure = await failureOf(redis.command("SET", "k", "wrong"));
      expect(failure).toMatchObject({ kind: "auth", isLasting: true });
      // However often it is asked and connects anew.
      for (let n = 0; n < 10; n += 1) {
        expect((await failureOf(redis.command("SET", "k", "wrong"))).kind).toBe("auth");
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
      for (const shown of [inspect(failure), inspect(redis), redis.shown]) {
        expect(shown).not.toContain("hunter2");
      }
    }
    expect(inspect(right, { depth: 10 })).not.toContain("hunter2");
  });
});

describe.skipIf(sharedCluster === null)("on a cluster", () => {
  test("keys with one tag go to one script; strangers are refused; a client of the user's own", async () => {
    const nodes = sharedCluster?.seeds ?? [];
    const own = new Cluster(nodes);
    for (const redis of [connection({ cluster: { nodes } }), connection({ client: own })]) {
      expect(redis.isCluster).toBe(true);
      for (let n = 0; n < 20; n += 1) {
        const keys = [`{${prefix}:${n}}:a`, `{${prefix}:${n}}:b`];
        const script = redisScript(
          "redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000) return redis.call('GET', KEYS[1])",
        );
        expect(await redis.run(script, keys, [n])).toEqual(Buffer.from(String(n)));
      }
      const apart = redis.run(ECHO, [`${prefix}:a`, `${prefix}:b`], ["v"]);
      expect((await failureOf(apart)).kind).toBe("crossslot");
    }
    own.disconnect();
  });

  test("many first commands at once: each node is connected, none fails", async () => {
    const redis = connection({ cluster: { nodes: sharedCluster?.seeds ?? [] } });
    const asked = Array.from({ length: 60 }, (_, n) => redis.command("SET", `${prefix}:first:${n}`, n, "PX", 60_000));
    expect(new Set(await Promise.all(asked))).toEqual(new Set(["OK"]));
  });

  test("a node that dies: its keys fail by the deadline, the others go on; it is used again when it is back", async () => {
    const own = await startRedisCluster();
    open.push({ close: () => own.stop() });
    const redis = connection({ cluster: { nodes: own.seeds } });
    const keys = Array.from({ length: 30 }, (_, n) => `key ${n}`);
    const askAll = () => Promise.allSettled(keys.map((key) => redis.command("GET", key)));
    const failed = (replies: PromiseSettledResult<unknown>[]) => replies.filter(({ status }) => status === "rejected");
    expect(failed(await askAll())).toEqual([]);
    await Promise.all(own.nodes.map((node) => node.command("CONFIG", "SET", "cluster-require-full-coverage", "no")));
    await own.nodes[1]?.kill();
    const replies = await askAll();
    expect(failed(replies).length).toBeGreaterThan(0);
    expect(failed(replies).length).toBeLessThan(keys.length);
    for (const reply of failed(replies)) expect((reply as PromiseRejectedResult).reason.name).toBe("RedisFailure");
    await own.nodes[1]?.start();
    await eventually(async () => expect(failed(await askAll())).toEqual([]));
  });

  test("who asks a node of a cluster as if it were alone is told so", async () => {
    const redis = connection({ url: sharedCluster?.nodes[0]?.url ?? "" });
    const asked = Array.from({ length: 20 }, (_, n) => redis.command("GET", `${prefix}:${n}`).catch((e: unknown) => e));
    const failures = (await Promise.all(asked)).filter((reply) => reply !== null) as RedisFailure[];
    expect(failures[0]).toMatchObject({ kind: "moved" });
    expect(failures[0]?.message).toContain("node of a Redis Cluster");
  });
});

test.each([
  [{}, "exactly one way"],
  [{ url: "redis://h", client: {} as never }, "exactly one way"],
  [{ client: {} as never }, "no ioredis client"],
  [{ url: "http://h" }, "is no address of Redis"],
  [{ url: "redis://u:hunter2@/0" }, "is no address"],
  [{ url: "hunter2" }, "is no address"],
  [{ url: "redis://:hunter2@h/queue" }, "no database number"],
])("%o is refused", (options, text) => {
  expect(() => new RedisConnection(options)).toThrow(ConfigError);
  expect(() => new RedisConnection(options)).toThrow(text);
  expect(() => new RedisConnection(options)).not.toThrow("hunter2");
});

test.each([
  ["ERR Error running script (call to f_abc): @user_script:1: @user_script: 1: -OOM command not allowed", "oom"],
  ["ERR Error running script (call to f_abc): @user_script:3: attempt to index a nil value", "script"],
  ["OOM command not allowed when used memory > 'maxmemory'. script: abc, on @user_script:1.", "oom"],
  ["LOADING Redis is loading the dataset in memory", "loading"],
  ["MISCONF Redis is configured to save RDB snapshots", "misconf"],
  ["CLUSTERDOWN Hash slot not served", "clusterdown"],
  ["ERR invalid password", "auth"],
  ["ERR unknown command", "other"],
])("%s is %s", (message, kind) => {
  expect(classifyRedisError(Object.assign(new Error(message), { name: "ReplyError" })).kind).toBe(kind);
});

const SCRIPT_7 = "script: 91dfa21494bd4f6b97d496157b5dcc79c260c424, on @user_script:1.";

test.each([
  [`OOM command not allowed when used memory > 'maxmemory'. ${SCRIPT_7}`, /^OOM [^@]*'maxmemory' \(.*maxmemory/],
  [`READONLY You can't write against a read only replica. ${SCRIPT_7}`, /^READONLY [^@]*replica \(.*the primary's/],
  [`NOREPLICAS Not enough good replicas to write. ${SCRIPT_7}`, /min-replicas-to-write/],
  [
    `ERR The user executing the script can't run this command or subcommand ${SCRIPT_7}`,
    /\(the Redis user lacks a right/,
  ],
  ["NOPERM this user has no permissions to run the 'evalsha' command", /'evalsha' command \(.*right/],
  ["WRONGPASS invalid username-password pair or user is disabled.", /\(correct the user and password/],
  ["NOAUTH Authentication required.", /\(correct the user and password/],
  ["ERR DB index is out of range", /\(give a database number/],
  [
    `ERR user_script:12: attempt to index a nil value ${SCRIPT_7}`,
    /^attempt to index a nil value \(line 12 of the script\)$/,
  ],
  [
    "ERR Error running script (call to f_abc): @user_script:1: @user_script: 1: -OOM command not allowed",
    /^OOM command/,
  ],
])("%s is told without the script's name, with what to do", (message, told) => {
  const failure = classifyRedisError(Object.assign(new Error(message), { name: "ReplyError" }));
  expect(failure.message).toMatch(told);
  expect(failure.message).not.toMatch(/user_script|script: [0-9a-f]/);
});

test("a port where no Redis answers is told as such", async () => {
  const server = createServer((socket) =>
    socket.on("error", () => {}).on("data", () => socket.end("HTTP/1.1 400 Bad\r\n\r\n")),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({ close: () => new Promise((resolve) => server.close(() => resolve())) });
  const redis = connection({ url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` });
  await eventually(async () => {
    const failure = await failureOf(redis.command("PING"));
    expect(failure).toMatchObject({ kind: "foreign", isLasting: true });
    expect(failure.message).toContain("correct host and port");
  });
});

/** A server that speaks to nobody but those who give these bytes. */
async function connectionTo(answer: (said: Buffer) => string | null) {
  const server = createServer((socket) => {
    socket.on("error", () => {}).on("data", (said) => socket.end(answer(said) ?? ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({ close: () => new Promise((resolve) => server.close(() => resolve())) });
  return connection({ url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

test("PostgreSQL, which ends such a connection without a word, is told as such", async () => {
  const redis = await connectionTo((said) => (said[0] === 0 ? "N" : null));
  await eventually(async () => {
    expect(await failureOf(redis.command("PING"))).toMatchObject({
      kind: "foreign",
      isLasting: true,
      message: "PostgreSQL answers there (correct host and port)",
    });
  });
});

test("a proxy whose Redis is away ends connections without a word, too: that may pass", async () => {
  const redis = await connectionTo(() => null);
  await eventually(async () => {
    const failure = await failureOf(redis.command("PING"));
    expect(failure).toMatchObject({ kind: "unreachable", isLasting: false });
    expect(failure.message).toBe("it takes the connection and closes it without a word");
  });
});

test("an error's command, with its arguments, is not handed on", () => {
  const command = { name: "auth", args: ["hunter2-secret"] };
  const error = Object.assign(new Error("WRONGPASS hunter2-secret"), { name: "ReplyError", command });
  const failure = classifyRedisError(error, (text) => text.replaceAll("hunter2-secret", "[redacted]"));
  expect(inspect(failure)).not.toContain("hunter2");
  expect(failure.message).toContain("[redacted]");
});
