import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import type { GatewayClient, Recorder } from "../src/index.js";
import { seededStream } from "../src/testing/seeded-random.js";
import { until } from "./support/calls.js";
import { caseClient, sourceOf } from "./support/case-client.js";
import { chatBody, sendJson } from "./support/recording-server.js";

/** Fault F69 of the reference, over real connections. */

const SEED = 69;
const AT_ONCE = 250;
const PLACES = 100;
const MEGABYTE = 1_048_576;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

interface Finals {
  answered: number;
  cancelled: number;
  others: number;
}

/** Counts calls by how their last row says they ended, and keeps nothing else. */
function countingRecorder(): { readonly recorder: Recorder; readonly finals: Finals } {
  const finals: Finals = { answered: 0, cancelled: 0, others: 0 };
  const recorder: Recorder = {
    name: "counting",
    open: () => undefined,
    record: ({ final, outcome }) => {
      if (!final) return undefined;
      if (outcome === "success") finals.answered += 1;
      else if (outcome === "cancelled") finals.cancelled += 1;
      else finals.others += 1;
      return undefined;
    },
    flush: () => Promise.resolve(),
    close: () => Promise.resolve(),
    stats: () => ({ written: 0, queued: 0, dropped: 0 }),
  };
  return { recorder, finals };
}

async function startSlowServer() {
  const random = seededStream(SEED, 1);
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => setTimeout(() => sendJson(response, 200, chatBody("a")), random() % 12));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  return { server, sockets, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

/** Every second call is cancelled: before it is sent, while it waits, while it is answered, or just too late. */
async function storm(client: GatewayClient, calls: number): Promise<{ answered: number; cancelled: number }> {
  const random = seededStream(SEED, 2);
  const ends = { answered: 0, cancelled: 0 };
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < calls) {
      next += 1;
      const leaving = new AbortController();
      const reason = new Error("changed my mind");
      const timer = random() % 2 === 0 ? setTimeout(() => leaving.abort(reason), random() % 20) : undefined;
      try {
        await client.chat({ messages: [{ role: "user", content: "hi" }], signal: leaving.signal });
        ends.answered += 1;
      } catch (error) {
        expect(error).toBe(reason);
        ends.cancelled += 1;
      }
      clearTimeout(timer);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  return ends;
}

function heapBytes(): number {
  for (let round = 0; round < 3; round += 1) collectGarbage();
  return process.memoryUsage().heapUsed;
}

it("F69 ten thousand calls, half of them cancelled at any point, leave no permit, no connection and no memory", async () => {
  const { server, sockets, baseUrl } = await startSlowServer();
  const { recorder, finals } = countingRecorder();
  const { client } = caseClient([sourceOf("s_1", baseUrl, { maxConcurrency: PLACES })], { telemetry: recorder });
  await storm(client, 2_000);
  const baseBytes = heapBytes();
  const before = { ...finals };

  const ends = await storm(client, 10_000);
  expect(ends.cancelled).toBeGreaterThan(1_000);
  expect(ends.answered + ends.cancelled).toBe(10_000);
  expect(finals.answered - before.answered).toBe(ends.answered);
  expect(finals.cancelled - before.cancelled).toBe(ends.cancelled);
  expect(finals.others).toBe(0);
  const snapshot = await client.snapshot();
  expect(snapshot).toMatchObject({ sources: [{ inflight: 0 }], waiting: { count: 0 } });
  expect(client.leases()).toEqual({ live: 0, lost: 0 });
  // A cancelled exchange closes its connection; the server hears of it a moment later.
  await until(() => sockets.size <= PLACES);
  expect(heapBytes()).toBeLessThan(1.05 * baseBytes + MEGABYTE);

  await client.close();
  await until(() => sockets.size === 0);
  await new Promise((resolve) => server.close(resolve));
});
