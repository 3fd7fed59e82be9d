// G9 and G10: limits in Redis against a bare client that sends the same script, and against bottleneck's clustering.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import Bottleneck from "bottleneck";
import { Redis } from "ioredis";
import { GatewayClient } from "polygateway";
import { RedisGovernor } from "polygateway/redis";
import { completion, noopRecorder, nullTransport } from "../gateway.mjs";
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

function clientOf(url, count, scope, transport = nullTransport) {
  return new GatewayClient({
    scope,
    sources: sources(count),
    limiterBackend: "redis",
    redis: { url, timeoutMs: 5_000 },
    ...SETTINGS,
    transport,
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

/** The longest of the quickest 99 % of the scripts since the log was emptied, in µs, by the server's own clock. */
async function scriptP99Us(redis) {
  const entries = await redis.call("SLOWLOG", "GET", "-1");
  const times = entries.filter(([, , , [command]]) => /^evalsha$/i.test(command)).map(([, , us]) => us);
  return times.sort((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1];
}

/** What the scripts of `work`, which makes `calls` calls, cost the server. */
async function scriptRows(redis, what, calls, p99GoalUs, work) {
  await redis.config("SET", "slowlog-log-slower-than", 0);
  await redis.config("SET", "slowlog-max-len", 100_000);
  await redis.call("SLOWLOG", "RESET");
  await redis.config("RESETSTAT");
  await work();
  const stats = await scriptStats(redis);
  const p99Us = await scriptP99Us(redis);
  await redis.config("SET", "slowlog-log-slower-than", -1);
  return [
    { id: "—", what: `${what}: scripts a call`, value: stats.calls / calls, goal: 2.2, must: true },
    { id: "—", what: `${what}: mean time of a script, µs`, value: stats.meanUs, unit: "µs", goal: null },
    {
      id: "—",
      what: `${what}: 99 of 100 scripts take less than, µs`,
      value: p99Us,
      unit: "µs",
      goal: p99GoalUs,
      must: p99GoalUs !== null,
    },
  ];
}

/** `concurrency` callers, each with its next call as soon as one is answered: as many calls a script as there can be. */
async function busyRows(redis, client, count, concurrency, scale) {
  const crew = (work) => Promise.all(Array.from({ length: concurrency }, work));
  await crew(() => client.chat(REQUEST));
  const calls = Math.round((concurrency === 1 ? 1_000 : 2_000) * scale);
  let left = calls;
  const what = `Redis, ${count} sources, c=${concurrency}`;
  return await scriptRows(redis, what, calls, concurrency === 1 ? 1_000 : null, () =>
    crew(async () => {
      while (left > 0) {
        left -= 1;
        await client.chat(REQUEST);
      }
    }),
  );
}

/** Answers after half a second. */
const slowTransport = {
  async complete(attempt) {
    attempt.context.markSent();
    await sleep(ANSWER_MS);
    return completion;
  },
  close: async () => {},
};

const PROCESSES = 4;
const CALLS_PER_S = 200;
const ANSWER_MS = 500;

/** Calls at a rate, of four clients with a connection each, that take half a second: what a fleet at work asks of Redis. */
async function fleetRows(redis, clients, count, scale) {
  const calls = Math.round(4_000 * scale);
  const what = `Redis, ${count} sources, ${PROCESSES} clients with ${CALLS_PER_S} calls/s`;
  await Promise.all(clients.map((client) => client.chat(REQUEST)));
  return await scriptRows(redis, what, calls, 1_000, async () => {
    const startedAt = performance.now();
    const all = [];
    while (all.length < calls) {
      const due = Math.min(calls, ((performance.now() - startedAt) / 1_000) * CALLS_PER_S);
      while (all.length < due) all.push(clients[all.length % PROCESSES].chat(REQUEST));
      await sleep(1);
    }
    await Promise.all(all);
  });
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
      rows.push(...(await busyRows(redis, client, count, concurrency, scale)));
    }
    const fleet = Array.from({ length: PROCESSES }, () => clientOf(url, 25, "FLEET", slowTransport));
    clients.push(...fleet);
    rows.push(...(await fleetRows(redis, fleet, 25, scale)));
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
