import { afterAll, describe, expect, test } from "vitest";
import { LAYOUT_VERSION } from "../../src/backends/redis/script/layout.js";
import { sharedRedis } from "../services/redis.js";
import { playedElsewhere } from "../support/case-skips.js";
import { Fleet, type FleetOptions } from "./fleet.js";

/** The records of kind `store` that are about the governor's own state, by their ids (test/data/cases.jsonl). */
const redis = await sharedRedis();
const fleets: Fleet[] = [];
afterAll(async () => void (await Promise.all(fleets.map((fleet) => fleet.close()))));

function fleet(options: FleetOptions): Fleet {
  const made = new Fleet({ url: redis?.url ?? "", timeoutMs: 5_000, ...options });
  fleets.push(made);
  return made;
}

const STATE = `s${LAYOUT_VERSION}`;

const BODIES: Readonly<Record<string, () => Promise<void>>> = {
  "rl-block-zero": async () => {
    // A dead key is what is blocked for long; asking and being refused must not make it shorter.
    const one = fleet({ sources: { s: {} } }).worker();
    await one.settle(await one.granted("s"), "dead", { retryAfterMs: 600_000 });
    const first = await one.refused("s");
    for (let n = 0; n < 20; n += 1) await one.refused("s");
    const last = await one.refused("s");
    expect(last.kind).toBe("breaker");
    expect(last.waitHintMs).toBeGreaterThan(first.waitHintMs - 60_000);
    expect((await one.source("s")).dead).toBe(true);
  },
  "rl-lua-nil": async () => {
    const few = fleet({ sources: { s: { maxConcurrency: 2 } } });
    const one = few.worker();
    const held = await one.granted("s");
    await redis!.command("HDEL", few.key(STATE), "s", "*");
    // Answered within the deadline, by what is left: the permit that is out still counts.
    await one.granted("s");
    await one.refused("s");
    // Its outcome belongs to a state that is gone; the permit comes back all the same.
    expect(await one.settle(held)).toBe(false);
    await one.granted("s");
  },
  "rl-no-ttl": async () => {
    const paced = fleet({ sources: { s: { rpm: 600 } } });
    const one = paced.worker();
    await one.granted("s");
    const ttlMs = async () => Number(await redis!.command("PTTL", paced.key(STATE)));
    expect(await ttlMs()).toBeGreaterThan(0);
    await redis!.command("PERSIST", paced.key(STATE));
    await one.granted("s");
    expect(await ttlMs()).toBeGreaterThan(0);
  },
};

describe.skipIf(redis === null)("records of the governor's state in Redis", () => {
  test.each(Object.entries(BODIES))("%s", (_id, body) => body());
});

test("every record that is said to be played here is", () => {
  expect(Object.keys(BODIES).sort()).toEqual([...(playedElsewhere["test/redis/governor-cases.test.ts"] ?? [])].sort());
});
