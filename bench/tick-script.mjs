#!/usr/bin/env node
// node bench/tick-script.mjs EARLIER [--rounds 40]
// The server's time for one run of the governor's script, against that of an earlier version, whose file is named:
//   git show TAG:src/backends/redis/tick-script.ts > /tmp/earlier.ts && node bench/tick-script.mjs /tmp/earlier.ts
// Both take turns, each on a redis-server of its own with 64 permits held; the lower fifth of the rounds is shown, since on a
// busy machine the server's own clock counts what others do.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";

const { values, positionals } = parseArgs({
  options: { rounds: { type: "string", default: "40" } },
  allowPositionals: true,
});
const [earlier] = positionals;
if (earlier === undefined) throw new Error("Name the file of the earlier version: node bench/tick-script.mjs FILE");
const present = join(import.meta.dirname, "../src/backends/redis/tick-script.ts");
const HELD = 64;
const TICKS = 15;

/** Sources, and how many ends and wants a tick carries. */
const LOADS = [
  [1, 1],
  [1, 32],
  [5, 32],
  [25, 1],
  [25, 16],
  [25, 32],
];

const folder = mkdtempSync(join(tmpdir(), "pgw-tick-"));

async function start(name, file) {
  const socket = join(folder, `${name}.sock`);
  const options = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", options, { stdio: "ignore" });
  const redis = new Redis(socket, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  redis.on("error", () => {});
  await redis.ping();
  // The text stands in a module of TypeScript, of which it is the only value.
  const text = /TICK_SCRIPT = `([\s\S]*)`;/.exec(readFileSync(file, "utf8"))[1].replace(/\\([\\`$])/g, "$1");
  return { name, child, redis, sha: await redis.script("LOAD", text), times: new Map() };
}

const LIMITS = { limitRule: "smooth", strict: true, burstS: 1, burstTokensS: 3 };
const MANY = { maxConcurrency: 100_000, rpm: 100_000_000, tpm: 1_000_000_000, ...LIMITS };
const names = (count) => Array.from({ length: count }, (_, n) => `bench_${n + 1}`);

function setupOf(count) {
  const source = { model: "m", priority: 0, weight: 1, tpmCharge: "actual", ttftTimeoutMs: 30_000, ...MANY };
  const on = ["pacer", "headers", "evidence", "overdue", "evacuate", "ramp", "sizeMatching", "fairness"];
  on.push("retryBudget", "deadlineRefusal", "learnTokens");
  return JSON.stringify({
    sources: names(count).map((name) => ({ name, ...source })),
    global: { maxConcurrency: 0, rpm: 0, tpm: 0, ...LIMITS },
    breaker: {
      failThreshold: 5,
      failRate: 0.5,
      minSamples: 20,
      windowMs: 60_000,
      cooldownMs: 4_000,
      cooldownMaxMs: 30_000,
    },
    selector: "health_aware",
    scheduling: { prefetchMs: 1_000, priceWeight: 0, ...Object.fromEntries(on.map((rule) => [rule, true])) },
    leaseTtlMs: 30_000,
    limitsId: "bench",
  });
}

let id = 0;

function newWant() {
  id += 1;
  const leaseId = `0199a3f0-7c1e-7bb2-8f4d-${String(id).padStart(12, "0")}`;
  return {
    leaseId,
    candidates: 0,
    estTokens: 100 + (id % 50),
    priority: 0,
    promptTokens: 20,
    maxTokens: 4_096,
    tag: "chat",
  };
}

const endOf = ({ leaseId, source }) => ({
  ...{ leaseId, source, actualTokens: 90, sent: true, outcome: "success", durationMs: 900 + (id % 100) },
  ...{ ttftMs: 200 + (id % 40), tpotMs: 9 + (id % 3), inTokens: 25, outTokens: 70 },
});

async function tick(version, scope, ends, count) {
  const settles = scope.held.splice(0, ends).map(endOf);
  const wants = Array.from({ length: count }, newWant);
  const calls = { settles, verdicts: [], renew: [], wants, candidates: [names(scope.sources)] };
  const input = JSON.stringify({ worker: "bench", seed: id, ...calls });
  const prefix = `pgw:{${scope.sources}-${scope.size}}:`;
  const told = await version.redis.evalsha(version.sha, 1, prefix, "tick", prefix, scope.setup, input, "");
  scope.held.push(...JSON.parse(told).reply.grants);
}

async function scriptUs(redis) {
  return Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info("commandstats"))[1]);
}

const versions = [await start("earlier", earlier), await start("present", present)];
const scopes = new Map();
try {
  for (const version of versions) {
    const all = LOADS.map(([sources, size]) => ({ sources, size, held: [], setup: setupOf(sources) }));
    for (const scope of all) {
      while (scope.held.length < HELD) await tick(version, scope, 0, 32);
      for (let n = 0; n < 60; n += 1) await tick(version, scope, 8, 8);
      version.times.set(scope, []);
    }
    scopes.set(version, all);
  }
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (let at = 0; at < LOADS.length; at += 1) {
      for (const version of versions) {
        const scope = scopes.get(version)[at];
        const before = await scriptUs(version.redis);
        for (let n = 0; n < TICKS; n += 1) await tick(version, scope, scope.size, scope.size);
        version.times.get(scope).push(((await scriptUs(version.redis)) - before) / TICKS);
      }
    }
  }
  const low = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 5)];
  console.log("| sources | ends and wants a tick | earlier | present | ratio |\n| --: | --: | --: | --: | --: |");
  for (const [at, [sources, size]] of LOADS.entries()) {
    const [was, is] = versions.map((version) => low(version.times.get(scopes.get(version)[at])));
    console.log(`| ${sources} | ${size} | ${was.toFixed(0)} µs | ${is.toFixed(0)} µs | ${(is / was).toFixed(2)} |`);
  }
} finally {
  for (const { redis, child } of versions) {
    redis.disconnect();
    child.kill();
  }
  rmSync(folder, { recursive: true, force: true });
}
