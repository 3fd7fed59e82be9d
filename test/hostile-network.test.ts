import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { attemptErrorOf, call, replyOf } from "./support/calls.js";
import { caseClient, sourceOf } from "./support/case-client.js";
import { DONE_EVENT, deltaEvent, startRecordingServer } from "./support/recording-server.js";
import { attack, endsAs, hi, WAYS } from "./support-hostile/attack.js";
import {
  drip,
  JSON_HEAD,
  type RawRespond,
  SSE_HEAD,
  startRawServer,
  statusHead,
} from "./support-hostile/raw-server.js";

/** Faults F1 to F10, F19 and F23 to F25 of the reference: connections, and what happens to them. */

const SHORT = { timeoutMs: 400, ttftTimeoutMs: 400, interTokenTimeoutMs: 150 };
const GOOD = `${deltaEvent("good")}${deltaEvent("", "stop")}${DONE_EVENT}`;
const good = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${GOOD.length}\r\n\r\n${GOOD}`;

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const LISTENER = `
  const server = require("node:net").createServer(() => {});
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => console.log(server.address().port));
`;

/** A process that stands still, with more connections than its queue holds: the next one is never answered. */
async function startFullServer(): Promise<{ baseUrl: string; [Symbol.asyncDispose](): Promise<void> }> {
  const child = spawn(process.execPath, ["-e", LISTENER], { stdio: ["ignore", "pipe", "ignore"] });
  const port = Number(await new Promise((resolve) => child.stdout.once("data", resolve)));
  child.kill("SIGSTOP");
  const waiting = Array.from({ length: 12 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  await new Promise((resolve) => setTimeout(resolve, 100));
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      for (const socket of waiting) socket.destroy();
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGKILL");
      await ended;
    },
  };
}

describe.each(WAYS)("%s()", (way) => {
  it("F1 refused, or no such host: the next source answers, nothing is charged", async () => {
    const port = await closedPort();
    await using server = await startRecordingServer();
    for (const dead of [`http://127.0.0.1:${port}/v1`, "http://no-such-host.invalid/v1"]) {
      const sources = [
        sourceOf("s_1", dead, { tpm: 10_000, priority: 0 }),
        sourceOf("s_2", server.baseUrl, { priority: 1 }),
      ];
      const { client, recorder } = caseClient(sources, { retry: { backoffBaseMs: 1 } });
      expect(replyOf(await call(client, way, hi)).sourceName).toBe("s_2");
      expect(recorder.rows.map((row) => [row.sourceName, row.outcome, row.final])).toEqual([
        ["s_1", "transient", false],
        ["s_2", "success", true],
      ]);
      expect(recorder.rows[0]?.error).toMatch(/^s_1 transient failure: no connection: /);
      const [first] = (await client.snapshot()).sources;
      expect(first).toMatchObject({ inflight: 0, tokensUsed: 0 });
      await client.close();
    }
  });

  it.skipIf(process.platform === "win32")(
    "F2 a connection that never stands ends by the attempt's own timer",
    async () => {
      await using full = await startFullServer();
      const { client, recorder } = caseClient([sourceOf("s_1", full.baseUrl, SHORT)], { retry: { maxAttempts: 1 } });
      const error = attemptErrorOf(await call(client, way, hi));
      expect(error).toMatchObject({ name: "TransientError", code: "timeout" });
      expect((await client.snapshot()).sources[0]?.inflight).toBe(0);
      expect(recorder.rows.map(({ outcome }) => outcome)).toEqual(["transient", "unavailable"]);
      await client.close();
    },
  );

  it("F3 accepted and never answered: the first-token timer ends it and frees the permit", async () => {
    const says = /no (first token|complete answer) within 400 ms/;
    const { server } = await endsAs(way, () => {}, { code: "timeout", says }, { source: SHORT });
    expect(server.requests.length).toBe(1);
  });

  it("F4 a head that drips, or 1xx without end, ends by the same timer", async () => {
    const drips: RawRespond = (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      drip(socket, "x", 20);
    };
    const interim: RawRespond = (socket) => drip(socket, "HTTP/1.1 102 Processing\r\n\r\n", 20);
    for (const respond of [drips, interim]) {
      await endsAs(way, respond, { code: "timeout", says: /within 400 ms/ }, { source: SHORT });
    }
  });

  it("F5 comments or empty deltas without end are a stall", async () => {
    for (const empty of [": ping\n\n", 'data: {"choices":[{"index":0,"delta":{}}]}\n\n', "data: {}\n\n"]) {
      const stalls: RawRespond = (socket) => {
        socket.write(SSE_HEAD + deltaEvent("a"));
        drip(socket, empty, 20);
      };
      const source = { timeoutMs: 60_000, ttftTimeoutMs: 60_000, interTokenTimeoutMs: 100 };
      const says = /no further token for 100 ms .* after 1 chunk(?!s)/;
      const { error } = await endsAs(way, stalls, { code: "idle_timeout", says }, { source });
      expect(attemptErrorOf({ way, error, events: [] }).partial?.content).toBe("a");
    }
  });

  it("F6 slow and alive: a token at a time is waited for", async () => {
    const slow: RawRespond = (socket) => {
      socket.write(SSE_HEAD);
      let sent = 0;
      drip(socket, () => (sent++ < 10 ? deltaEvent(String(sent % 10)) : GOOD), 60);
    };
    const source = { timeoutMs: 60_000, ttftTimeoutMs: 60_000, interTokenTimeoutMs: 1_000 };
    expect(replyOf(await attack(way, slow, { source })).content).toBe("1234567890good");
  });

  it("F7 a reset in the middle: retried by chat(), never spliced; after the first event stream() throws", async () => {
    const respond: RawRespond = (socket, { number }) => {
      if (number > 1) return void socket.write(good);
      socket.write(SSE_HEAD + deltaEvent("half "));
      setTimeout(() => socket.resetAndDestroy(), 30);
    };
    const outcome = await attack(way, respond, { options: { retry: { maxAttempts: 2, backoffBaseMs: 1 } } });
    if (way === "chat") {
      expect(replyOf(outcome)).toMatchObject({ content: "good", attempts: 2 });
      return;
    }
    expect(outcome.error).toMatchObject({ name: "TransientError", code: "network", partial: { content: "half " } });
    expect(outcome.events).toEqual([{ type: "text-delta", text: "half " }]);
    expect(outcome.server.requests.length).toBe(1);
  });

  it("F8 an end without [DONE] or a last chunk is a cut, flagged and estimated", async () => {
    const respond: RawRespond = (socket) => void socket.end(SSE_HEAD + deltaEvent("half an answer"));
    const { records } = await endsAs(way, respond, {
      code: "truncated",
      says: /cut before its end after 1 chunk(?!s)/,
    });
    expect(records[0]).toMatchObject({ outcome: "transient", usageSource: "estimated", final: false });
  });

  it("F9 half a compressed answer is no answer", async () => {
    const bytes = gzipSync(
      JSON.stringify({ choices: [{ message: { content: "x".repeat(20_000) }, finish_reason: "stop" }] }),
    );
    const half = bytes.subarray(0, bytes.length / 2);
    for (const length of [half.length, null]) {
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      const head = statusHead(200, length === null ? headers : { ...headers, "content-length": String(length) });
      const respond: RawRespond = (socket) => {
        socket.write(head);
        socket.end(half);
      };
      await endsAs(way, respond, { code: "truncated", says: /compressed answer is broken/ });
    }
  });

  it("F10 a content-length too short, too long or beside chunks is an error, and the connection isn't used again", async () => {
    const body = JSON.stringify({ choices: [{ message: { content: "hello" }, finish_reason: "stop" }] });
    const head = (headers: object) => statusHead(200, { "content-type": "application/json", ...headers });
    const lies = [
      head({ "content-length": String(body.length - 5) }) + body,
      head({ "content-length": String(body.length + 5) }) + body,
      `${head({ "content-length": "7", "transfer-encoding": "chunked" })}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ];
    for (const lie of lies) {
      const outcome = await attack(way, (socket) => void socket.end(lie));
      const error = attemptErrorOf(outcome);
      expect(["truncated", "malformed"]).toContain(error.code);
      expect(error.name).toBe("TransientError");
    }
    await using server = await startRawServer((socket) => void socket.write(lies[0]!));
    const { client } = caseClient([sourceOf("s_1", server.baseUrl)], { retry: { maxAttempts: 1 } });
    for (let index = 0; index < 2; index += 1) attemptErrorOf(await call(client, way, hi));
    expect(server.sockets.total).toBe(2);
    await client.close();
  });

  it("F19 a refusal whose body never ends is acted on by its status", async () => {
    for (const [status, code] of [
      [429, "rate_limit"],
      [503, "overloaded"],
    ] as const) {
      const respond: RawRespond = (socket) => void socket.write(`${statusHead(status)}{"error":{"message":"slow`);
      const options = { retry: { maxAttempts: 1, maxRateLimited: 1 } };
      const { error } = await endsAs(way, respond, { code, says: new RegExp(`${status}`) }, { options });
      expect(attemptErrorOf({ way, error, events: [] }).statusCode).toBe(status);
    }
  });

  it("F23 a peer that vanished is noticed by the gap, and its socket isn't used again", async () => {
    const respond: RawRespond = (socket, { number }) => {
      if (number === 1) socket.write(SSE_HEAD + deltaEvent("a"));
      else socket.write(good);
    };
    await using server = await startRawServer(respond);
    const source = { timeoutMs: 60_000, ttftTimeoutMs: 60_000, interTokenTimeoutMs: 100 };
    const { client } = caseClient([sourceOf("s_1", server.baseUrl, source)], { retry: { maxAttempts: 1 } });
    expect(attemptErrorOf(await call(client, way, hi)).code).toBe("idle_timeout");
    expect(replyOf(await call(client, way, hi)).content).toBe("good");
    expect(server.sockets.total).toBe(2);
    await client.close();
  });

  it("F24 closed as we send: once more on a fresh socket, only where no byte of an answer was seen", async () => {
    const closing: RawRespond = (socket, { number }) => {
      if (number === 2) socket.destroy();
      else socket.write(good);
    };
    const outcome = await attack(way, closing, { before: 1 });
    expect(replyOf(outcome)).toMatchObject({ content: "good", attempts: 2 });
    expect(outcome.rows).toEqual([
      ["stale_socket", false],
      ["success", true],
    ]);
    const begun: RawRespond = (socket, { number }) => {
      if (number !== 2) return void socket.write(good);
      socket.write(JSON_HEAD);
      setTimeout(() => socket.resetAndDestroy(), 20);
    };
    const { code } = attemptErrorOf(await attack(way, begun, { before: 1 }));
    expect(code).toBe("network");
  });

  it("F25 a redirect is not followed: neither key nor prompt leaves for another place", async () => {
    await using other = await startRecordingServer();
    const headers = { "x-api-key": "second-secret-4711", "api-key": "third-secret-4712" };
    for (const place of [`${other.origin}/v1/chat/completions`, "http://169.254.169.254/latest/meta-data"]) {
      const respond: RawRespond = (socket) =>
        void socket.end(statusHead(307, { location: place, "content-length": "0" }));
      const says = /check BASE_URL, redirects are not followed\): 307/;
      const expected = { name: "SourceDeadError", code: "endpoint_not_found", says };
      await endsAs(way, respond, expected, { source: { headers } });
    }
    expect(other.sockets.total).toBe(0);
  });
});
