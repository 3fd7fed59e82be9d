import { describe, test } from "vitest";
import { RedisGovernor } from "../../src/backends/redis/governor.js";
import { SCHEDULING_OFF } from "../../src/domain/scope.js";
import { type GovernorBackend, type GovernorSetup, governorContract } from "../../src/testing/contracts/governor.js";
import { governorProperties } from "../../src/testing/contracts/governor-properties.js";
import { sharedRedis } from "../services/redis.js";
import { randomRuns } from "../support/random-runs.js";

const redis = await sharedRedis();

/** The store's clock, moved by the test; keys under it are apart from all others. */
async function makeBackend(setup: GovernorSetup): Promise<GovernorBackend> {
  let nowMs = 1_700_000_000_123.456;
  const governor = new RedisGovernor(
    {
      ...setup,
      scope: `${setup.scope}-${process.pid}`,
      scheduling: { ...SCHEDULING_OFF, ...setup.scheduling },
      url: redis!.url,
      timeoutMs: 5_000,
    },
    { nowMs: () => nowMs },
  );
  return {
    governor,
    advance: async (ms) => {
      nowMs += ms;
    },
    now: () => nowMs,
    close: () => governor.close(),
  };
}

describe.skipIf(redis === null)("RedisGovernor keeps the governor contract", () => {
  governorContract({ test, makeBackend });
  governorProperties({ test, makeBackend, runs: randomRuns(15) });
});
