import { brotliCompressSync, constants } from "node:zlib";
import { describe, expect, it } from "vitest";
import { MemoryCache } from "../src/index.js";
import { attemptErrorOf, call, contentEvents, replyOf } from "./support/calls.js";
import { CANARY_KEY, caseClient, sourceOf } from "./support/case-client.js";
import { chatBody, DONE_EVENT, deltaEvent } from "./support/recording-server.js";
import { attack, endsAs, hi, WAYS } from "./support-hostile/attack.js";
import {
  forever,
  JSON_HEAD,
  pour,
  type RawRespond,
  SSE_HEAD,
  startRawServer,
  statusHead,
} from "./support-hostile/raw-server.js";

/** Faults F11 to F17, F21, F22, F26 to F28, F81 and F83 of the reference: what stands in an answer. */

const json =
  (body: string): RawRespond =>
  (socket) =>
    void socket.end(JSON_HEAD + body);
const sse =
  (...events: string[]): RawRespond =>
  (socket) =>
    void socket.end(SSE_HEAD + events.join(""));
const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const refusal =
  (status: number, body: object, headers: Record<string, string> = {}): RawRespond =>
  (socket) =>
    void socket.end(statusHead(status, { "content-type": "application/json", ...headers }) + JSON.stringify(body));

const QUICK = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

