import { getEventListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { ChatEvent, ChatRequest, ChatStream, GatewayClient } from "../src/index.js";
import { type ResponseScript, startSimulatedProvider } from "../src/testing/index.js";
import type { MemoryRecorder } from "../src/testing/memory-recorder.js";
import { call, replyOf, until } from "./support/calls.js";
import { caseClient, sourceOf } from "./support/case-client.js";
import { DONE_EVENT, deltaEvent, startRecordingServer } from "./support/recording-server.js";

/** A consumer that reads slowly, and one that leaves, in every way there is. */

const hi: ChatRequest = { messages: [{ role: "user", content: "hi" }] };
const pause = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs));

describe("a slow consumer", () => {
  const PIECE = "x".repeat(4_000);
  const PIECES = 8_000;

  /** Writes as fast as the socket takes it; `accepted` counts what left. */
  function pour(response: ServerResponse, told: { accepted: number; done: boolean }): void {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const more = (): void => {
      while (told.accepted < PIECES) {
        told.accepted += 1;
        if (!response.write(deltaEvent(PIECE))) {
          response.once("drain", more);
          return;
        }
      }
      told.done = true;
      response.end(`${deltaEvent("", "stop")}${DONE_EVENT}`);
    };
    more();
  }

  async function untilStill(read: () => number): Promise<number> {
    for (;;) {
      const before = read();
      await pause(150);
      if (read() === before) return before;
    }
  }

  it("pauses the socket, and no timer blames the source meanwhile", async () => {
    const told = { accepted: 0, done: false };
    // 32 MB that a client without backpressure would swallow whole, and refuse as too long.
    await using server = await startRecordingServer((response) => pour(response, told));
    const source = { interTokenTimeoutMs: 1_000, ttftTimeoutMs: 2_000, timeoutMs: 2_000 };
    const { client, recorder } = caseClient([sourceOf("s_1", server.baseUrl, source)], { retry: { maxAttempts: 1 } });
    const stream = client.stream(hi);
    const first = await stream.next();
    expect(first.value).toMatchObject({ type: "text-delta" });
    // Far beyond the idle limit and the total of the attempt: waiting for the consumer is nobody's fault.
    await pause(2_500);
    const accepted = await untilStill(() => told.accepted);
    expect(told.done).toBe(false);
    expect(accepted).toBeLessThan(PIECES / 2);
    let read = 1;
    while (read < 2_000) {
      const { done } = await stream.next();
      expect(done).toBe(false);
      read += 1;
    }
    expect(told.accepted).toBeGreaterThan(accepted);
    await stream.return?.();
    await until(() => server.sockets.open === 0);
    expect(recorder.rows.map(({ outcome }) => outcome)).toEqual(["cancelled"]);
    await client.close();
  });

  it("that reads on gets everything, in order and once", async () => {
    await using server = await startRecordingServer((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (let index = 0; index < 3_000; index += 1) response.write(deltaEvent(`${index} `));
      response.end(`${deltaEvent("", "stop")}${DONE_EVENT}`);
    });
    const source = { interTokenTimeoutMs: 200 };
    const { client } = caseClient([sourceOf("s_1", server.baseUrl, source)], { retry: { maxAttempts: 1 } });
    const stream = client.stream(hi);
    const events: ChatEvent[] = [];
    for await (const event of stream) {
      events.push(event);
      if (events.length % 1_000 === 0) await pause(300);
    }
    const text = events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
    expect(text).toBe(Array.from({ length: 3_000 }, (_, index) => `${index} `).join(""));
    expect((await stream.final).content).toBe(text);
    await client.close();
  });
});

/** Some text, then silence on an open socket. */
const talking: ResponseScript = {
  status: 200,
  headers: { "content-type": "text/event-stream" },
  chunks: [{ utf8: deltaEvent("one two three four five") }],
  end: "hang",
};

/** Leaves a stream whose first event has come; resolves when the consumer's side is over. */
interface Leaving {
  readonly leave: (stream: ChatStream, abort: (reason: unknown) => void) => Promise<void>;
  /** What `.final` rejects with. */
  readonly reason: unknown;
}

const left = new Error("the caller has seen enough");
const anAbort = expect.objectContaining({ name: "AbortError" });

const LEAVING: Readonly<Record<string, Leaving>> = {
  break: {
    leave: async (stream) => {
      for await (const _event of stream) break;
    },
    reason: anAbort,
  },
  "an exception in the loop": {
    leave: async (stream) => {
      await expect(
        (async () => {
          for await (const _event of stream) throw left;
        })(),
      ).rejects.toBe(left);
    },
    reason: anAbort,
  },
  "return()": {
    leave: async (stream) => {
      await stream.next();
      expect(await stream.return?.()).toEqual({ done: true, value: undefined });
    },
    reason: anAbort,
  },
  "throw()": {
    leave: async (stream) => {
      await stream.next();
      await expect(stream.throw?.(left)).rejects.toBe(left);
    },
    reason: anAbort,
  },
  "await using": {
    leave: async (stream) => {
      await using used = stream;
      await used.next();
    },
    reason: anAbort,
  },
  "the signal": {
    leave: async (stream, abort) => {
      await stream.next();
      abort(left);
      await expect(stream.next()).rejects.toBe(left);
      expect(await stream.next()).toEqual({ done: true, value: undefined });
    },
    reason: left,
  },
};

async function expectNothingLeft(client: GatewayClient): Promise<void> {
  const { sources, leases, waiting } = await client.snapshot();
  expect(sources[0]).toMatchObject({ inflight: 0, probeInFlight: false, state: "closed" });
  expect([leases.live, leases.lost, waiting.count]).toEqual([0, 0, 0]);
}

