import { randomFillSync } from "node:crypto";
import type { CancelTimer, LogLevel, Runtime } from "../ports/runtime.js";
import { sleepOn } from "./sleep.js";
import { createTimerWheel, type SystemTimer } from "./timer-wheel.js";
import { makeUuidV7 } from "./uuid.js";

export interface SystemRuntimeOptions {
  /** Receives every log line. Default: stderr, one line each. */
  readonly log?: Runtime["log"];
  /** Least severe entry that the default log writes. Default `warn`. */
  readonly level?: LogLevel;
}

const SEVERITY: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

function startSystemTimer(delayMs: number, callback: () => void): SystemTimer {
  const timer = setTimeout(callback, delayMs);
  return {
    cancel: () => clearTimeout(timer),
    keepProcessAlive: (keep) => void (keep ? timer.ref() : timer.unref()),
  };
}

/** For an adapter that keeps time without a Runtime: its own upkeep, which no call waits for. */
export function startTimer(delayMs: number, callback: () => void, keepProcessAlive: boolean): CancelTimer {
  const timer = startSystemTimer(delayMs, callback);
  timer.keepProcessAlive(keepProcessAlive);
  return timer.cancel;
}

/** Makes what JSON would lose or refuse readable. */
function readableValue(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return { name: value.name, message: value.message };
  return value;
}

function describeFields(fields: Record<string, unknown>): string {
  try {
    return JSON.stringify(fields, readableValue);
  } catch {
    return "{fields that JSON cannot hold}";
  }
}

/** One line per entry, whatever the message holds: log collectors split at line ends. */
export function formatLogLine(message: string, fields?: Record<string, unknown>): string {
  const text = message.replace(/\s*[\r\n]+\s*/g, " ");
  const hasFields = fields !== undefined && Object.keys(fields).length > 0;
  return `polygateway: ${text}${hasFields ? ` ${describeFields(fields)}` : ""}\n`;
}

function logToStderr(least: LogLevel): Runtime["log"] {
  return (level, message, fields) => {
    if (SEVERITY[level] >= SEVERITY[least]) process.stderr.write(formatLogLine(message, fields));
  };
}

/**
 * The real clock, timers, randomness and ids: the only place that reads them.
 *
 * A pending timer or sleep keeps the process alive, because it stands for a call that somebody waits for: a call queued
 * behind a limit has no socket, and Node would end the process under it without an answer. Whoever sets a timer cancels
 * it when the wait is over; with none pending the process ends at once.
 */
export function createSystemRuntime(options: SystemRuntimeOptions = {}): Runtime {
  const now = (): number => performance.now();
  const wallNow = (): number => Date.now();
  const { schedule } = createTimerWheel({ now, startSystemTimer });
  return {
    now,
    wallNow,
    sleep: sleepOn(schedule),
    setTimer: schedule,
    random: () => Math.random(),
    uuid: makeUuidV7(wallNow, (bytes) => void randomFillSync(bytes)),
    log: options.log ?? logToStderr(options.level ?? "warn"),
  };
}
