import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Finished } from "./cli-harness.js";
import { expectExit1, summaryOf, useProviderBench } from "./support-batch/provider-bench.js";
import { questionLine, questionLines } from "./support-batch/questions.js";
import { runShell } from "./support-batch/shell.js";

/** What spec 08 says of the input of `batch`, case by case, with the built command. */

const bench = useProviderBench();
const fromStdin = (input: string, args: readonly string[] = []): Promise<Finished> =>
  bench.run(["batch", "-", "-o", "out.jsonl", ...args], input);

/** Exit 1, the reason, and nothing was sent. */
function expectRefused(run: Finished, ...words: (string | RegExp)[]): void {
  expectExit1(run, ...words);
  expect(bench.provider.stats().arrived).toBe(0);
}

describe("lines that can't be run", () => {
  const broken = [
    questionLine(1),
    "{oops\n",
    "[1, 2]\n",
    questionLine(2),
    '{"id": "vectors", "url": "/v1/embeddings", "method": "POST", "body": {"input": "text"}}\n',
    '{"id": "page", "image": "page.png"}\n',
    '{"id": "silent"}\n',
    '{"id": "empty", "messages": []}\n',
  ].join("");

  it("are refused all at once with line number and reason, embedding and OCR lines among them; nothing is sent", async () => {
    bench.workspace.write("in.jsonl", broken);
    expectRefused(
      await bench.batch(),
      "in.jsonl has 6 lines that can't be run; nothing was sent",
      /line 2: not valid JSON/,
      /line 3: not a JSON object/,
      /line 5: an embedding line, but scope LLM is for chat/,
      /line 6: an OCR line, but scope LLM is for chat/,
      /line 7: has neither body, messages, prompt, input nor image/,
      /line 8: messages is empty/,
      /--skip-bad-lines/,
    );
    expect(readdirSync(bench.workspace.folder)).toEqual(["in.jsonl"]);
  });

  it("are left out with --skip-bad-lines, and counted", async () => {
    bench.workspace.write("in.jsonl", broken);
    const run = await bench.batch(["--skip-bad-lines"]);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stderr).toContain("left out: 6");
    expect(run.stdout).toContain("6 broken lines left out");
    bench.expectAllAnswered(2);
  });

  it("stay refused when it is their id that is used twice, whatever is skipped", async () => {
    bench.workspace.write("in.jsonl", `${questionLines(3)}${questionLine(2)}\n\n${questionLine(1)}`);
    for (const args of [[], ["--skip-bad-lines"]]) {
      expectRefused(
        await bench.batch(args),
        /line 4: id "q2" was used/,
        /line 7: id "q1" was used/,
        /an id of its own/,
      );
    }
  });

  it("become failure lines on stdin, where nothing can be looked at twice", async () => {
    const text = `${questionLine(1)}{oops\n${questionLine(1)}${questionLine(2)}{"image": "x.png"}\n`;
    const run = await fromStdin(text, ["--json"]);
    expect(run.code, run.stderr).toBe(2);
    expect(summaryOf(run)).toMatchObject({ done: 2, failed: 3, total: 5, left: 0 });
    expect(
      bench
        .out()
        .map((line) => line.custom_id)
        .sort(),
    ).toEqual(["line-2", "line-3", "line-5", "q1", "q2"]);
    const failures = bench.out().filter((line) => line.error !== null);
    expect(failures.map((line) => line.error)).toEqual([
      { code: "bad_line", class: "RequestRejectedError", message: expect.stringMatching(/^line 2: not valid JSON/) },
      { code: "bad_line", class: "RequestRejectedError", message: expect.stringMatching(/^line 3: id "q1" was used/) },
      {
        code: "bad_line",
        class: "RequestRejectedError",
        message: expect.stringMatching(/^line 5: an OCR line, but scope LLM is for chat/),
      },
    ]);
    // The same stream again: all of it is there already.
    const again = await fromStdin(text, ["--json"]);
    expect(summaryOf(again)).toMatchObject({ exitCode: 2, done: 0, failed: 0, skipped: 5 });
    expect(bench.provider.stats().arrived).toBe(2);
    expectExit1(await fromStdin(questionLine(9)), /belongs to another stream/);
  });

  it("ask for a model that nobody has: ignored with one note, refused with --strict-model", async () => {
    bench.workspace.write("in.jsonl", questionLines(3, { model: "gpt-9" }));
    expectRefused(
      await bench.batch(["--strict-model"]),
      /line 1: no source has the model "gpt-9" \(configured: sim-model\)/,
    );
    const run = await bench.batch();
    expect(run.code, run.stderr).toBe(0);
    expect(run.stderr.match(/gpt-9/g)).toHaveLength(1);
    bench.expectAllAnswered(3);
  });
});

