import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { GovernanceBackendError } from "../../src/errors.js";
import type { Grant } from "../../src/ports/governor.js";
import { isRefusal } from "../../src/testing/contracts/governor/bench.js";
import { eventually } from "../services/processes.js";
import { type RedisOptions, type RedisServer, sharedRedis, startRedis } from "../services/redis.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import type { Worker } from "./fleet.js";
import { Fleet, type FleetOptions } from "./fleet.js";

/** The governor on a server that answers with its troubles, or late: faults of the catalogue by their ids. */

const isHere = (await sharedRedis()) !== null;
const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const one of open.toReversed()) await one.close();
});

async function ownServer(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options);
  open.push({ close: () => server.stop() });
  return server;
}

function fleet(options: FleetOptions): Fleet {
  const made = new Fleet(options);
  open.push(made);
  return made;
}

async function failureOf(asked: Promise<unknown>): Promise<GovernanceBackendError> {
  const error = await asked.then(
    (reply) => new Error(`it was answered: ${JSON.stringify(reply)}`),
    (failed: unknown) => failed,
  );
  expect(error, String(error)).toBeInstanceOf(GovernanceBackendError);
  return error as GovernanceBackendError;
}

/** Whatever was granted without anybody hearing of it goes back by its id, or ends by itself. */
async function expectNothingHeld(worker: Worker, source: string): Promise<void> {
  await eventually(async () => expect(await worker.inflight(source)).toBe(0), 10_000);
}

