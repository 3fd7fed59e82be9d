import { afterAll, describe, expect, test } from "vitest";
import { GRANTS_KEY, LEASES_KEY, sourceLeasesKey } from "../../src/backends/redis/script/keys.js";
import { flattenLease } from "../../src/backends/redis/script/lease-layout.js";
import type { Lease } from "../../src/domain/leases.js";
import { eventually } from "../services/processes.js";
import { type RedisServer, sharedRedis, startRedis } from "../services/redis.js";
import { Fleet, type FleetOptions, type Worker } from "./fleet.js";

/** F48: how much is there must not decide how much a tick does. Counted in what Redis did, not in milliseconds. */

const isHere = (await sharedRedis()) !== null;
const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const one of open.toReversed()) await one.close();
});

async function ownServer(): Promise<RedisServer> {
  const server = await startRedis();
  open.push({ close: () => server.stop() });
  return server;
}

function fleet(options: FleetOptions): Fleet {
  const made = new Fleet({ timeoutMs: 20_000, ...options });
  open.push(made);
  return made;
}

/** Where a packed lease has its end, counted from one. */
const ENDS_AT =
  flattenLease({ ...({ grant: {} } as Lease), expiresAtMs: Number.MAX_VALUE }).indexOf(Number.MAX_VALUE) + 1;

/** `count` leases of one source as a tick writes them: copies of a real one under other ids. */
async function addLeases(
  server: RedisServer,
  group: Fleet,
  like: string,
  count: number,
  endsInMs: number,
): Promise<void> {
  const script = `
    local lease = { cmsgpack.unpack(redis.call('HGET', KEYS[3], ARGV[1])) }
    local time = redis.call('TIME')
    local ends = time[1] * 1000 + time[2] / 1000 + tonumber(ARGV[3])
    lease[tonumber(ARGV[4])] = ends
    local packed = cmsgpack.pack(unpack(lease))
    for n = 1, tonumber(ARGV[2]) do
      local id = ARGV[1] .. ':' .. n
      redis.call('HSET', KEYS[3], id, packed)
      redis.call('ZADD', KEYS[1], ends, id)
      redis.call('ZADD', KEYS[2], ends, id)
    end
    return 1`;
  const keys = [group.key(LEASES_KEY), group.key(sourceLeasesKey("s")), group.key(GRANTS_KEY)];
  await server.command("EVAL", script, keys.length, ...keys, like, count, endsInMs, ENDS_AT);
}

/** Commands that scripts gave during `work`, and how many members and fields were taken out. */
async function costOf(server: RedisServer, group: Fleet, work: () => Promise<unknown>) {
  const size = async (): Promise<number> => Number(await server.command("HLEN", group.key(GRANTS_KEY)));
  await server.command("CONFIG", "RESETSTAT");
  const before = await size();
  await work();
  const stats = String(await server.command("INFO", "commandstats"));
  const calls = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  const names = ["hget", "hmget", "hset", "hdel", "hgetall", "zadd", "zrem", "zcount", "zrangebyscore", "pexpire"];
  const commands = names.reduce((sum, name) => sum + calls(name), 0);
  return { commands, zadds: calls("zadd"), hgets: calls("hget"), removed: before - (await size()) };
}

const once = async (worker: Worker): Promise<void> => {
  expect(await worker.settle(await worker.granted("s"))).toBe(true);
};

test.skipIf(!isHere)("sets of many leases are trees, with nothing in them but leases", async () => {
  const server = await ownServer();
  const group = fleet({ url: server.url, sources: { s: {} }, scheduling: { pacer: false } });
  const worker = group.worker();
  const shapes = () => {
    const keys = [group.key(LEASES_KEY), group.key(sourceLeasesKey("s"))];
    return Promise.all(
      keys.map(async (key) => [await server.command("OBJECT", "ENCODING", key), await server.command("ZCARD", key)]),
    );
  };
  await eventually(() => worker.granted("s"));
  expect((await shapes()).map(([, count]) => count)).toEqual([1, 1]);
  const { grants } = await worker.tick({ wants: Array.from({ length: 20 }, () => worker.newWant("s")) });
  expect(grants).toHaveLength(20);
  expect(await shapes()).toEqual([
    ["skiplist", 21],
    ["skiplist", 21],
  ]);
  expect(await worker.inflight("s")).toBe(21);
});

