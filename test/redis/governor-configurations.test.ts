import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { isRefusal } from "../../src/testing/contracts/governor/bench.js";
import { eventually } from "../services/processes.js";
import { sharedRedis } from "../services/redis.js";
import { Fleet, type FleetOptions, type Worker } from "./fleet.js";

const redis = await sharedRedis();
const fleets: Fleet[] = [];
afterAll(async () => void (await Promise.all(fleets.map((fleet) => fleet.close()))));

/** A process as it was deployed before, and one as it is deployed now. */
function rolling(before: FleetOptions, after: FleetOptions): [Worker, Worker] {
  const fleet = new Fleet({ url: redis?.url ?? "", timeoutMs: 5_000, leaseTtlMs: 1_000 });
  fleets.push(fleet);
  return [fleet.worker(before), fleet.worker(after)];
}

describe.skipIf(redis === null).concurrent("two configurations at once", () => {
  test.each([
    ["of a source", { sources: { s: { maxConcurrency: 10 } } }, { sources: { s: { maxConcurrency: 2 } } }],
    [
      "of the scope",
      { sources: { s: {} }, global: { maxConcurrency: 10 } },
      { sources: { s: {} }, global: { maxConcurrency: 2 } },
    ],
    ["where one has none", { sources: { s: {} } }, { sources: { s: { maxConcurrency: 2 } } }],
  ] as const)("the lower limit %s holds for both, until nobody has it any more", async (_, before, after) => {
    const [old, young] = rolling(before, after);
    const grants = [await old.granted("s"), await old.granted("s"), await old.granted("s")];
    await young.refused("s");
    await old.refused("s");
    for (const grant of grants) await old.settle(grant);
    const both = [await old.granted("s"), await young.granted("s")];
    await old.refused("s");
    for (const grant of both) await old.settle(grant);
    // The process of the lower limit is gone: after a lease's time to live the other one's own limit is back.
    const free = await eventually(async () => {
      const taken = [];
      for (let n = 0; n < 3; n += 1) taken.push(await old.want("s"));
      const granted = taken.flatMap((answer) => (isRefusal(answer) ? [] : [answer]));
      for (const grant of granted) await old.settle(grant);
      expect(granted.length).toBe(3);
      return granted;
    });
    expect(free.length).toBe(3);
  });

  test("each has a lower limit somewhere: both hold", async () => {
    const [a, b] = rolling(
      { sources: { s: { maxConcurrency: 1 }, t: { maxConcurrency: 5 } } },
      { sources: { s: { maxConcurrency: 5 }, t: { maxConcurrency: 1 } } },
    );
    await a.tick({});
    await b.tick({});
    for (let round = 0; round < 3; round += 1) {
      const grants = [await a.granted("t"), await b.granted("s")];
      await a.refused(["s", "t"]);
      await b.refused(["s", "t"]);
      await sleep(500);
      expect((await a.source("t")).maxConcurrency).toBe(1);
      expect((await b.source("s")).maxConcurrency).toBe(1);
      await a.settle(grants[0]!);
      await b.settle(grants[1]!);
    }
  });

  test("a lower request limit slows down both", async () => {
    const off = { pacer: false, prefetchMs: 0, fairness: false };
    const [a, b] = rolling(
      { sources: { s: { rpm: 6_000 } }, scheduling: off },
      { sources: { s: { rpm: 60 } }, scheduling: off },
    );
    await b.tick({});
    let granted = 0;
    for (let n = 0; n < 20; n += 1) {
      const answer = await (n % 2 === 0 ? a : b).want("s");
      if (!isRefusal(answer)) granted += 1;
    }
    expect(granted).toBeLessThanOrEqual(6);
  });

  test("a source that one of them doesn't know: its permits count for the scope, and come back whoever finds them", async () => {
    const global = { maxConcurrency: 2 };
    const [old, young] = rolling(
      { sources: { s: {}, gone: {} }, global, breaker: { failThreshold: 1 } },
      { sources: { s: {}, fresh: {} }, global },
    );
    // A probe and retries of a source that the other has never heard of.
    await old.settle(await old.granted("gone"), "dead", { retryAfterMs: 1 });
    const probe = await eventually(() => old.granted("gone", { retry: true }));
    expect(probe.probe).toBe(true);
    await young.granted("s");
    await young.refused(["s", "fresh"]);
    await sleep(1_100);
    // Their time is over; the process that doesn't know the source is the first to see it.
    const own = [await young.granted("fresh"), await young.granted("s")];
    expect((await young.governor.snapshot()).budgets?.retriesInFlight).toBe(0);
    for (const grant of own) expect(await young.settle(grant)).toBe(true);
    expect(await old.source("gone")).toMatchObject({ probeInFlight: false, inflight: 0 });
    const again = await old.granted("gone");
    expect(again.probe).toBe(true);
    expect(await old.settle(again)).toBe(true);
  });
});
