import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import type { ChatRequest, GatewayOptions, SourceOptions } from "../src/index.js";
import { type ResponseScript, type SimulatedProvider, startSimulatedProvider } from "../src/testing/index.js";
import { attemptErrorOf, call, replyOf, until, type Way } from "./support/calls.js";
import { caseClient, sourceOf } from "./support/case-client.js";
import { chatBody, DONE_EVENT, deltaEvent, sendJson, startRecordingServer } from "./support/recording-server.js";

/** Connections: reused, dead, left open, and the timers of the HTTP library that must not rule. */

const WAYS: readonly Way[] = ["chat", "stream"];
const hi: ChatRequest = { messages: [{ role: "user", content: "hi" }] };
const FEW_SOCKETS = 3;

/** The HTTP library gives a socket back one turn after its answer; a call in the same turn takes another one. */
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

function clientFor(
  { baseUrl }: { readonly baseUrl: string },
  source: Partial<SourceOptions> = {},
  options: Partial<GatewayOptions> = {},
) {
  return caseClient([sourceOf("s_1", baseUrl, source)], { retry: { maxAttempts: 1 }, ...options });
}

/** A breaker that lets a thousand failures through. */
const PATIENT = {
  breaker: { failThreshold: 100_000, minSamples: 100_000 },
  scheduling: { evidence: false, pacer: false },
};

describe("keep-alive", () => {
  it("few sockets serve plain answers, streams and refusals, one after another", async () => {
    await using server = await startRecordingServer((response, { body }) => {
      if (server.seen.length % 3 === 0) sendJson(response, 422, '{"error":{"message":"no"}}');
      else if (body.stream !== true) sendJson(response, 200, chatBody("a"));
      else {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(`${deltaEvent("a", "stop")}${DONE_EVENT}`);
      }
    });
    const { client } = clientFor(server);
    for (let index = 0; index < 30; index += 1) {
      await call(client, WAYS[index % 2]!, { ...hi, stream: index % 4 === 0 });
      await turn();
    }
    expect(server.seen.length).toBe(30);
    expect(server.sockets.total).toBeLessThanOrEqual(FEW_SOCKETS);
    await client.close();
    await until(() => server.sockets.open === 0);
  });

  it("200 failing answers, each with a body that nobody needs, leave few sockets", async () => {
    await using server = await startRecordingServer((response) => {
      response.writeHead(500, { "content-type": "text/plain" });
      response.end("x".repeat(20_000));
    });
    const { client } = clientFor(server, {}, PATIENT);
    for (let index = 0; index < 200; index += 1) {
      expect(attemptErrorOf(await call(client, WAYS[index % 2]!, hi)).statusCode).toBe(500);
    }
    expect(server.seen.length).toBe(200);
    expect(server.sockets.total).toBeLessThanOrEqual(FEW_SOCKETS);
    await client.close();
  });

  it("50 calls at once take a socket each, and the next 50 reuse them", async () => {
    await using server = await startRecordingServer();
    const { client } = clientFor(server);
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(
        Array.from({ length: 50 }, async (_, index) => replyOf(await call(client, WAYS[index % 2]!, hi))),
      );
      await turn();
    }
    expect(server.seen.length).toBe(150);
    expect(server.sockets.total).toBeLessThanOrEqual(50 + FEW_SOCKETS);
    await client.close();
  });
});

const good: ResponseScript = { status: 200, chunks: [{ utf8: chatBody("good") }], end: "close", keepAlive: true };

async function withOneIdleSocket(provider: SimulatedProvider, options: Partial<GatewayOptions> = {}) {
  const limits = { rpm: 100, limitRule: "window" } as const;
  const made = clientFor(provider, limits, { breaker: { failThreshold: 1 }, ...options });
  provider.script(good);
  expect(replyOf(await call(made.client, "chat", hi)).content).toBe("good");
  made.recorder.rows.length = 0;
  await turn();
  return made;
}

describe("a kept-alive socket that died before the answer", () => {
  it.each(WAYS)("is admitted again on a fresh one by %s(), though one send is allowed", async (way) => {
    await using provider = await startSimulatedProvider();
    const { client, recorder } = await withOneIdleSocket(provider);
    provider.script({ reusedSocket: "reset-before-response", freshSocket: good });
    expect(replyOf(await call(client, way, hi))).toMatchObject({ content: "good", attempts: 2 });
    expect(recorder.rows.map(({ outcome, attempt, final }) => [outcome, attempt, final])).toEqual([
      ["stale_socket", 1, false],
      ["success", 2, true],
    ]);
    const [source] = (await client.snapshot()).sources;
    // Its own lease, so the request limit is charged again; no sample for the breaker, which would open at one failure.
    expect(source).toMatchObject({ state: "closed", inflight: 0, requestsUsed: 3 });
    await client.close();
  });

  it("is the network's failure on a fresh socket", async () => {
    await using provider = await startSimulatedProvider();
    provider.script({ end: "reset" });
    const { client, recorder } = clientFor(provider);
    expect(attemptErrorOf(await call(client, "chat", hi))).toMatchObject({ name: "TransientError", code: "network" });
    expect(recorder.rows.map(({ outcome }) => outcome)).toEqual(["transient", "unavailable"]);
    await client.close();
  });

  it("is a failure like others once the answer has begun", async () => {
    await using provider = await startSimulatedProvider();
    const { client, recorder } = await withOneIdleSocket(provider);
    provider.script({ status: 200, chunks: [{ utf8: '{"choices":[' }], end: "reset" });
    expect(attemptErrorOf(await call(client, "chat", hi)).code).toBe("network");
    expect(recorder.rows[0]?.outcome).toBe("transient");
    expect(provider.stats().arrived).toBe(2);
    await client.close();
  });
});

interface UndiciTimers {
  /** Moves the clock of undici's slow timers. */
  tick(delayMs: number): void;
}

/** The library's own clock, moved: its header and body timeouts are measured on it. */
function undiciTimers(): UndiciTimers {
  return createRequire(import.meta.url)("undici/lib/util/timers.js") as UndiciTimers;
}

async function passSixMinutes(): Promise<void> {
  const { tick } = undiciTimers();
  for (let minute = 0; minute < 6; minute += 1) {
    tick(60_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("undici's own timeouts of 300 s", () => {
  const { request } = createRequire(import.meta.url)("undici") as typeof import("undici");

  it("would end a silent answer (counter-check: moving the clock works)", async () => {
    await using server = await startRecordingServer(() => {});
    const plain = request(server.origin, { method: "POST", body: "{}" }).catch((error: Error) => error);
    await until(() => server.seen.length === 1);
    await passSixMinutes();
    expect(await plain).toMatchObject({ code: "UND_ERR_HEADERS_TIMEOUT" });
  });

  it.each(WAYS)("don't rule an answer of %s(): neither before the head nor between two events", async (way) => {
    let goOn = (): void => {};
    await using server = await startRecordingServer((response) => {
      goOn = () => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(deltaEvent("a"));
        goOn = () => void response.end(`${deltaEvent("b", "stop")}${DONE_EVENT}`);
      };
    });
    const { client } = clientFor(server);
    const called = call(client, way, hi);
    await until(() => server.seen.length === 1);
    await passSixMinutes();
    goOn();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await passSixMinutes();
    goOn();
    expect(replyOf(await called).content).toBe("ab");
    await client.close();
  });
});
