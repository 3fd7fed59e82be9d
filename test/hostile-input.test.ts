import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { type ChatRequest, ConfigError, GatewayClient, PricingTable } from "../src/index.js";
import { startSimulatedProvider } from "../src/testing/index.js";
import { makeFolder, startCli } from "./cli-harness.js";
import { call, replyOf } from "./support/calls.js";
import { CANARY_KEY, caseClient, sourceOf } from "./support/case-client.js";
import { startRecordingServer } from "./support/recording-server.js";
import { hi, WAYS } from "./support-hostile/attack.js";

/** Faults F84, F85, F91 and F92 of the reference, and files that are none: what comes from configurations and callers. */

const folder = mkdtempSync(join(tmpdir(), "polygateway-hostile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function configErrorOf(work: () => unknown): ConfigError {
  try {
    work();
  } catch (error) {
    if (ConfigError.isInstance(error)) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

const BREAKS = ["\r\nx-evil: 1", "\n", "\0", "漢", "\u007f"];

describe("F84 header injection", () => {
  it.each(BREAKS.map((text) => [JSON.stringify(text), text] as const))(
    "F84 %s in a key, header, model or name is refused without the value",
    (_shown, text) => {
      const sources = [
        { apiKey: CANARY_KEY + text },
        { headers: { "x-a": CANARY_KEY + text } },
        { headers: { [`x-a${text}`]: CANARY_KEY } },
      ];
      for (const source of sources) {
        const error = configErrorOf(() => caseClient([sourceOf("s_1", "http://127.0.0.1:9/v1", source)]));
        expect(inspect(error, { depth: 10 })).not.toContain(CANARY_KEY.slice(3, 14));
      }
      configErrorOf(() => caseClient([sourceOf(`s_1${text}`, "http://127.0.0.1:9/v1")]));
      if (text !== "漢")
        configErrorOf(() => caseClient([sourceOf("s_1", "http://127.0.0.1:9/v1", { model: `m${text}` })]));
    },
  );

  it.each(WAYS)("F84 what a caller gives of %s() goes into the body alone", async (way) => {
    await using server = await startRecordingServer();
    const { client } = caseClient([sourceOf("s_1", server.baseUrl)]);
    const evil = "x\r\nx-evil: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    const request = {
      messages: [{ role: "user", content: evil }],
      sessionId: evil,
      extraBody: { metadata: { id: evil } },
    };
    await call(client, way, request as ChatRequest);
    expect(server.seen.map(({ method }) => method)).toEqual(["POST"]);
    expect(JSON.stringify(server.seen[0]?.headers)).not.toContain("evil");
    await client.close();
  });
});

describe("F85 addresses", () => {
  it.each(WAYS)("F85 no request of %s() chooses where it goes, nor its headers", async (way) => {
    await using server = await startRecordingServer();
    await using other = await startRecordingServer();
    const { client } = caseClient([sourceOf("s_1", server.baseUrl)]);
    const elsewhere = {
      base_url: other.baseUrl,
      api_base: other.baseUrl,
      extra_headers: { authorization: "Bearer evil" },
      host: "evil",
    };
    replyOf(await call(client, way, { ...hi, extraBody: { ...elsewhere, nested: elsewhere } }));
    expect(server.seen[0]?.headers.authorization).toBe(`Bearer ${CANARY_KEY}`);
    expect(server.seen[0]?.headers.host).toBe(`127.0.0.1:${server.port}`);
    expect(other.sockets.total).toBe(0);
    for (const field of ["baseUrl", "headers", "apiKey"]) {
      const { error } = await call(client, way, { ...hi, [field]: other.baseUrl } as ChatRequest);
      expect(error).toMatchObject({
        name: "RequestRejectedError",
        message: expect.stringContaining(`unknown field "${field}"`),
      });
    }
    await client.close();
  });

  it("F85 an address with another scheme, a user, a query or control characters is refused", () => {
    const addresses = [
      "file:///etc/passwd",
      "ftp://host/v1",
      "gopher://host",
      "http://user:pass@host/v1",
      "http://host/v1?key=x",
      "http://host/v1#x",
      "http://ho st/v1",
      "http://",
      "//host/v1",
      "javascript:alert(1)",
    ];
    for (const baseUrl of addresses) {
      const { problems } = configErrorOf(() => caseClient([sourceOf("s_1", baseUrl)]));
      expect(problems.map(({ key }) => key)).toEqual(["sources[0].baseUrl"]);
    }
  });
});

describe("F91 prototype pollution", () => {
  const evil = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') as Record<
    string,
    unknown
  >;

  it.each(WAYS)("F91 neither a request nor an answer of %s() changes a prototype", async (way) => {
    await using server = await startRecordingServer((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const text = '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}';
      for (let index = 0; index < 2; index += 1) {
        response.write(
          `data: {${text},"usage":{${text}},"choices":[{"index":0,${text},"logprobs":{${text},"content":[{${text}}]},"delta":{${text},"content":"a","tool_calls":[{"index":0,"id":"__proto__",${text},"function":{"name":"__proto__","arguments":{${text}}}}]}}]}\n\n`,
        );
      }
      response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"__proto__"}]}\n\ndata: [DONE]\n\n');
    });
    const { client } = caseClient([sourceOf("s_1", server.baseUrl)]);
    const reply = replyOf(await call(client, way, { ...hi, extraBody: { metadata: evil, nested: { more: evil } } }));
    expect(reply.finishReason).toBe("unknown");
    expect(Object.getPrototypeOf(reply.logprobs ?? {})).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    await client.close();
  });

  it("F91 a configuration with such fields is refused, a price table with such models harms nothing", () => {
    for (const option of [{ extraBody: evil }, { headers: evil as Record<string, string> }]) {
      configErrorOf(() => caseClient([sourceOf("s_1", "http://127.0.0.1:9/v1", option)]));
    }
    const prices = JSON.parse(
      '{"__proto__":{"inputPer1M":1,"outputPer1M":1},"constructor":{"inputPer1M":1,"outputPer1M":1}}',
    );
    expect(new PricingTable(prices).has("toString")).toBe(false);
    expect(({} as { inputPer1M?: unknown }).inputPer1M).toBeUndefined();
  });
});

