import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { MemoryGovernor } from "../../src/backends/memory/governor.js";
import { RedisGovernor, type RedisGovernorOptions } from "../../src/backends/redis/governor.js";
import type { GatewayOptions, SourceOptions } from "../../src/config/options.js";
import { AllSourcesExhausted, GovernanceBackendError } from "../../src/errors.js";
import { GatewayClient } from "../../src/gateway.js";
import { judgeLimits, type SimulatedProvider, startSimulatedProvider } from "../../src/testing/index.js";
import { createMemoryRecorder } from "../../src/testing/memory-recorder.js";
import { eventually } from "../services/processes.js";
import { type RedisServer, sharedRedis, startRedis } from "../services/redis.js";

/** The public client with a governor that it is given, over real HTTP and a Redis of the test's own. */
const redis = await sharedRedis();
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
});

const HI = { messages: [{ role: "user" as const, content: "say hello to the fleet" }] };
const NO_WAIT = { backpressure: { backendGraceMs: 0 } };

let scopes = 0;

async function provider(options: Parameters<typeof startSimulatedProvider>[0] = {}): Promise<SimulatedProvider> {
  const started = await startSimulatedProvider({ seed: 1, ...options });
  open.push(() => started.stop());
  return started;
}

async function ownServer(): Promise<RedisServer> {
  const server = await startRedis();
  open.push(() => server.stop());
  return server;
}

interface Setup {
  readonly sources: Readonly<Record<string, SimulatedProvider>>;
  readonly limits?: Partial<SourceOptions>;
  readonly client?: Partial<GatewayOptions>;
  readonly governor?: Partial<RedisGovernorOptions>;
}

/** Processes of one scope; `next` is one more of them. */
function fleetOn(url: string, { sources, limits, client, governor }: Setup) {
  scopes += 1;
  const scope = `CLIENT${process.pid}x${scopes}`;
  const options: GatewayOptions = {
    scope,
    sources: Object.entries(sources).map(([name, { baseUrl }]) => ({
      name,
      baseUrl,
      apiKey: "sk-fleet-0123456789",
      model: "sim-model",
      ...limits,
    })),
    ...client,
  };
  return {
    scope,
    next() {
      const recorder = createMemoryRecorder();
      // Every default is filled in by a client; a governor is given what that client has.
      const { governor: model } = new GatewayClient(options);
      const { sources: configs, global } = model as MemoryGovernor;
      const { breaker, scheduling, leaseTtlMs } = options;
      const shared = new RedisGovernor({
        scope,
        sources: configs,
        global,
        url,
        ...(breaker === undefined ? {} : { breaker }),
        ...(scheduling === undefined ? {} : { scheduling }),
        ...(leaseTtlMs === undefined ? {} : { leaseTtlMs }),
        ...governor,
      });
      const made = new GatewayClient({ ...options, governor: shared, telemetry: recorder });
      open.push(() => shared.close());
      open.push(() => made.close());
      return { client: made, recorder, governor: shared };
    },
  };
}

/** A machine under load may need more than the deadline of a real one. */
const PATIENT = { timeoutMs: 5_000 };

async function scriptsRun(server: RedisServer): Promise<number> {
  const info = String(await server.command("INFO", "commandstats"));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
}

async function expectNothingHeld(governor: RedisGovernor): Promise<void> {
  await eventually(async () => {
    const { sources, budgets } = await governor.snapshot();
    expect(sources.map(({ inflight, probeInFlight }) => [inflight, probeInFlight])).toEqual(
      sources.map(() => [0, false]),
    );
    expect(budgets?.retriesInFlight).toBe(0);
  });
}

