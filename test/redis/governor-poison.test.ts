import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { batchText, setupText } from "../../src/backends/redis/governor-messages.js";
import { GRANTS_KEY, STATE_KEY } from "../../src/backends/redis/script/keys.js";
import { LAYOUT_VERSION } from "../../src/backends/redis/script/layout.js";
import { LEARNED_AT, TROUBLE_AT } from "../../src/backends/redis/script/source-layout.js";
import { TICK_SCRIPT } from "../../src/backends/redis/tick-script.js";
import { BREAKER_DEFAULTS, SCHEDULING_DEFAULTS } from "../../src/domain/scope.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import type { TickBatch } from "../../src/ports/governor.js";
import { settleOf, sourceConfig } from "../../src/testing/contracts/governor/bench.js";
import { sharedRedis } from "../services/redis.js";
import { Fleet, type FleetOptions } from "./fleet.js";

const redis = await sharedRedis();
const fleets: Fleet[] = [];
afterAll(async () => void (await Promise.all(fleets.map((fleet) => fleet.close()))));

function fleet(options: FleetOptions = {}): Fleet {
  const made = new Fleet({ url: redis?.url ?? "", timeoutMs: 5_000, ...options });
  fleets.push(made);
  return made;
}

const KEYS = [STATE_KEY, GRANTS_KEY, "l", "l:s", "w", "est"];
const SOURCES = { s: { maxConcurrency: 3, rpm: 600, tpm: 60_000 } };
const SIZES = { promptTokens: 50 };
const USED = { inTokens: 60, outTokens: 10 };

async function put(key: string, type: string): Promise<void> {
  await redis!.command("DEL", key);
  if (type === "string") await redis!.command("SET", key, "x");
  else if (type === "list") await redis!.command("RPUSH", key, "x");
  else if (type === "hash") await redis!.command("HSET", key, "x", "y");
  else await redis!.command("ZADD", key, 1, "x");
}

const hex = (text: string): Buffer => Buffer.from(text, "hex");
/** In the script's own format: true, a list of one, a list of 200 nils, a map, nothing, not a number; and texts. */
const GARBAGE: readonly (readonly [string, Buffer | string])[] = [
  ["nothing", ""],
  ["nan", "nan"],
  ["1e400", "1e400"],
  ["JSON", '{"grant":{}}'],
  ["true", hex("c3")],
  ["a list with a version alone", hex(`91${LAYOUT_VERSION.toString(16).padStart(2, "0")}`)],
  ["a version alone", hex(LAYOUT_VERSION.toString(16).padStart(2, "0"))],
  ["a list of nils", hex(`dc00c8${"c0".repeat(200)}`)],
  ["a map", hex("81a16101")],
  ["not a number", hex("94cb7ff8000000000000c2cb7ff8000000000000cb7ff8000000000000")],
  ["random bytes", hex("00ff13c1d9809f")],
];

async function corrupt(key: string, field: string, value: Buffer | string): Promise<void> {
  // The helper's commands take texts alone; bytes go through Lua.
  const bytes = [...Buffer.from(value)].join(",");
  const script = `local b={${bytes}}; local s={}; for i,c in ipairs(b) do s[i]=string.char(c) end; return redis.call('HSET', KEYS[1], ARGV[1], table.concat(s))`;
  await redis!.command("EVAL", script, 1, key, field);
}

