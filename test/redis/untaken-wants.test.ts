import { afterAll, describe, expect, test } from "vitest";
import { RedisGovernor } from "../../src/backends/redis/governor.js";
import { RequestRejectedError } from "../../src/errors.js";
import { GatewayClient } from "../../src/gateway.js";
import type { TickBatch, Want } from "../../src/ports/governor.js";
import { startSimulatedProvider } from "../../src/testing/index.js";
import { eventually } from "../services/processes.js";
import { sharedRedis } from "../services/redis.js";
import { Fleet } from "./fleet.js";

/** What the script on Redis can't take of one call is that call's own trouble, whatever else its tick carries. */

const redis = await sharedRedis();
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
});

let deep: unknown = 1;
for (let level = 0; level < 2_000; level += 1) deep = [deep];

const POISONS: readonly (readonly [name: string, want: Partial<Record<keyof Want, unknown>>])[] = [
  ["no number", { estTokens: Number.NaN }],
  ["a text for a number", { estTokens: "many", promptTokens: "many" }],
  ["a list for a text", { tag: ["a"] }],
  ["what JSON has no form for", { tag: 1n }],
  ["what is nested deeper than the server reads", { tag: deep }],
];

/** A governor that asks for something else than its client meant, for calls of one tag. */
class Spoiling extends RedisGovernor {
  poison: Partial<Record<keyof Want, unknown>> = {};

  override tick(batch: TickBatch) {
    const wants = batch.wants.map((want) => (want.tag === "guilty" ? ({ ...want, ...this.poison } as Want) : want));
    return super.tick({ ...batch, wants });
  }
}

describe.skipIf(redis === null)("a want that the script can't take", () => {
  test.each(POISONS)("fails alone, with the calls beside it answered: %s", async (name, poison) => {
    const provider = await startSimulatedProvider({ seed: 1 });
    open.push(() => provider.stop());
    const scope = `UNTAKEN${process.pid}x${POISONS.findIndex(([known]) => known === name)}`;
    const governor = new Spoiling({ scope, url: redis?.url ?? "", timeoutMs: 5_000 });
    governor.poison = poison;
    const sources = [{ name: "s", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model", tpm: 1_000_000 }];
    const client = new GatewayClient({ scope, sources, governor, backpressure: { backendGraceMs: 30_000 } });
    open.push(
      () => governor.close(),
      () => client.close(),
    );
    const ask = (tag: string) =>
      client.chat({ messages: [{ role: "user", content: "hi" }], stream: false, tag }).then(
        ({ content }) => (content === "" ? "nothing" : "answered"),
        (error: unknown) => error,
      );
    // The first goes alone; the others wait behind it and go together.
    const tags = ["plain", "plain", "guilty", "plain", "plain", "guilty", "plain"];
    const ends = await Promise.all(tags.map(ask));
    for (const [at, end] of ends.entries()) {
      if (tags[at] === "plain") expect(end).toBe("answered");
      else {
        expect(end).toBeInstanceOf(RequestRejectedError);
        expect((end as Error).message).toMatch(/the limits in Redis can't be asked about this call/);
      }
    }
    // Ends that come with such a want are booked.
    const later = await Promise.all(["plain", "guilty", "plain"].map(ask));
    expect([later[0], later[2]]).toEqual(["answered", "answered"]);
    await eventually(async () => expect((await client.snapshot()).sources[0]?.inflight).toBe(0));
  });

  test("asked for by itself is told the same, and harms nobody after it", async () => {
    const fleet = new Fleet({ url: redis?.url ?? "", timeoutMs: 5_000 });
    open.push(() => fleet.close());
    const worker = fleet.worker();
    await worker.granted("a");
    const failed = await worker.tick({ wants: [worker.newWant("a", { estTokens: Number.NaN })] }).catch((e) => e);
    expect(failed).toBeInstanceOf(RequestRejectedError);
    await worker.granted("a");
  });
});
