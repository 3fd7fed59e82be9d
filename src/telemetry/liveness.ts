import { type ExecFileSyncOptionsWithStringEncoding, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { parseWorkerId } from "./worker-id.js";

/** What the operating system says about a process. */
export type ProcessState =
  | { readonly kind: "gone" }
  /** `startedAtMs` = epoch milliseconds, to the second; null when it can't be learnt. */
  | { readonly kind: "running"; readonly startedAtMs: number | null };

export interface LivenessOptions {
  readonly nowMs: number;
  /** How long the rows of a worker on another host may rest before it counts as dead. */
  readonly staleAfterMs: number;
  readonly host?: string;
  readonly processState?: (pid: number) => ProcessState;
}

/** Process start times are known to the second only, and the boot time may be a second off. */
const START_TOLERANCE_MS = 2_000;

/**
 * Whether the worker that wrote something at `writtenAtMs` is gone (spec 05): on this host when no process has its
 * pid, or one that started later than the row; on other hosts when the row is older than `staleAfterMs`.
 */
export function createLiveness(options: LivenessOptions): (worker: string, writtenAtMs: number | null) => boolean {
  const { nowMs, staleAfterMs, host = hostname(), processState = readProcessState } = options;
  const states = new Map<number, ProcessState>();
  const stateOf = (pid: number) => {
    const state = states.get(pid) ?? processState(pid);
    states.set(pid, state);
    return state;
  };
  return (worker, writtenAtMs) => {
    const id = parseWorkerId(worker);
    if (id === null || id.host !== host) return writtenAtMs === null || nowMs - writtenAtMs > staleAfterMs;
    const state = stateOf(id.pid);
    if (state.kind === "gone") return true;
    if (state.startedAtMs === null || writtenAtMs === null) return false;
    return state.startedAtMs > writtenAtMs + START_TOLERANCE_MS;
  };
}

export function readProcessState(pid: number): ProcessState {
  if (pid === 0 || !exists(pid)) return { kind: "gone" };
  return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Linux counts start times in USER_HZ, which is 100 on every architecture Node runs on. */
const TICKS_PER_SECOND = 100;
const STATE_FIELD = 0;
const START_FIELD = 19;

function fromProc(pid: number): ProcessState {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command name stands in parentheses and may contain anything; the fields after it don't.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[STATE_FIELD] === "Z" || fields[STATE_FIELD] === "X") return { kind: "gone" };
    const bootSeconds = Number(/^btime (\d+)$/m.exec(readFileSync("/proc/stat", "latin1"))?.[1]);
    const startedAtMs = (bootSeconds + Number(fields[START_FIELD]) / TICKS_PER_SECOND) * 1000;
    return { kind: "running", startedAtMs: Number.isFinite(startedAtMs) ? startedAtMs : null };
  } catch {
    return { kind: "running", startedAtMs: null };
  }
}

/** The C locale, because other ones print dates that no parser reads. */
const PS_OPTIONS: ExecFileSyncOptionsWithStringEncoding = {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "ignore"],
  env: { LC_ALL: "C" } as NodeJS.ProcessEnv,
};

function fromPs(pid: number): ProcessState {
  try {
    const started = Date.parse(execFileSync("/bin/ps", ["-o", "lstart=", "-p", String(pid)], PS_OPTIONS).trim());
    return { kind: "running", startedAtMs: Number.isFinite(started) ? started : null };
  } catch {
    return { kind: "running", startedAtMs: null };
  }
}
