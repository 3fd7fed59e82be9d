import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createProgram } from "../../src/cli/program.js";
import { EmbeddingClient, JsonlRecorder, PricingTable, type Recorder } from "../../src/index.js";
import { SqliteRecorder } from "../../src/telemetry/sqlite.js";
import { startSimulatedProvider } from "../../src/testing/index.js";
import { fakeTerminal, makeFolder } from "../cli-harness.js";
import { readRecords } from "../support-batch/telemetry.js";

/** Rows of embeddings in a real store, read back by the commands. */

let folder: ReturnType<typeof makeFolder>;
beforeEach(() => {
  folder = makeFolder();
});
afterEach(() => folder.remove());

async function command(...args: string[]): Promise<string> {
  const terminal = fakeTerminal();
  const context = { terminal, exitCode: 0 };
  await createProgram(context).exitOverride().parseAsync(args, { from: "user" });
  expect(context.exitCode).toBe(0);
  return terminal.out();
}

const stores: [name: string, file: string, open: (path: string) => Recorder][] = [
  ["sqlite", "calls.db", (path) => new SqliteRecorder(path)],
  ["jsonl", "calls.jsonl", (path) => new JsonlRecorder(path)],
];

describe.each(stores)("in %s", (_name, file, open) => {
  it("report counts them, trace tells them, reconcile finds the books in order", async () => {
    const path = join(folder.path, file);
    await using provider = await startSimulatedProvider();
    provider.script({ status: 503, chunks: [{ utf8: "{}" }], end: "close" });
    const client = new EmbeddingClient({
      scope: "EMBED",
      sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "e" }],
      batchSize: 2,
      retry: { backoffBaseMs: 1 },
      pricing: new PricingTable({ e: { inputPer1M: 1_000_000, outputPer1M: 0 } }),
      telemetry: open(path),
      telemetryOptions: { journal: "before_send", durability: "sync" },
      proxyEnv: {},
    });
    const { cost, promptTokens } = await client.embed(["one", "two", "a third, secret text"], { sessionId: "s1" });
    expect([cost, promptTokens]).toEqual([7, 7]);
    await client.close();

    const { rows, outcomes, openAttempts } = await readRecords(path);
    expect(outcomes).toEqual({ transient: 1, success: 2 });
    expect(openAttempts).toBe(0);
    expect(rows.map((row) => [row.operation, row.completion_tokens, row.sampling])).toEqual([
      ["embedding", null, null],
      ["embedding", 0, null],
      ["embedding", 0, null],
    ]);

    const report = JSON.parse(await command("report", "--db", path, "--json"));
    expect(report.total).toMatchObject({ calls: 2, answered: 2, attempts: 3, cost: 7 });
    expect(report.total.tokens).toMatchObject({ prompt: 7, completion: 0 });
    const trace = await command("trace", "s1", "--db", path);
    expect(trace).toContain("embedding");
    expect(trace).not.toContain("secret");
    await command("reconcile", "--db", path);
  });
});

it("a provider's own ledger sees no more batches at once than the limit allows", async () => {
  await using provider = await startSimulatedProvider({ limits: { maxConcurrency: 3 }, latency: { ttftMedianMs: 5 } });
  await using client = new EmbeddingClient({
    scope: "EMBED",
    sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "e", maxConcurrency: 3 }],
    batchSize: 1,
    concurrency: 20,
    proxyEnv: {},
  });
  const lists = Array.from({ length: 4 }, (_, list) => Array.from({ length: 15 }, (_, at) => `${list}/${at}`));
  const results = await Promise.all(lists.map((texts) => client.embed(texts, { vectors: "float32" })));
  expect(provider.stats().outcomes).toEqual({ answered: 60 });
  const again = await client.embed(lists.flat());
  expect(results.flatMap(({ vectors }) => vectors.map((row) => [...row]))).toEqual(again.vectors);
});