const LEASES = 100_000;

describe.skipIf(!isHere)("F48 a hundred thousand leases", () => {
  test("alive: a tick costs what it costs with none, and all of them are counted", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, leaseTtlMs: 3_600_000 });
    const options = { sources: { s: { maxConcurrency: 1_000_000 } }, scheduling: { pacer: false } };
    const worker = group.worker(options);
    const held = await eventually(() => worker.granted("s"));
    await once(worker);
    const few = await costOf(server, group, () => once(worker));
    await addLeases(server, group, held.leaseId, LEASES, 3_600_000);
    const many = await costOf(server, group, () => once(worker));
    expect(await worker.inflight("s")).toBe(LEASES + 1);
    expect(many).toEqual(few);
    expect(await worker.renew(held)).toEqual([true]);
    // They fill their gate like any other.
    const narrow = group.worker({ ...options, sources: { s: { maxConcurrency: LEASES } } });
    await narrow.refused("s");
  }, 60_000);

  test("ended: each tick takes out a bounded number, counts none of them, and at last all are gone", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, sources: { s: { maxConcurrency: 2 } }, scheduling: { pacer: false } });
    const worker = group.worker();
    const held = await eventually(() => worker.granted("s"));
    await addLeases(server, group, held.leaseId, LEASES, -1);
    const first = await costOf(server, group, () => once(worker));
    // Two ticks: one that grants, one that settles.
    expect(first.removed).toBe(2 * 256);
    expect(first.hgets).toBeLessThanOrEqual(2 * 256 + 10);
    expect(first.zadds).toBeLessThanOrEqual(4);
    expect(await worker.inflight("s")).toBe(1);
    let ticks = 0;
    while (Number(await server.command("HLEN", group.key(GRANTS_KEY))) > 1) {
      await worker.tick({});
      ticks += 1;
      expect(ticks).toBeLessThanOrEqual(Math.ceil(LEASES / 256));
    }
    expect(Number(await server.command("ZCARD", group.key("l")))).toBe(1);
    expect(Number(await server.command("ZCARD", group.key("l:s")))).toBe(1);
    expect(await worker.settle(held)).toBe(true);
  }, 120_000);
});

describe.skipIf(!isHere)("F48 ten thousand sources", () => {
  test("in four hundred scopes of one server: none is any other's concern", async () => {
    const server = await ownServer();
    const sources = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [n === 0 ? "s" : `s_${n}`, { rpm: 600 }]));
    const scopes = Array.from({ length: 400 }, (_, n) => fleet({ url: server.url, scope: `many-${n}`, sources }));
    const [first] = scopes;
    const worker = first!.worker();
    await eventually(() => once(worker));
    const alone = await costOf(server, first!, () => once(worker));
    for (const group of scopes.slice(1)) {
      const one = group.worker();
      await one.granted("s");
      await one.governor.close();
    }
    expect(await costOf(server, first!, () => once(worker))).toEqual(alone);
  }, 120_000);

  test("in one scope: it works, however long its lists are", async () => {
    const server = await ownServer();
    const sources = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [n === 0 ? "s" : `s_${n}`, {}]));
    const group = fleet({ url: server.url, sources });
    const worker = group.worker();
    await eventually(() => once(worker));
    const grant = await worker.granted(["s_9999", "s_5000"]);
    expect((await worker.governor.snapshot()).sources).toHaveLength(10_000);
    expect(await worker.settle(grant)).toBe(true);
  }, 120_000);
});
