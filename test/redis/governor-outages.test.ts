import { afterAll, describe, expect, test } from "vitest";
import { GRANTS_KEY, STATE_KEY } from "../../src/backends/redis/script/keys.js";
import { GovernanceBackendError } from "../../src/errors.js";
import type { Grant } from "../../src/ports/governor.js";
import { isRefusal, settleOf } from "../../src/testing/contracts/governor/bench.js";
import { eventually } from "../services/processes.js";
import { type RedisServer, sharedRedis, startRedis } from "../services/redis.js";
import { startTcpProxy } from "../support/tcp-proxy.js";
import { Fleet, type FleetOptions } from "./fleet.js";

const redis = await sharedRedis();
const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const one of open.toReversed()) await one.close();
});

function fleet(options: FleetOptions): Fleet {
  const made = new Fleet(options);
  open.push(made);
  return made;
}

async function ownServer(): Promise<RedisServer> {
  const server = await startRedis();
  open.push({ close: () => server.stop() });
  return server;
}

async function failureOf(asked: Promise<unknown>): Promise<GovernanceBackendError> {
  const error = await asked.then(
    (reply) => new Error(`it was answered: ${JSON.stringify(reply)}`),
    (failed: unknown) => failed,
  );
  expect(error, String(error)).toBeInstanceOf(GovernanceBackendError);
  return error as GovernanceBackendError;
}

/** The machine may be slow, Redis and its deadline are not: the best of a few tries. */
async function fastestMs(ask: () => Promise<unknown>): Promise<number> {
  let best = Infinity;
  for (let n = 0; n < 5; n += 1) {
    const startedAt = performance.now();
    await ask();
    best = Math.min(best, performance.now() - startedAt);
  }
  return best;
}

/** Every key of a database with all that it holds, apart from its time to live. */
async function contentOf(server: Pick<RedisServer, "command">): Promise<Record<string, unknown>> {
  const keys = (await server.command("KEYS", "*")) as string[];
  const content: Record<string, unknown> = {};
  for (const key of keys.toSorted()) content[key] = await server.command("DEBUG", "DIGEST-VALUE", key);
  return content;
}

describe.skipIf(redis === null)("replies that get lost", () => {
  test("the same want again gets the same grant, the same settle again does nothing, and all counts once", async () => {
    const proxy = await startTcpProxy(redis!.port);
    open.push({ close: () => proxy.close() });
    const group = fleet({ sources: { s: { rpm: 600, tpm: 60_000 } }, scheduling: { prefetchMs: 0 } });
    const behind = group.worker({ url: `redis://127.0.0.1:${proxy.port}` });
    const witness = group.worker({ url: redis!.url, timeoutMs: 5_000 });
    await behind.tick({});

    const want = behind.newWant("s", { estTokens: 500 });
    proxy.swallowReplies(true);
    const lost = await failureOf(behind.tick({ wants: [want] }));
    expect(lost).toMatchObject({ reason: "governance_backend_down", scope: group.scope, retryAfterMs: 5_000 });
    proxy.swallowReplies(false);
    proxy.cut();
    await eventually(async () => expect(await witness.inflight("s")).toBe(1));
    const before = await witness.source("s");
    const { grants } = await eventually(() => behind.tick({ wants: [want] }));
    expect(grants).toMatchObject([{ leaseId: want.leaseId, source: "s", startInMs: 0 }]);
    const after = await witness.source("s");
    expect(after).toMatchObject({ inflight: 1, requestsUsed: before.requestsUsed });
    expect(after.tokensUsed).toBeLessThanOrEqual(before.tokensUsed);

    const settle = settleOf(grants[0]!, "failure", { actualTokens: 700 });
    proxy.swallowReplies(true);
    await failureOf(behind.tick({ settles: [settle] }));
    proxy.swallowReplies(false);
    proxy.cut();
    await eventually(async () => expect(await witness.inflight("s")).toBe(0));
    const settled = await witness.source("s");
    expect((await eventually(() => behind.tick({ settles: [settle] }))).applied).toEqual([false]);
    expect((await witness.source("s")).tokensUsed).toBeLessThanOrEqual(settled.tokensUsed);
  });

  test("news is heard again however often the connection is cut, and no cut ends the process", async () => {
    const proxy = await startTcpProxy(redis!.port);
    open.push({ close: () => proxy.close() });
    const group = fleet({ timeoutMs: 5_000 });
    const behind = group.worker({ url: `redis://127.0.0.1:${proxy.port}` });
    const other = group.worker({ url: redis!.url });
    await behind.tick({});
    // Right after a reconnection the client subscribes: that is what a cut must not turn into an end of the process.
    for (let n = 0; n < 60; n += 1) {
      const { accepted } = proxy;
      proxy.cut();
      for (let turn = 0; turn < 200 && proxy.accepted === accepted; turn += 1) await new Promise(setImmediate);
      await new Promise((resolve) => setTimeout(resolve, n % 10));
    }
    await eventually(async () => {
      await other.settle(await other.granted("a"), "dead", { retryAfterMs: 1 });
      expect(behind.events).toContainEqual(expect.objectContaining({ type: "state", source: "a" }));
    });
  });

  test("connections that are cut all the time: every permit is charged once", async () => {
    const proxy = await startTcpProxy(redis!.port);
    open.push({ close: () => proxy.close() });
    const group = fleet({ sources: { s: { rpm: 6_000, strict: false } }, scheduling: { pacer: false, prefetchMs: 0 } });
    const behind = group.worker({ url: `redis://127.0.0.1:${proxy.port}` });
    const witness = group.worker({ url: redis!.url, timeoutMs: 5_000 });
    const seen: Grant[] = [];
    for (let n = 0; n < 60; n += 1) {
      const want = behind.newWant("s");
      if (n % 3 === 2) setImmediate(() => proxy.cut());
      const { grants } = await eventually(() => behind.tick({ wants: [want] }));
      seen.push(...grants);
    }
    expect(await witness.inflight("s")).toBe(seen.length);
    expect(new Set(seen.map(({ leaseId }) => leaseId)).size).toBe(seen.length);
    for (const grant of seen) await eventually(() => behind.settle(grant));
    expect(await witness.inflight("s")).toBe(0);
  });
});