describe.skipIf(redis === null)("what somebody else wrote into a scope's keys", () => {
  describe.each(KEYS)("the key %s", (name) => {
    test.each(["string", "list", "hash", "zset"])("a %s where something else is meant", async (type) => {
      const group = fleet({ sources: SOURCES });
      const [a, b] = [group.worker(), group.worker()];
      const held = await a.granted("s", SIZES);
      await a.settle(await a.granted("s", SIZES), "success", USED);
      await put(group.key(name), type);
      // Each kind of tick is the first that meets it.
      const doors = [
        () => b.renew(held),
        () => b.settle(held),
        () => b.granted("s", SIZES),
        () => b.governor.snapshot(),
      ];
      await doors[KEYS.indexOf(name) % doors.length]!();
      for (const door of doors) await door();
      const grant = await b.granted("s", SIZES);
      expect(await b.settle(grant, "success", USED)).toBe(true);
      await a.settle(await a.granted("s", SIZES), "success", USED);
      for (const key of KEYS) {
        const [kind, left] = [
          await redis!.command("TYPE", group.key(key)),
          await redis!.command("PTTL", group.key(key)),
        ];
        if (kind !== "none")
          expect([key, kind, Number(left) > 0]).toEqual([key, key.startsWith("l") ? "zset" : "hash", true]);
      }
    });
  });

  /** What the governor sends, without the repair that follows where it fails. */
  async function bare(group: Fleet, batch: Partial<TickBatch>): Promise<unknown> {
    const setup = setupText({
      sources: [sourceConfig("s", SOURCES.s)],
      global: NO_LIMITS,
      breaker: BREAKER_DEFAULTS,
      selector: "health_aware",
      scheduling: { ...SCHEDULING_DEFAULTS, prefetchMs: 1_000 },
      leaseTtlMs: 1_000,
    });
    const text = batchText({ worker: "bare", seed: 1, settles: [], verdicts: [], renew: [], wants: [], ...batch });
    return redis!.command("EVAL", TICK_SCRIPT, 1, group.key("s"), "tick", group.key(""), setup, text, "");
  }

  test.each(["renew", "settle", "want", "reclaim"] as const)(
    "a %s that fails over it has written nothing",
    async (door) => {
      const group = fleet({ sources: SOURCES, leaseTtlMs: 1_000 });
      const worker = group.worker();
      const held = await worker.granted("s", { retry: true });
      const wants = [worker.newWant("s")];
      await put(group.key("l:s"), "string");
      if (door === "reclaim") await sleep(1_100);
      const dumps = () => Promise.all(KEYS.map((key) => redis!.command("DEBUG", "DIGEST-VALUE", group.key(key))));
      const before = await dumps();
      const batch = {
        renew: { renew: [held.leaseId] },
        settle: { settles: [settleOf(held, "success")] },
        want: { wants },
        reclaim: {},
      }[door];
      await expect(bare(group, batch)).rejects.toThrow("WRONGTYPE");
      expect(await dumps()).toEqual(before);
      // With the repair it takes effect, once.
      const { applied, grants } = await worker.tick(batch);
      expect([applied.length, grants.length]).toEqual([
        Number(door === "renew" || door === "settle"),
        Number(door === "want"),
      ]);
      expect(worker.events).toContainEqual({ type: "capacity", source: "*" });
      expect(await worker.inflight("s")).toBe({ renew: 1, settle: 0, want: 2, reclaim: 0 }[door]);
      const { budgets } = await worker.governor.snapshot();
      expect(budgets?.retriesInFlight).toBe(door === "renew" || door === "want" ? 1 : 0);
    },
  );

  describe.each([
    [STATE_KEY, "s"],
    [STATE_KEY, "*"],
    [STATE_KEY, "@"],
    ["w", "w1"],
    ["w", "stranger"],
    [GRANTS_KEY, "stranger"],
    [GRANTS_KEY, "w1-1"],
  ])("the field %s %s", (key, field) => {
    test.each(GARBAGE)("%s", async (_, value) => {
      const group = fleet({ sources: SOURCES });
      const [a, b] = [group.worker(), group.worker()];
      const held = await a.granted("s");
      await a.settle(await a.granted("s"), "failure");
      await corrupt(group.key(key), field, value);
      if (key === GRANTS_KEY && field === "stranger") {
        await redis!.command("ZADD", group.key("l"), 1, "stranger");
        await redis!.command("ZADD", group.key("l:s"), 1, "stranger");
      }
      const grant = await b.granted("s");
      await a.renew(held);
      await a.settle(held);
      expect(await b.settle(grant)).toBe(true);
      const { state, inflight } = await a.source("s");
      expect(state).toBe("closed");
      expect(inflight).toBeLessThanOrEqual(1);
    });
  });

  test.each([
    ["what attempts taught", LEARNED_AT],
    ["what is known of trouble", TROUBLE_AT],
  ])("%s of a source can't be read", async (_, part) => {
    const group = fleet({ sources: SOURCES });
    const worker = group.worker();
    const held = await worker.granted("s");
    for (const value of ["", "x", "\xc1", "91c0"]) {
      const script = `
        local values = { cmsgpack.unpack(redis.call('HGET', KEYS[1], 's')) }
        values[tonumber(ARGV[1])] = ARGV[2]
        return redis.call('HSET', KEYS[1], 's', cmsgpack.pack(unpack(values)))`;
      await redis!.command("EVAL", script, 1, group.key(STATE_KEY), part + 1, value);
      await worker.settle(await worker.granted("s"), "failure");
      await worker.settle(await worker.granted("s"), "success");
    }
    // Granted before the source was forgotten: the permit comes back all the same.
    await worker.settle(held);
    expect(await worker.source("s")).toMatchObject({ state: "closed", inflight: 0 });
  });

  test("learned sizes that can't be read count as never learned", async () => {
    const group = fleet({ sources: SOURCES });
    const worker = group.worker();
    for (const [, value] of GARBAGE) {
      await worker.settle(await worker.granted("s", SIZES), "success", USED);
      for (const field of (await redis!.command("HKEYS", group.key("est"))) as string[])
        await corrupt(group.key("est"), field, value);
    }
    await worker.settle(await worker.granted("s", SIZES), "success", USED);
    expect(await worker.inflight("s")).toBe(0);
  });

  test("a permit that somebody gave for ever ends as if it were a usual one", async () => {
    const group = fleet({ sources: { s: { maxConcurrency: 1 } }, leaseTtlMs: 1_000 });
    const worker = group.worker();
    for (const key of ["l", "l:s"]) await redis!.command("ZADD", group.key(key), "inf", "for-ever");
    const { waitHintMs } = await worker.refused("s");
    expect(waitHintMs).toBeLessThanOrEqual(1_000);
    await sleep(1_100);
    await worker.granted("s");
  });
});
