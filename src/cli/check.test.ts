import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { Command } from "commander";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registerCheck } from "./check.js";
import { CliError } from "./failure.js";

const KEY = "sk-canary-5f1e0c9a77d3";
const GOOD = { LLM__QWEN__1__BASE_URL: "http://127.0.0.1:9/v1", LLM__QWEN__1__API_KEY: KEY, LLM__QWEN__1__MODEL: "m" };

async function check(env: Record<string, string>, ...args: string[]): Promise<{ output: string; error: unknown }> {
  let output = "";
  const stream = { write: (text: string) => (output += text), isTTY: false };
  const terminal = { stdout: stream, stderr: stream, stdin: new PassThrough(), env, onInterrupt: () => () => {} };
  const program = new Command().exitOverride();
  registerCheck(program, { terminal, exitCode: 0 });
  try {
    await program.parseAsync(["check", ...args], { from: "user" });
    return { output, error: undefined };
  } catch (error) {
    return { output, error };
  }
}

test("shows sources, limits and what they mean, the key masked", async () => {
  const { output, error } = await check({
    ...GOOD,
    LLM__QWEN__1__RPM: "60",
    LLM__GLOBAL__RPM: "30",
    OCR__X__1__BASE_URL: "http://h",
    OCR__X__1__API_KEY: "none",
    OCR__X__1__MODEL: "m",
    OCR__X__1__RPM: "60",
    OCR__X__1__STRICT: "off",
  });
  expect(error).toBeUndefined();
  expect(output).toContain("sk-…77d3");
  expect(output).not.toContain("canary");
  expect(output).toContain("limits of qwen_1: 60 requests/min (burst 4, then one each 1.06 s; 60 in the first minute)");
  expect(output).toContain("at most 64 in any 60 s (limit + burst)");
  expect(output).toContain("Scope OCR");
  expect(output).toContain("selector: health_aware\n");
  expect(output).not.toContain("SELECTOR");
  expect(output).toContain("warning  LLM__QWEN__1__RPM: 60 is above LLM__GLOBAL__RPM = 30");
  expect(output).not.toContain("\u001b[");
});

test("shows the profile and what a default of thinking sends", async () => {
  const qwen = { ...GOOD, LLM__QWEN__1__THINKING: "4096", LLM__QWEN__1__PROFILE: '{"extends":"qwen","notes":[]}' };
  const shown = await check(qwen);
  expect(shown.error).toBeUndefined();
  expect(shown.output).toContain("qwen (your own)");
  expect(shown.output).toContain(
    'thinking of qwen_1: {"budgetTokens":4096}, sends {"enable_thinking":true,"thinking_budget":4096}',
  );
  const vllm = await check({ ...GOOD, LLM__QWEN__1__THINKING: "off", LLM__QWEN__1__PROFILE: "vllm" });
  expect(vllm.output).toContain("note  LLM__QWEN__1__THINKING: how profile vllm asks for it is not confirmed");
  expect(vllm.output).not.toContain("your own");
  const own = '{"extends":"vllm","thinking":[{"off":{"enable":false}}]}';
  const stated = await check({ ...GOOD, LLM__QWEN__1__THINKING: "off", LLM__QWEN__1__PROFILE: own });
  expect(stated.output).not.toContain("not confirmed");
  const other = await check({
    ...GOOD,
    LLM__QWEN__1__THINKING: "off",
    LLM__QWEN__1__PROFILE: own.replace("thinking", "notes").replace(/\[.*\]/, "[]"),
  });
  expect(other.output).toContain("not confirmed");
  const extra = { ...qwen, LLM__QWEN__1__EXTRA_BODY: '{"enable_thinking": false}' };
  expect((await check(extra)).output).toContain("warning  LLM__QWEN__1__THINKING: is overruled by");
  const bad = await check({ ...GOOD, LLM__QWEN__1__THINKING: "off", LLM__QWEN__1__MODEL: "o3" });
  expect(bad.output).toContain("can't be done: o3 can't be kept from thinking");
  expect(bad.error).toBeInstanceOf(CliError);
});

