// G9 and G10: limits in Redis against a bare client that sends the same script, and against bottleneck's clustering.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import Bottleneck from "bottleneck";
import { Redis } from "ioredis";
import { GatewayClient } from "polygateway";
import { RedisGovernor } from "polygateway/redis";
import { noopRecorder, nullTransport } from "../gateway.mjs";
import { compare } from "../measure.mjs";

const CONCURRENCY = 64;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function startRedis() {
  const port = await freePort();
  const child = spawn("redis-server", ["--port", port, "--save", "", "--appendonly", "no", "--loglevel", "warning"], {
    stdio: "ignore",
  });
  const started = await Promise.race([once(child, "error").then(([error]) => error), once(child, "spawn")]);
  if (started instanceof Error) throw new Error(`the redis case needs redis-server on PATH: ${started.message}`);
  const redis = new Redis(port, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  await redis.ping();
  const stop = () => {
    redis.disconnect();
    child.kill();
  };
  return { url: `redis://127.0.0.1:${port}`, redis, stop };
}

function sources(count) {
  return Array.from({ length: count }, (_, n) => ({
    name: `bench_${n + 1}`,
    baseUrl: "http://127.0.0.1:9/v1",
    apiKey: "none",
    model: "m",
    maxConcurrency: 100_000,
    rpm: 100_000_000,
    tpm: 1_000_000_000,
  }));
}

const SETTINGS = { telemetry: "none", proxyEnv: {}, transport: nullTransport, telemetryOptions: { journal: "off" } };

function clientOf(url, count, scope) {
  return new GatewayClient({
    scope,
    sources: sources(count),
    limiterBackend: "redis",
    redis: { url, timeoutMs: 5_000 },
    ...SETTINGS,
    telemetry: noopRecorder,
  });
}

const REQUEST = { messages: [{ role: "user", content: "hi" }], stream: false };

/** The script calls a server has run, and their mean time in µs. */
async function scriptStats(redis) {
  const info = await redis.info("commandstats");
  const lines = info.split("\n").filter((line) => /^cmdstat_eval(sha)?:/.test(line));
  const [calls, usec] = lines.reduce(
    (sum, line) => {
      const [, count, time] = /calls=(\d+),usec=(\d+)/.exec(line);
      return [sum[0] + Number(count), sum[1] + Number(time)];
    },
    [0, 0],
  );
  return { calls, meanUs: usec / Math.max(1, calls) };
}

/** Upper end of the class of powers of two that holds the 99th percentile, in µs. */
async function scriptP99Us(redis) {
  const histogram = (await redis.call("LATENCY", "HISTOGRAM", "evalsha"))[1];
  const [, calls, , classes] = histogram;
  for (let at = 0; at < classes.length; at += 2) if (classes[at + 1] >= 0.99 * calls) return classes[at];
  return null;
}

/** What the scripts of a client's calls cost the server. */
async function scriptRows(redis, client, count, concurrency, scale) {
  const crew = (work) => Promise.all(Array.from({ length: concurrency }, work));
  await crew(() => client.chat(REQUEST));
  await redis.config("RESETSTAT");
  const calls = Math.round((concurrency === 1 ? 1_000 : 2_000) * scale);
  let left = calls;
  await crew(async () => {
    while (left > 0) {
      left -= 1;
      await client.chat(REQUEST);
    }
  });
  const stats = await scriptStats(redis);
  const what = `Redis, ${count} sources, c=${concurrency}`;
  return [
    { id: "—", what: `${what}: scripts a call`, value: stats.calls / calls, goal: 2.2, must: true },
    { id: "—", what: `${what}: mean time of a script, µs`, value: stats.meanUs, unit: "µs", goal: null },
    {
      id: "—",
      what: `${what}: 99 of 100 scripts take less than, µs`,
      value: await scriptP99Us(redis),
      unit: "µs",
      goal: null,
    },
  ];
}

export async function redisCases({ scale }) {
  const server = await startRedis();
  const { url, redis } = server;
  const clients = [];
  const closing = [];
  try {
    const rows = [];
    const one = clientOf(url, 1, "ONE");
    clients.push(one);
    await one.chat(REQUEST);
    await redis.config("RESETSTAT");
    for (let n = 0; n < 50; n += 1) await one.chat(REQUEST);
    const quiet = await scriptStats(redis);
    rows.push({
      id: "—",
      what: "Redis, one call at a time: scripts a call (one admits, one settles)",
      value: quiet.calls / 50,
      goal: 2.2,
      must: true,
    });

    const scope = "RATE";
    const { client, sent } = recordingClient(url);
    const { sources: all } = one.governor;
    const governor = new RedisGovernor({ scope, sources: all, client, timeoutMs: 5_000 });
    closing.push(() => governor.close().then(() => client.disconnect()));
    let id = 0;
    const wants = () => {
      id += 1;
      const leaseId = `bench-${id}`;
      const neutral = { failedHere: [], limitedHere: [], estTokens: 100, priority: 0, waitedMs: 0 };
      return [{ leaseId, callId: leaseId, candidates: ["bench_1"], ...neutral }];
    };
    const batch = () => ({ worker: "bench", seed: 1, settles: [], verdicts: [], renew: [], wants: wants() });
    await governor.tick(batch());
    const [, sha, count, ...rest] = sent();
    const keys = rest.slice(0, Number(count));
    const [verb, prefix, setup, input] = rest.slice(Number(count));
    const again = () => {
      id += 1;
      return input.replace(/bench-\d+/, `bench-${id}`);
    };
    const limiter = new Bottleneck({
      id: "bench",
      datastore: "ioredis",
      clientOptions: { host: "127.0.0.1", port: Number(new URL(url).port) },
      maxConcurrent: 100_000,
      clearDatastore: true,
    });
    closing.push(() => limiter.disconnect());
    const whole = clientOf(url, 1, "WHOLE");
    clients.push(whole);
    const results = await compare(
      [
        {
          name: "EVALSHA of the same script",
          op: () => redis.evalsha(sha, count, ...keys, verb, prefix, setup, again(), ""),
        },
        { name: "RedisGovernor.tick", op: () => governor.tick(batch()) },
        { name: "chat(): admitted and settled", op: () => whole.chat(REQUEST) },
        { name: "bottleneck", op: () => limiter.schedule(async () => {}) },
      ],
      { count: Math.round(2_000 * scale), concurrency: CONCURRENCY, warmup: 300, rounds: 5 },
    );
    const [, tick, chat, other] = results;
    rows.push(
      {
        id: "G9",
        what: "Redis admission, c=64: rate ÷ EVALSHA of the same script",
        value: tick.opsRatio,
        goal: 0.8,
        atLeast: true,
        must: true,
        stretch: 0.92,
      },
      {
        id: "G10",
        what: "whole governed call (admission and settling), c=64: rate ÷ EVALSHA of admissions alone",
        value: chat.opsRatio,
        goal: 0.6,
        atLeast: true,
        must: true,
        stretch: 0.72,
      },
      {
        id: "G10",
        what: "the same ÷ bottleneck's clustering",
        value: chat.opsRatio / other.opsRatio,
        goal: 12,
        atLeast: true,
        must: true,
        stretch: 16,
      },
      { id: "—", what: "whole governed calls through Redis", value: chat.opsPerS, unit: "/s", goal: null },
    );
    for (const [count, concurrency] of [
      [25, 1],
      [5, CONCURRENCY],
      [25, CONCURRENCY],
    ]) {
      const client = clientOf(url, count, `LUA${count}C${concurrency}`);
      clients.push(client);
      rows.push(...(await scriptRows(redis, client, count, concurrency, scale)));
    }
    return rows;
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    for (const close of closing) await close();
    server.stop();
  }
}

/** A client that keeps the arguments of the script it sends first. */
function recordingClient(url) {
  const client = new Redis(url);
  const send = client.callBuffer.bind(client);
  let sent;
  client.callBuffer = (...args) => {
    if (args[0] === "EVALSHA") sent ??= args;
    return send(...args);
  };
  return { client, sent: () => sent };
}
