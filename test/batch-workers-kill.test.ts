import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { seededStream } from "../src/testing/seeded-random.js";
import type { Running } from "./cli-harness.js";
import { summaryOf } from "./support-batch/provider-bench.js";
import { questionLines } from "./support-batch/questions.js";
import { readRecords } from "./support-batch/telemetry.js";
import { isAlive, useWorkersBench, workersCanRun, workersOf } from "./support-batch/workers-bench.js";

/** Any of a batch's processes is killed or frozen at random moments: nothing lost, nothing twice, every send explained. */

const LINES = 600;
const PARENT_KILLS = 5;
/** Set PGW_TEST_SEED to the printed number to draw the same moments again. */
const SEED = Number(process.env.PGW_TEST_SEED ?? Date.now() % 1_000_000);
const next = seededStream(SEED, 0);
const draw = (from: number, to: number): number => from + Math.floor((next() / 2 ** 32) * (to - from));

const done = { parentKills: 0, workerKills: 0, freezes: 0 };
const pids = new Set<number>();

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

/** Kills and freezes workers of a run, until the run itself is killed or has ended. */
async function strike(run: Running, untilMs: number): Promise<void> {
  for (let waitedMs = 0; waitedMs < untilMs && run.child.exitCode === null; ) {
    const pauseMs = draw(100, 900);
    waitedMs += pauseMs;
    await sleep(pauseMs);
    const workers = workersOf(run);
    for (const pid of workers) pids.add(pid);
    const victim = workers[draw(0, workers.length)];
    if (victim === undefined) continue;
    if (draw(0, 3) === 0) {
      if (!signal(victim, "SIGSTOP")) continue;
      done.freezes++;
      await sleep(draw(50, 500));
      // Every other one is killed as it stands.
      signal(victim, draw(0, 2) === 0 ? "SIGKILL" : "SIGCONT");
    } else if (signal(victim, "SIGKILL")) done.workerKills++;
  }
}

describe.skipIf(!(await workersCanRun()))("killed and frozen again and again", () => {
  const bench = useWorkersBench();

  it("answers each line once, and every send is explained", { timeout: 300_000 }, async () => {
    bench.workspace.write("in.jsonl", questionLines(LINES));
    bench.provider.change({ latency: { ttftMedianMs: 150, ttftSigma: 0.5 }, faults: { errorRate: 0.03 } });
    const env = { ...bench.env, LLM__SIM__1__MAX_CONCURRENCY: "8", LLM__RETRY__MAX_ATTEMPTS: "10" };
    while (done.parentKills < PARENT_KILLS) {
      const run = bench.startWorkers(["--workers", "3"], env);
      await strike(run, draw(1_500, 5_000));
      if (!run.child.kill("SIGKILL")) break;
      await run.finished;
      done.parentKills++;
    }
    // A frozen one is woken above; what is left ends with its parent.
    while ([...pids].some(isAlive)) await sleep(20);

    bench.provider.change({ latency: { ttftMedianMs: 20 } });
    const last = await bench.startWorkers(["--workers", "3"], env).finished;
    console.log(`seed ${SEED}: ${JSON.stringify(done)}`);
    expect(last.code, last.stderr).toBe(0);
    bench.expectAllAnswered(LINES);
    const summary = summaryOf(last);
    expect(summary).toMatchObject({ failed: 0, left: 0, total: LINES });
    expect(done.workerKills).toBeGreaterThan(0);

    const books = await bench.run(["reconcile", "--out", "out.jsonl", "--json"]);
    expect(books.code, books.stdout).toBe(0);
    expect(JSON.parse(books.stdout)).toMatchObject({ balanced: true, open: 0, openAttempts: 0 });
    const { sends, rows, outcomes } = await readRecords(bench.workspace.path("polygateway.db"));
    expect(new Set(rows.map((row) => row.session_id))).toEqual(new Set([summary.batchId]));
    expect(new Set(sends.map((row) => row.parent_call_id)).size).toBe(LINES);
    // Killed between the journal's commit and the first byte, an attempt has a row and never arrived; a call that is
    // cancelled as its parent goes may have been cut before its first byte too.
    const neverArrived = sends.length - bench.provider.stats().arrived;
    expect(neverArrived).toBeGreaterThanOrEqual(0);
    expect(neverArrived).toBeLessThanOrEqual((outcomes.abandoned ?? 0) + (outcomes.cancelled ?? 0));
    console.log(
      `${sends.length} sends for ${LINES} lines: ${JSON.stringify(outcomes)}, never arrived: ${neverArrived}`,
    );
  });
});