describe.each(WAYS)("%s()", (way) => {
  it("F11 a compressed bomb ends at the cap on decoded bytes, a chain of codings at once", async () => {
    const bytes = brotliCompressSync(Buffer.alloc(100 * 1_048_576, 0x20), QUICK);
    const headers = { "content-type": "application/json", "content-encoding": "br" };
    const bomb: RawRespond = (socket) => {
      socket.write(statusHead(200, headers));
      socket.end(bytes);
    };
    await endsAs(way, bomb, { code: "malformed", says: /inflates to more than 16777216 bytes/ });
    const chain: RawRespond = (socket) =>
      void socket.end(`${statusHead(200, { ...headers, "content-encoding": "gzip,gzip,gzip" })}x`);
    await endsAs(way, chain, { code: "malformed", says: /content-encoding "gzip, gzip, gzip" is not supported/ });
  });

  it("F12 an endless error body is read up to 64 KiB, then the connection is dropped", async () => {
    const respond: RawRespond = (socket) => {
      socket.write(`${statusHead(500)}{"error":"`);
      pour(socket, forever("e".repeat(65_536)));
    };
    const { error } = await endsAs(way, respond, { code: "upstream_error", says: /: 500 \| \{"error":"eee/ });
    expect(attemptErrorOf({ way, error, events: [] }).bodyText).toContain(`(${65_536 - 2_000} chars omitted)`);
  });

  it("F13 a giant line ends at 8 MiB", async () => {
    const respond: RawRespond = (socket) => {
      socket.write(`${SSE_HEAD}data: {"choices":[{"delta":{"content":"`);
      pour(socket, forever("x".repeat(65_536)));
    };
    await endsAs(way, respond, { code: "malformed", says: /one event of the stream is larger than 8 MiB/ });
  });

  it("F14 bytes split anywhere give the same answer", async () => {
    const text = '\ufeff: hi\r\ndata:{"choices":[{"index":0,\r\ndata: "delta":{"content":"漢😀"}}]}\r\n\r\n';
    const bytes = Buffer.from(
      `${text}event: x\r${deltaEvent("é").replaceAll("\n", "\r")}${deltaEvent("!", "stop")}${DONE_EVENT}`,
    );
    for (const size of [1, 2, 3, 5, bytes.length]) {
      const respond: RawRespond = (socket) => {
        socket.setNoDelay(true);
        socket.write(SSE_HEAD);
        for (let at = 0; at < bytes.length; at += size) socket.write(bytes.subarray(at, at + size));
        socket.end();
      };
      expect(replyOf(await attack(way, respond)).content).toBe("漢😀é!");
    }
  });

  it("F15 frames that are no JSON, no delta, no choices: typed, with a row, never thrown across", async () => {
    const bad = [sse("data: {oops}\n\n", DONE_EVENT), sse('data: {"a":1}}\n\n'), sse('data: "\\ud800\n\n')];
    for (const respond of bad) {
      const error = attemptErrorOf(await attack(way, respond));
      expect(["malformed", "truncated", "empty"]).toContain(error.code);
    }
    const odd = [
      frame({ choices: [{ delta: null }] }),
      frame({ choices: [null, 7] }),
      frame({ unknown: [1] }),
      "data: null\n\n",
      "data: 7\n\n",
    ];
    const respond = sse(...odd, deltaEvent("ok", "stop"), DONE_EVENT);
    expect(replyOf(await attack(way, respond)).content).toBe("ok");
    await endsAs(way, json('{"id":"x"}'), { code: "malformed", says: /200 with neither choices nor an error/ });
  });

  it("F16 a failure that hides in a 200 is classified by its code, and not cached", async () => {
    const quota = { error: { message: "no money", code: "insufficient_quota" } };
    const dead = { name: "SourceDeadError", code: "quota", says: /quota exhausted|credential rejected or unpaid/ };
    const cache = { options: { cache: new MemoryCache() } };
    await endsAs(way, json(JSON.stringify(quota)), dead, cache);
    await endsAs(way, sse(deltaEvent(""), `event: error\n${frame(quota)}`), dead, cache);
    const page: RawRespond = (socket) =>
      void socket.end(`${statusHead(200, { "content-type": "text/html" })}<html><title>Portal</title>`);
    await endsAs(way, page, {
      name: "SourceDeadError",
      code: "endpoint_not_found",
      says: /HTML page instead of an answer/,
    });
    expect(cache.options.cache.stats().answers).toBe(0);
  });

  it("F17 Retry-After is obeyed where it is usable and never waited for past the deadline; garbage is passed over", async () => {
    const limited = (headers: Record<string, string>) => refusal(429, { error: { message: "slow down" } }, headers);
    const options = { retry: { maxAttempts: 1, maxRateLimited: 1 } };
    const waits: readonly (readonly [Record<string, string>, number | undefined])[] = [
      [{ "retry-after": "5" }, 5_000],
      [{ "retry-after-ms": "1200" }, 1_200],
      [{ "retry-after": "-1" }, undefined],
      [{ "retry-after": "soon" }, undefined],
      [{ "retry-after": "9".repeat(400) }, undefined],
    ];
    for (const [headers, expected] of waits) {
      const { error } = await endsAs(
        way,
        limited(headers),
        { code: "rate_limit", says: /rate limited: 429/ },
        { options },
      );
      expect((attemptErrorOf({ way, error, events: [] }) as { retryAfterMs?: number }).retryAfterMs).toBe(expected);
    }
    const billion = { name: "SourceDeadError", code: "quota", says: /quota exhausted: 429/ };
    await endsAs(way, limited({ "retry-after": "1e9" }), billion, { options });
    const request = { ...hi, deadlineMs: 300 };
    const patient = { request, options: { retry: { maxAttempts: 9 } } };
    const { error, server } = await attack(way, limited({ "retry-after": "60" }), patient);
    expect(error).toMatchObject({ name: "AllSourcesExhausted", reason: "quota_exhausted" });
    expect(server.requests.length).toBe(1);
  });

  it("F21 400, 401, 403, 404 and 422 are sent once; dead credentials pause their source, a bad request doesn't", async () => {
    const statuses = [
      [400, "RequestRejectedError", "closed"],
      [422, "RequestRejectedError", "closed"],
      [401, "SourceDeadError", "open"],
      [403, "SourceDeadError", "open"],
      [404, "SourceDeadError", "open"],
    ] as const;
    for (const [status, name, state] of statuses) {
      await using server = await startRawServer(refusal(status, { error: { message: "no" } }));
      const { client } = caseClient([sourceOf("s_1", server.baseUrl)]);
      expect(attemptErrorOf(await call(client, way, hi)).name).toBe(name);
      expect(server.requests.length).toBe(1);
      expect((await client.snapshot()).sources[0]?.state).toBe(state);
      await client.close();
    }
  });

  it("F22 too long, too large and filtered are told as such; only another model may take what is too long", async () => {
    const refusals = [
      [
        400,
        { error: { message: "maximum context length is 10 tokens", code: "context_length_exceeded" } },
        "context_length",
      ],
      [413, { error: { message: "too large" } }, "bad_request"],
      [400, { error: { message: "flagged by our content filter", code: "content_filter" } }, "content_filtered"],
    ] as const;
    for (const [status, body, code] of refusals) {
      await using full = await startRawServer(refusal(status, body));
      await using roomy = await startRawServer(json(chatBody("roomy")));
      const other = sourceOf("s_2", roomy.baseUrl, { model: "m-large", priority: 1 });
      const { client } = caseClient([sourceOf("s_1", full.baseUrl), other], { retry: { backoffBaseMs: 1 } });
      const outcome = await call(client, way, hi);
      if (code === "context_length") expect(replyOf(outcome).content).toBe("roomy");
      else expect(attemptErrorOf(outcome)).toMatchObject({ name: "RequestRejectedError", code });
      expect(roomy.requests.length).toBe(code === "context_length" ? 1 : 0);
      await client.close();
    }
  });

  it("F26 usage that is missing, absurd, late or repeated: finite, never negative, settled once", async () => {
    const measured = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
    const usages: readonly (readonly [unknown, string])[] = [
      [undefined, "estimated"],
      [null, "estimated"],
      [{ prompt_tokens: 0, completion_tokens: 0 }, "estimated"],
      [{ prompt_tokens: -5, completion_tokens: -1 }, "estimated"],
      [{ prompt_tokens: 1e308, completion_tokens: 1e308 }, "estimated"],
      [{ prompt_tokens: "x", completion_tokens: {} }, "estimated"],
      [{ prompt_tokens: "5", completion_tokens: "3" }, "measured"],
      [measured, "measured"],
    ];
    for (const [usage, source] of usages) {
      const repeated = sse(
        deltaEvent("text", "stop"),
        frame({ choices: [], usage }),
        frame({ choices: [], usage }),
        DONE_EVENT,
      );
      const outcome = await attack(way, repeated, { source: { tpm: 1_000_000, limitRule: "window" } });
      const { usage: told } = replyOf(outcome);
      expect(told.source).toBe(source);
      for (const tokens of [told.promptTokens, told.completionTokens, told.totalTokens]) {
        expect(Number.isSafeInteger(tokens) && tokens >= 0).toBe(true);
      }
      expect(outcome.rows).toEqual([["success", true]]);
    }
    const late = sse(deltaEvent("text", "stop"), DONE_EVENT, frame({ choices: [], usage: measured }));
    expect(replyOf(await attack(way, late)).usage.source).toBe("estimated");
  });

  it("F27 more tokens than were reserved: the window takes the truth, and the next call waits", async () => {
    const greedy = json(chatBody("x", { usage: { prompt_tokens: 900, completion_tokens: 200, total_tokens: 1_100 } }));
    await using server = await startRawServer((socket) => greedy(socket, server.requests[0]!));
    const source = sourceOf("s_1", server.baseUrl, { tpm: 1_000, estTokens: 100, limitRule: "window" });
    const { client } = caseClient([source], { backpressure: { quotaFull: "fail_fast", stallWindowMs: 300_000 } });
    expect(replyOf(await call(client, way, hi)).usage.totalTokens).toBe(1_100);
    expect((await client.snapshot()).sources[0]).toMatchObject({ tokensUsed: 1_100, inflight: 0 });
    expect((await call(client, way, hi)).error).toMatchObject({
      name: "AllSourcesExhausted",
      reason: "quota_exhausted",
    });
    expect(server.requests.length).toBe(1);
    await client.close();
  });

  it("F28 what follows the end is ignored; choices and interleaved tool calls are kept apart", async () => {
    const after = sse(deltaEvent("whole", "stop"), DONE_EVENT, deltaEvent(" and more"), DONE_EVENT, "garbage");
    const outcome = await attack(way, after);
    expect(replyOf(outcome).content).toBe("whole");
    expect(outcome.rows).toEqual([["success", true]]);
    const tool = (index: number, text: string): string =>
      frame({
        choices: [
          {
            index: 0,
            delta: { tool_calls: [{ index, id: `c${index}`, function: { name: `f${index}`, arguments: text } }] },
          },
        ],
      });
    const calls = sse(
      tool(0, '{"a"'),
      tool(1, '{"b"'),
      tool(0, ":1}"),
      tool(1, ":2}"),
      deltaEvent("", "tool_calls"),
      DONE_EVENT,
    );
    expect(replyOf(await attack(way, calls)).toolCalls.map((made) => made.arguments)).toEqual(['{"a":1}', '{"b":2}']);
    const two = sse(
      frame({ choices: [{ index: 1, delta: { content: "b" }, finish_reason: "stop" }] }),
      deltaEvent("a", "stop"),
      DONE_EVENT,
    );
    const both = await attack(way, two, way === "chat" ? { request: { ...hi, sampling: { n: 2 } } } : {});
    expect(replyOf(both).content).toBe("a");
    expect(contentEvents(both.events)).toEqual(way === "chat" ? [] : [{ type: "text-delta", text: "a" }]);
  });

  it("F81 errors, answers cut at the limit and cut streams are never kept; a hit costs nothing", async () => {
    const cache = new MemoryCache();
    const options = { cache };
    const notKept = [
      sse(deltaEvent("half")),
      sse(deltaEvent("cut", "length"), DONE_EVENT),
      refusal(500, {}),
      sse(deltaEvent("x"), DONE_EVENT),
    ];
    for (const respond of notKept) await attack(way, respond, { options });
    expect(cache.stats().answers).toBe(0);
    await attack(way, sse(deltaEvent("good", "stop"), DONE_EVENT), { options });
    expect(cache.stats().answers).toBe(1);
  });

  it("F83 our key in the provider's error is redacted, in whatever form and wherever a text is cut", async () => {
    const half = "p".repeat(4_082);
    const bodies = [
      { error: { message: `bad key ${CANARY_KEY}`, code: CANARY_KEY, param: CANARY_KEY } },
      { error: { message: `${half}${CANARY_KEY}` } },
      { error: { message: "x", param: `${"p".repeat(186)}${CANARY_KEY}` } },
      { detail: `${"d".repeat(286)} ${CANARY_KEY}` },
    ];
    for (const body of bodies) {
      const outcome = await attack(way, refusal(400, body));
      const error = attemptErrorOf(outcome);
      const shown = JSON.stringify([error, error.message, error.stack, outcome.records], (_key, value) =>
        typeof value === "bigint" ? String(value) : value,
      );
      // Not even the beginning of it.
      expect(shown).not.toContain(CANARY_KEY.slice(0, 8));
      expect(error.name).toBe("RequestRejectedError");
    }
    const text: RawRespond = (socket) =>
      void socket.end(`${statusHead(400, { "content-type": "text/plain" })}${"t".repeat(286)}${CANARY_KEY}`);
    expect(attemptErrorOf(await attack(way, text)).upstreamMessage).not.toContain(CANARY_KEY.slice(0, 8));
  });

  it("nested lists change no class and harm no timer", async () => {
    const lists = "[".repeat(30_000) + "]".repeat(30_000);
    const refused: RawRespond = (socket) => void socket.end(statusHead(401) + lists);
    await endsAs(way, refused, { name: "SourceDeadError", code: "auth", says: /credential rejected/ });
    // The body is whole but doesn't end: it is read in a timer, where an exception would end the process.
    const hangs: RawRespond = (socket) => void socket.write(statusHead(401) + lists);
    await endsAs(way, hangs, { name: "SourceDeadError", code: "auth", says: /credential rejected/ });
    const deep = JSON.stringify("[".repeat(60_000) + "]".repeat(60_000) + "[".repeat(60_000) + "]".repeat(60_000));
    const args = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":${deep}}}]}}]}\n\n`;
    const source = { timeoutMs: 60_000, ttftTimeoutMs: 60_000, interTokenTimeoutMs: 100 };
    const idle: RawRespond = (socket) => void socket.write(SSE_HEAD + args);
    await endsAs(way, idle, { code: "idle_timeout", says: /no further token/ }, { source });
  });
});
