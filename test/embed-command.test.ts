import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Finished } from "./cli-harness.js";
import { embeddingBody, embeds, inputOf } from "./support/embedding-server.js";
import { type SeenRequest, sendJson, startRecordingServer } from "./support/recording-server.js";
import { embeddingEnv, readVectorLines, type VectorLine, vectorsOf } from "./support-batch/embedding-lines.js";
import { expectExit1, summaryOf, useProviderBench } from "./support-batch/provider-bench.js";
import { runShell } from "./support-batch/shell.js";
import { readRecords } from "./support-batch/telemetry.js";

/** `polygateway embed`: a file of texts, one vector each, with everything that a batch promises. */

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => `text ${at + 1}`);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("embed", () => {
  const bench = useProviderBench();
  const out = (): VectorLine[] => readVectorLines(bench.workspace.path("out.jsonl"));
  const inOrder = (): VectorLine[] => out().sort((a, b) => a.index - b.index);

  const embed = (args: readonly string[], more: Record<string, string> = {}, input?: string): Promise<Finished> =>
    bench.workspace.run(
      ["embed", ...args, "-o", "out.jsonl", "--json"],
      embeddingEnv(bench.provider.baseUrl, more),
      input,
    );

  it("embeds each line of a text file, in requests of BATCH_SIZE", async () => {
    const texts = numbered(47);
    bench.workspace.write("in.txt", `\ufeff${texts.slice(0, 20).join("\r\n")}\r\n\r\n${texts.slice(20).join("\n")}`);
    const ended = await embed(["in.txt"]);
    expect(ended.code, ended.stderr).toBe(0);
    expect(summaryOf(ended)).toMatchObject({ done: 47, failed: 0, left: 0, total: 47, attempts: 5 });
    const requests = bench.provider.ledger().length;
    expect(requests).toBe(5);
    const vectors = await vectorsOf(bench.provider, texts);
    const lines = inOrder();
    // A blank line is a line of the file.
    const numbers = texts.map((_, at) => (at < 20 ? at + 1 : at + 2));
    expect(lines.map(({ id, index, embedding }) => ({ id, index, embedding }))).toEqual(
      numbers.map((number, at) => ({ id: `line-${number}`, index: number - 1, embedding: vectors[at] })),
    );
    const { rows } = await readRecords(bench.workspace.path("polygateway.db"));
    expect(new Set(rows.map((row) => row.session_id)).size).toBe(1);
    expect(new Set(lines.map(({ call_id }) => call_id))).toEqual(new Set(rows.map((row) => row.call_id)));
    const second = lines[1]!;
    const unknown = await bench.run(["trace", second.id]);
    expect(unknown.stderr).toMatch(/shares its row with others: ask with the call_id/);
    expect((await bench.run(["trace", second.call_id!])).stdout).toMatch(/embedding .* success/);
  });

  it("reads JSONL, plain or gzip, from a file or standard input, and writes base64 and other widths", async () => {
    const texts = ["first", "second text", " with spaces "];
    const jsonl = `{"id":"a","text":"first"}\n{"input":"second text"}\n{"id":7,"text":" with spaces "}\n`;
    bench.workspace.write("in.jsonl.gz", gzipSync(jsonl));
    const options = ["--base64", "--dimensions", "5", "--ordered"];
    const ended = await embed(["in.jsonl.gz", ...options]);
    expect(ended.code, ended.stderr).toBe(0);
    const vectors = await vectorsOf(bench.provider, texts, 5);
    const expected = vectors.map((vector) => Buffer.from(new Float32Array(vector).buffer).toString("base64"));
    expect(out().map(({ id, index, embedding }) => [id, index, embedding])).toEqual([
      ["a", 0, expected[0]],
      ["line-2", 1, expected[1]],
      ["7", 2, expected[2]],
    ]);
    await bench.workspace.run(
      ["embed", "-", "--jsonl", "-o", "other.jsonl", ...options],
      embeddingEnv(bench.provider.baseUrl),
      jsonl,
    );
    expect(readVectorLines(bench.workspace.path("other.jsonl")).map(({ embedding }) => embedding)).toEqual(expected);
  });

  it("goes on where it was, and says when nothing is left", async () => {
    bench.workspace.write("in.txt", numbered(25).join("\n"));
    expect((await embed(["in.txt"])).code).toBe(0);
    const before = out();
    const { workspace } = bench;
    workspace.write("in.txt", numbered(30).join("\n"));
    const grown = await embed(["in.txt"]);
    expect(summaryOf(grown)).toMatchObject({ done: 5, skipped: 25, total: 30, exitCode: 0 });
    expect(out().slice(0, 25)).toEqual(before);
    const again = await workspace.run(["embed", "in.txt", "-o", "out.jsonl"], embeddingEnv(bench.provider.baseUrl));
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringContaining("Nothing left to do: all 30 texts are in out.jsonl"),
    ]);
  });

  it("turns a text that the source refuses into an error line, and the others of its request into vectors", async () => {
    await using server = await startRecordingServer((response, request) => {
      const isBad = inputOf(request).some((text) => text === "text 13" || text === "text 14");
      if (isBad)
        sendJson(response, 400, '{"error":{"message":"content not allowed here","type":"invalid_request_error"}}');
      // As wide as those of the server that embeds the rest.
      else sendJson(response, 200, embeddingBody(inputOf(request), { vectorOf: () => Array(16).fill(1) }));
    });
    const lines = numbered(30).map((text, at) => JSON.stringify({ id: `t${at + 1}`, text: at === 4 ? "" : text }));
    bench.workspace.write("in.jsonl", lines.join("\n"));
    const ended = await bench.workspace.run(["embed", "in.jsonl", "-o", "out.jsonl"], embeddingEnv(server.baseUrl));
    expect(ended.code, ended.stderr).toBe(2);
    expect(ended.stdout).toMatch(/3 texts have no vector; try them again with --retry-failed/);
    const failed = inOrder().filter(({ error }) => error !== undefined);
    expect(failed.map(({ id, index, embedding }) => [id, index, embedding])).toEqual([
      ["t5", 4, null],
      ["t13", 12, null],
      ["t14", 13, null],
    ]);
    expect(failed[0]?.error?.message).toMatch(/empty/);
    expect(failed[1]?.error).toMatchObject({
      class: "RequestRejectedError",
      message: expect.stringMatching(/content not allowed/),
    });
    expect(inOrder().filter(({ embedding }) => embedding !== null)).toHaveLength(27);
    const again = await bench.workspace.run(
      ["embed", "in.jsonl", "-o", "out.jsonl", "--retry-failed", "--json"],
      embeddingEnv(bench.provider.baseUrl),
    );
    expect(summaryOf(again)).toMatchObject({ done: 2, failed: 1, skipped: 27, exitCode: 2 });
    expect(new Set(out().map(({ id }) => id)).size).toBe(30);
  });

  it("learns a smaller batch size from the source and loses nothing by it", async () => {
    await using server = await startRecordingServer((response, request) => {
      const texts = inputOf(request);
      if (texts.length > 4)
        sendJson(response, 400, '{"error":{"message":"batch size is invalid, it should not be larger than 4"}}');
      else sendJson(response, 200, embeddingBody(texts));
    });
    bench.workspace.write("in.txt", numbered(40).join("\n"));
    const ended = await bench.workspace.run(
      ["embed", "in.txt", "-o", "out.jsonl", "--concurrency", "1", "--json"],
      embeddingEnv(server.baseUrl),
    );
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toMatch(/sim_1 takes at most 4 texts a request/);
    expect(summaryOf(ended)).toMatchObject({ done: 40, failed: 0 });
    expect(server.seen.filter((request) => inputOf(request).length > 4)).toHaveLength(1);
  });

  it("puts texts back when a source has trouble, and embeds them when it is well again", async () => {
    bench.workspace.write("in.txt", numbered(40).join("\n"));
    bench.provider.change({ faults: { errorRate: 0.4, rateLimitRate: 0.2 } });
    const ended = await embed(["in.txt", "--concurrency", "2"], { EMBED__RETRY__BACKOFF_BASE_S: "0.01" });
    expect(ended.code, ended.stderr).toBe(0);
    expect(new Set(out().map(({ id }) => id)).size).toBe(40);
  });

  it("refuses a file that can't be right, before anything is sent", async () => {
    bench.workspace.write(
      "in.jsonl",
      '{"id":"a","text":"x"}\n{"id":"b"}\nnot json\n{"id":"a","text":"y"}\n{"text":["z"]}\n{"text":"x","input":"y"}\n{"text":"x","dimensions":3}\n{"text":"x","title":"mine"}\n{"text": oops}\n',
    );
    const env = embeddingEnv(bench.provider.baseUrl);
    const ended = await bench.workspace.run(["embed", "in.jsonl", "-o", "out.jsonl"], env);
    expectExit1(
      ended,
      /line 2: has neither text nor input/,
      /line 3: not valid JSON, but plain text; such a file is read without --jsonl/,
      /line 9: not valid JSON: (?!.*not valid)/,
      /line 4: id "a" was used by an earlier line/,
      /line 5: text must be a text/,
      /line 6: has text and input: only one of them/,
      /line 7: "dimensions" can't be set for one line/,
    );
    expect(bench.provider.stats().arrived).toBe(0);
  });

  it("knows standard input again by all that it had read, lines with ids of their own apart", async () => {
    const texts = numbered(30);
    const text = texts.join("\n");
    expect((await embed(["-"], {}, text)).code).toBe(0);
    const before = out();
    const changed = [...texts.slice(0, 10), "a new one", ...texts.slice(10)].join("\n");
    for (const input of [changed, texts.slice(0, 20).join("\n")]) {
      const other = await embed(["-"], {}, input);
      expect(other.code, other.stderr).toBe(1);
      expect(summaryOf(other)).toMatchObject({
        done: 0,
        stop: { kind: "input_changed", reason: expect.stringMatching(/something in its first 30 lines differs/) },
      });
      expect(out()).toEqual(before);
    }
    const grown = await embed(["-"], {}, `${text}\none more`);
    expect(summaryOf(grown)).toMatchObject({ done: 1, skipped: 30, exitCode: 0 });
    expect(summaryOf(await embed(["-"], {}, `${text}\none more`))).toMatchObject({ done: 0, exitCode: 0 });
    const lines = ["c", "a", "b"].map((id) => JSON.stringify({ id, text: id }));
    const jsonl = async (input: readonly string[]) =>
      summaryOf(
        await bench.workspace.run(
          ["embed", "-", "--jsonl", "-o", "ids.jsonl", "--json"],
          embeddingEnv(bench.provider.baseUrl),
          input.join("\n"),
        ),
      );
    expect(await jsonl(lines)).toMatchObject({ done: 3 });
    expect(await jsonl([lines[0]!, lines[2]!, lines[1]!])).toMatchObject({ done: 0, exitCode: 0 });
  });

  it("leaves an output alone that was begun with other options or by another command", async () => {
    bench.workspace.write("in.jsonl", '{"id":"a","text":"x"}\n');
    expect((await embed(["in.jsonl", "--base64"])).code).toBe(0);
    const before = out();
    const env = embeddingEnv(bench.provider.baseUrl);
    for (const args of [
      ["embed", "in.jsonl"],
      ["batch", "in.jsonl", "--skip-bad-lines"],
    ]) {
      const ended = await bench.workspace.run([...args, "-o", "out.jsonl"], env);
      expectExit1(ended, /out\.jsonl was begun by `polygateway embed --base64`/, /choose another output/);
      expect(out()).toEqual(before);
    }
  });

  it("keeps vectors of different models apart", async () => {
    bench.workspace.write("in.jsonl", '{"id":"a","text":"x"}\n{"id":"b","text":"y"}\n');
    expect((await embed(["in.jsonl"])).code).toBe(0);
    const before = out();
    const env = { ...embeddingEnv(bench.provider.baseUrl) };
    for (const key of Object.keys(env)) if (key.endsWith("__MODEL")) env[key] = "another-model";
    const ended = await bench.workspace.run(["embed", "in.jsonl", "-o", "out.jsonl"], env);
    expectExit1(ended, /the scope has another-model now: their vectors can't be compared/);
    expect(out()).toEqual(before);
  });

  it("keeps vectors of other widths out of the file: within a run, between sources, and in a later run", async () => {
    let isWide = true;
    const widths = { narrow: 2, wide: 4 };
    // No answer before both were asked, so that both have vectors to give.
    const asked = new Set<unknown>();
    let letAnswer = (): void => {};
    const bothAsked = new Promise<void>((resolve) => {
      letAnswer = resolve;
    });
    const answer = (width: () => number) => async (response: ServerResponse, request: SeenRequest) => {
      if (asked.add(width).size === 2) letAnswer();
      await bothAsked;
      sendJson(response, 200, embeddingBody(inputOf(request), { vectorOf: () => Array(width()).fill(0.5) }));
    };
    await using one = await startRecordingServer(answer(() => (isWide ? widths.wide : widths.narrow)));
    await using other = await startRecordingServer(answer(() => widths.narrow));
    bench.workspace.write("in.txt", numbered(40).join("\n"));
    const run = (more: Record<string, string> = {}, ...args: string[]): Promise<Finished> =>
      bench.workspace.run(
        ["embed", "in.txt", "-o", "out.jsonl", "--concurrency", "2", "--json", ...args],
        embeddingEnv(one.baseUrl, more),
      );
    const second = {
      EMBED__SIM__1__MAX_CONCURRENCY: "1",
      EMBED__SIM__2__MAX_CONCURRENCY: "1",
      EMBED__SIM__2__BASE_URL: other.baseUrl,
      EMBED__SIM__2__API_KEY: "k",
      EMBED__SIM__2__MODEL: "sim-embed",
    };
    const widthsIn = () => new Set(out().flatMap(({ embedding }) => (embedding === null ? [] : [embedding.length])));
    const mixed = await run(second);
    expect(mixed.code, mixed.stderr).toBe(2);
    expect(widthsIn().size).toBe(1);
    const errors = out().flatMap(({ error }) => error ?? []);
    expect(errors[0]).toMatchObject({
      code: "dimension_mismatch",
      class: "ResultInvalidError",
      message: expect.stringMatching(/vectors of \d dimensions where \d are expected/),
    });
    const [kept] = widthsIn();
    isWide = kept === widths.narrow;
    const later = await run({}, "--retry-failed");
    expect(later.code, later.stderr).toBe(2);
    expect(widthsIn()).toEqual(new Set([kept]));
    isWide = kept === widths.wide;
    expect(summaryOf(await run({}, "--retry-failed"))).toMatchObject({ failed: 0, exitCode: 0 });
    expect(widthsIn()).toEqual(new Set([kept]));
    expectExit1(
      await run({ EMBED__EXPECTED_DIM: "7" }),
      new RegExp(`a vector of ${kept} dimensions .*where 7 are configured`),
    );
  });

  it("names the line of a text, not its place in the request", async () => {
    const vectorOf = (text: string) => (text === "text 4" ? [] : [1, 2]);
    await using server = await startRecordingServer(embeds({ vectorOf }));
    bench.workspace.write(
      "in.jsonl",
      ["", "x", "y", "text 4"].map((text, at) => JSON.stringify({ id: `t${at}`, text })).join("\n"),
    );
    const ended = await bench.workspace.run(["embed", "in.jsonl", "-o", "out.jsonl"], embeddingEnv(server.baseUrl));
    expect(ended.code, ended.stderr).toBe(2);
    const [first, , , last] = inOrder();
    expect(first?.error?.message).toMatch(/^the text "t0" is empty/);
    expect(last?.error?.message).toMatch(/the vector of the text "t3" is empty/);
  });

  it("does what the guide shows when it is pasted", async () => {
    const guide = readFileSync(new URL("../docs/guide/embeddings.md", import.meta.url), "utf8");
    const [, block = ""] = /^```sh\n(.*?)^```$/ms.exec(guide) ?? [];
    const port = await freePort();
    const pasted = block.replaceAll("npx ", "").replace("mock", `mock --port ${port}`).replace("8787", String(port));
    expect(pasted).toContain(`http://127.0.0.1:${port}/v1`);
    bench.workspace.write("README.md", "first text\n\nsecond text\n");
    // Job control as in a shell that somebody types into: `kill %1` ends all that the job started.
    const ended = await runShell(`set -m\n${pasted}`, { folder: bench.workspace.folder });
    expect(ended.stdout, ended.stderr).toMatch(/All texts are embedded: 2 done/);
    expect(readVectorLines(bench.workspace.path("vectors.jsonl"))).toHaveLength(2);
  });

  it("says which scope it needs", async () => {
    bench.workspace.write("in.txt", "x");
    expectExit1(
      await bench.run(["embed", "in.txt", "-o", "out.jsonl"]),
      /No scope for embeddings is configured \(configured: LLM\)/,
      /EMBED__BATCH_SIZE=100/,
    );
    expectExit1(await bench.run(["embed", "in.txt", "-o", "out.jsonl", "--scope", "LLM"]), /Set LLM__BATCH_SIZE/);
    const two = { ...embeddingEnv(bench.provider.baseUrl), ...bench.env };
    const chosen = await bench.workspace.run(["embed", "in.txt", "-o", "out.jsonl"], two);
    expect(chosen.code, chosen.stderr).toBe(0);
  });

  it("stops by Ctrl-C with nothing lost", async () => {
    bench.workspace.write("in.txt", numbered(200).join("\n"));
    bench.provider.change({ latency: { ttftMedianMs: 300 } });
    const env = embeddingEnv(bench.provider.baseUrl);
    const run = bench.workspace.start(["embed", "in.txt", "-o", "out.jsonl", "--concurrency", "2", "--json"], env);
    await bench.arrived(2);
    run.child.kill("SIGINT");
    const stopped = await run.finished;
    expect(stopped.code, stopped.stderr).toBe(3);
    expect(summaryOf(stopped)).toMatchObject({ failed: 0, stop: { kind: "drained" } });
    expect(out().length).toBe(summaryOf(stopped).done);
    bench.provider.change({ latency: {} });
    expect((await embed(["in.txt"])).code).toBe(0);
    expect(new Set(out().map(({ id }) => id)).size).toBe(200);
  });
});
