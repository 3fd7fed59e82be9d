import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createSystemRuntime } from "../src/backends/system.js";
import { GatewayClient, JsonlRecorder, MemoryCache, type Runtime } from "../src/index.js";
import { SqliteRecorder } from "../src/telemetry/sqlite.js";
import { makeFolder, startCli } from "./cli-harness.js";
import { call, type Way } from "./support/calls.js";
import { chatBody, DONE_EVENT, deltaEvent } from "./support/recording-server.js";
import { canary, echoesOf, everythingOf, formsOf, json, leaksIn } from "./support-hostile/canary.js";
import { JSON_HEAD, type RawRespond, SSE_HEAD, startRawServer, statusHead } from "./support-hostile/raw-server.js";

/**
 * A canary in every slot that takes a secret, every kind of failure with the secrets echoed in every form, and a search in
 * everything that comes out (F82). `scripts/test.mjs` searches the output and the temporary files of the whole run.
 */

const SLOTS = {
  key: canary("key"),
  header: canary("header"),
  plain: canary("plain"),
  basic: canary("basic"),
  cookie: canary("cookie"),
  salt: canary("salt"),
  proxy: canary("proxy"),
  file: canary("file"),
  dsn: canary("dsn"),
};
const SECRETS = Object.values(SLOTS);
const HEADERS = {
  "x-api-key": SLOTS.header,
  "x-team": SLOTS.plain,
  "x-basic": `Basic ${Buffer.from(`user:${SLOTS.basic}`).toString("base64")}`,
  cookie: `session=${SLOTS.cookie}; theme=dark`,
};
const folder = mkdtempSync(join(tmpdir(), "polygateway-secrets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a provider was sent, or may have seen on the way. */
const SENT = [SLOTS.key, SLOTS.header, SLOTS.plain, SLOTS.basic, SLOTS.cookie, SLOTS.proxy];
const ECHO = SENT.flatMap(echoesOf).join(" ");
const quoted = JSON.stringify(ECHO).slice(1, -1);
const cut = `${"p".repeat(4_085)}${SLOTS.key}`;

const refusing =
  (status: number, headers: Record<string, string> = {}): RawRespond =>
  (socket) =>
    void socket.end(
      statusHead(status, { "content-type": "application/json", ...headers }) +
        JSON.stringify({ error: { message: ECHO, code: SLOTS.key, param: SLOTS.header, cut } }),
    );

/** Every kind of end that an attempt can have. */
const FAILURES: readonly (readonly [string, RawRespond])[] = [
  ...[301, 400, 401, 402, 403, 404, 413, 422, 429, 500, 503].map(
    (status) => [String(status), refusing(status, { location: `http://x/?${SLOTS.key}` })] as const,
  ),
  ["text refusal", (socket) => void socket.end(`${statusHead(400)}${"t".repeat(290)}${SLOTS.key} ${ECHO}`)],
  [
    "page",
    (socket) =>
      void socket.end(`${statusHead(200, { "content-type": "text/html" })}<html><title>${SLOTS.key}</title>${ECHO}`),
  ],
  ["malformed", (socket) => void socket.end(`${JSON_HEAD}{"unexpected":"${quoted}"}`)],
  ["no JSON", (socket) => void socket.end(`${JSON_HEAD}${ECHO}`)],
  ["embedded", (socket) => void socket.end(`${JSON_HEAD}{"error":{"message":"${quoted}"}}`)],
  ["error event", (socket) => void socket.end(`${SSE_HEAD}${deltaEvent("so far")}event: error\ndata: ${ECHO}\n\n`)],
  ["bad frame", (socket) => void socket.end(`${SSE_HEAD}data: {"${quoted}"}}\n\n`)],
  [
    "odd end",
    (socket) =>
      void socket.end(
        `${SSE_HEAD}data: {"choices":[{"index":0,"delta":{},"finish_reason":"${"f".repeat(90)}${SLOTS.key}"}]}\n\n${DONE_EVENT}`,
      ),
  ],
  ["cut", (socket) => void socket.end(`${SSE_HEAD}${deltaEvent("so far")}`)],
  ["coding", (socket) => void socket.end(`${statusHead(200, { "content-encoding": SLOTS.key })}x`)],
  ["bad HTTP", (socket) => void socket.end(`HTTP/1.1 ${SLOTS.key}\r\n\r\n`)],
  ["bad header", (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${SLOTS.key} : \u0001\r\n\r\n`)],
  ["reset", (socket) => void socket.resetAndDestroy()],
  ["silence", () => {}],
  ["answer", (socket) => void socket.end(JSON_HEAD + chatBody("fine", { model: SLOTS.key }))],
];

interface Loud {
  readonly runtime: Runtime;
  readonly lines: string[];
}

function loud(): Loud {
  const lines: string[] = [];
  return { lines, runtime: createSystemRuntime({ log: (...entry) => void lines.push(json(entry)) }) };
}

describe.each(["chat", "stream"] as const)("%s()", (way: Way) => {
  it.each(FAILURES)(
    "F82 %s: no secret in the error, the rows, the log, the snapshot or a file",
    async (name, respond) => {
      await using server = await startRawServer(respond);
      const { lines, runtime } = loud();
      const place = mkdtempSync(join(folder, `${way}-`));
      const source = {
        name: "s_1",
        baseUrl: server.baseUrl,
        apiKey: SLOTS.key,
        headers: HEADERS,
        model: "m",
        timeoutMs: 500,
        ttftTimeoutMs: 500,
        interTokenTimeoutMs: 500,
      };
      const client = new GatewayClient({
        scope: "LLM",
        sources: [source],
        runtime,
        cache: { store: new MemoryCache(), salt: SLOTS.salt },
        retry: { maxAttempts: 2, backoffBaseMs: 1, maxRateLimited: 1 },
        proxyEnv: { httpProxy: `http://u:${SLOTS.proxy}@127.0.0.1:1`, noProxy: "127.0.0.1" },
        telemetry: [new SqliteRecorder(join(place, "t.db")), new JsonlRecorder(join(place, "t.jsonl"))],
      });
      const outcome = await call(client, way, { messages: [{ role: "user", content: "hi" }], cacheSalt: SLOTS.salt });
      expect(outcome.error === undefined).toBe(name === "answer");
      const seen = [everythingOf(outcome.error), everythingOf(client), json(await client.snapshot()), ...lines];
      await client.close();
      for (const file of readdirSync(place)) seen.push(readFileSync(join(place, file), "latin1"));
      expect(leaksIn(seen.join("\n"), SECRETS)).toEqual([]);
      expect(server.requests.length).toBeGreaterThan(0);
    },
  );

  it.each([
    "http://u:%@127.0.0.1:1",
    "http://u:%@exa mple:1",
    "u:%@127.0.0.1:1",
    "::%",
    "http://u:%%zz@h:1",
    "socks9://u:%@h:1",
  ])("F82 a proxy that can't be used, %s, keeps its password", async (address) => {
    const { lines, runtime } = loud();
    const source = { name: "s_1", baseUrl: "http://127.0.0.1:9/v1", apiKey: SLOTS.key, model: "m" };
    const seen: string[] = [];
    try {
      const proxyEnv = { httpProxy: address.replace("%", SLOTS.proxy) };
      const client = new GatewayClient({
        scope: "LLM",
        sources: [source],
        runtime,
        proxyEnv,
        retry: { maxAttempts: 1 },
      });
      const { error } = await call(client, way, { messages: [{ role: "user", content: "hi" }] });
      expect(error).toBeInstanceOf(Error);
      seen.push(everythingOf(error));
      await client.close();
    } catch (error) {
      seen.push(everythingOf(error));
    }
    expect(leaksIn([...seen, ...lines].join("\n"), SECRETS)).toEqual([]);
  });
});

