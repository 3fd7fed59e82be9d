import { describe, expect, it } from "vitest";
import type { UpstreamScript } from "../src/testing/provider/server.js";
import { sourceEnv } from "./cli-harness.js";
import { expectExit1, summaryOf, useProviderBench } from "./support-batch/provider-bench.js";
import { idsOf, questionLines } from "./support-batch/questions.js";

/** Options of `batch` that change what becomes of OUT, with the built command. */

const bench = useProviderBench();

const refusal = (status: number, message: string): UpstreamScript => ({
  status,
  headers: { "content-type": "application/json" },
  chunks: [{ utf8: JSON.stringify({ error: { message, code: "invalid" } }) }],
  end: "close",
});

describe("options", () => {
  it("--retry-failed tries the failure lines again, and only those", async () => {
    bench.workspace.write("in.jsonl", questionLines(12));
    bench.provider.script(refusal(400, "no such thing"), 3);
    const first = await bench.batch();
    expect(first.code, first.stderr).toBe(2);
    expect(first.stdout).toContain("3 lines hold errors instead of an answer; try them again with --retry-failed");
    expect(bench.out().filter(({ error }) => error !== null)).toMatchObject(
      Array(3).fill({ response: { status_code: 400, body: expect.stringContaining("no such thing") } }),
    );
    expect(await bench.batch()).toMatchObject({ code: 2 });
    expect(bench.provider.stats().arrived).toBe(12);
    const retried = await bench.batch(["--retry-failed", "--json"]);
    expect(summaryOf(retried)).toMatchObject({ exitCode: 0, done: 3, skipped: 9, skippedFailed: 0 });
    expect(bench.provider.stats().arrived).toBe(15);
    bench.expectAllAnswered(12);
  });

  it("--ordered writes in the order of the input, also over a kill", async () => {
    bench.workspace.write("in.jsonl", questionLines(120));
    bench.provider.change({ latency: { ttftMedianMs: 40, ttftSigma: 1 }, faults: { errorRate: 0.05 } });
    const args = ["batch", "in.jsonl", "-o", "out.jsonl", "--ordered", "--concurrency", "16"];
    const fast = sourceEnv(bench.provider.baseUrl);
    const first = bench.workspace.start(args, fast);
    await bench.arrived(60);
    first.child.kill("SIGKILL");
    await first.finished;
    const second = await bench.workspace.run(args, fast);
    expect(second.code, second.stderr).toBe(0);
    expect(bench.out().map((line) => line.custom_id)).toEqual(idsOf(120));
  });

  it("--workers is refused above what any machine can use, before anything starts", async () => {
    bench.workspace.write("in.jsonl", questionLines(1));
    for (const workers of ["257", "99999"]) {
      expectExit1(await bench.batch(["--workers", workers]), /--workers.*At most 256: each is a process/);
    }
  });

  it("--workers is refused until limits can be shared", async () => {
    bench.workspace.write("in.jsonl", questionLines(1));
    expectExit1(await bench.batch(["--workers", "4"]), /--workers needs limits that are shared through Redis/);
  });
});