test("shows the cache of scopes for chat, never its salt", async () => {
  const cache = { LLM__CACHE__BACKEND: "memory", LLM__CACHE__TTL_S: "600", LLM__CACHE__SALT: "canary-pepper" };
  const env = { ...GOOD, ...EMBED, ...cache };
  const { output, error } = await check({ ...env, LLM__CACHE__NAMESPACE: "team", LLM__CACHE__COALESCE: "off" });
  expect(error).toBeUndefined();
  expect(output).toMatch(
    /cache: backend memory, ttl 10m 00s, at most [\d,]+ bytes, namespace yes, salt yes, coalesce off\n/,
  );
  expect(output.split("cache: ")).toHaveLength(2);
  const shared = await check({ ...GOOD, LLM__CACHE__COALESCE: "on" });
  expect(shared.output).toContain("cache: backend none, namespace no, salt no, coalesce on\n");
  expect((await check({ ...GOOD, LLM__CACHE__COALESCE: "off" })).output).not.toContain("cache: ");
  const json = await check(env, "--json");
  expect(json.output).not.toContain("canary");
  const { scopes } = JSON.parse(json.output);
  const [llm, embed] = ["LLM", "EMBED"].map((name) => scopes.find(({ scope }: { scope: string }) => scope === name));
  expect(llm.cache).toEqual({
    backend: "memory",
    ttlMs: 600_000,
    maxBytes: expect.any(Number),
    namespace: "",
    coalesce: expect.any(Boolean),
  });
  expect(embed.cache).toBeNull();
});

test("shows the selector and which adaptive rules are on; nothing of it without sources", async () => {
  const usual = await check(GOOD);
  expect(usual.output).toContain("selector: health_aware\n");
  expect(usual.output).toMatch(/scheduling: on pacer size_matching .*learn_tokens, off hedge affinity\n/);
  const prefix = "LLM__SCHEDULING__";
  const chosen = { [`${prefix}PACER`]: "off", [`${prefix}HEDGE`]: "on", [`${prefix}PREFETCH_S`]: "0.25" };
  const { output } = await check({ ...GOOD, ...chosen, LLM__SELECTOR: "round_robin" });
  expect(output).toContain("selector: round_robin\n");
  expect(output).toMatch(/scheduling: on size_matching evacuate hedge .*, off pacer affinity, prefetch 250 ?ms\n/);
  const { scopes } = JSON.parse((await check({ ...GOOD, ...chosen }, "--json")).output);
  expect(scopes[0].scheduling).toMatchObject({ pacer: false, hedge: true, prefetchMs: 250, priceWeight: 0 });
  expect((await check({})).output).not.toContain("scheduling");
});

test("a price weight without prices gets a warning", async () => {
  const weighed = { ...GOOD, LLM__SCHEDULING__PRICE_WEIGHT: "0.5" };
  const warning = "warning  LLM__SCHEDULING__PRICE_WEIGHT: 0.5 has no effect without a price table";
  expect((await check(weighed)).output).toContain(warning);
  expect((await check(weighed)).output).toContain("price weight 0.5");
  expect((await check({ ...weighed, PGW_PRICING_PATH: "/nonexistent/prices.json" })).output).not.toContain(warning);
  expect((await check(GOOD)).output).not.toContain("price weight");
});

test("tells all problems of all scopes, and fails with exit code 1", async () => {
  const env = { ...GOOD, LLM__QWEN__1__RPM: "x", OCR__X__1__BASE_URL: "h", PGW_JOURNAL: "never" };
  const { output, error } = await check(env);
  expect(error).toBeInstanceOf(CliError);
  expect((error as CliError).exitCode).toBe(1);
  for (const key of ["LLM__QWEN__1__RPM", "OCR__X__1__BASE_URL", "OCR__X__1__MODEL", "PGW_JOURNAL"])
    expect(output).toContain(key);
  expect(output.split("PGW_JOURNAL =")).toHaveLength(2);
  expect(output).not.toContain("canary");
});

test("--json is one object with the same content", async () => {
  const { output } = await check({ ...GOOD, LLM__QWEN__1__RPMM: "1" }, "--json");
  const report = JSON.parse(output) as Record<string, unknown>;
  expect(report).toMatchObject({ ok: false, problems: [{ key: "LLM__QWEN__1__RPMM" }], scopes: [{ scope: "LLM" }] });
  expect(output).not.toContain("canary");
});

test("an empty environment says what to set", async () => {
  const { output, error } = await check({});
  expect(error).toBeInstanceOf(CliError);
  expect(output).toContain("LLM__{PROVIDER}__1__BASE_URL");
});

test("a price table that can't be read is a problem", async () => {
  const { output, error } = await check({ ...GOOD, PGW_PRICING_PATH: "/nonexistent/prices.json" });
  expect(error).toBeInstanceOf(CliError);
  expect(output).toContain("/nonexistent/prices.json");
});

