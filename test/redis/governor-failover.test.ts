import { afterAll, describe, expect, test } from "vitest";
import { GovernanceBackendError } from "../../src/errors.js";
import type { Grant } from "../../src/ports/governor.js";
import { isRefusal } from "../../src/testing/contracts/governor/bench.js";
import { eventually } from "../services/processes.js";
import { type RedisServer, sharedRedis, startRedis } from "../services/redis.js";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { Fleet, type FleetOptions } from "./fleet.js";

/** F41: a replica takes over that never heard of the last writes. */

const isHere = (await sharedRedis()) !== null;
const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const one of open.toReversed()) await one.close();
});

const AT_ONCE = { config: { "repl-diskless-sync-delay": 0 } };

interface Pair {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  /** The way of the clients, and the way of the replication. */
  readonly front: TcpProxy;
  readonly feed: TcpProxy;
  /** What the primary does from now on never reaches the replica. */
  loseWrites(): void;
  failOver(): Promise<void>;
}

async function startPair(): Promise<Pair> {
  const [primary, replica] = [await startRedis(AT_ONCE), await startRedis(AT_ONCE)];
  const [front, feed] = [await startTcpProxy(primary.port), await startTcpProxy(primary.port)];
  for (const { close } of [front, feed]) open.push({ close });
  for (const server of [primary, replica]) open.push({ close: () => server.stop() });
  await replica.command("REPLICAOF", "127.0.0.1", feed.port);
  await eventually(async () => {
    expect(String(await replica.command("INFO", "replication"))).toContain("master_link_status:up");
  });
  return {
    primary,
    replica,
    front,
    feed,
    loseWrites: () => feed.swallowReplies(true),
    async failOver() {
      await primary.kill();
      await replica.command("REPLICAOF", "NO", "ONE");
      front.retarget(replica.port);
      front.cut();
    },
  };
}

async function replicated({ primary, replica }: Pair): Promise<void> {
  await eventually(async () => {
    const [there, here] = await Promise.all([primary, replica].map((server) => server.command("DEBUG", "DIGEST")));
    expect(here).toBe(there);
  });
}

function fleetOn({ front }: Pair, options: FleetOptions): Fleet {
  const made = new Fleet({ url: `redis://127.0.0.1:${front.port}`, timeoutMs: 2_000, ...options });
  open.push(made);
  return made;
}

async function grantsOf(worker: ReturnType<Fleet["worker"]>, source: string): Promise<Grant[]> {
  const grants: Grant[] = [];
  for (;;) {
    const answer = await worker.want(source);
    if (isRefusal(answer)) return grants;
    grants.push(answer);
  }
}

describe.skipIf(!isHere)("F41 a failover that loses writes", () => {
  test("as many permits too many as were lost, and no old end takes effect on a new one", async () => {
    const pair = await startPair();
    const group = fleetOn(pair, { sources: { s: { maxConcurrency: 5 } }, leaseTtlMs: 1_000 });
    const [a, b] = [group.worker(), group.worker()];
    const kept = [await eventually(() => a.granted("s")), await a.granted("s")];
    await replicated(pair);
    pair.loseWrites();
    const lost = await grantsOf(a, "s");
    expect(lost).toHaveLength(3);
    await pair.failOver();
    const fresh = await eventually(() => grantsOf(b, "s"));
    // Whose leases the replica knew are still counted; the others may be given once more, never more than L.
    expect(fresh.length).toBeLessThanOrEqual(lost.length);
    expect(await b.inflight("s")).toBeLessThanOrEqual(5);
    expect(await eventually(() => a.renew(...lost))).toEqual(lost.map(() => false));
    for (const grant of lost) expect(await a.settle(grant, "failure")).toBe(false);
    const before = await b.inflight("s");
    for (const grant of kept) await a.settle(grant);
    expect(before - (await b.inflight("s"))).toBeLessThanOrEqual(kept.length);
    for (const grant of fresh) expect(await b.settle(grant)).toBe(true);
    expect(await b.inflight("s")).toBe(0);
  });

  test("an end that was lost is told again, or its lease ends by itself", async () => {
    const pair = await startPair();
    const group = fleetOn(pair, { sources: { s: { maxConcurrency: 1 } }, leaseTtlMs: 1_000 });
    const worker = group.worker();
    const grant = await eventually(() => worker.granted("s"));
    await replicated(pair);
    pair.loseWrites();
    expect(await worker.settle(grant)).toBe(true);
    await pair.failOver();
    await eventually(() => worker.granted("s"), 5_000);
    expect(await worker.inflight("s")).toBe(1);
  });

  test("a breaker's epoch is never that of an older one, and a late end of before changes nothing", async () => {
    const pair = await startPair();
    const group = fleetOn(pair, { breaker: { failThreshold: 1, cooldownMs: 1 } });
    const worker = group.worker();
    await eventually(() => worker.tick({}));
    await replicated(pair);
    pair.loseWrites();
    await worker.settle(await worker.granted("a"), "dead", { retryAfterMs: 1 });
    const { epoch: lostEpoch } = await worker.source("a");
    const oldProbe = await eventually(() => worker.granted("a"));
    expect(oldProbe).toMatchObject({ probe: true, epoch: lostEpoch });
    await pair.failOver();
    // The replica never heard of the trip: it opens anew, with an epoch of its own.
    expect((await eventually(() => worker.source("a"))).state).toBe("closed");
    await worker.settle(await worker.granted("a"), "dead", { retryAfterMs: 1 });
    const { epoch } = await worker.source("a");
    expect(epoch).not.toBe(lostEpoch);
    expect(await worker.settle(oldProbe, "success")).toBe(false);
    expect(await worker.source("a")).toMatchObject({ epoch });
    expect((await worker.source("a")).state).not.toBe("closed");
  });

  test("until somebody is promoted it is a typed error, whatever is asked", async () => {
    const pair = await startPair();
    const group = fleetOn(pair, {});
    const worker = group.worker();
    const grant = await eventually(() => worker.granted("a"));
    await replicated(pair);
    await pair.primary.kill();
    pair.front.retarget(pair.replica.port);
    pair.front.cut();
    await eventually(async () => {
      const failure = await worker.want("a").catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(GovernanceBackendError);
      expect((failure as Error).message).toContain("READONLY");
    });
    await expect(worker.settle(grant)).rejects.toBeInstanceOf(GovernanceBackendError);
    await pair.replica.command("REPLICAOF", "NO", "ONE");
    expect(await eventually(() => worker.settle(grant))).toBe(true);
  });
});
