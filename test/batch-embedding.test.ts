import { describe, expect, it } from "vitest";
import type { Finished } from "./cli-harness.js";
import { embeddingEnv, vectorsOf } from "./support-batch/embedding-lines.js";
import { expectExit1, summaryOf } from "./support-batch/provider-bench.js";
import { readRecords } from "./support-batch/telemetry.js";
import { useWorkersBench, workersCanRun, workersOf } from "./support-batch/workers-bench.js";

/** `polygateway batch` with lines for `/v1/embeddings`. */

interface EmbeddedLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly body: {
      readonly object: string;
      readonly model: string;
      readonly data: readonly { readonly object: string; readonly index: number; readonly embedding: unknown }[];
      readonly usage: Record<string, number>;
    };
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

const line = (id: string, body: object): string =>
  JSON.stringify({ custom_id: id, method: "POST", url: "/v1/embeddings", body });

describe.skipIf(!(await workersCanRun()))("batch of embedding lines", () => {
  const bench = useWorkersBench();
  const env = (more: Record<string, string> = {}): Record<string, string> => ({
    ...embeddingEnv(bench.provider.baseUrl, more),
    EMBED__SIM__1__MAX_CONCURRENCY: "4",
  });
  const batch = (args: readonly string[] = [], more: Record<string, string> = {}): Promise<Finished> =>
    bench.workspace.run(["batch", "in.jsonl", "-o", "out.jsonl", "--json", ...args], env(more));
  const out = (): EmbeddedLine[] => bench.out() as unknown as EmbeddedLine[];

  it("answers each with an OpenAI list: one text or several, floats or base64, of the width asked for", async () => {
    const lines = [
      line("one", { model: "sim-embed", input: "first text" }),
      line("two", { input: ["b", "a"], encoding_format: "base64", dimensions: 4, user: "u" }),
      JSON.stringify({ id: "short", input: "c" }),
      line("many", { input: Array.from({ length: 25 }, (_, at) => `text ${at}`) }),
    ];
    bench.workspace.write("in.jsonl", lines.join("\n"));
    const ended = await batch(["--ordered"]);
    expect(ended.code, ended.stderr).toBe(0);
    const [one, two, short, many] = out();
    const [first] = await vectorsOf(bench.provider, ["first text"]);
    expect(one).toMatchObject({
      custom_id: "one",
      error: null,
      response: {
        status_code: 200,
        body: {
          object: "list",
          model: "sim-embed",
          data: [{ object: "embedding", index: 0, embedding: first }],
          usage: { prompt_tokens: 3, total_tokens: 3 },
        },
      },
      pgw: { source: "sim_1", attempts: 1 },
    });
    const wide = await vectorsOf(bench.provider, ["b", "a"], 4);
    expect(two?.response?.body.data.map(({ index, embedding }) => [index, embedding])).toEqual(
      wide.map((vector, at) => [at, Buffer.from(new Float32Array(vector).buffer).toString("base64")]),
    );
    expect(short?.response?.body.data).toHaveLength(1);
    expect(many?.response?.body.data.map(({ index }) => index)).toEqual([...Array(25).keys()]);
    expect(many).toMatchObject({ pgw: { calls: 3, attempts: 3 } });
    const books = await bench.workspace.run(["reconcile", "--out", "out.jsonl", "--json"], env());
    expect(books.code, books.stdout + books.stderr).toBe(0);
    expect(JSON.parse(books.stdout)).toMatchObject({ balanced: true });
  });

  it("says what is wrong with a line of another kind, and each scope takes its own", async () => {
    const chat = JSON.stringify({
      custom_id: "chat",
      url: "/v1/chat/completions",
      body: { messages: [{ role: "user", content: "hi" }] },
    });
    const texts = [
      chat,
      line("v", { input: "a" }),
      '{"id":"p","prompt":"hi"}',
      line("w", { input: ["a", 7] }),
      line("x", { input: "a", input_type: "query" }),
    ];
    bench.workspace.write("in.jsonl", texts.join("\n"));
    expectExit1(
      await batch(),
      /line 1: a chat line, but scope EMBED is for embeddings/,
      /line 3: a chat line/,
      /line 4: input must be a text or a list of texts/,
      /line 5: "input_type" is not supported in an embedding line/,
    );
    expect(bench.provider.stats().arrived).toBe(0);
    const both = { ...bench.env };
    const skipping = ["--skip-bad-lines", "--scope"];
    expect((await batch([...skipping, "EMBED"], both)).code).toBe(0);
    expect(out().map(({ custom_id }) => custom_id)).toEqual(["v"]);
    const other = ["batch", "in.jsonl", "-o", "chat.jsonl", ...skipping, "LLM"];
    expect((await bench.workspace.run(other, { ...env(), ...both })).code).toBe(0);
  });

  it("fails only the line whose text is refused, and tries it again when asked to", async () => {
    bench.workspace.write("in.jsonl", [line("a", { input: "fine" }), line("b", { input: ["fine", ""] })].join("\n"));
    const ended = await batch();
    expect(ended.code).toBe(2);
    expect(out().find(({ custom_id }) => custom_id === "b")).toMatchObject({
      response: null,
      error: { code: "bad_request", message: expect.stringMatching(/texts\[1\] is empty/) },
    });
    expect(summaryOf(await batch(["--retry-failed"]))).toMatchObject({ failed: 1, skipped: 1 });
  });

  it("narrows to the sources with the line's model", async () => {
    const more = {
      EMBED__SIM__2__BASE_URL: bench.provider.baseUrl,
      EMBED__SIM__2__API_KEY: "none",
      EMBED__SIM__2__MODEL: "other-embed",
    };
    const ids = Array.from({ length: 10 }, (_, at) => `v${at}`);
    bench.workspace.write("in.jsonl", ids.map((id) => line(id, { input: id, model: "other-embed" })).join("\n"));
    expect((await batch([], more)).code).toBe(0);
    expect(new Set(out().map(({ response }) => response?.body.model))).toEqual(new Set(["other-embed"]));
  });

  it("with workers, one of which is killed, answers every line once", async () => {
    bench.provider.change({ latency: { ttftMedianMs: 30 } });
    const ids = Array.from({ length: 150 }, (_, at) => `v${at}`);
    bench.workspace.write("in.jsonl", ids.map((id) => line(id, { input: `text of ${id}` })).join("\n"));
    const run = bench.startWorkers(["--concurrency", "8"], env());
    while (bench.provider.stats().arrived < 20) await new Promise((resolve) => setTimeout(resolve, 10));
    const [pid] = workersOf(run);
    process.kill(pid!, "SIGKILL");
    const ended = await run.finished;
    expect(ended.code, ended.stderr).toBe(0);
    expect(summaryOf(ended)).toMatchObject({ done: 150, failed: 0 });
    const vectors = await vectorsOf(
      bench.provider,
      ids.map((id) => `text of ${id}`),
    );
    const lines = new Map(out().map((entry) => [entry.custom_id, entry.response?.body.data[0]?.embedding]));
    expect(out().length).toBe(150);
    expect(ids.map((id) => lines.get(id))).toEqual(vectors);
    expect((await readRecords(bench.workspace.path("polygateway.db"))).openAttempts).toBe(0);
  });
});
