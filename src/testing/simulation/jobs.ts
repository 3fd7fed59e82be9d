import { once } from "node:events";
import { type MessagePort, Worker } from "node:worker_threads";
import { BASELINES } from "./baselines.js";
import { type RunResult, runScenario } from "./run.js";
import { scenarioOf } from "./scenarios.js";

/** One run, told to the thread that makes it. */
export interface Job {
  readonly scenario: string;
  readonly seed: number;
  /** null = the gateway. */
  readonly baseline: string | null;
  readonly keepsTrace: boolean;
}

interface Failure {
  readonly failed: string;
}

export function runJob({ scenario, seed, baseline, keepsTrace }: Job): Promise<RunResult> {
  const spec = BASELINES.find(({ name }) => name === baseline);
  return runScenario(scenarioOf(scenario, seed), {
    seed,
    keepsTrace,
    ...(spec === undefined ? {} : { baseline: spec }),
  });
}

/** The other side of `runJobs`: makes one run after the other, as told. */
export function serveJobs(port: MessagePort): void {
  port.on("message", async (job: Job) => {
    try {
      port.postMessage(await runJob(job));
    } catch (error) {
      port.postMessage({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  });
}

export interface JobsOptions {
  /** The program whose threads call `serveJobs`. */
  readonly program: URL;
  readonly threads: number;
  /** Asked before each run; false ends the list early. */
  readonly mayBegin: () => boolean;
  readonly onResult: (job: Job, result: RunResult) => void;
}

/** Makes the runs on several threads. Gives the results of those that were begun, in the order of the jobs. */
export async function runJobs(jobs: Iterable<Job>, options: JobsOptions): Promise<RunResult[]> {
  const results: { readonly position: number; readonly result: RunResult }[] = [];
  const queue = jobs[Symbol.iterator]();
  let position = 0;

  async function work(): Promise<void> {
    const thread = new Worker(options.program);
    try {
      while (options.mayBegin()) {
        const { done, value: job } = queue.next();
        if (done === true) return;
        const own = position++;
        thread.postMessage(job);
        const [answer] = (await once(thread, "message")) as [RunResult | Failure];
        if ("failed" in answer) throw new Error(`${job.scenario}, seed ${job.seed}: ${answer.failed}`);
        results.push({ position: own, result: answer });
        options.onResult(job, answer);
      }
    } finally {
      await thread.terminate();
    }
  }

  await Promise.all(Array.from({ length: options.threads }, work));
  return results.sort((a, b) => a.position - b.position).map(({ result }) => result);
}
