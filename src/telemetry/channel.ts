import { createWarningLimiter } from "../domain/warning-limiter.js";
import type { Recorder, RecorderStats } from "../ports/recorder.js";
import type { Runtime } from "../ports/runtime.js";
import { isLateRecorder, type RecorderProblem } from "./late-recorder.js";
import { SUPERSEDED } from "./row-queue.js";
import { LostRowError } from "./troubles.js";

/** A call never waits longer for telemetry (spec 05 "Open attempts"). */
const COMMIT_WAIT_MS = 1_000;
const FLUSH_WAIT_MS = 10_000;

type Write = (recorder: Recorder) => Promise<void> | undefined;

/** Counts and says what goes wrong in recorders, each kind once a minute. */
export interface TelemetryFaults {
  readonly counts: { failures: number; commitTimeouts: number };
  /** Answers whether it was said. */
  warn(component: string, kind: string, message: string): boolean;
  /** Said whenever it happens: it ends a warning that was said. */
  over(component: string, kind: string, message: string): void;
  /** An entry was refused by throwing or rejecting. */
  failed(recorder: Recorder, error: unknown): void;
  /** A commit was not confirmed in time. */
  late(recorder: Recorder, message: string): void;
}

export function createTelemetryFaults(runtime: Runtime): TelemetryFaults {
  const limiter = createWarningLimiter();
  const counts = { failures: 0, commitTimeouts: 0 };
  const warn: TelemetryFaults["warn"] = (component, kind, message) => {
    const said = limiter(component, kind, runtime.now());
    if (said === null) return false;
    const more = said.suppressed === 0 ? "" : ` (${said.suppressed} more of this kind since the last warning)`;
    runtime.log("warn", `telemetry ${component}: ${message}${more}`, { component, kind, suppressed: said.suppressed });
    return true;
  };
  return {
    counts,
    warn,
    over(component, kind, message) {
      runtime.log("warn", `telemetry ${component}: ${message}`, { component, kind });
    },
    failed(recorder, error) {
      counts.failures += 1;
      if (error instanceof LostRowError) return;
      warn(recorder.name, "failure", `an entry could not be recorded: ${describe(error)}; calls go on`);
    },
    late(recorder, message) {
      counts.commitTimeouts += 1;
      warn(recorder.name, "commit_timeout", message);
    },
  };
}

/** One recorder behind a wall: nothing it throws, rejects or never does gets through. */
export interface Channel {
  /** The promise to wait for, if any; resolves after 1 s at the latest and never rejects. */
  deliver(write: Write, wait: boolean): Promise<void> | undefined;
  /** Resolves after 10 s at the latest and never rejects. */
  settle(verb: "flush" | "close"): Promise<void>;
  /** Ends the subscription to the recorder's problems. */
  end(): void;
  stats(): RecorderStats & { readonly name: string };
}

export function createChannel(recorder: Recorder, runtime: Runtime, faults: TelemetryFaults): Channel {
  const { name } = recorder;
  // Set by a commit that ran into the limit, until one is confirmed: waiting again would slow every call for nothing.
  let stalled = false;
  /** A problem was said, and that it is over was not. */
  let isOpen = false;

  function onProblem({ code, message, isEnd = false }: RecorderProblem): void {
    const text = `${message} (${code})`;
    if (!isEnd) isOpen = faults.warn(name, code, text) || isOpen;
    else if (isOpen) {
      isOpen = false;
      faults.over(name, code, text);
    }
  }

  function boundedCommit(commit: Promise<void>): Promise<void> | undefined {
    const confirmed = Promise.resolve(commit).then(
      (how: unknown) => {
        if (how !== SUPERSEDED) stalled = false;
      },
      (error: unknown) => faults.failed(recorder, error),
    );
    if (stalled) {
      faults.late(recorder, "still not confirming commits; calls go on without waiting");
      return undefined;
    }
    return bounded(runtime, confirmed, COMMIT_WAIT_MS, () => {
      stalled = true;
      faults.late(recorder, `not committed within ${COMMIT_WAIT_MS} ms; the call goes on`);
    });
  }

  return {
    deliver(write, wait) {
      try {
        const commit = write(recorder);
        if (commit === undefined) return undefined;
        if (wait) return boundedCommit(commit);
        Promise.resolve(commit).catch((error: unknown) => faults.failed(recorder, error));
      } catch (error) {
        faults.failed(recorder, error);
      }
      return undefined;
    },
    async settle(verb) {
      try {
        await bounded(runtime, Promise.resolve(recorder[verb]()), FLUSH_WAIT_MS, () =>
          faults.warn(name, verb, `${verb} not finished within ${FLUSH_WAIT_MS / 1000} s; ${openRows(recorder)}`),
        );
      } catch (error) {
        faults.warn(name, verb, `${verb} failed: ${describe(error)}; rows may be missing`);
      }
    },
    end: isLateRecorder(recorder) ? recorder.onProblem(onProblem) : () => {},
    stats() {
      try {
        return { name, ...recorder.stats() };
      } catch {
        return { name, written: 0, queued: 0, dropped: 0 };
      }
    },
  };
}

function openRows(recorder: Recorder): string {
  try {
    const { queued } = recorder.stats();
    return `entries that are not written yet, and may be missing: ${queued}`;
  } catch {
    return "rows may be missing";
  }
}

/** Settles like `promise`, or resolves after `limitMs`; leaves no timer behind. */
function bounded(runtime: Runtime, promise: Promise<void>, limitMs: number, onLimit: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = runtime.setTimer(limitMs, () => {
      onLimit();
      resolve();
    });
    promise.then(
      () => {
        cancel();
        resolve();
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