function outcomes({ rows }: MemoryRecorder) {
  return rows.map(({ outcome, final, attempt }) => ({ outcome, final, attempt }));
}

describe("a consumer that leaves", () => {
  it.each(Object.entries(LEAVING))("by %s: socket closed, permit back, one row", async (_how, { leave, reason }) => {
    await using provider = await startSimulatedProvider();
    provider.script(talking, "always");
    const { client, recorder } = caseClient([sourceOf("s_1", provider.baseUrl)], { breaker: { failThreshold: 1 } });
    const controller = new AbortController();
    const stream = client.stream({ ...hi, signal: controller.signal });
    await leave(stream, (why) => controller.abort(why));
    await expect(stream.final).rejects.toEqual(reason);
    await until(() => provider.ledger()[0]!.clientClosed);
    expect(provider.stats()).toMatchObject({ arrived: 1, connections: 0 });
    expect(outcomes(recorder)).toEqual([{ outcome: "cancelled", final: true, attempt: 1 }]);
    expect(recorder.rows[0]).toMatchObject({ usageSource: "estimated", response: "one two three four five" });
    expect(recorder.rows[0]!.completionTokens).toBeGreaterThan(0);
    await expectNothingLeft(client);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await client.close();
  });

  it("before the first event came", async () => {
    await using provider = await startSimulatedProvider();
    provider.script({ end: "hang" }, "always");
    const { client, recorder } = caseClient([sourceOf("s_1", provider.baseUrl)]);
    const stream = client.stream(hi);
    const waiting = stream.next();
    await until(() => provider.stats().arrived === 1);
    await stream.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await until(() => provider.ledger()[0]!.clientClosed);
    expect(outcomes(recorder)).toEqual([{ outcome: "cancelled", final: true, attempt: 1 }]);
    await expectNothingLeft(client);
    await client.close();
  });

  it("before anything was sent: a stream that nobody starts costs nothing", async () => {
    await using provider = await startSimulatedProvider();
    const { client, recorder } = caseClient([sourceOf("s_1", provider.baseUrl)]);
    const controller = new AbortController();
    client.stream({ ...hi, signal: controller.signal });
    const returned = client.stream(hi);
    await returned.return?.();
    {
      await using _unused = client.stream(hi);
    }
    const iterator = client.stream(hi)[Symbol.asyncIterator]();
    await iterator.return?.();
    await pause(50);
    expect(provider.stats()).toMatchObject({ arrived: 0, connections: 0 });
    expect(recorder.rows).toEqual([]);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await expectNothingLeft(client);
    await client.close();
  });

  it("after the end: it is a success", async () => {
    await using provider = await startSimulatedProvider({ answer: () => "all of it" });
    const { client, recorder } = caseClient([sourceOf("s_1", provider.baseUrl)]);
    const stream = client.stream(hi);
    for await (const event of stream) if (event.type === "finish") break;
    expect((await stream.final).content).toBe("all of it");
    expect(outcomes(recorder)).toEqual([{ outcome: "success", final: true, attempt: 1 }]);
    await client.close();
  });

  it("while chat() waits: the signal's own reason, the socket closed, one row", async () => {
    await using provider = await startSimulatedProvider();
    provider.script(talking, "always");
    const { client, recorder } = caseClient([sourceOf("s_1", provider.baseUrl)]);
    const controller = new AbortController();
    const called = call(client, "chat", { ...hi, signal: controller.signal });
    await until(() => provider.stats().arrived === 1);
    await pause(30);
    controller.abort(left);
    expect((await called).error).toBe(left);
    await until(() => provider.ledger()[0]!.clientClosed);
    expect(outcomes(recorder)).toEqual([{ outcome: "cancelled", final: true, attempt: 1 }]);
    await expectNothingLeft(client);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await client.close();
  });

  it("leaves the others alone: their streams go on", async () => {
    await using provider = await startSimulatedProvider({ answer: () => "mine", latency: { tokenMs: 5 } });
    const { client } = caseClient([sourceOf("s_1", provider.baseUrl)]);
    const others = Array.from({ length: 5 }, () => call(client, "stream", hi));
    for (let turn = 0; turn < 5; turn += 1) for await (const _event of client.stream(hi)) break;
    for (const other of await Promise.all(others)) expect(replyOf(other).content).toBe("mine");
    await expectNothingLeft(client);
    await client.close();
  });
});

describe("a stream that may begin again", () => {
  it("is read whole from the source that doesn't break", async () => {
    await using broken = await startSimulatedProvider();
    const chunks = [{ utf8: deltaEvent("half an") }, { utf8: deltaEvent(" ans"), delayMs: 20 }];
    const headers = { "content-type": "text/event-stream" };
    broken.script({ status: 200, headers, chunks, end: "reset" }, "always");
    await using healthy = await startSimulatedProvider({ answer: () => "a whole answer" });
    const order = (names: readonly string[]) => [...names].sort();
    const sources = [sourceOf("a", broken.baseUrl), sourceOf("b", healthy.baseUrl)];
    const { client, recorder } = caseClient(sources, { selector: { order }, retry: { backoffBaseMs: 1 } });
    const kept: string[] = [];
    const restarts: ChatEvent[] = [];
    for await (const event of client.stream({ ...hi, onBreak: "restart" })) {
      if (event.type === "text-delta") kept.push(event.text);
      if (event.type !== "restart") continue;
      restarts.push(event);
      kept.length = 0;
    }
    expect(kept.join("")).toBe("a whole answer");
    expect(restarts).toEqual([{ type: "restart", attempt: 2, reason: expect.stringMatching(/^[a-z_]+$/) }]);
    expect(recorder.rows.map(({ sourceName, outcome, final }) => [sourceName, outcome, final])).toEqual([
      ["a", "transient", false],
      ["b", "success", true],
    ]);
    await client.close();
  });
});