/** A pipe that nobody writes to: whoever opens it waits for ever. */
function makePipe(name: string): string {
  const path = join(folder, name);
  execFileSync("mkfifo", [path]);
  return path;
}

describe.skipIf(process.platform === "win32")("a path that names no file", () => {
  const pipe = process.platform === "win32" ? "" : makePipe("pipe");
  const env = { LLM__S__1__BASE_URL: "http://127.0.0.1:9/v1", LLM__S__1__API_KEY: "none", LLM__S__1__MODEL: "m" };

  it("a pipe, a device or a folder is refused at once as prices, secret and dotenv file", () => {
    const folderPath = join(folder, "folder");
    mkdirSync(folderPath);
    const link = join(folder, "link");
    symlinkSync(pipe, link);
    for (const [path, what] of [
      [pipe, /is a pipe or a device/],
      [link, /is a pipe or a device/],
      ["/dev/zero", /is a pipe or a device/],
      [folderPath, /is a folder/],
    ] as const) {
      const { LLM__S__1__API_KEY: _key, ...rest } = env;
      const refused = [
        () => PricingTable.fromFile(path),
        () => GatewayClient.fromEnv("LLM", { env: { ...env, PGW_PRICING_PATH: path } }),
        () => GatewayClient.fromEnv("LLM", { env: { ...rest, LLM__S__1__API_KEY_FILE: path } }),
        () => GatewayClient.fromEnv("LLM", { env, dotenvPath: path }),
      ];
      for (const work of refused) expect(configErrorOf(work).message).toMatch(what);
    }
  });

  it("`check`, `report` and `mock --script` say so instead of waiting", async () => {
    const place = makeFolder();
    const commands = [["check"], ["report", "--db", pipe], ["mock", "--port", "0", "--script", pipe]];
    for (const args of commands) {
      const { code, stdout, stderr } = await startCli(args, {
        folder: place.path,
        env: { ...env, PGW_PRICING_PATH: pipe },
      }).finished;
      expect(stdout + stderr).toMatch(/is a pipe or a device/);
      expect(code).toBe(1);
    }
    place.remove();
  });
});

it("thousands of faulty prices are told as the first twenty and their number", () => {
  const path = join(folder, "prices.json");
  const entries = Array.from({ length: 5_000 }, (_, index) => [`model-${index}`, { inputPer1M: "x", outputPer1M: 1 }]);
  writeFileSync(path, JSON.stringify(Object.fromEntries(entries)));
  const { problems, message } = configErrorOf(() => PricingTable.fromFile(path));
  expect(problems).toHaveLength(21);
  expect(message).toContain("… and 4980 more problems of this kind");
});

it("the simulated provider answers a prompt of tens of MiB, and goes on", async () => {
  await using provider = await startSimulatedProvider();
  const { client } = caseClient([sourceOf("s_1", provider.baseUrl, { timeoutMs: 60_000, ttftTimeoutMs: 60_000 })], {
    retry: { maxAttempts: 1 },
  });
  for (const way of WAYS) {
    const giant = { messages: [{ role: "user", content: "word ".repeat(11_000_000) }] };
    expect(replyOf(await call(client, way, giant)).content).toMatch(/^Answer \w+ to: word word/);
    expect(replyOf(await call(client, way, hi)).content).toMatch(/ to: hi$/);
  }
  await client.close();
}, 120_000);
