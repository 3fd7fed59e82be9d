import { afterAll, describe, expect, test } from "vitest";
import { RedisGovernor } from "../../src/backends/redis/governor.js";
import type { GatewayOptions } from "../../src/config/options.js";
import { GovernanceBackendError } from "../../src/errors.js";
import { GatewayClient } from "../../src/gateway.js";
import { startSimulatedProvider } from "../../src/testing/index.js";
import { eventually } from "../services/processes.js";
import { sharedRedis } from "../services/redis.js";

/** Closing a governor, or the last client of one, leaves no permit behind, whoever is still at work. */

const redis = await sharedRedis();
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
});

const HI = { messages: [{ role: "user" as const, content: "say hello" }] };
let scopes = 0;

async function setting(more: Partial<GatewayOptions> = {}) {
  const provider = await startSimulatedProvider({ seed: 1, latency: { ttftMedianMs: 60_000 } });
  open.push(() => provider.stop());
  scopes += 1;
  const scope = `CLOSING${process.pid}x${scopes}`;
  const url = redis?.url ?? "";
  const source = { baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model", maxConcurrency: 2 };
  const options: GatewayOptions = { scope, sources: [{ name: "s", ...source }], ...more };
  const governor = new RedisGovernor({ scope, url, timeoutMs: 5_000 });
  const client = new GatewayClient({ ...options, governor });
  const witness = new GatewayClient({ ...options, governor: new RedisGovernor({ scope, url, timeoutMs: 5_000 }) });
  open.push(
    () => witness.close(),
    () => witness.governor.close(),
  );
  const inflight = async () => (await witness.snapshot()).sources[0]?.inflight;
  return { provider, governor, client, inflight };
}

describe.skipIf(redis === null)("closing", () => {
  test("waits for the calls that are under way, and their permits are back with it", async () => {
    const { provider, governor, client, inflight } = await setting();
    // Both may end in the same moment: neither's end waits unheard for the other's.
    const ends = Promise.all([client.chat(HI), client.chat(HI)].map((call) => call.catch((error: unknown) => error)));
    await eventually(async () => expect(await inflight()).toBe(2));
    let isClosed = false;
    const closed = governor.close().then(() => (isClosed = true));
    await expect(client.chat(HI)).rejects.toThrow("the governor is closed");
    expect([isClosed, await inflight()]).toEqual([false, 2]);
    provider.change({ latency: {} });
    await provider.setOutage("refuse");
    await provider.setOutage("off");
    // Cut off, they would be sent again: for that there is no permit any more.
    for (const end of await ends) expect(end).toSatisfy(GovernanceBackendError.isInstance);
    await closed;
    expect(await inflight()).toBe(0);
    await client.close();
  });

  test("lets a call that is answered end well", async () => {
    const { provider, governor, client, inflight } = await setting();
    provider.change({ latency: { ttftMedianMs: 300 } });
    const call = client.chat(HI);
    // Sent: the permit that Redis gave may still be on its way, and would go back unused.
    await eventually(async () => expect(provider.ledger()).toHaveLength(1));
    await governor.close();
    expect((await call).content).not.toBe("");
    expect(await inflight()).toBe(0);
  });

  test("ends at once what waits for a permit, however long it could wait", async () => {
    const { provider, governor, client, inflight } = await setting({ backpressure: { backendGraceMs: 60_000 } });
    const calls = Array.from({ length: 4 }, () => client.chat(HI));
    for (const call of calls) call.catch(() => {});
    await eventually(async () => expect(await inflight()).toBe(2));
    const closed = governor.close();
    const outcomes = await Promise.all(calls.slice(2).map((call) => call.catch((error: unknown) => error)));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ isLasting: true });
    await provider.setOutage("refuse");
    await closed;
    expect(await inflight()).toBe(0);
    await Promise.allSettled(calls);
  });

  test("of a client gives its permits back, with calls that ended and with calls that were left", async () => {
    const { client, governor, inflight } = await setting();
    const abort = new AbortController();
    const left = client.chat({ ...HI, signal: abort.signal });
    left.catch(() => {});
    await eventually(async () => expect(await inflight()).toBe(1));
    const closed = client.close();
    abort.abort(new Error("left"));
    await closed;
    expect(await inflight()).toBe(0);
    await governor.close();
  });

  test("two at once are one, and one without calls is done soon", async () => {
    const { governor } = await setting();
    const [first, second] = [governor.close(), governor.close()];
    expect(first).toBe(second);
    await first;
  });
});
