import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { isRefusal } from "../../src/testing/contracts/governor/bench.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, sharedRedisCluster } from "../services/redis.js";
import { Fleet, type FleetOptions, type Worker } from "./fleet.js";

/*
 * The time cases of the governor contract by the server's own clock, over two connections. One row, one test:
 *
 * contract, injected clock                                  | here
 * ----------------------------------------------------------|---------------------------------------------------
 * rates.ts      smooth, strict: never more in any minute    | the request limit holds over two processes
 * rates.ts      window: counted per aligned minute          | an aligned minute is counted over two processes
 * gates.ts      concurrency is decided by leases            | permits in flight hold over two processes
 * leases.ts     a dead worker's permits come back           | a permit nobody renews comes back within TTL + 1 s
 * leases.ts     renewal keeps a lease                       | a renewed permit outlives its TTL
 * breaker-open  open time, then one probe                   | an opened breaker lets one probe of the fleet through
 * cooldown.ts   Retry-After is obeyed                       | a cooldown holds for everybody and is never cut short
 * observation   age of the last progress                    | success on A is progress on B
 */

const redis = await sharedRedis();
const cluster = await sharedRedisCluster();
const fleets: Fleet[] = [];
afterAll(async () => void (await Promise.all(fleets.map((fleet) => fleet.close()))));

/** Two processes; slow machines get more time than a dead Redis would. */
function pair(options: FleetOptions): [Worker, Worker] {
  const fleet = new Fleet({ url: redis?.url ?? "", timeoutMs: 5_000, ...options });
  fleets.push(fleet);
  return [fleet.worker(), fleet.worker()];
}

const now = (): number => performance.now();
const OFF = { pacer: false, fairness: false, prefetchMs: 0 } as const;

describe.skipIf(redis === null).concurrent("by the server's clock, over two connections", () => {
  test("a lease taken on A refuses on B", async () => {
    const [a, b] = pair({ sources: { s: { maxConcurrency: 1 } } });
    const grant = await a.granted("s");
    expect(await b.refused("s")).toMatchObject({ kind: "gate", gate: "concurrency" });
    expect(await a.settle(grant)).toBe(true);
    await b.granted("s");
    expect(await b.settle(grant)).toBe(false);
  });

  test("RPM taken on A counts on B", async () => {
    const [a, b] = pair({ sources: { s: { rpm: 1 } }, scheduling: OFF });
    await a.settle(await a.granted("s"));
    const { gate, waitHintMs } = await b.refused("s");
    expect(gate).toBe("rpm");
    expect(waitHintMs).toBeGreaterThan(50_000);
    expect(waitHintMs).toBeLessThanOrEqual(60_500);
  });

  test("success on A is progress on B", async () => {
    const [a, b] = pair({});
    expect(await b.governor.progressAgeMs()).toBe(Infinity);
    const startedAt = now();
    await a.settle(await a.granted("a"));
    await sleep(2_000);
    const age = await b.governor.progressAgeMs();
    expect(age).toBeGreaterThanOrEqual(1_990);
    expect(age).toBeLessThanOrEqual(now() - startedAt + 1);
  });

  test("the request limit holds over two processes", async () => {
    // Burst 10, then one in 102.4 ms.
    const [a, b] = pair({ sources: { s: { rpm: 600 } }, scheduling: OFF });
    const startedAt = now();
    let granted = 0;
    const greedy = async (worker: Worker): Promise<void> => {
      while (now() - startedAt < 3_000) {
        const answer = await worker.want("s");
        if (isRefusal(answer)) await sleep(Math.min(answer.waitHintMs, 50));
        else granted += 1;
      }
    };
    await Promise.all([greedy(a), greedy(b)]);
    const most = 10 + Math.floor((now() - startedAt) / 102.4) + 1;
    expect(granted).toBeLessThanOrEqual(most);
    expect(granted).toBeGreaterThan(20);
  });

  test("an aligned minute is counted over two processes", async () => {
    const [a, b] = pair({ sources: { s: { rpm: 3, limitRule: "window" } }, scheduling: OFF });
    // Headroom: what follows is over long before the minute is.
    const [seconds] = (await redis!.command("TIME")) as [string];
    const left = 60 - (Number(seconds) % 60);
    if (left < 8) await sleep((left + 1) * 1_000);
    const grants = [await a.granted("s"), await b.granted("s"), await a.granted("s")];
    expect(new Set(grants.map(({ windowId }) => windowId)).size).toBe(1);
    expect(grants[0]!.windowId).toBe(Math.floor(Number(((await redis!.command("TIME")) as [string])[0]) / 60));
    expect(await b.refused("s")).toMatchObject({ gate: "rpm" });
    await b.settle(grants[2]!, "cancelled", { sent: false });
    await b.granted("s");
  });

  test("permits in flight hold over two processes", async () => {
    const [a, b] = pair({
      sources: { s: { maxConcurrency: 3 }, t: { maxConcurrency: 2 } },
      global: { maxConcurrency: 4 },
    });
    const live: Record<string, number> = { s: 0, t: 0 };
    let exceeded = 0;
    let grants = 0;
    const startedAt = now();
    const caller = async (worker: Worker): Promise<void> => {
      while (now() - startedAt < 2_000) {
        const answer = await worker.want(["s", "t"]);
        if (isRefusal(answer)) {
          await sleep(5);
          continue;
        }
        grants += 1;
        live[answer.source]! += 1;
        if (live.s! > 3 || live.t! > 2 || live.s! + live.t! > 4) exceeded += 1;
        await sleep(5);
        live[answer.source]! -= 1;
        await worker.settle(answer);
      }
    };
    await Promise.all([a, b, a, b, a, b, a, b].map(caller));
    expect(exceeded).toBe(0);
    expect(grants).toBeGreaterThan(20);
    expect((await a.inflight("s")) + (await a.inflight("t"))).toBe(0);
  });

  test("a permit nobody renews comes back within TTL + 1 s", async () => {
    const [a, b] = pair({ sources: { s: { maxConcurrency: 1 } }, leaseTtlMs: 2_000 });
    const startedAt = now();
    const lost = await a.granted("s");
    const grant = await eventually(() => b.granted("s"), 10_000);
    const tookMs = now() - startedAt;
    expect(tookMs).toBeGreaterThanOrEqual(1_990);
    expect(tookMs).toBeLessThan(3_000);
    // The process that was frozen wakes up: nothing of another's is touched.
    expect(await a.renew(lost)).toEqual([false]);
    expect(await a.settle(lost, "failure")).toBe(false);
    expect(await b.inflight("s")).toBe(1);
    expect(await b.renew(grant)).toEqual([true]);
  });

  test("a renewed permit outlives its TTL", async () => {
    const [a, b] = pair({ sources: { s: { maxConcurrency: 1 } }, leaseTtlMs: 2_000 });
    const grant = await a.granted("s");
    for (let n = 0; n < 6; n += 1) {
      await sleep(500);
      expect(await a.renew(grant)).toEqual([true]);
      await b.refused("s");
    }
    expect(await a.settle(grant)).toBe(true);
  });

  test("an opened breaker lets one probe of the fleet through", async () => {
    const [a, b] = pair({ breaker: { failThreshold: 1, cooldownMs: 2_000 } });
    const early = await b.granted("a");
    const opened = now();
    await a.settle(await a.granted("a"), "failure");
    await eventually(async () =>
      expect(b.events).toContainEqual(expect.objectContaining({ type: "state", source: "a" })),
    );
    expect(await b.refused("a")).toMatchObject({ kind: "breaker" });
    // Sent before the breaker opened: it is fenced off.
    expect(await b.settle(early)).toBe(false);
    const probe = await eventually(() => b.granted("a"));
    expect(now() - opened).toBeGreaterThanOrEqual(1_790);
    expect(probe.probe).toBe(true);
    expect(await a.refused("a")).toMatchObject({ kind: "breaker" });
    expect(await b.settle(probe)).toBe(true);
    expect((await a.source("a")).state).toBe("closed");
    await eventually(async () => expect(a.events.filter(({ type }) => type === "state").length).toBe(2));
  });

  test("a cooldown holds for everybody and is never cut short", async () => {
    const [a, b] = pair({ scheduling: OFF });
    const limited = now();
    await a.settle(await a.granted("a"), "alive", { rateLimited: "requests", retryAfterMs: 2_000 });
    expect(await b.refused("a")).toMatchObject({ kind: "cooldown" });
    await eventually(() => b.granted("a"));
    expect(now() - limited).toBeGreaterThanOrEqual(1_990);
  });

  test("a permit that comes back wakes the one process that waits for it", async () => {
    const fleet = new Fleet({ url: redis!.url, timeoutMs: 5_000, sources: { s: { maxConcurrency: 1 } } });
    fleets.push(fleet);
    const [a, b, c] = [fleet.worker(), fleet.worker(), fleet.worker()];
    await c.tick({});
    const grant = await a.granted("s");
    await b.refused("s");
    await eventually(async () => {
      const [, heard] = (await redis!.command("PUBSUB", "NUMSUB", `pgw:{${fleet.scope}}:wake:${b.name}`)) as [
        string,
        number,
      ];
      expect(heard).toBe(1);
    });
    await a.settle(grant);
    await eventually(async () =>
      expect(b.events).toEqual([expect.objectContaining({ type: "capacity", source: "s", worker: b.name })]),
    );
    expect(c.events).toEqual([]);
    await b.granted("s");
  });
});

