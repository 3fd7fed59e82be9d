import { fileURLToPath } from "node:url";
import type { BatchOptions } from "../batch/types.js";
import { createWorkerPool } from "../batch/workers/pool.js";
import { WorkersFailedError } from "../batch/workers/restarts.js";
import { forkWorkers } from "../batch/workers/worker-process.js";
import { balanceBooks, batchHooks } from "./batch-telemetry.js";
import { ALL_KINDS, type ClientRequest, openLines, prepareClient } from "./client.js";
import { openConfiguration } from "./configuration.js";
import { CliError } from "./failure.js";
import { printable } from "./terminal.js";

/** Who makes a batch's calls: this process, or workers of it. */
export interface BatchCaller {
  readonly batchOptions: Pick<
    BatchOptions,
    "client" | "form" | "isDue" | "runtime" | "concurrency" | "onReady" | "earlierAttempts" | "progressEveryMs"
  >;
  close(): Promise<void>;
}

export interface CallerRequest extends Omit<ClientRequest, "batch"> {
  readonly note: (text: string) => void;
  readonly outPath: string;
  readonly concurrency?: number;
  readonly workers?: number;
}

const NOT_SHARED =
  "--workers needs limits that are shared through Redis: set PGW_LIMITER_BACKEND=redis, PGW_BREAKER_BACKEND=redis and REDIS_URL. With limits in memory each worker would use up all of them alone, so that the sources would see them exceeded. Or leave --workers out: one process keeps hundreds of calls in flight (--concurrency).";

/** Workers end themselves within 10 s; this is for one that hangs or stands still. */
const END_WITHIN_MS = 15_000;

export function openCaller(request: CallerRequest): BatchCaller {
  const { workers = 1 } = request;
  return workers === 1 ? callerInProcess(request) : callerWithWorkers(request, workers);
}

function callerInProcess(request: CallerRequest): BatchCaller {
  const { lines: client, runtime, store, defaultConcurrency, close } = openLines({ ...request, batch: true });
  const hooks = store === undefined ? {} : batchHooks(store, runtime, request.note);
  return {
    batchOptions: { client, runtime, concurrency: request.concurrency ?? defaultConcurrency, ...hooks },
    close,
  };
}

function callerWithWorkers(request: CallerRequest, workers: number): BatchCaller {
  const { note } = request;
  // Before anything else is said of the configuration: what is wrong with its sources is another matter.
  const { settings } = openConfiguration(request, request.terminal.env).inspectProcess();
  if (settings.limiterBackend !== "redis") throw new CliError(NOT_SHARED);
  const prepared = prepareClient({ kinds: ALL_KINDS, ...request, batch: true });
  const { kind, options, runtime, models, defaultConcurrency, store } = prepared;
  const { scope } = options;
  const { config, env, db } = request;
  const concurrency = request.concurrency ?? defaultConcurrency;
  const pool = createWorkerPool({
    scope,
    kind,
    models,
    setup: { scope, ...definedOnly({ config, env, db }) },
    workers,
    concurrency,
    runtime,
    startWorker: forkWorkers(fileURLToPath(new URL("./batch-worker.js", import.meta.url))),
    onNote: (text) => note(printable(text)),
  });
  const hooks = store === undefined ? undefined : batchHooks(store, runtime, note);
  return {
    batchOptions: {
      ...hooks,
      client: pool,
      runtime,
      concurrency,
      async onReady(ready) {
        await hooks?.onReady?.(ready);
        await pool.start(ready.linesToDo).catch(couldNotStart);
      },
    },
    async close() {
      const died = pool.workers().reduce((sum, { deaths }) => sum + deaths, 0);
      await pool.close(END_WITHIN_MS);
      if (died === 0 || store === undefined) return;
      await balanceBooks(store, request.outPath, "this run", runtime, note);
    },
  };
}

function couldNotStart(error: unknown): never {
  if (!(error instanceof WorkersFailedError)) throw error;
  throw new CliError(`${error.message} Nothing was sent.`);
}

function definedOnly(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const defined = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(defined);
}
