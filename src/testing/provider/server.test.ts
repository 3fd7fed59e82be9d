import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { Pool } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { ConfigError } from "../../errors.js";
import type { SimulatedProviderOptions } from "./options.js";
import { echoAnswer, readLedger, type SimulatedProvider, startSimulatedProvider } from "./server.js";

const opened: SimulatedProvider[] = [];
const pools: Pool[] = [];

async function start(options: SimulatedProviderOptions = {}): Promise<SimulatedProvider> {
  const provider = await startSimulatedProvider(options);
  opened.push(provider);
  return provider;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.destroy()));
  await Promise.all(opened.splice(0).map((provider) => provider.stop()));
});

function poolTo(provider: SimulatedProvider): Pool {
  const pool = new Pool(provider.origin, { connections: 8 });
  pools.push(pool);
  return pool;
}

function chatBody(question: string, extra: Record<string, unknown> = {}): string {
  return JSON.stringify({ model: "m", messages: [{ role: "user", content: question }], ...extra });
}

interface Sent {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

async function post(
  pool: Pool,
  body: string,
  headers: Record<string, string> = {},
  path = "/v1/chat/completions",
): Promise<Sent> {
  const reply = await pool.request({ method: "POST", path, headers, body });
  return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() };
}

function contentOf(sse: string): string {
  const frames = sse.split("\n\n").filter((frame) => frame.startsWith("data: {"));
  return frames.map((frame) => JSON.parse(frame.slice(6)).choices[0]?.delta?.content ?? "").join("");
}

/** Everything a raw client reads until the server ends the socket; null = it ended with an error (RST). */
function rawExchange(provider: SimulatedProvider, request: string): Promise<{ bytes: Buffer; ended: "fin" | "rst" }> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect(provider.port, "127.0.0.1", () => socket.write(request));
    socket.on("data", (part: Buffer) => parts.push(part));
    socket.on("error", () => resolve({ bytes: Buffer.concat(parts), ended: "rst" }));
    socket.on("end", () => resolve({ bytes: Buffer.concat(parts), ended: "fin" }));
  });
}