describe.skipIf(redis === null)("a server with troubles", () => {
  test("the script is flushed between any two ticks: nobody notices", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, timeoutMs: 5_000 });
    const worker = group.worker();
    for (let n = 0; n < 10; n += 1) {
      const grant = await worker.granted("a");
      await server.command("SCRIPT", "FLUSH");
      expect(await worker.settle(grant)).toBe(true);
      await server.command("SCRIPT", "FLUSH");
      expect((await worker.governor.snapshot()).sources[0]?.inflight).toBe(0);
    }
  });

  test("killed: a typed error at once; back and empty: used again within a second, and nothing old takes effect", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, sources: { s: { maxConcurrency: 1 } }, breaker: { failThreshold: 1 } });
    const [a, b] = [group.worker(), group.worker()];
    await eventually(() => b.tick({}));
    const probing = await eventually(() => a.granted("s"));
    await server.kill();
    expect(await fastestMs(() => failureOf(a.want("s")))).toBeLessThan(300);
    await failureOf(a.settle(probing, "failure"));
    await failureOf(Promise.resolve(b.governor.snapshot()));
    await failureOf(b.governor.progressAgeMs());
    await server.start();
    await eventually(() => a.tick({}), 1_000);
    const fresh = await eventually(() => b.granted("s"), 1_000);
    // Of before the restart: neither breaker nor permits hear of it.
    expect(await a.settle(probing, "dead")).toBe(false);
    expect(await a.renew(probing)).toEqual([false]);
    expect(await b.source("s")).toMatchObject({ state: "closed", inflight: 1 });
    expect(await b.settle(fresh)).toBe(true);
    expect(await b.inflight("s")).toBe(0);
  });

  test("an epoch of before a restart never comes back", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, timeoutMs: 5_000 });
    const worker = group.worker();
    const epochs: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      await worker.settle(await eventually(() => worker.granted("a")), "dead", { retryAfterMs: 1 });
      const { epoch } = await worker.source("a");
      const probe = await eventually(() => worker.granted("a"));
      expect(probe).toMatchObject({ probe: true, epoch });
      epochs.push(epoch);
      await server.restart();
    }
    expect(new Set(epochs).size).toBe(3);
    expect(epochs.toSorted((x, y) => x - y)).toEqual(epochs);
  });

  test("stopped: a typed error by the deadline; what was granted too late goes back by its id", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, sources: { s: { maxConcurrency: 2 } } });
    const worker = group.worker();
    await eventually(() => worker.tick({}));
    server.pause();
    const want = worker.newWant("s");
    const startedAt = performance.now();
    await failureOf(worker.tick({ wants: [want] }));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(240);
    expect(await fastestMs(() => failureOf(worker.want("s")))).toBeLessThan(300);
    server.resume();
    await eventually(async () => expect(await worker.inflight("s")).toBeGreaterThan(0));
    const facts = { source: "s", epoch: 0, probe: false, windowId: null, reservedTokens: 0, actualTokens: null };
    const release = { ...facts, sent: false, outcome: "cancelled" as const, durationMs: 0 };
    // Whoever never saw the grant knows but the id.
    const ids = Array.from({ length: 6 }, (_, n) => `${worker.name}-${n + 1}`);
    await eventually(() => worker.tick({ settles: ids.map((leaseId) => ({ leaseId, ...release })) }));
    expect(await worker.inflight("s")).toBe(0);
  });

  test("out of memory: no new permit, nothing half written; what ends still ends; then it goes on", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, timeoutMs: 5_000, sources: { s: { rpm: 60, tpm: 6_000 } } });
    const worker = group.worker();
    const [first, second] = [await worker.granted("s"), await worker.granted("s")];
    const before = await contentOf(server);
    await server.command("CONFIG", "SET", "maxmemory", 1);
    const error = await failureOf(worker.want("s"));
    expect(error.message).toContain("maxmemory");
    expect(await contentOf(server)).toEqual(before);
    expect(await worker.renew(first, second)).toEqual([true, true]);
    expect(await worker.settle(first, "success", { actualTokens: 10 })).toBe(true);
    expect(await worker.settle(first, "success", { actualTokens: 10 })).toBe(false);
    expect(await worker.inflight("s")).toBe(1);
    await failureOf(worker.want("s"));
    await server.command("CONFIG", "SET", "maxmemory", 0);
    await worker.granted("s");
    expect(await worker.inflight("s")).toBe(2);
  });

  test("read-only, without replicas: a typed error, and nothing is written", async () => {
    const server = await ownServer();
    const group = fleet({ url: server.url, timeoutMs: 5_000 });
    const worker = group.worker();
    const grant = await worker.granted("a");
    const before = await contentOf(server);
    await server.command("CONFIG", "SET", "min-replicas-to-write", 1);
    expect((await failureOf(worker.want("a"))).message).toContain("min-replicas-to-write");
    await failureOf(worker.settle(grant));
    await server.command("CONFIG", "SET", "min-replicas-to-write", 0);
    await server.command("REPLICAOF", "127.0.0.1", 1);
    await failureOf(worker.want("a"));
    await failureOf(worker.settle(grant));
    expect(await contentOf(server)).toEqual(before);
    await server.command("REPLICAOF", "NO", "ONE");
    expect(await eventually(() => worker.settle(grant))).toBe(true);
    await eventually(() => worker.granted("a"));
  });

  test("emptied under load: old ends are no-ops, nothing is negative, and every key has a time to live", async () => {
    const server = await ownServer();
    const group = fleet({
      url: server.url,
      timeoutMs: 5_000,
      sources: { s: { maxConcurrency: 8, rpm: 6_000 }, t: {} },
    });
    const workers = [group.worker(), group.worker()];
    const live: Grant[] = [];
    for (let n = 0; n < 120; n += 1) {
      const worker = workers[n % 2]!;
      const answer = await worker.want(["s", "t"], { promptTokens: 50, retry: n % 5 === 0 });
      if (!isRefusal(answer)) live.push(answer);
      if (n % 50 === 49) await server.flush();
      const outcome = (["success", "failure", "alive", "cancelled"] as const)[n % 4]!;
      if (live.length > 4) await worker.settle(live.shift()!, outcome, { inTokens: 60, outTokens: 10 });
      const { sources, budgets } = await worker.governor.snapshot();
      const counted = sources.flatMap(({ inflight, requestsUsed, tokensUsed }) => [inflight, requestsUsed, tokensUsed]);
      expect(Math.min(...counted, ...Object.values(budgets!))).toBeGreaterThanOrEqual(0);
    }
    // Which of them was chosen last is a draw: a permit of each stands there.
    for (const source of ["s", "t"]) await workers[0]!.granted(source);
    const keys = (await server.command("KEYS", "*")) as string[];
    expect(keys.toSorted()).toEqual(
      ["est", GRANTS_KEY, "l", "l:s", "l:t", STATE_KEY, "w"].map((name) => group.key(name)),
    );
    for (const key of keys) {
      expect(Number(await server.command("PTTL", key)), key).toBeGreaterThan(0);
      await server.command("PERSIST", key);
    }
    // One that somebody took the time to live from gets it back.
    for (const source of ["s", "t"]) {
      await workers[0]!.settle(await workers[0]!.granted(source, { promptTokens: 50 }), "success", {
        inTokens: 60,
        outTokens: 10,
      });
    }
    for (const key of (await server.command("KEYS", "*")) as string[]) {
      expect(Number(await server.command("PTTL", key)), key).toBeGreaterThan(0);
    }
  });
});
