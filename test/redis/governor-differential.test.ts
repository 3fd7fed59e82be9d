import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, test } from "vitest";
import { MemoryGovernor } from "../../src/backends/memory/governor.js";
import { RedisGovernor } from "../../src/backends/redis/governor.js";
import type { Runtime } from "../../src/ports/runtime.js";
import { sourceConfig } from "../../src/testing/contracts/governor/bench.js";
import { sharedRedis } from "../services/redis.js";
import { randomRuns } from "../support/random-runs.js";
import { type Pair, playOnBoth } from "./differential.js";
import { type DifferentialScript, differentialScript } from "./differential-script.js";

const shared = await sharedRedis();
const client = shared === null ? null : new Redis(shared.port);
afterAll(() => client?.disconnect());

const RUNS = randomRuns(150);
const SEED = process.env.PGW_TEST_SEED;
/** A failure found by then is reported as far as it is shrunk. */
const TIME_LIMIT_MS = Math.max(60_000, RUNS * 400);

let scopes = 0;

function pairOf(script: DifferentialScript): Pair & { close(): Promise<void> } {
  let nowMs = 1_700_000_000_123.456;
  const runtime = { now: () => nowMs, wallNow: () => nowMs } as Runtime;
  scopes += 1;
  const { sources, steps: _steps, ...setup } = script;
  const options = {
    ...setup,
    scope: `differential-${process.pid}-${scopes}`,
    sources: sources.map((source, index) => sourceConfig(`s${index}`, source)),
  };
  const memory = new MemoryGovernor({ ...options, runtime });
  const redis = new RedisGovernor({ ...options, client: client!, timeoutMs: 10_000 }, { nowMs: () => nowMs });
  return {
    memory,
    redis,
    advance: (ms) => {
      nowMs += ms;
    },
    async close() {
      await redis.close();
      const keys = await client!.keys(`pgw-test:{${options.scope}}:*`);
      if (keys.length > 0) await client!.del(...keys);
    },
  };
}

test.skipIf(shared === null)(
  "random verbs: Redis answers, tells and remembers what the memory governor does",
  async () => {
    const body = async (script: DifferentialScript) => {
      const pair = pairOf(script);
      try {
        await playOnBoth(pair, script);
      } finally {
        await pair.close();
      }
    };
    const parameters = {
      numRuns: RUNS,
      interruptAfterTimeLimit: TIME_LIMIT_MS,
      ...(SEED === undefined ? {} : { seed: Number(SEED) }),
    };
    await fc.assert(fc.asyncProperty(differentialScript, body), parameters);
  },
  2 * TIME_LIMIT_MS,
);