function rawPost(body: string): string {
  return `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("answers", () => {
  it("answers the openai SDK, streamed and not, with the same text and usage", async () => {
    const provider = await start();
    const openai = new OpenAI({ baseURL: provider.baseUrl, apiKey: "any", maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "Wie heißt „猫“ auf Deutsch? 🐱" }];
    const plain = await openai.chat.completions.create({ model: "m", messages });
    const streamed = await openai.chat.completions.create({
      model: "m",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: unknown;
    for await (const chunk of streamed) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(plain.choices[0]?.message.content).toBe(echoAnswer(messages[0]?.content ?? ""));
    expect(text).toBe(plain.choices[0]?.message.content);
    expect(usage).toEqual(plain.usage);
    expect(plain.usage?.total_tokens).toBe((plain.usage?.prompt_tokens ?? 0) + (plain.usage?.completion_tokens ?? 0));
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(["sim-model"]);
  });

  it("gives every question its own answer under concurrency", async () => {
    const provider = await start({ latency: { ttftMedianMs: 3, ttftSigma: 1, tokenMs: 1 } });
    const pool = poolTo(provider);
    const questions = Array.from({ length: 40 }, (_, i) => `question number ${i}`);
    const replies = await Promise.all(questions.map((q, i) => post(pool, chatBody(q, { stream: i % 2 === 0 }))));
    replies.forEach((reply, i) => {
      const text = i % 2 === 0 ? contentOf(reply.text) : JSON.parse(reply.text).choices[0].message.content;
      expect(text).toBe(echoAnswer(questions[i] as string));
    });
    expect(provider.stats().inProgress).toBe(0);
    expect(provider.ledger().map(({ outcome }) => outcome)).toEqual(Array(40).fill("answered"));
  });

  it("sends usage on a stream only when it was asked for, and ends with [DONE]", async () => {
    const pool = poolTo(await start());
    const without = await post(pool, chatBody("a", { stream: true }));
    const asked = await post(pool, chatBody("a", { stream: true, stream_options: { include_usage: true } }));
    expect(without.text).not.toContain('"usage"');
    expect(asked.text).toContain('"usage":{"prompt_tokens"');
    expect(without.text.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  it("takes answers from a function: text, thinking, tool calls; a throw becomes a 400", async () => {
    const provider = await start({
      answer({ question }) {
        if (question === "throw") throw new Error("no idea");
        if (question === "tool") return { content: "", toolCalls: [{ id: "c1", name: "f", arguments: "{}" }] };
        return { content: "42", thinking: "hm" };
      },
    });
    const pool = poolTo(provider);
    const thinking = JSON.parse((await post(pool, chatBody("x"))).text).choices[0];
    expect(thinking.message).toEqual({ role: "assistant", content: "42", reasoning_content: "hm" });
    const tool = await post(pool, chatBody("tool", { stream: true }));
    expect(tool.text).toContain('"name":"f"');
    expect(tool.text).toContain('"finish_reason":"tool_calls"');
    const failed = await post(pool, chatBody("throw"));
    expect(failed.status).toBe(400);
    expect(failed.text).toContain("no idea");
  });

  it("has the planned length, cut by max_tokens with finish reason length", async () => {
    const pool = poolTo(await start({ output: { medianTokens: 20 } }));
    const whole = JSON.parse((await post(pool, chatBody("x"))).text);
    expect(whole.usage.completion_tokens).toBe(20);
    const cut = JSON.parse((await post(pool, chatBody("x", { max_tokens: 5 }))).text);
    expect([cut.usage.completion_tokens, cut.choices[0].finish_reason]).toEqual([5, "length"]);
  });

  it("refuses what is no chat request, each with its status", async () => {
    const pool = poolTo(await start({ apiKeys: ["good-key-123456"] }));
    const auth = { authorization: "Bearer good-key-123456" };
    expect((await post(pool, chatBody("x"))).status).toBe(401);
    expect((await post(pool, chatBody("x"), auth)).status).toBe(200);
    expect((await post(pool, "{", auth)).status).toBe(400);
    expect((await post(pool, "{}", auth)).status).toBe(400);
    expect((await post(pool, chatBody("x", { n: 2 }), auth)).status).toBe(400);
    expect((await post(pool, chatBody("x"), auth, "/v1/other")).status).toBe(404);
    const get = await pool.request({ method: "GET", path: "/healthz" });
    expect([get.statusCode, await get.body.json()]).toEqual([200, { status: "ok" }]);
  });
});

describe("HTTP itself", () => {
  it("reads requests split at every byte, chunked and pipelined", async () => {
    const provider = await start();
    const body = chatBody("split");
    const chunked = `POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)};x=1\r\n${body.slice(5)}\r\n0\r\n\r\n`;
    const text = rawPost(body) + chunked;
    const received = await new Promise<string>((resolve, reject) => {
      let all = "";
      const socket = connect(provider.port, "127.0.0.1", async () => {
        for (const byte of Buffer.from(text)) {
          socket.write(Buffer.of(byte));
          await new Promise(setImmediate);
        }
      });
      socket.on("data", (part) => {
        all += part;
      });
      socket.on("error", reject);
      socket.on("end", () => resolve(all));
    });
    expect(received.split("HTTP/1.1 200 OK").length - 1).toBe(2);
    expect(provider.ledger().map(({ outcome }) => outcome)).toEqual(["answered", "answered"]);
  });

  it.each([
    ["rubbish\r\n\r\n", 400],
    ["POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400],
    ["POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n", 413],
    ["POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400],
    [`GET / HTTP/1.1\r\nx: ${"y".repeat(70_000)}`, 431],
  ])("refuses unreadable input %#", async (input, status) => {
    const { bytes } = await rawExchange(await start(), input);
    expect(bytes.toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it("ledgers a request whose body never came", async () => {
    const provider = await start();
    const socket = connect(provider.port, "127.0.0.1", () => {
      socket.write("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 10\r\n\r\n12");
    });
    await until(() => provider.stats().inProgress === 1);
    socket.destroy();
    await until(() => provider.stats().inProgress === 0);
    expect(provider.ledger()).toMatchObject([{ outcome: "client_closed", clientClosed: true, status: 0 }]);
  });
});

describe("scripts", () => {
  it("replays status, headers and chunks byte for byte", async () => {
    const provider = await start();
    provider.script({
      status: 429,
      headers: { "X-Mixed": "A", "set-cookie": ["a=1", "b=2"], "content-length": "6" },
      chunks: [
        { utf8: "ab" },
        { delayMs: 5, base64: Buffer.from([0xe2, 0x82]).toString("base64") },
        { base64: "rA==" },
      ],
      end: "close",
    });
    const { bytes, ended } = await rawExchange(provider, rawPost(chatBody("x")));
    const head =
      "HTTP/1.1 429 Too Many Requests\r\nX-Mixed: A\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 6\r\nconnection: close\r\n\r\n";
    expect(bytes.equals(Buffer.concat([Buffer.from(head), Buffer.from("ab€")]))).toBe(true);
    expect(ended).toBe("fin");
    expect(provider.ledger()).toMatchObject([{ status: 429, outcome: "scripted", bytes: bytes.length }]);
  });

  it("frames chunks one by one when the script gives no length", async () => {
    const provider = await start();
    provider.script({ status: 200, chunks: [{ utf8: "ab" }, { utf8: "" }, { utf8: "c" }], end: "close" });
    const { bytes } = await rawExchange(provider, rawPost(chatBody("x")));
    expect(bytes.toString().split("\r\n\r\n").slice(1).join("\r\n\r\n")).toBe("2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  });

  it("fills in HTTP dates", async () => {
    const provider = await start();
    provider.script({ status: 503, headers: { "retry-after": "{{httpdate+7}}" }, end: "close" });
    const before = Date.now();
    const reply = await post(poolTo(provider), chatBody("x"));
    const deltaS = (Date.parse(String(reply.headers["retry-after"])) - before) / 1000;
    expect(deltaS).toBeGreaterThan(5);
    expect(deltaS).toBeLessThan(60);
  });

  it("resets after the bytes, and before any byte when there is no status", async () => {
    const provider = await start();
    provider.script({ status: 200, chunks: [{ utf8: "half" }], end: "reset" });
    provider.script({ end: "reset" });
    provider.script({ end: "close" });
    const half = await rawExchange(provider, rawPost(chatBody("x")));
    expect(half.ended).toBe("rst");
    expect(half.bytes.toString()).toContain("4\r\nhalf\r\n");
    expect(await rawExchange(provider, rawPost(chatBody("x")))).toEqual({ bytes: Buffer.alloc(0), ended: "rst" });
    expect(await rawExchange(provider, rawPost(chatBody("x")))).toEqual({ bytes: Buffer.alloc(0), ended: "fin" });
  });

  it("hangs until the client leaves, which the ledger tells", async () => {
    const provider = await start();
    provider.script({ status: 200, chunks: [{ utf8: "x" }], end: "hang" });
    const leaving = new AbortController();
    const reply = await poolTo(provider).request({
      method: "POST",
      path: "/v1/chat/completions",
      body: chatBody("x"),
      signal: leaving.signal,
    });
    await reply.body.once("readable", () => leaving.abort());
    await until(() => provider.stats().inProgress === 0);
    expect(provider.ledger()).toMatchObject([{ outcome: "scripted", clientClosed: true, status: 200 }]);
  });

  it("closes an idle kept socket when told, and resets a reused one but serves the fresh one", async () => {
    const provider = await start();
    const good = { status: 200, chunks: [{ utf8: "{}" }], end: "close" as const };
    provider.script({ ...good, keepAlive: true });
    provider.script({ reusedSocket: "reset-before-response", freshSocket: { ...good, status: 201 } });
    const pool = new Pool(provider.origin, { connections: 1 });
    pools.push(pool);
    expect((await post(pool, chatBody("one"))).status).toBe(200);
    await expect(post(pool, chatBody("two"))).rejects.toThrow();
    expect((await post(pool, chatBody("two"))).status).toBe(201);
    provider.script({ ...good, keepAlive: true, closeIdleAfterMs: 1 });
    await post(pool, chatBody("three"));
    await until(() => provider.stats().connections === 0);
  });

  it("plays queued scripts in order and as often as told, then the permanent one, then answers again", async () => {
    const provider = await start();
    const pool = poolTo(provider);
    const withStatus = (status: number) => ({ status, end: "close" as const });
    provider.script(withStatus(500), "always");
    provider.script(withStatus(501), 2);
    provider.script(withStatus(502));
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) statuses.push((await post(pool, chatBody("x"))).status);
    provider.clearScripts();
    statuses.push((await post(pool, chatBody("x"))).status);
    expect(statuses).toEqual([501, 501, 502, 500, 500, 200]);
    expect(() => provider.script(withStatus(500), 0)).toThrow(RangeError);
  });
});

describe("limits and faults", () => {
  it("refuses over its limits with 429 and the usual headers, and says nothing when told not to", async () => {
    const pool = poolTo(await start({ limits: { rpm: 2, tpm: 1000 } }));
    const first = await post(pool, chatBody("x"));
    expect(first.headers).toMatchObject({ "x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "1" });
    await post(pool, chatBody("x"));
    const refused = await post(pool, chatBody("x"));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(25);
    expect(Number(refused.headers["retry-after-ms"])).toBeGreaterThan(25_000);
    const silent = poolTo(await start({ limits: { rpm: 1, announce: false } }));
    await post(silent, chatBody("x"));
    const quiet = await post(silent, chatBody("x"));
    expect(quiet.status).toBe(429);
    expect(Object.keys(quiet.headers).filter((name) => /retry|ratelimit/.test(name))).toEqual([]);
  });

  it("counts requests in progress", async () => {
    const provider = await start({ limits: { maxConcurrency: 1 }, faults: { hangRate: 1, hangAt: "start" } });
    const pool = poolTo(provider);
    const hanging = post(pool, chatBody("x"));
    await until(() => provider.stats().inProgress === 1);
    expect((await post(pool, chatBody("x"))).status).toBe(429);
    await provider.stop();
    await expect(hanging).rejects.toThrow();
    expect(provider.ledger().map(({ outcome, clientClosed }) => [outcome, clientClosed])).toEqual([
      ["hang", false],
      ["limit_exceeded", false],
    ]);
  });

  it("draws the same fates for the same seed, others for another", async () => {
    const faults = { errorRate: 0.2, rateLimitRate: 0.2, cutRate: 0.2, resetRate: 0.2 };
    const fates = async (seed: number): Promise<string[]> => {
      const provider = await start({ seed, faults });
      const pool = poolTo(provider);
      for (let i = 0; i < 40; i++) await post(pool, chatBody("x", { stream: i % 2 === 0 })).catch(() => undefined);
      return provider
        .ledger()
        .map(({ outcome, status, completionTokens }) => `${outcome} ${status} ${completionTokens}`);
    };
    const first = await fates(7);
    expect(await fates(7)).toEqual(first);
    expect(await fates(8)).not.toEqual(first);
    for (const outcome of ["answered", "error", "rate_limited", "cut", "reset"]) {
      expect(first.some((fate) => fate.startsWith(`${outcome} `))).toBe(true);
    }
  });

  it("never sends a finish reason or the terminator on a cut stream, nor a whole body on a cut answer", async () => {
    const provider = await start({ faults: { cutRate: 1 } });
    const pool = poolTo(provider);
    for (let i = 0; i < 30; i++) {
      const whole = await post(pool, chatBody("x", { stream: true })).catch(() => null);
      expect(whole?.text ?? "").not.toMatch(/\[DONE\]|"finish_reason":"/);
      await expect(post(pool, chatBody("x"))).rejects.toThrow();
    }
  });

  it("hangs in the middle of a stream with its tokens counted", async () => {
    const provider = await start({ faults: { hangRate: 1, hangAt: "middle" }, output: { medianTokens: 200 }, seed: 3 });
    const leaving = new AbortController();
    const reply = await poolTo(provider).request({
      method: "POST",
      path: "/v1/chat/completions",
      body: chatBody("x", { stream: true }),
      signal: leaving.signal,
    });
    reply.body.once("readable", () => leaving.abort());
    await until(() => provider.stats().inProgress === 0);
    const [entry] = provider.ledger();
    expect(entry).toMatchObject({ outcome: "hang", clientClosed: true, status: 200 });
    expect(entry?.completionTokens).toBeGreaterThan(0);
    expect(entry?.completionTokens).toBeLessThan(200);
    expect(entry?.billedTokens).toBe((entry?.promptTokens ?? 0) + (entry?.completionTokens ?? 0));
  });

  it("changes faults while running, each group from its defaults", async () => {
    const provider = await start({ faults: { deadKey: true } });
    const pool = poolTo(provider);
    expect((await post(pool, chatBody("x"))).status).toBe(401);
    provider.change({ faults: { errorRate: 1 } });
    expect((await post(pool, chatBody("x"))).status).toBeGreaterThanOrEqual(500);
    provider.change({ faults: {}, limits: { rpm: 1 } });
    expect((await post(pool, chatBody("x"))).status).toBe(200);
    expect((await post(pool, chatBody("x"))).status).toBe(429);
    expect(() => provider.change({ faults: { errorRate: 2 } })).toThrow(ConfigError);
  });

  it("goes down and comes back on the same port", async () => {
    const provider = await start();
    const pool = poolTo(provider);
    await post(pool, chatBody("x"));
    await provider.setOutage("503");
    expect((await post(pool, chatBody("x"))).status).toBe(503);
    await provider.setOutage("refuse");
    await expect(post(pool, chatBody("x"))).rejects.toThrow();
    expect(provider.stats().connections).toBe(0);
    await provider.setOutage("off");
    expect((await post(pool, chatBody("x"))).status).toBe(200);
  });

  it("answers nothing before it has been up for slowStartMs", async () => {
    const due: (() => void)[] = [];
    let nowMs = 0;
    const clock = {
      now: () => nowMs,
      wallNow: () => 1_700_000_000_000 + nowMs,
      setTimer(_delayMs: number, callback: () => void) {
        due.push(callback);
        return () => undefined;
      },
    };
    const provider = await start({ faults: { slowStartMs: 5_000 }, clock });
    const pool = poolTo(provider);
    const waiting = post(pool, chatBody("x"));
    await until(() => due.length === 1);
    expect(provider.stats().inProgress).toBe(1);
    nowMs = 5_000;
    due[0]?.();
    expect((await waiting).status).toBe(200);
    expect((await post(pool, chatBody("x"))).status).toBe(200);
    await provider.setOutage("503");
    await provider.setOutage("off");
    const afterOutage = post(pool, chatBody("x"));
    await until(() => due.length === 2);
    nowMs = 10_000;
    due[1]?.();
    expect((await afterOutage).status).toBe(200);
  });
});

describe("ledger", () => {
  it("tells what arrived, keys masked, also in its file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "pgw-ledger-"));
    try {
      const file = join(folder, "ledger.jsonl");
      const provider = await start({ name: "alpha", ledger: { file } });
      const pool = poolTo(provider);
      await post(pool, chatBody("x", { max_tokens: 50 }), {
        authorization: "Bearer sk-secret-key-abcd",
        "x-request-id": "call-1",
      });
      await post(pool, "{");
      provider.flushLedger();
      expect(await readLedger(file)).toEqual(provider.ledger());
      expect(provider.ledger()).toMatchObject([
        { provider: "alpha", id: 1, status: 200, apiKey: "sk-…abcd", requestId: "call-1", maxTokens: 50 },
        { provider: "alpha", id: 2, status: 400, apiKey: "", requestId: null, billedTokens: 0 },
      ]);
      for (const entry of provider.ledger()) expect(entry.endedAtMs).toBeGreaterThanOrEqual(entry.arrivedAtMs);
      expect(await readFile(file, "utf8")).not.toContain("secret");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("keeps only the newest entries in memory when bounded", async () => {
    const provider = await start({ ledger: { keep: 3 } });
    const pool = poolTo(provider);
    for (let i = 0; i < 10; i++) await post(pool, chatBody("x"));
    expect(provider.ledger().map(({ id }) => id)).toEqual([8, 9, 10]);
    expect(provider.stats()).toMatchObject({ arrived: 10, ledgerDropped: 7 });
  });
});

describe("start and stop", () => {
  it("reports every bad option at once and a taken port", async () => {
    const bad = startSimulatedProvider({
      port: -1,
      faults: { errorRate: 0.8, cutRate: 0.7 },
      limits: { rpm: Number.NaN },
    });
    await expect(bad).rejects.toThrow(ConfigError);
    await bad.catch((error: ConfigError) => {
      expect(error.problems.map(({ key }) => key)).toEqual(["port", "limits.rpm", "faults.errorRate + faults.cutRate"]);
    });
    const provider = await start();
    await expect(startSimulatedProvider({ port: provider.port })).rejects.toThrow(/EADDRINUSE/);
  });

  it("refuses options that it doesn't know, and says which was meant", async () => {
    const problemsOf = async (options: object): Promise<string[]> => {
      const error: unknown = await startSimulatedProvider(options).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConfigError);
      expect(String(error)).not.toContain("sk-canary");
      return (error as ConfigError).problems.map(({ key, remedy }) => `${key}: ${remedy}`);
    };
    const [ttft, foo] = await problemsOf({ ttftMs: 200, foo: 1 });
    expect(ttft).toMatch(/^ttftMs: Known are .*latency\.ttftMedianMs/);
    expect(foo).toMatch(/^foo: Known are name, host/);
    expect(await problemsOf({ rpm: 5, apiKey: "sk-canary-5f1e0c9a" })).toEqual([
      "rpm: Did you mean limits.rpm?",
      "apiKey: Did you mean apiKeys?",
    ]);
    expect(await problemsOf({ faults: { errorrate: 0.5 }, latency: { rpm: 1 } })).toEqual([
      "faults.errorrate: Did you mean faults.errorRate?",
      "latency.rpm: Did you mean limits.rpm?",
    ]);
    expect(await problemsOf({ latency: 200, limits: null })).toEqual([
      "latency: Give an object with ttftMedianMs, ttftSigma, tokenMs",
      "limits: Give an object with rpm, tpm, maxConcurrency, rule, bucketSeconds, announce",
    ]);
    const provider = await start();
    expect(() => provider.change({ fautls: {} } as object)).toThrow("Did you mean faults?");
    const undefinedIsAbsent: object = { latency: undefined, seed: undefined };
    await start(undefinedIsAbsent);
  });

  it("lets answers end within the grace time, but waits for no hanging one", async () => {
    const provider = await start({ latency: { ttftMedianMs: 50 } });
    const pool = poolTo(provider);
    const slow = post(pool, chatBody("slow"));
    await until(() => provider.stats().inProgress === 1);
    await provider.stop({ graceMs: 60_000 });
    expect((await slow).status).toBe(200);
    const hanging = await start({ faults: { hangRate: 1, hangAt: "start" } });
    const lost = post(poolTo(hanging), chatBody("lost")).catch(() => "reset");
    await until(() => hanging.stats().inProgress === 1);
    await hanging.stop({ graceMs: 60_000 });
    expect(await lost).toBe("reset");
    expect(hanging.stats().connections).toBe(0);
  });

  it("cuts the grace time short when told to stop again", async () => {
    const provider = await start({ latency: { ttftMedianMs: 3_600_000 } });
    const lost = post(poolTo(provider), chatBody("x")).catch(() => "lost");
    await until(() => provider.stats().inProgress === 1);
    const graceful = provider.stop({ graceMs: 3_600_000 });
    await provider.stop();
    await graceful;
    expect(await lost).toBe("lost");
    expect(provider.ledger()).toMatchObject([{ outcome: "stopped", clientClosed: false }]);
  });

  it("can be stopped twice and leaves no socket", async () => {
    const provider = await start();
    await post(poolTo(provider), chatBody("x"));
    await Promise.all([provider.stop(), provider.stop()]);
    expect(provider.stats().connections).toBe(0);
  });
});
