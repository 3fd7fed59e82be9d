import { describe, expect, it } from "vitest";
import { summaryOf } from "./support-batch/provider-bench.js";
import { questionLines } from "./support-batch/questions.js";
import { useWorkersBench, workersCanRun } from "./support-batch/workers-bench.js";

/** A line that ends every worker that gets it, as by a fault that only it meets. */

const LINES = 40;
const DEADLY = 17;

describe.skipIf(!(await workersCanRun()))("a line that workers die of", () => {
  const bench = useWorkersBench();

  /** What a worker does with the deadly line; anything else in the process stays as it is. */
  function deadlyEnv(end: string): Record<string, string> {
    const path = bench.workspace.write(
      "deadly.cjs",
      // Not before the worker listens itself: what comes earlier would be lost to it.
      `process.on("newListener", function begin(event) {
        if (event !== "message" || !process.argv[1].endsWith("batch-worker.js")) return;
        process.removeListener("newListener", begin);
        process.on("message", (list) => {
          if (JSON.stringify(list).includes('"question ${DEADLY}"')) ${end};
        });
      });`,
    );
    return { ...bench.env, NODE_OPTIONS: `--require ${path}` };
  }

  it.each([
    ["a crash", "process.exit(7)", 3, /ended with exit code 7/],
    ["a kill from outside", 'process.kill(process.pid, "SIGKILL")', 5, /was killed by SIGKILL/],
  ])("becomes a failure line with the reason, and the batch goes on (%s)", async (_, end, atMost, how) => {
    bench.workspace.write("in.jsonl", questionLines(LINES));
    const ended = await bench.startWorkers([], deadlyEnv(end)).finished;
    expect(ended.code, ended.stderr).toBe(2);
    const summary = summaryOf(ended);
    expect(summary).toMatchObject({ done: LINES - 1, failed: 1, left: 0, stop: null });
    const failed = bench.out().filter(({ error }) => error !== null);
    expect(failed).toMatchObject([{ custom_id: `q${DEADLY}`, error: { code: "kills_workers" } }]);
    expect(failed[0]?.error?.message).toMatch(how);
    const deaths = summary.workers.reduce((sum: number, worker: { deaths: number }) => sum + worker.deaths, 0);
    expect(deaths).toBeGreaterThanOrEqual(3);
    expect(deaths).toBeLessThanOrEqual(atMost + 1);
    expect(ended.stderr).toContain(`Line "q${DEADLY}" is recorded as failed`);
    // Nothing is left to do for the next run, until it is asked for.
    const again = await bench.startWorkers().finished;
    expect(again.code, again.stderr).toBe(2);
    const retried = await bench.startWorkers(["--retry-failed"]).finished;
    expect(retried.code, retried.stderr).toBe(0);
    bench.expectAllAnswered(LINES);
  });
});