describe.skipIf(redis === null)("a client with a governor on Redis", () => {
  test("chat and stream are answered, and booked once each", async () => {
    const upstream = await provider({ latency: { ttftMedianMs: 5 } });
    const { client, recorder, governor } = fleetOn(redis!.url, { sources: { a: upstream }, governor: PATIENT }).next();
    const answer = await client.chat(HI);
    expect(answer.content.length).toBeGreaterThan(0);
    const stream = client.stream(HI);
    let text = "";
    for await (const event of stream) if (event.type === "text-delta") text += event.text;
    expect(text).toBe((await stream.final).content);
    expect(text).toBe(answer.content);
    expect(recorder.rows.filter((row) => row.final)).toHaveLength(2);
    expect(upstream.stats().arrived).toBe(2);
    expect(await governor.progressAgeMs()).toBeLessThan(10_000);
    await expectNothingHeld(governor);
  });

  test("no text of one call, however broken, fails the others of its tick", async () => {
    const upstream = await provider({ latency: { ttftMedianMs: 5 } });
    const limits = { model: "sim-\udc00", maxConcurrency: 2 };
    const { client, governor } = fleetOn(redis!.url, { sources: { a: upstream }, limits, governor: PATIENT }).next();
    const tags = ["\ud800", "great 😀".slice(0, 7), "\\ud800", "\\\ud800", "😀", "\u0000", '"\\'];
    const answers = await Promise.all(tags.map((tag) => client.chat({ ...HI, tag })));
    expect(answers).toHaveLength(tags.length);
    for (const priority of [Infinity, -Infinity, Number.NaN]) {
      await expect(client.chat({ ...HI, priority })).rejects.toThrow("priority must be a finite number");
    }
    await expectNothingHeld(governor);
  });

  test("an uncontended admission is one script, and a call no more than two", async () => {
    const server = await ownServer();
    const upstream = await provider();
    const { client } = fleetOn(server.url, { sources: { a: upstream }, governor: PATIENT }).next();
    await client.chat({ ...HI, stream: false });
    for (let n = 0; n < 5; n += 1) {
      const before = await scriptsRun(server);
      await client.chat({ ...HI, stream: false });
      // The end of the attempt is booked behind the answer's back.
      await eventually(async () => expect((await scriptsRun(server)) - before).toBe(2));
    }
    const many = await scriptsRun(server);
    await Promise.all(Array.from({ length: 100 }, () => client.chat({ ...HI, stream: false })));
    await eventually(async () => expect((await client.snapshot()).leases.live).toBe(0));
    expect(((await scriptsRun(server)) - many) / 100).toBeLessThanOrEqual(2.2);
  });

  test("a broken source is left by the whole fleet, once it has tripped for one", async () => {
    const [broken, healthy] = [await provider({ name: "broken" }), await provider({ name: "healthy" })];
    await broken.setOutage("503");
    const fleet = fleetOn(redis!.url, {
      sources: { broken, healthy },
      client: { breaker: { failThreshold: 2, cooldownMs: 60_000, cooldownMaxMs: 60_000 }, selector: "round_robin" },
      governor: { ...PATIENT, selector: "round_robin" },
    });
    const [one, other] = [fleet.next(), fleet.next()];
    for (let n = 0; n < 8; n += 1) await one.client.chat(HI);
    const { arrived } = broken.stats();
    expect(arrived).toBeGreaterThanOrEqual(2);
    for (let n = 0; n < 8; n += 1) await other.client.chat(HI);
    expect(broken.stats().arrived).toBe(arrived);
    expect((await other.governor.snapshot()).sources.map(({ state }) => state)).toEqual(["open", "closed"]);
    await expectNothingHeld(one.governor);
  });

  test("two processes under one limit: no permit too many at the provider, and every call is served", async () => {
    const upstream = await provider({ latency: { ttftMedianMs: 20 } });
    const limits = { maxConcurrency: 4 };
    const fleet = fleetOn(redis!.url, { sources: { a: upstream }, limits, governor: PATIENT });
    const [one, other] = [fleet.next(), fleet.next()];
    await Promise.all(Array.from({ length: 80 }, (_, n) => (n % 2 === 0 ? one : other).client.chat(HI)));
    expect(judgeLimits(upstream.ledger(), limits).violations).toEqual([]);
    expect(upstream.stats().arrived).toBe(80);
    await expectNothingHeld(one.governor);
  });

  test("cancelled calls and calls past their deadline give everything back", async () => {
    const upstream = await provider({ latency: { ttftMedianMs: 3_000 } });
    const { client, governor } = fleetOn(redis!.url, {
      sources: { a: upstream },
      limits: { maxConcurrency: 2 },
      governor: PATIENT,
    }).next();
    const stop = new AbortController();
    const calls = Array.from({ length: 6 }, () => client.chat({ ...HI, signal: stop.signal }));
    const late = Array.from({ length: 2 }, () => client.chat({ ...HI, deadlineMs: 300 }));
    const ends = Promise.allSettled([...calls, ...late]);
    await sleep(400);
    stop.abort(new Error("enough"));
    for (const end of await ends) expect(end.status).toBe("rejected");
    await expectNothingHeld(governor);
    expect(await client.snapshot()).toMatchObject({ leases: { live: 0 }, waiting: { count: 0 } });
  });
});