describe.skipIf(!isHere)("a server in trouble", () => {
  test("F40 a script of somebody else that never ends: a typed error by the deadline, and none once it is killed", async () => {
    const server = await ownServer({ config: { "busy-reply-threshold": 50 } });
    const group = fleet({ url: server.url, sources: { s: { maxConcurrency: 2 } }, leaseTtlMs: 1_000 });
    const worker = group.worker();
    const held = await eventually(() => worker.granted("s"));
    const endless = server.command("EVAL", "while true do end", 0).catch((error: unknown) => String(error));
    await eventually(async () => expect(await server.command("PING").catch(String)).toContain("BUSY"));
    const texts = new Set<string>();
    for (let n = 0; n < 5; n += 1) texts.add((await failureOf(worker.want("s"))).message);
    await failureOf(worker.settle(held));
    await failureOf(Promise.resolve(worker.governor.snapshot()));
    expect([...texts].join("\n")).toMatch(/BUSY|did not answer|no answer|timed out/i);
    await server.command("SCRIPT", "KILL");
    expect(await endless).toContain("Script killed");
    await eventually(() => worker.tick({}));
    // Settled by its id, or ended: either way it is gone, and so is what the late asks were given.
    await eventually(() => worker.settle(held).catch(() => {}));
    await expectNothingHeld(worker, "s");
    const grants = [await worker.granted("s"), await worker.granted("s")];
    await worker.refused("s");
    for (const grant of grants) expect(await worker.settle(grant)).toBe(true);
  });

  test("F32 writes are paused: a typed error by the deadline; what ran late ends by itself", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, sources: { s: { maxConcurrency: 2 } }, leaseTtlMs: 500 });
    const worker = group.worker();
    await eventually(() => worker.tick({}));
    await server.command("CLIENT", "PAUSE", 1_200, "WRITE");
    for (let n = 0; n < 3; n += 1) await failureOf(worker.want("s"));
    await eventually(() => worker.tick({}), 5_000);
    await expectNothingHeld(worker, "s");
    const { requestsUsed } = await worker.source("s");
    expect(requestsUsed).toBeLessThanOrEqual(3);
  });

  test("F34 all clients are killed again and again: each permit counts once, and nearly all asks are answered", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, timeoutMs: 2_000, sources: { s: { rpm: 60_000, strict: false } } });
    const worker = group.worker();
    await eventually(() => worker.tick({}));
    let asked = 0;
    let granted = 0;
    const killer = setInterval(() => void server.command("CLIENT", "KILL", "TYPE", "normal").catch(() => {}), 200);
    const endsAt = performance.now() + 2_000;
    while (performance.now() < endsAt) {
      asked += 1;
      const want = worker.newWant("s");
      const { grants } = await eventually(() => worker.tick({ wants: [want] }));
      granted += grants.length;
      for (const grant of grants) await eventually(() => worker.settle(grant));
    }
    clearInterval(killer);
    expect(granted / asked).toBeGreaterThanOrEqual(0.99);
    await expectNothingHeld(worker, "s");
  });

  test("F39 credentials and rights that end: a typed error with Redis' code, without the password, and no storm", async () => {
    const password = `hunter2-${process.pid}`;
    const server = await ownServer();
    await server.command("ACL", "SETUSER", "fleet", "on", `>${password}`, "~*", "&*", "+@all");
    const url = `redis://fleet:${password}@127.0.0.1:${server.port}`;
    const group = fleet({ url, timeoutMs: 2_000 });
    const worker = group.worker();
    const grant = await eventually(() => worker.granted("a"));
    await server.command("ACL", "SETUSER", "fleet", "-evalsha", "-eval");
    const asked = async (): Promise<number> =>
      Number(/rejected_calls=(\d+)/.exec(String(await server.command("INFO", "commandstats")))?.[1] ?? 0);
    const before = await asked();
    const denied = await failureOf(worker.want("a"));
    expect(denied.message).toContain("NOPERM");
    expect(denied.message).toContain("lacks a right");
    expect((await failureOf(worker.settle(grant))).message).not.toContain(password);
    expect((await asked()) - before).toBeLessThanOrEqual(4);
    await server.command("ACL", "SETUSER", "fleet", "+evalsha", "+eval", "resetkeys", "~other:*");
    expect((await failureOf(worker.want("a"))).message).toMatch(/NOPERM|permissions/);
    await server.command("ACL", "SETUSER", "fleet", "~*", "resetpass", ">another");
    await server.command("CLIENT", "KILL", "USER", "fleet");
    await eventually(async () => expect((await failureOf(worker.want("a"))).message).toMatch(/WRONGPASS|NOAUTH/));
    await server.command("ACL", "SETUSER", "fleet", `>${password}`);
    expect(await eventually(() => worker.settle(grant))).toBe(true);
  });

  test("F39 a server that loads its data, or can't save it: typed errors, and it goes on afterwards", async () => {
    const server = await ownServer({
      config: { "loading-process-events-interval-bytes": 1_024, "enable-protected-configs": "yes" },
    });
    const group = fleet({ url: server.url, timeoutMs: 2_000 });
    const worker = group.worker();
    const grant = await eventually(() => worker.granted("a"));
    await server.command("DEBUG", "POPULATE", 3_000, "filler", 64);
    await server.command("CONFIG", "SET", "key-load-delay", 500);
    const loading = server.command("DEBUG", "RELOAD").catch((error: unknown) => String(error));
    await eventually(async () => expect((await failureOf(worker.want("a"))).message).toContain("LOADING"));
    await server.command("CONFIG", "SET", "key-load-delay", 0).catch(() => {});
    await loading;
    // What Redis had written down is there again, leases too.
    expect(await eventually(() => worker.settle(grant), 10_000)).toBe(true);

    mkdirSync(join(server.folder, "taken.rdb"));
    await server.command("CONFIG", "SET", "dbfilename", "taken.rdb");
    await server.command("CONFIG", "SET", "save", "3600 1");
    await server.command("BGSAVE");
    await eventually(async () => {
      const failure = await failureOf(worker.want("a"));
      expect(failure.message).toContain("MISCONF");
      expect(failure.message).toContain("can't save to its disk");
    });
    await server.command("CONFIG", "SET", "save", "");
    await eventually(() => worker.granted("a"));
  });

  test("F49 a slow way: minutes are the server's, and each permit is booked and corrected once", async () => {
    const server = await ownServer();
    const proxy = await startTcpProxy(server.port);
    open.push({ close: () => proxy.close() });
    const sources = { s: { maxConcurrency: 3, tpm: 60_000, limitRule: "window" as const, estTokens: 500 } };
    const group = fleet({ sources, timeoutMs: 5_000, scheduling: { pacer: false, fairness: false } });
    const far = group.worker({ url: `redis://127.0.0.1:${proxy.port}`, sources });
    const near = group.worker({ url: server.url, sources });
    await far.tick({});
    let turn = 0;
    proxy.delay(() => 20 + ((turn++ * 37) % 80));
    const minuteOf = async () => Math.floor(Number(((await server.command("TIME")) as string[])[0]) / 60);
    for (let n = 0; n < 4; n += 1) {
      const from = await minuteOf();
      const grants = await Promise.all([0, 1, 2].map(() => far.want("s")));
      const until = await minuteOf();
      for (const grant of grants) expect(grant).toMatchObject({ source: "s" });
      for (const { windowId } of grants as { windowId: number }[]) {
        expect(windowId).toBeGreaterThanOrEqual(from);
        expect(windowId).toBeLessThanOrEqual(until);
      }
      await near.refused("s");
      const settled = grants.map((grant) => far.settle(grant as never, "success", { actualTokens: 100 }));
      expect(await Promise.all(settled)).toEqual([true, true, true]);
      expect(await near.inflight("s")).toBe(0);
      if ((await minuteOf()) === from && n === 0) expect((await near.source("s")).tokensUsed).toBe(300);
    }
  });

  test("F36 emptied while greedy processes ask: one window and one set of permits more, at most", async () => {
    const server = await ownServer();
    const limits = { maxConcurrency: 6, rpm: 60, limitRule: "window" } as const;
    const group = fleet({ url: server.url, timeoutMs: 5_000, sources: { s: limits } });
    const workers = [group.worker(), group.worker()];
    // The minute that is counted must not end meanwhile.
    await eventually(
      async () => expect(Number(((await server.command("TIME")) as string[])[0]) % 60).toBeLessThan(50),
      15_000,
    );
    const held: Grant[] = [];
    let granted = 0;
    let mostHeld = 0;
    // Far more than the limits give, without an end that would make room for a third set.
    async function greedy(asks: number): Promise<void> {
      for (let n = 0; n < asks; n += 1) {
        const answer = await workers[n % 2]!.want("s");
        if (!isRefusal(answer)) {
          granted += 1;
          held.push(answer);
        }
        mostHeld = Math.max(mostHeld, held.length);
        if (n % 3 === 2 && held.length > 0) await workers[n % 2]!.settle(held.shift()!);
      }
    }
    await greedy(200);
    expect(granted).toBe(60);
    const lost = [...held];
    await server.flush();
    await greedy(400);
    expect(granted).toBeLessThanOrEqual(2 * 60);
    expect(granted).toBeGreaterThan(60);
    expect(mostHeld).toBeLessThanOrEqual(2 * 6);
    // The permits of before are nobody's: their ends are no-ops, and take none from those who hold one now.
    for (const grant of lost) expect(await workers[0]!.settle(grant)).toBe(false);
    expect(await workers[0]!.inflight("s")).toBe(held.filter((grant) => !lost.includes(grant)).length);
  });
});