let server: Server;
let origin = "";
let asked = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    asked += 1;
    if (request.headers.authorization !== `Bearer ${KEY}`) {
      response.writeHead(401, { "content-type": "application/json" });
      response.end('{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}');
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    if (request.url === "/v1/embeddings") {
      response.end('{"data":[{"index":0,"embedding":[0.25,1,2]}],"usage":{"prompt_tokens":1,"total_tokens":1}}');
      return;
    }
    response.end(
      JSON.stringify({
        model: "m-2025",
        choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "ok" } }],
        usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

test("--live asks each source once and says which model answered, or why none did", async () => {
  const env = {
    LLM__A__1__BASE_URL: `${origin}/v1`,
    LLM__A__1__API_KEY: KEY,
    LLM__A__1__MODEL: "m",
    LLM__B__1__BASE_URL: `${origin}/v1`,
    LLM__B__1__API_KEY: "sk-wrong-000000000001",
    LLM__B__1__MODEL: "m",
  };
  asked = 0;
  const { output, error } = await check(env, "--live");
  expect(output).toMatch(/✓ a_1: m-2025 answered in/);
  expect(output).toMatch(/✗ b_1: .*Incorrect API key/);
  expect((error as CliError).message).toContain("b_1");
  expect((error as CliError).exitCode).toBe(1);
  expect(asked).toBe(2);
  expect(output).not.toMatch(/canary|wrong-0/);
});

test("--live asks nobody while something is wrong", async () => {
  asked = 0;
  const { error } = await check({ ...GOOD, LLM__QWEN__1__BASE_URL: `${origin}/v1`, LLM__QWEN__1__RPM: "x" }, "--live");
  expect((error as CliError).message).toContain("No source was asked");
  expect(asked).toBe(0);
});

const EMBED = {
  EMBED__A__1__BASE_URL: "http://127.0.0.1:9/v1",
  EMBED__A__1__API_KEY: KEY,
  EMBED__A__1__MODEL: "e",
  EMBED__BATCH_SIZE: "1000",
};

test("a scope with a batch size is one for embeddings, and its own settings are shown", async () => {
  const more = { EMBED__NORMALIZE: "on", EMBED__EXPECTED_DIM: "1024", EMBED__CONCURRENCY: "3" };
  const { output, error } = await check({ ...GOOD, ...EMBED, ...more });
  expect(error).toBeUndefined();
  expect(output).toMatch(
    /Scope EMBED[\s\S]*embeddings: 1.?000 texts a request, 3 requests of one embed\(\) at once \(of `polygateway embed` as many as the limits allow, at most 4\), width 1.?024, scaled/,
  );
  expect(output).not.toMatch(/later version|EmbeddingClient alone/);
  const broken = await check({ ...GOOD, ...EMBED, EMBED__BATCH_SIZE: "many", EMBED__A__1__EXTRA_BODY: "{}" });
  expect((broken.error as CliError).exitCode).toBe(1);
  expect(broken.output).toContain("EMBED__BATCH_SIZE");
});

test("--live asks a source of embeddings for a vector", async () => {
  const env = { ...EMBED, EMBED__A__1__BASE_URL: `${origin}/v1` };
  const { output, error } = await check(env, "--live");
  expect(error).toBeUndefined();
  expect(output).toMatch(/✓ a_1: answered in .* with a vector of 3 dimensions/);
  const wrong = await check({ ...env, EMBED__EXPECTED_DIM: "4" }, "--live");
  expect((wrong.error as CliError).exitCode).toBe(1);
  expect(wrong.output).toMatch(/✗ a_1: .*4 are expected/);
});

test("a scope for OCR shows how each source is asked, what it reads, and no times that it hasn't got", async () => {
  const source = (name: string, model: string, transport: string) => ({
    [`OCR__${name}__1__BASE_URL`]: "http://127.0.0.1:9/v1",
    [`OCR__${name}__1__API_KEY`]: "none",
    [`OCR__${name}__1__MODEL`]: model,
    [`OCR__${name}__1__TRANSPORT`]: transport,
  });
  const env = { ...source("A", "seen", "vlm"), ...source("B", "dots.ocr", "vlm"), ...source("C", "m", "mineru") };
  const { output, error } = await check({ ...EMBED, ...env });
  expect(error).toBeUndefined();
  expect(output).toMatch(/a_1 +seen .* vlm \(plain, openai\) +text alone/);
  expect(output).toMatch(/b_1 +dots\.ocr .* vlm \(dots-ocr, openai\) +text, layout/);
  expect(output).toMatch(/c_1 +m .* mineru +text, layout/);
  expect(output).not.toMatch(/first token|idle/);
});
