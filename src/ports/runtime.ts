export type LogLevel = "debug" | "info" | "warn" | "error";

/** Cancels a timer; calling it twice or after it fired is harmless. */
export type CancelTimer = () => void;

/**
 * Time, randomness, ids and log lines: injected everywhere, so that a simulation can own them all.
 * Nothing else in the library reads a clock or a random number.
 */
export interface Runtime {
  /** Monotonic milliseconds; only differences mean anything. */
  now(): number;
  /** Milliseconds since 1970. */
  wallNow(): number;
  /** Resolves after `delayMs`; rejects at once with the signal's own reason when it fires. Leaves no timer and no listener behind. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** Runs `callback` once after `delayMs`. Cheap for tens of thousands of pending timers; may be late by a few milliseconds, never early. */
  setTimer(delayMs: number, callback: () => void): CancelTimer;
  /** Uniform in [0, 1). */
  random(): number;
  /** UUIDv7: sorts by time. */
  uuid(): string;
  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void;
}