describe("configurations with something wrong in them", () => {
  const good = { LLM__S__1__BASE_URL: "http://127.0.0.1:9/v1", LLM__S__1__API_KEY: SLOTS.key, LLM__S__1__MODEL: "m" };
  const file = join(folder, "secret-file");
  writeFileSync(file, `${SLOTS.file}\nand a second line`);
  const wrong: readonly Record<string, string>[] = [
    { ...good, LLM__S__1__API_KEY: `${SLOTS.key}\n` },
    { ...good, LLM__S__1__API_KEY: ` ${SLOTS.key}` },
    { ...good, LLM__S__1__API_KEYS: SLOTS.header },
    { ...good, LLM__S__1__BASE_URL: `http://u:${SLOTS.header}@h/v1` },
    { ...good, LLM__S__1__BASE_URL: `http://h/v1?key=${SLOTS.header}` },
    { ...good, LLM__S__1__BASE_URL: SLOTS.header },
    { ...good, LLM__S__1__HEADERS: `{"x-a":"${SLOTS.header}` },
    { ...good, LLM__S__1__HEADERS: JSON.stringify({ "x-a": `${SLOTS.header}\n` }) },
    { ...good, LLM__S__1__HEADERS: SLOTS.header },
    { ...good, LLM__S__1__EXTRA_BODY: `{"api_key":"${SLOTS.header}"` },
    { ...good, LLM__S__1__RPM: SLOTS.key },
    { ...good, LLM__CACHE__SALT: `${SLOTS.salt}\n`, LLM__RETRY__MAX_ATTEMPTS: "-1" },
    { ...good, PGW_TELEMETRY_PG_DSN: `postgres://u:${SLOTS.dsn}@h/d`, PGW_LEASE_TTL_S: "x" },
    { ...good, REDIS_URL: `redis://u:${SLOTS.dsn}@h`, PGW_LIMITER_BACKEND: "redis", PGW_BREAKER_BACKEND: "memory" },
    { LLM__S__1__BASE_URL: "http://127.0.0.1:9/v1", LLM__S__1__MODEL: "m", LLM__S__1__API_KEY_FILE: file },
    { LLM__S__1__BASE_URL: "http://127.0.0.1:9/v1", LLM__S__1__MODEL: "m", LLM__S__1__API_KEY_FILE: SLOTS.file },
  ];

  it.each(wrong.map((env, index) => [index + 1, env] as const))(
    "F82 no. %i: neither the error nor `check` shows it",
    async (_number, env) => {
      let error: unknown;
      try {
        await GatewayClient.fromEnv("LLM", { env }).close();
      } catch (refused) {
        error = refused;
      }
      expect(error).toBeInstanceOf(Error);
      const place = makeFolder();
      // A dotenv file is one more slot.
      writeFileSync(
        join(place.path, ".env"),
        Object.entries(env)
          .map(([name, value]) => `${name}='${value}'`)
          .join("\n"),
      );
      const { stdout, stderr, code } = await startCli(["check"], { folder: place.path }).finished;
      const asJson = await startCli(["check", "--json"], { folder: place.path }).finished;
      expect(code).toBe(1);
      place.remove();
      expect(leaksIn([everythingOf(error), stdout, stderr, asJson.stdout, asJson.stderr].join("\n"), SECRETS)).toEqual(
        [],
      );
    },
  );
});

it("the search finds what it is made for", () => {
  for (const form of formsOf(SLOTS.key)) expect(leaksIn(`before ${form} after`, SECRETS)).not.toEqual([]);
  expect(leaksIn(everythingOf(new Error("x", { cause: new Error(SLOTS.key) })), SECRETS)).not.toEqual([]);
  expect(leaksIn(everythingOf(Object.assign(new Error("x"), { hidden: { deep: [SLOTS.key] } })), SECRETS)).not.toEqual(
    [],
  );
  expect(leaksIn("nothing", SECRETS)).toEqual([]);
});
