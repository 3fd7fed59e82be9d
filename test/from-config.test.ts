import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError, GatewayClient } from "../src/index.js";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";

/** `GatewayClient.fromConfig` over real HTTP, with files in a folder of its own. */

const KEY = "sk-canary-5f1e0c9a77d3";
let folder: string;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pgw-from-config-"));
  provider = await startSimulatedProvider();
});

afterEach(async () => {
  await provider.stop();
  rmSync(folder, { recursive: true, force: true });
});

function put(name: string, content: string | object): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const YAML = `
scopes:
  LLM:
    sources:
      - name: sim_1
        baseUrl: \${BASE_URL}
        apiKey: \${SIM_KEY}
        model: sim-model
        headers: { x-team: search }
process:
  telemetryBackends: [jsonl]
  jsonlPath: calls.jsonl
  pricingPath: prices.json
`;

const REQUEST = { messages: [{ role: "user" as const, content: "hello" }] };

test("calls with the file's sources, prices them, and writes the telemetry beside the file", async () => {
  put("prices.json", { "sim-model": { inputPer1M: 1, outputPer1M: 2 } });
  const path = put("polygateway.yaml", YAML);
  const client = GatewayClient.fromConfig(path, "LLM", { env: { BASE_URL: provider.baseUrl, SIM_KEY: KEY } });
  const reply = await client.chat(REQUEST);
  expect(reply.sourceName).toBe("sim_1");
  expect(reply.cost).toBeGreaterThan(0);
  await client.close();
  const rows = readFileSync(join(folder, "calls.jsonl"), "utf8");
  expect(rows).toContain('"sim_1"');
  expect(rows).not.toContain("canary");
});

test("is filled from a dotenv file where one is named; overrides win", async () => {
  put("prices.json", {});
  const path = put("polygateway.yaml", YAML.replace("[jsonl]", "none"));
  const dotenvPath = put("keys.env", `SIM_KEY=${KEY}\nBASE_URL=http://127.0.0.1:9/v1\n`);
  const sources = [{ name: "other_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model" }];
  const client = GatewayClient.fromConfig(path, "LLM", { env: {}, dotenvPath, overrides: { sources } });
  expect((await client.chat(REQUEST)).sourceName).toBe("other_1");
  await client.close();
});

test("throws one ConfigError with every problem, and never the key", () => {
  const path = put("polygateway.yaml", `${YAML}  nope: ${KEY}\n`.replace("model:", "modle:"));
  let error: unknown;
  try {
    GatewayClient.fromConfig(path, "LLM", { env: { SIM_KEY: KEY } });
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ConfigError);
  const keys = (error as ConfigError).problems.map(({ key }) => key.replace(/^.*:\d+ /, ""));
  expect(keys.sort()).toEqual([
    "process.nope",
    "scopes.LLM.sources[0].baseUrl",
    "scopes.LLM.sources[0].model",
    "scopes.LLM.sources[0].modle",
  ]);
  expect(inspect(error, { depth: 9 })).not.toContain("canary");
});
