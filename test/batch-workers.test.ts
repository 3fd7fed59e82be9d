import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { maxConcurrent } from "../src/testing/provider/judge.js";
import type { Running } from "./cli-harness.js";
import { expectExit1, summaryOf } from "./support-batch/provider-bench.js";
import { questionLines } from "./support-batch/questions.js";
import { readRecords } from "./support-batch/telemetry.js";
import { isAlive, useWorkersBench, workersCanRun, workersOf } from "./support-batch/workers-bench.js";

/** One input, several worker processes: each line once, whichever of the processes is killed, frozen or stopped. */

describe.skipIf(!(await workersCanRun()))("batch --workers", () => {
  const bench = useWorkersBench();
  const dbPath = (): string => bench.workspace.path("polygateway.db");

  async function untilGone(pids: readonly number[]): Promise<void> {
    while (pids.some(isAlive)) await sleep(20);
  }

  /** Both at work. */
  async function twoWorkers(run: Running): Promise<[number, number]> {
    for (;;) {
      const [first, second] = workersOf(run);
      if (first !== undefined && second !== undefined) return [first, second];
      await sleep(20);
    }
  }

  async function expectBooksBalance(): Promise<void> {
    const books = await bench.run(["reconcile", "--out", "out.jsonl", "--json"]);
    expect(books.code, books.stdout + books.stderr).toBe(0);
    expect((await readRecords(dbPath())).openAttempts).toBe(0);
  }

  describe("several workers", () => {
    it("answer every line once, write their rows under one session, and are added up", async () => {
      bench.workspace.write("in.jsonl", questionLines(200));
      bench.provider.change({ latency: { ttftMedianMs: 20 }, faults: { errorRate: 0.05 } });
      const run = bench.startWorkers(["--concurrency", "8"]);
      const pids = await twoWorkers(run);
      const ended = await run.finished;
      expect(ended.code, ended.stderr).toBe(0);
      bench.expectAllAnswered(200);
      const summary = summaryOf(ended);
      expect(summary).toMatchObject({ done: 200, failed: 0, left: 0, stop: null });
      expect(summary.workers).toHaveLength(2);
      for (const worker of summary.workers) expect(worker).toMatchObject({ deaths: 0, handedOn: 0, inFlight: 0 });
      const { sends, rows, outcomes, openAttempts } = await readRecords(dbPath());
      expect(openAttempts).toBe(0);
      expect(outcomes.success).toBe(200);
      expect(new Set(rows.map((row) => row.session_id))).toEqual(new Set([summary.batchId]));
      expect(new Set(sends.map((row) => String(row.worker).split(":")[1]))).toEqual(new Set(pids.map(String)));
      expect(summary.attempts).toBe(sends.length);
      const tokens = rows.reduce(
        (sum, row) => sum + Number(row.prompt_tokens ?? 0) + Number(row.completion_tokens ?? 0),
        0,
      );
      expect(summary.tokens).toBe(tokens);
      expect(pids.some(isAlive)).toBe(false);
      // Four of the eight lines in flight wait: the limit is that of all workers together.
      expect(maxConcurrent(bench.provider.ledger()).peak).toBeLessThanOrEqual(4);
    });

    it("keep the order with --ordered, and are shown by status", async () => {
      bench.workspace.write("in.jsonl", questionLines(60));
      bench.provider.change({ latency: { ttftMedianMs: 300, ttftSigma: 0.5 } });
      const run = bench.startWorkers(["--ordered"]);
      const pids = await twoWorkers(run);
      await bench.arrived(8);
      let shown: number[] = [];
      while (shown.length < 2) {
        const status = await bench.run(["status", "--json"]);
        if (status.code === 0) {
          const { processes } = JSON.parse(status.stdout) as { processes: { worker: string }[] };
          shown = processes.map(({ worker }) => Number(worker.split(":")[1]));
        }
      }
      expect(shown.sort()).toEqual([...pids].sort());
      bench.provider.change({ latency: {} });
      const ended = await run.finished;
      expect(ended.code, ended.stderr).toBe(0);
      expect(bench.out().map(({ custom_id }) => custom_id)).toEqual(
        Array.from({ length: 60 }, (_, at) => `q${at + 1}`),
      );
    });
  });

  describe("a worker that is killed", () => {
    it("is replaced, and its lines are run by the others", async () => {
      bench.workspace.write("in.jsonl", questionLines(120));
      bench.provider.change({ latency: { ttftMedianMs: 200 } });
      const run = bench.startWorkers();
      const [first, second] = await twoWorkers(run);
      await bench.arrived(12);
      process.kill(first, "SIGKILL");
      await run.said("was killed by SIGKILL");
      await bench.arrived(40);
      process.kill(second, "SIGKILL");
      const ended = await run.finished;
      expect(ended.code, ended.stderr).toBe(0);
      bench.expectAllAnswered(120);
      const { workers, done } = summaryOf(ended);
      expect(done).toBe(120);
      expect(workers.map(({ deaths }: { deaths: number }) => deaths)).toEqual([1, 1]);
      const handedOn = workers.reduce((sum: number, worker: { handedOn: number }) => sum + worker.handedOn, 0);
      expect(handedOn).toBeGreaterThan(0);
      expect(bench.provider.stats().arrived).toBeLessThanOrEqual(120 + handedOn);
      // The batch itself closed the books of the dead.
      const { outcomes, openAttempts } = await readRecords(dbPath());
      expect(openAttempts).toBe(0);
      expect(outcomes.success).toBeGreaterThanOrEqual(120);
      await expectBooksBalance();
    });

    it("again and again ends the batch with the reason; the same command goes on", async () => {
      bench.workspace.write("in.jsonl", questionLines(40));
      bench.provider.change({ latency: { ttftMedianMs: 60_000 } });
      const run = bench.startWorkers();
      await bench.arrived(4);
      let ended = false;
      void run.finished.then(() => (ended = true));
      while (!ended) {
        for (const pid of workersOf(run)) if (isAlive(pid)) process.kill(pid, "SIGKILL");
        await sleep(100);
      }
      const stopped = await run.finished;
      expect(stopped.code, stopped.stderr).toBe(3);
      expect(summaryOf(stopped)).toMatchObject({ done: 0, failed: 0, left: 40, stop: { kind: "workers_failed" } });
      expect(summaryOf(stopped).stop.reason).toMatch(/died 5 times in a row.*was killed by SIGKILL/);
      expect(bench.out()).toEqual([]);
      bench.provider.change({ latency: {} });
      const again = await bench.startWorkers().finished;
      expect(again.code, again.stderr).toBe(0);
      bench.expectAllAnswered(40);
      await expectBooksBalance();
    });
  });

  describe("a batch that is killed", () => {
    it("takes its workers with it, and the same command does the rest", async () => {
      bench.workspace.write("in.jsonl", questionLines(150));
      bench.provider.change({ latency: { ttftMedianMs: 100, ttftSigma: 0.5 } });
      for (const moment of [10, 60]) {
        const run = bench.startWorkers();
        const pids = await twoWorkers(run);
        await bench.arrived(moment);
        run.child.kill("SIGKILL");
        await run.finished;
        await untilGone(pids);
      }
      bench.provider.change({ latency: {} });
      const last = await bench.startWorkers().finished;
      expect(last.code, last.stderr).toBe(0);
      bench.expectAllAnswered(150);
      expect(summaryOf(last)).toMatchObject({ total: 150, failed: 0, left: 0 });
      // The workers had the time to say what became of their calls.
      expect((await readRecords(dbPath())).outcomes.abandoned ?? 0).toBe(0);
      await expectBooksBalance();
    });

    it("can be run again while a frozen worker of it is still there", async () => {
      bench.workspace.write("in.jsonl", questionLines(60));
      bench.provider.change({ latency: { ttftMedianMs: 200 } });
      const run = bench.startWorkers();
      const [frozen, other] = await twoWorkers(run);
      await bench.arrived(10);
      process.kill(frozen, "SIGSTOP");
      run.child.kill("SIGKILL");
      await run.finished;
      await untilGone([other]);
      bench.provider.change({ latency: {} });
      const last = await bench.startWorkers().finished;
      expect(last.code, last.stderr).toBe(0);
      process.kill(frozen, "SIGCONT");
      await untilGone([frozen]);
      bench.expectAllAnswered(60);
      await expectBooksBalance();
    });
  });

  describe("a worker that is frozen", () => {
    it("keeps its lines until it goes on, while the others work", async () => {
      bench.workspace.write("in.jsonl", questionLines(60));
      bench.provider.change({ latency: { ttftMedianMs: 100 } });
      const run = bench.startWorkers();
      const [frozen] = await twoWorkers(run);
      await bench.arrived(12);
      process.kill(frozen, "SIGSTOP");
      while (bench.out().length < 56) await sleep(20);
      expect(bench.out().length).toBeLessThan(60);
      await sleep(200);
      process.kill(frozen, "SIGCONT");
      const ended = await run.finished;
      expect(ended.code, ended.stderr).toBe(0);
      bench.expectAllAnswered(60);
      expect(bench.provider.stats().arrived).toBe(60);
      await expectBooksBalance();
    });

    it("loses them to the others when it is killed", async () => {
      bench.workspace.write("in.jsonl", questionLines(60));
      bench.provider.change({ latency: { ttftMedianMs: 100 } });
      const run = bench.startWorkers();
      const [frozen] = await twoWorkers(run);
      await bench.arrived(12);
      process.kill(frozen, "SIGSTOP");
      while (bench.out().length < 56) await sleep(20);
      process.kill(frozen, "SIGKILL");
      const ended = await run.finished;
      expect(ended.code, ended.stderr).toBe(0);
      bench.expectAllAnswered(60);
      await expectBooksBalance();
    });
  });

  describe("Ctrl-C", () => {
    /** As a terminal sends it: to every process of the group. */
    function interruptAll(run: Running): void {
      for (const pid of [...workersOf(run), run.child.pid as number]) process.kill(pid, "SIGINT");
    }

    it("once: what is in flight is answered and written", async () => {
      bench.workspace.write("in.jsonl", questionLines(100));
      bench.provider.change({ latency: { ttftMedianMs: 300 } });
      const run = bench.startWorkers();
      await bench.arrived(12);
      interruptAll(run);
      const stopped = await run.finished;
      expect(stopped.code, stopped.stderr).toBe(3);
      const { arrived } = bench.provider.stats();
      expect(summaryOf(stopped)).toMatchObject({ stop: { kind: "drained" }, done: arrived });
      expect(arrived).toBeLessThan(100);
      bench.provider.change({ latency: {} });
      expect(await bench.startWorkers().finished).toMatchObject({ code: 0 });
      bench.expectAllAnswered(100);
      expect(bench.provider.stats().arrived).toBe(100);
    });

    it("twice: what is in flight is cancelled and recorded as that", async () => {
      bench.workspace.write("in.jsonl", questionLines(10));
      bench.provider.change({ latency: { ttftMedianMs: 50_000 } });
      const run = bench.startWorkers();
      await bench.arrived(4);
      interruptAll(run);
      await run.said("Press Ctrl-C again");
      interruptAll(run);
      const stopped = await run.finished;
      expect(stopped.code, stopped.stderr).toBe(3);
      expect(summaryOf(stopped)).toMatchObject({ done: 0, failed: 0, left: 10, stop: { kind: "aborted" } });
      const { outcomes, openAttempts } = await readRecords(dbPath());
      expect({ outcomes, openAttempts }).toEqual({ outcomes: { cancelled: 4 }, openAttempts: 0 });
    });

    it("ends a batch whose lines all wait for a permit", async () => {
      bench.workspace.write("in.jsonl", questionLines(20));
      const run = bench.startWorkers(["--concurrency", "8"], { ...bench.env, LLM__SIM__1__RPM: "1" });
      await bench.arrived(1);
      while (bench.out().length < 1) await sleep(20);
      run.child.kill("SIGINT");
      const stopped = await run.finished;
      expect(stopped.code, stopped.stderr).toBe(3);
      expect(summaryOf(stopped)).toMatchObject({ stop: { kind: "drained" }, failed: 0 });
    });
  });

  describe("a batch with workers that can't work", () => {
    it("is refused when nothing shares the limits", async () => {
      bench.workspace.write("in.jsonl", questionLines(1));
      expectExit1(await bench.batch(["--workers", "4"]), /needs limits that are shared through Redis/, /in memory/);
      // One worker is this process.
      expect(await bench.batch(["--workers", "1"])).toMatchObject({ code: 0 });
    });

    it("judges lines as one process does: what the provider rejects is a failure line", async () => {
      bench.workspace.write("in.jsonl", questionLines(6, { n: 99 }));
      const one = await bench.batch(["--json"]);
      const lines = bench.out().map(({ error, response }) => ({ error, response }));
      bench.workspace.write("out.jsonl", "");
      const several = await bench.startWorkers().finished;
      expect(several.code, several.stderr).toBe(one.code);
      expect(bench.out().map(({ error }) => error?.code)).toEqual(lines.map(({ error }) => error?.code));
    });
  });
});