describe.skipIf(cluster === null).concurrent("on a cluster of three", () => {
  test("scopes on all nodes: limits, leases, news and probes hold over two connections", async () => {
    const nodes = cluster!.seeds;
    for (let n = 0; n < 6; n += 1) {
      const fleet = new Fleet({
        cluster: { nodes },
        timeoutMs: 5_000,
        scope: `cluster-${process.pid}-${n}`,
        sources: { s: { maxConcurrency: 1, rpm: 600 }, t: { maxConcurrency: 1 } },
        breaker: { failThreshold: 1 },
      });
      fleets.push(fleet);
      const [a, b] = [fleet.worker(), fleet.worker()];
      const grants = [await a.granted(["s", "t"]), await b.granted(["s", "t"])];
      expect(grants.map(({ source }) => source).toSorted()).toEqual(["s", "t"]);
      await a.refused(["s", "t"]);
      expect(await a.settle(grants[0]!)).toBe(true);
      const again = await a.granted(grants[0]!.source);
      await a.settle(again, "dead");
      expect(await b.refused(again.source)).toMatchObject({ kind: "breaker" });
      expect((await b.source(again.source)).dead).toBe(true);
      expect(await b.renew(grants[1]!)).toEqual([true]);
    }
    const counts = await Promise.all(nodes.map((_, at) => cluster!.nodes[at]!.command("DBSIZE")));
    expect(counts.filter((count) => Number(count) > 0).length).toBeGreaterThan(1);
  });

  test("news crosses the cluster", async () => {
    const fleet = new Fleet({ cluster: { nodes: cluster!.seeds }, timeoutMs: 5_000, breaker: { failThreshold: 1 } });
    fleets.push(fleet);
    const [a, b] = [fleet.worker(), fleet.worker()];
    await b.tick({});
    await eventually(async () => {
      await a.settle(await a.granted("a", {}), "dead", { retryAfterMs: 1 });
      expect(b.events).toContainEqual(expect.objectContaining({ type: "state", source: "a" }));
    });
  });
});