describe.skipIf(redis === null)("Redis goes away", () => {
  test("without patience: a typed error to try again later; with Redis back, the next call is served", async () => {
    const server = await ownServer();
    const upstream = await provider();
    const { client } = fleetOn(server.url, { sources: { a: upstream }, client: NO_WAIT }).next();
    await eventually(() => client.chat(HI));
    const { arrived } = upstream.stats();
    await server.kill();
    for (let n = 0; n < 5; n += 1) {
      const failure = await client.chat(HI).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(GovernanceBackendError);
      expect(failure).toMatchObject({ reason: "governance_backend_down", retryAfterMs: 5_000, perSourceReasons: {} });
      expect(failure).not.toBeInstanceOf(AllSourcesExhausted);
    }
    expect(upstream.stats().arrived).toBe(arrived);
    await server.start();
    await eventually(() => client.chat(HI), 2_000);
    await eventually(async () => expect((await client.snapshot()).leases.live).toBe(0));
  });

  test("with patience: calls that wait and calls that run while it is away are all answered", async () => {
    const server = await ownServer();
    const upstream = await provider({ latency: { ttftMedianMs: 200, ttftSigma: 0 } });
    const fleet = fleetOn(server.url, {
      sources: { a: upstream },
      limits: { maxConcurrency: 4 },
      client: { backpressure: { backendGraceMs: 30_000 } },
    });
    const { client, governor, recorder } = fleet.next();
    await eventually(() => client.chat(HI));
    const calls = Array.from({ length: 40 }, () => client.chat(HI));
    const answers = Promise.all(calls);
    await sleep(300);
    await server.kill();
    await sleep(700);
    await server.start();
    for (const { content } of await answers) expect(content.length).toBeGreaterThan(0);
    expect(recorder.rows.filter((row) => row.final).length).toBeGreaterThanOrEqual(41);
    await expectNothingHeld(governor);
    expect(await client.snapshot()).toMatchObject({ waiting: { count: 0 } });
  });

  test("a call that waited for a place and then for Redis says both, with their lengths", async () => {
    const server = await ownServer();
    const upstream = await provider({ latency: { ttftMedianMs: 600, ttftSigma: 0 } });
    const { client, recorder } = fleetOn(server.url, {
      sources: { a: upstream },
      limits: { maxConcurrency: 1 },
      client: { backpressure: { backendGraceMs: 30_000 } },
    }).next();
    await eventually(() => client.chat(HI));
    const calls = Promise.all([client.chat(HI), client.chat(HI)]);
    await sleep(300);
    await server.kill();
    await sleep(1_000);
    await server.start();
    await calls;
    const last = recorder.rows.findLast((row) => row.final);
    const route = JSON.parse(last?.route ?? "[]") as { source: string; reason: string; waitMs: number }[];
    const waits = route.filter(({ source }) => source === "*");
    expect(waits.map(({ reason }) => reason)).toEqual(["concurrency", "backend"]);
    for (const { waitMs } of waits) expect(waitMs).toBeGreaterThan(0);
    expect(waits.reduce((sum, { waitMs }) => sum + waitMs, 0)).toBeGreaterThanOrEqual(last?.waitedMs ?? Infinity);
  });

  test("it stops in the middle of an attempt: the answer is not lost, and its permit comes back", async () => {
    const server = await ownServer();
    const upstream = await provider({ latency: { ttftMedianMs: 300, ttftSigma: 0 } });
    const { client, governor } = fleetOn(server.url, { sources: { a: upstream }, client: NO_WAIT }).next();
    await eventually(() => client.chat(HI));
    const call = client.chat(HI);
    await eventually(async () => expect((await governor.snapshot()).sources[0]?.inflight).toBe(1));
    server.pause();
    expect((await call).content.length).toBeGreaterThan(0);
    server.resume();
    await expectNothingHeld(governor);
  });
});
