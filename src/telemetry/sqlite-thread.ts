import { Worker } from "node:worker_threads";
import { tableLayout } from "./columns.js";
import type { RecorderProblem } from "./late-recorder.js";
import type { Batch } from "./sqlite-batch.js";

export interface BatchResult {
  readonly status: "committed" | "retry" | "hopeless";
  /** Indices of entries the table refused. */
  readonly lost: readonly number[];
  readonly problem: RecorderProblem | null;
}

export interface SqliteThread {
  write(batch: Batch): void;
  /** Asks for one `onTick` after `delayMs`: the thread keeps the time, so that the main thread needs no timer. */
  tick(delayMs: number): void;
  /** Whether pending work keeps the process alive. */
  hold(alive: boolean): void;
  close(): Promise<void>;
}

export interface SqliteThreadEvents {
  readonly onDone: (result: BatchResult) => void;
  readonly onTick: () => void;
  /** The thread ended although nobody closed it. */
  readonly onLost: (reason: string) => void;
}

/** Flags of Node that not every version knows in a thread. */
function execArgv(): string[] {
  const builtin = (process as { getBuiltinModule?: (name: string) => unknown }).getBuiltinModule?.("node:sqlite");
  return builtin === undefined ? [] : ["--disable-warning=ExperimentalWarning"];
}

/** Starts the thread that owns the database file. It keeps the process alive until `hold(false)`. */
export function startSqliteThread(path: string, table: string, events: SqliteThreadEvents): SqliteThread {
  const worker = new Worker(new URL("./sqlite-worker.js", import.meta.url), {
    name: "polygateway-sqlite",
    execArgv: execArgv(),
    workerData: { path, layout: tableLayout(table) },
  });
  let closing = false;
  let lastError = "the thread ended";
  const ended = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      resolve();
      if (!closing) events.onLost(lastError);
    });
  });
  worker.on("error", (error: unknown) => {
    lastError = error instanceof Error ? error.message : String(error);
  });
  worker.on("message", (message: ({ type: "done" } & BatchResult) | { type: "tick" }) => {
    if (message.type === "done") events.onDone(message);
    else events.onTick();
  });
  return {
    write: (batch) => worker.postMessage({ type: "write", ...batch }),
    tick: (delayMs) => worker.postMessage({ type: "tick", delayMs }),
    hold: (alive) => (alive ? worker.ref() : worker.unref()),
    close() {
      closing = true;
      worker.ref();
      worker.postMessage({ type: "close" });
      return ended;
    },
  };
}
