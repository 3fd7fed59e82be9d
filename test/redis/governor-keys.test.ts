import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../services/processes.js";
import { type RedisServer, sharedRedis, startRedis } from "../services/redis.js";
import { Fleet, type FleetOptions } from "./fleet.js";

/** What scripts do, as the server itself tells of it: Redis Cluster wants every key of a script declared. */

interface ScriptRun {
  readonly keys: readonly string[];
  readonly size: number;
  /** The commands it gave. */
  readonly commands: string[][];
}

const isHere = (await sharedRedis()) !== null;
let server: RedisServer;
let monitor: Redis;
let runs: ScriptRun[] = [];
const fleets: Fleet[] = [];

beforeAll(async () => {
  if (!isHere) return;
  server = await startRedis();
  monitor = await new Redis(server.port).monitor();
  monitor.on("monitor", (_at: string, args: string[], source: string) => {
    const [name = "", , count = "0", ...rest] = args;
    if (source === "lua") runs.at(-1)?.commands.push(args);
    else if (/^eval(sha)?$/i.test(name)) {
      const size = args.slice(2).join("").length;
      runs.push({ keys: rest.slice(0, Number(count)), size, commands: [] });
    }
  });
});
afterAll(async () => {
  for (const fleet of fleets) await fleet.close();
  monitor?.disconnect();
  await server?.stop();
});

function fleet(options: FleetOptions): Fleet {
  const made = new Fleet({ url: server.url, timeoutMs: 5_000, ...options });
  fleets.push(made);
  return made;
}

/** The scripts of `work`, once the server has told of all of them. */
async function scriptsOf(work: () => Promise<unknown>): Promise<readonly ScriptRun[]> {
  await allTold();
  runs = [];
  await work();
  await allTold();
  return runs;
}

async function allTold(): Promise<void> {
  const end = `end ${Math.random()}`;
  const told = new Promise<void>((resolve) => {
    const listen = (_at: string, args: string[]): void => {
      if (args[1] !== end) return;
      monitor.off("monitor", listen);
      resolve();
    };
    monitor.on("monitor", listen);
  });
  await server.command("ECHO", end);
  await told;
}

const WITHOUT_KEY = new Set(["TIME", "PUBLISH"]);

function undeclared(scripts: readonly ScriptRun[]): string[] {
  const found = scripts.flatMap(({ keys, commands }) =>
    commands.flatMap(([name = "", key = ""]) =>
      WITHOUT_KEY.has(name.toUpperCase()) || keys.includes(key) ? [] : [`${name} ${key}`],
    ),
  );
  return [...new Set(found)];
}

const SIZES = { promptTokens: 50 };
const USED = { inTokens: 60, outTokens: 10 };

describe.skipIf(!isHere)("the governor's scripts", () => {
  test("declare every key that they touch, and touch every key that they declare", async () => {
    const group = fleet({
      sources: { s: { maxConcurrency: 3, rpm: 600, tpm: 60_000 }, t: { maxConcurrency: 1 } },
      leaseTtlMs: 200,
      breaker: { failThreshold: 1 },
    });
    const scripts = await scriptsOf(async () => {
      const [a, b] = [group.worker(), group.worker()];
      const held = await a.granted("t", SIZES);
      await b.refused("t", SIZES);
      await a.renew(held);
      await a.settle(await a.granted("s", SIZES), "success", USED);
      await a.settle(await a.granted("s", SIZES), "failure", USED);
      // Its permit ends by itself and is taken out by the other one.
      await eventually(() => b.granted("t", SIZES));
      await a.governor.snapshot();
      await a.governor.progressAgeMs();
      for (const name of ["g", "w", "est", "l", "l:s"]) {
        await server.command("SET", group.key(name), "poisoned");
        await b.want("s", SIZES);
      }
    });
    expect(scripts.length).toBeGreaterThan(15);
    expect(undeclared(scripts)).toEqual([]);
    const touched = new Set(scripts.flatMap(({ commands }) => commands.map(([, key]) => key)));
    const declared = new Set(scripts.flatMap(({ keys }) => keys));
    expect([...declared].filter((key) => !touched.has(key))).toEqual([]);
  });

  test("a repair gives back the permits of sources that it doesn't know, in keys of the same slot", async () => {
    const group = fleet({ leaseTtlMs: 30_000 });
    const old = group.worker({ sources: { gone: {} } });
    const young = group.worker({ sources: { fresh: {} } });
    await old.granted("gone");
    await server.command("SET", group.key("w"), "poisoned");
    const scripts = await scriptsOf(() => young.granted("fresh"));
    const keys = undeclared(scripts).map((text) => text.split(" ")[1]);
    expect([...new Set(keys)]).toEqual([group.key("l:gone")]);
    expect(keys[0]).toContain(`{${group.scope}}`);
    expect(await old.inflight("gone")).toBe(1);
  });

  test("how old the last progress is costs one look at one key, however many sources there are", async () => {
    const sources = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`source_${n}`, { rpm: 600 }]));
    const group = fleet({ sources });
    const worker = group.worker();
    expect(await worker.governor.progressAgeMs()).toBe(Infinity);
    await worker.settle(await worker.granted("source_7"), "success");
    const [script, ...more] = await scriptsOf(async () =>
      expect(await worker.governor.progressAgeMs()).toBeLessThan(60_000),
    );
    expect(more).toEqual([]);
    const read = script!.commands.filter(([name]) => name !== "TIME");
    expect(read.map(([name, key]) => [name, key])).toEqual([["HMGET", script!.keys[0]]]);
    // Names and limits of all sources are another few thousand bytes.
    expect(script!.size).toBeLessThan(200);
  });
});
