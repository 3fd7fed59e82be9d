import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { createSystemRuntime } from "../backends/system.js";
import type { ChatRequest } from "../domain/chat.js";
import { RequestRejectedError } from "../errors.js";
import { sampleResponse } from "../testing/sample-answers.js";
import { runBatch } from "./engine.js";
import { type ChatLineClient, chatLines } from "./kinds/chat.js";
import type { BatchClient, BatchOptions, BatchProgress, BatchSnapshot } from "./types.js";

const root = mkdtempSync(join(tmpdir(), "pgw-batch-"));
let dir: string;
let inPath: string;
let outPath: string;
beforeEach(() => {
  dir = mkdtempSync(join(root, "t-"));
  inPath = join(dir, "in.jsonl");
  outPath = join(dir, "out.jsonl");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const runtime = createSystemRuntime();
const snapshot: BatchSnapshot = { scope: "LLM", sources: [], backend: { kind: "memory", ok: true } };

interface FakeClient extends BatchClient {
  readonly sent: ChatRequest[];
}

function fakeClient(answer: (request: ChatRequest) => void | Promise<void> = () => {}): FakeClient {
  const sent: ChatRequest[] = [];
  const client: ChatLineClient = {
    scope: "LLM",
    models: ["m"],
    snapshot: () => snapshot,
    leases: () => ({ live: sent.length }),
    async chat(request) {
      sent.push(request);
      await answer(request);
      return sampleResponse({
        content: `answer to ${request.parentCallId}`,
        callId: runtime.uuid(),
        requestId: runtime.uuid(),
        cost: 0.25,
      });
    },
  };
  return { ...chatLines(client, runtime), sent };
}

const run = (client: BatchClient, options: Partial<BatchOptions> = {}) =>
  runBatch({ inPath, outPath, client, runtime, ...options });
const ids = (count: number) => Array.from({ length: count }, (_, index) => `q${index}`);
const lineOf = (id: string) =>
  `${JSON.stringify({ custom_id: id, body: { messages: [{ role: "user", content: id }] } })}\n`;
const writeIn = (count: number) => writeFileSync(inPath, ids(count).map(lineOf).join(""));
const readOut = () =>
  readFileSync(outPath, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((text) => JSON.parse(text));
const outIds = () => readOut().map((entry) => entry.custom_id as string);
const sentIds = (client: FakeClient) => client.sent.map((request) => request.parentCallId);
const notes = () => {
  const texts: string[] = [];
  return { texts, onNote: (text: string) => void texts.push(text) };
};

describe("a batch on real files", () => {
  it("answers every line, leaves OUT and its ties and no lock, and reports", async () => {
    writeIn(50);
    const client = fakeClient();
    const progress: BatchProgress[] = [];
    const summary = await run(client, { onProgress: (p) => progress.push(p), concurrency: 8 });
    expect(outIds().sort()).toEqual(ids(50).sort());
    expect(summary).toMatchObject({
      exitCode: 0,
      stop: null,
      done: 50,
      failed: 0,
      left: 0,
      total: 50,
      cost: 12.5,
      tokens: 100,
      bySource: { s_1: { answers: 50, tokens: 100, cost: 12.5 } },
      snapshot,
    });
    expect(progress.at(-1)).toMatchObject({ done: 50, left: 0, projectedCost: 12.5 });
    expect(readdirSync(dir).sort()).toEqual(["in.jsonl", "out.jsonl", "out.jsonl.pgw.json"]);
    const { batchId } = JSON.parse(readFileSync(`${outPath}.pgw.json`, "utf8"));
    expect(client.sent.every((request) => request.sessionId === batchId)).toBe(true);
  });

  it("does nothing on a second run, and only what is missing after lines were lost", async () => {
    writeIn(10);
    const first = await run(fakeClient());
    const second = fakeClient();
    expect(await run(second)).toMatchObject({ exitCode: 0, skipped: 10, total: 10, done: 0, batchId: first.batchId });
    expect(second.sent).toHaveLength(0);
    writeFileSync(
      outPath,
      `${readFileSync(outPath, "utf8").split("\n").slice(0, 4).join("\n")}\n{"id":"batch_req_torn`,
    );
    const third = fakeClient();
    const { texts, onNote } = notes();
    expect(await run(third, { onNote })).toMatchObject({ skipped: 4, done: 6, batchId: first.batchId });
    expect(texts).toEqual([expect.stringMatching(/half written .* was cut/)]);
    expect(outIds().sort()).toEqual(ids(10).sort());
  });

  it("gives each id exactly once for any sequence of kills", async () => {
    writeIn(12);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 4 }), fc.boolean(), async (cuts, ordered) => {
        rmSync(outPath, { force: true });
        for (const cut of cuts) {
          await run(fakeClient(), { ordered, concurrency: 3 });
          truncateSync(outPath, cut % (readFileSync(outPath).length + 1));
        }
        await run(fakeClient(), { ordered, concurrency: 3 });
        expect(outIds().sort()).toEqual(ids(12).sort());
        expect(
          readOut().every((entry) => entry.response.body.choices[0].message.content.endsWith(entry.custom_id)),
        ).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it("writes in input order when asked to", async () => {
    writeIn(40);
    await run(
      fakeClient(
        (request) => new Promise((resolve) => setTimeout(resolve, Number(request.parentCallId?.slice(1)) % 4)),
      ),
      { ordered: true, concurrency: 10 },
    );
    expect(outIds()).toEqual(ids(40));
  });

  it("exits 2 while OUT has failure lines, and --retry-failed tries exactly those again", async () => {
    writeIn(6);
    const fail = (request: ChatRequest) => {
      if (request.parentCallId === "q2") throw new RequestRejectedError("no", { statusCode: 400 });
    };
    expect(await run(fakeClient(fail))).toMatchObject({ exitCode: 2, failed: 1, done: 5 });
    expect(await run(fakeClient())).toMatchObject({ exitCode: 2, failed: 0, skipped: 6, skippedFailed: 1 });
    chmodSync(outPath, 0o600);
    const again = fakeClient();
    expect(await run(again, { retryFailed: true })).toMatchObject({ exitCode: 0, done: 1, skipped: 5 });
    expect(sentIds(again)).toEqual(["q2"]);
    expect(outIds().sort()).toEqual(ids(6).sort());
  });

  it("drains at the first signal; the same command finishes the rest", async () => {
    writeIn(100);
    const stop = new AbortController();
    const first = fakeClient(() => {
      if (first.sent.length === 10) stop.abort();
      return new Promise((resolve) => setImmediate(resolve));
    });
    const summary = await run(first, { drainSignal: stop.signal, concurrency: 4 });
    expect(summary).toMatchObject({ exitCode: 3, stop: { kind: "drained" }, left: 100 - first.sent.length });
    expect(outIds()).toHaveLength(first.sent.length);
    expect(await run(fakeClient())).toMatchObject({ exitCode: 0, skipped: first.sent.length });
    expect(outIds().sort()).toEqual(ids(100).sort());
  });

  it("counts answers of earlier runs that never reached OUT", async () => {
    writeIn(4);
    await run(fakeClient());
    truncateSync(outPath, readFileSync(outPath, "utf8").indexOf("\n") + 1);
    const [kept] = outIds();
    const order: string[] = [];
    const summary = await run(fakeClient(), {
      earlierAttempts: async function* () {
        order.push("attempts");
        for (const lineId of ids(4)) yield { lineId, outcome: lineId === "q3" ? "abandoned" : "success" };
      },
      onReady: async (ready) => {
        order.push("ready");
        const entries = [];
        for await (const entry of ready.readOut()) entries.push(entry);
        expect(entries).toEqual([{ lineId: kept, callId: expect.stringMatching(/^[0-9a-f-]{36}$/), failed: false }]);
        expect(ready.linesToDo).toBe(3);
      },
    });
    expect(order).toEqual(["ready", "attempts"]);
    expect(summary.answersPaidTwice + summary.possiblyPaidTwice).toBe(3);
  });
});

describe("inputs", () => {
  it("accepts BOM, CRLF, gzip and a last line without an end", async () => {
    const text = `\uFEFF${ids(5).map(lineOf).join("").replaceAll("\n", "\r\n").trimEnd()}`;
    for (const [name, bytes] of [
      ["bom.jsonl", Buffer.from(text)],
      ["in.jsonl.gz", gzipSync(text)],
    ] as const) {
      writeFileSync(join(dir, name), bytes);
      const out = join(dir, `${name}.out`);
      expect(await run(fakeClient(), { inPath: join(dir, name), outPath: out })).toMatchObject({
        exitCode: 0,
        done: 5,
      });
    }
  });

  it("refuses broken lines and duplicate ids before anything is sent, all of them at once", async () => {
    writeFileSync(inPath, `${lineOf("a")}{oops\n${lineOf("b")}${lineOf("a")}{"image":"x.png"}\n`);
    const client = fakeClient();
    await expect(run(client)).rejects.toThrow(
      /3 lines that can't be run; nothing was sent:\n {2}line 2: not valid JSON.*\n {2}line 4: id "a" was used.*\n {2}line 5: an OCR line, but scope LLM is for chat.*\nFix.*--skip-bad-lines\. That doesn't help against the repeated id: .*Give every line an id/,
    );
    expect(client.sent).toHaveLength(0);
    expect(readdirSync(dir)).toEqual(["in.jsonl"]);
    await expect(run(client, { skipBadLines: true })).rejects.toThrow(/1 line that/);
  });

  it("leaves broken lines out with skipBadLines", async () => {
    writeFileSync(inPath, `${lineOf("a")}{oops\n${lineOf("b")}`);
    const { texts, onNote } = notes();
    const summary = await run(fakeClient(), { skipBadLines: true, onNote });
    expect(summary).toMatchObject({ exitCode: 0, done: 2, total: 2, badLines: 1 });
    expect(texts).toEqual([expect.stringMatching(/left out: 1/)]);
    expect(outIds().sort()).toEqual(["a", "b"]);
  });

  it("turns them into error lines on stdin, and a second run skips those too", async () => {
    const text = `${lineOf("a")}{oops\n${lineOf("a")}${lineOf("b")}`;
    const stdin = () => ({ inPath: "-", stdin: Readable.from([Buffer.from(text)]) });
    expect(await run(fakeClient(), stdin())).toMatchObject({ exitCode: 2, done: 2, failed: 2, total: 4, left: 0 });
    expect(outIds().sort()).toEqual(["a", "b", "line-2", "line-3"]);
    const again = fakeClient();
    expect(await run(again, stdin())).toMatchObject({ exitCode: 2, skipped: 4, done: 0, failed: 0 });
    expect(again.sent).toHaveLength(0);
    const other = { inPath: "-", stdin: Readable.from([Buffer.from(lineOf("z"))]) };
    await expect(run(fakeClient(), other)).rejects.toThrow(/belongs to another stream/);
  });

  it("drains while stdin is silent", async () => {
    const stdin = new PassThrough();
    stdin.write(lineOf("a"));
    const stop = new AbortController();
    const client = fakeClient(() => void setTimeout(() => stop.abort(), 5));
    expect(await run(client, { inPath: "-", stdin, drainSignal: stop.signal })).toMatchObject({
      exitCode: 3,
      stop: { kind: "drained" },
      done: 1,
      left: undefined,
    });
    const early = new AbortController();
    const waiting = run(client, { inPath: "-", stdin: new PassThrough(), drainSignal: early.signal });
    early.abort();
    await expect(waiting).rejects.toThrow(/Stopped before anything was sent/);
    expect(existsSync(`${outPath}.lock`)).toBe(false);
  });

  it("keeps OUT resumable when a stream breaks half way", async () => {
    const gz = gzipSync(ids(5000).map(lineOf).join(""));
    const stdin = Readable.from([gz.subarray(0, gz.length - 30)]);
    const summary = await run(fakeClient(), { inPath: "-", stdin });
    expect(summary).toMatchObject({
      exitCode: 3,
      stop: { kind: "input_failed", reason: expect.stringMatching(/unexpected end/) },
    });
    const again = await run(fakeClient(), { inPath: "-", stdin: Readable.from([gz]) });
    expect(again).toMatchObject({ exitCode: 0, skipped: summary.done });
    expect(new Set(outIds()).size).toBe(5000);
  });

  it("ignores an unknown model with one note, or refuses it with strictModel", async () => {
    writeFileSync(
      inPath,
      ids(3)
        .map((id) => `${JSON.stringify({ id, prompt: "x", model: "gpt-9" })}\n`)
        .join(""),
    );
    const { texts, onNote } = notes();
    const client = fakeClient();
    await run(client, { onNote });
    expect(texts).toEqual([expect.stringMatching(/model "gpt-9", which no source/)]);
    expect(client.sent.every((request) => request.model === undefined)).toBe(true);
    await expect(run(client, { strictModel: true, outPath: join(dir, "o2") })).rejects.toThrow(
      /no source has the model "gpt-9" \(configured: m\)/,
    );
  });

  it("names a missing input, a folder and a cut gzip", async () => {
    await expect(run(fakeClient())).rejects.toMatchObject({ kind: "in_missing" });
    await expect(run(fakeClient(), { inPath: dir })).rejects.toMatchObject({ kind: "in_unreadable" });
    writeFileSync(inPath, gzipSync(lineOf("a")).subarray(0, 30));
    await expect(run(fakeClient())).rejects.toThrow(/can't be read: unexpected end of file/);
  });

  it("runs an empty file", async () => {
    writeFileSync(inPath, "");
    expect(await run(fakeClient())).toMatchObject({ exitCode: 0, total: 0 });
  });
});

describe("outputs", () => {
  it("refuses an output that can't be written, a folder, and the input itself under any name", async () => {
    writeIn(1);
    const client = fakeClient();
    await expect(run(client, { outPath: join(dir, "none", "out") })).rejects.toMatchObject({ kind: "out_unwritable" });
    mkdirSync(join(dir, "folder"));
    await expect(run(client, { outPath: join(dir, "folder") })).rejects.toThrow(/it is a folder/);
    symlinkSync(inPath, join(dir, "sym"));
    linkSync(inPath, join(dir, "hard"));
    for (const name of ["in.jsonl", "sym", "hard"]) {
      await expect(run(client, { outPath: join(dir, name) })).rejects.toMatchObject({ kind: "out_is_in" });
    }
    await expect(run(client, { outPath: "-" })).rejects.toMatchObject({ kind: "option" });
    expect(client.sent).toHaveLength(0);
  });

  it("refuses a second run on the same OUT while the first is on", async () => {
    writeIn(3);
    let second: unknown;
    const first = await run(
      fakeClient(async () => {
        second ??= await run(fakeClient()).catch((error) => error);
      }),
    );
    expect(second).toMatchObject({ kind: "locked" });
    expect(first.exitCode).toBe(0);
    expect(existsSync(`${outPath}.lock`)).toBe(false);
  });

  it("refuses another IN on the same OUT and leaves OUT as it was; accepts appended lines", async () => {
    writeIn(3);
    await run(fakeClient());
    const before = readFileSync(outPath, "utf8");
    const other = join(dir, "other.jsonl");
    writeFileSync(other, lineOf("x"));
    await expect(run(fakeClient(), { inPath: other })).rejects.toMatchObject({ kind: "out_other_in" });
    expect(readFileSync(outPath, "utf8")).toBe(before);
    writeIn(5);
    const grown = fakeClient();
    expect(await run(grown)).toMatchObject({ exitCode: 0, skipped: 3, done: 2 });
    expect(sentIds(grown).sort()).toEqual(["q3", "q4"]);
    expect(await run(fakeClient())).toMatchObject({ skipped: 5 });
  });

  it("never touches a file that isn't its own", async () => {
    writeIn(2);
    writeFileSync(outPath, "my notes without a line end");
    await expect(run(fakeClient())).rejects.toMatchObject({ kind: "out_foreign" });
    expect(readFileSync(outPath, "utf8")).toBe("my notes without a line end");
  });

  it("starts a new batch when OUT was deleted, and keeps the batch when OUT is only empty", async () => {
    writeIn(2);
    const first = await run(fakeClient());
    truncateSync(outPath, 0);
    expect((await run(fakeClient())).batchId).toBe(first.batchId);
    rmSync(outPath);
    const fresh = await run(fakeClient());
    expect(fresh).toMatchObject({ done: 2, skipped: 0 });
    expect(fresh.batchId).not.toBe(first.batchId);
  });

  it("runs lines again whose result line is damaged, and drops repeated ones", async () => {
    writeIn(4);
    await run(fakeClient());
    const [first, second, ...rest] = readFileSync(outPath, "utf8").trimEnd().split("\n");
    writeFileSync(outPath, `${[first, first, `\0\0${second}`, ...rest].join("\n")}\n`);
    const { texts, onNote } = notes();
    expect(await run(fakeClient(), { onNote })).toMatchObject({ done: 1, skipped: 3 });
    expect(texts).toEqual([expect.stringMatching(/^2 damaged or repeated lines/)]);
    expect(outIds().sort()).toEqual(ids(4).sort());
  });

  it.runIf(existsSync("/dev/full"))("ends with exit 3 and the reason when the disk is full", async () => {
    writeIn(50);
    symlinkSync("/dev/full", outPath);
    const client = fakeClient();
    const { texts, onNote } = notes();
    const summary = await run(client, { concurrency: 4, onNote });
    expect(summary).toMatchObject({
      exitCode: 3,
      done: 0,
      stop: { kind: "write_failed", reason: expect.stringMatching(/ENOSPC/) },
    });
    expect(client.sent.length).toBeLessThanOrEqual(8);
    expect(summary.answersNotWritten).toBe(client.sent.length);
    expect(texts).toEqual([expect.stringMatching(/is a device/)]);
  });
});