describe("inputs", () => {
  const windows = `\uFEFF${questionLines(5).replaceAll("\n", "\r\n").trimEnd()}`;

  it("may have a BOM, CRLF and no last line end", async () => {
    bench.workspace.write("in.jsonl", windows);
    expect(await bench.batch()).toMatchObject({ code: 0 });
    bench.expectAllAnswered(5);
  });

  it("may be gzip, as a file or through a pipe", async () => {
    bench.workspace.write("in.jsonl.gz", gzipSync(windows));
    const file = await bench.run(["batch", "in.jsonl.gz", "-o", "out.jsonl"]);
    expect(file.code, file.stderr).toBe(0);
    bench.expectAllAnswered(5);
    rmSync(bench.workspace.path("out.jsonl"));
    const script = "cat in.jsonl.gz | polygateway batch - -o out.jsonl";
    const piped = await runShell(script, { folder: bench.workspace.folder, env: bench.env });
    expect(piped.code, piped.stderr).toBe(0);
    bench.expectAllAnswered(5);
  });

  it("end the run resumably when a pipe breaks off in the middle of its gzip", async () => {
    const whole = gzipSync(questionLines(3_000), { level: 1 });
    bench.workspace.write("in.jsonl.gz", whole);
    const cut = `head -c ${whole.length - 40} in.jsonl.gz | polygateway batch - -o out.jsonl --json`;
    const run = await runShell(cut, { folder: bench.workspace.folder, env: bench.env });
    expect(run.code, run.stderr).toBe(3);
    expect(summaryOf(run)).toMatchObject({ stop: { kind: "input_failed" } });
    const rest = await runShell("polygateway batch - -o out.jsonl < in.jsonl.gz", {
      folder: bench.workspace.folder,
      env: bench.env,
    });
    expect(rest.code, rest.stderr).toBe(0);
    bench.expectAllAnswered(3_000);
    expect(bench.provider.stats().arrived).toBe(3_000);
  });

  it("are refused with the reason when they are missing, a folder, a cut gzip or UTF-16", async () => {
    mkdirSync(bench.workspace.path("folder"));
    bench.workspace.write("cut.gz", gzipSync(questionLines(50)).subarray(0, 100));
    bench.workspace.write("utf16.jsonl", Buffer.from(`\uFEFF${questionLines(1)}`, "utf16le"));
    for (const [name, words] of [
      ["nowhere.jsonl", /There is no input file nowhere\.jsonl/],
      ["folder", /folder is a folder/],
      ["cut.gz", /cut\.gz can't be read: unexpected end of file/],
      ["utf16.jsonl", /UTF-16; save it as UTF-8/],
    ] as const) {
      expectRefused(await bench.run(["batch", name, "-o", "out.jsonl"]), words);
    }
    expect(existsSync(bench.workspace.path("out.jsonl"))).toBe(false);
  });

  it("may be empty, and may grow", async () => {
    bench.workspace.write("in.jsonl", "");
    expect(await bench.batch()).toMatchObject({ code: 0 });
    bench.workspace.write("in.jsonl", questionLines(2));
    expect(await bench.batch()).toMatchObject({ code: 0 });
    bench.workspace.write("in.jsonl", questionLines(5));
    const grown = await bench.batch(["--json"]);
    expect(grown.stderr).toContain("has new lines since the last run");
    expect(summaryOf(grown)).toMatchObject({ exitCode: 0, skipped: 2, done: 3 });
    bench.expectAllAnswered(5);
  });
});
