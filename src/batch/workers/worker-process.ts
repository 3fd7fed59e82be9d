import { fork } from "node:child_process";
import type { FromWorker, ToWorker } from "./messages.js";
import { createOutbox } from "./outbox.js";

/** A worker as the pool sees it; tests put another thing here. */
export interface WorkerLink {
  readonly pid: number | null;
  put(message: ToWorker): void;
  /** At once, whatever it does. */
  kill(): void;
}

export interface WorkerEvents {
  onMessage(message: FromWorker): void;
  /**
   * Once, after its last message and never before the start returns. `how` is the end of a sentence: "was killed by SIGKILL".
   * `fromOutside`: it did not end for what it did itself, as far as that can be told.
   */
  onEnd(how: string, fromOutside: boolean): void;
}

export type StartWorker = (events: WorkerEvents) => WorkerLink;

/** What a process doesn't do to itself; the kernel does it where memory runs out. */
const FROM_OUTSIDE: ReadonlySet<string> = new Set(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]);

/** So much of its last words is kept. */
const MAX_WORDS_CHARS = 500;

/**
 * Starts workers as processes of their own that run the program at `path`. They end by themselves when this one is gone,
 * however it ended: their channel closes.
 */
export function forkWorkers(path: string): StartWorker {
  return ({ onMessage, onEnd }) => {
    const child = fork(path, [], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    let words = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-MAX_WORDS_CHARS);
    });
    let ended = false;
    const end = (how: string, fromOutside: boolean): void => {
      if (ended) return;
      ended = true;
      onEnd(how, fromOutside);
    };
    child.on("message", (messages) => {
      for (const message of messages as FromWorker[]) onMessage(message);
    });
    // `close` comes after the last message and the last words.
    child.on("close", (code, signal) => end(endText(code, signal, words), signal !== null && FROM_OUTSIDE.has(signal)));
    child.on("error", (error) => {
      // A channel that breaks is followed by the end itself.
      if (child.pid === undefined) end(`could not be started: ${error.message}`, true);
    });
    const outbox = createOutbox<ToWorker>((messages, written) => {
      child.send([...messages], (error) => written(error ?? null));
    });
    return {
      pid: child.pid ?? null,
      put: outbox.put,
      kill: () => void child.kill("SIGKILL"),
    };
  };
}

function endText(code: number | null, signal: string | null, words: string): string {
  const said = words.trim().replace(/\s+/g, " ");
  const how = signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`;
  return said === "" ? how : `${how}: ${said}`;
}
