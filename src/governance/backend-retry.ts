import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { textOf } from "./backend-errors.js";

const FIRST_MS = 250;
const MAX_MS = 2_000;

export interface BackendRetry {
  /** A failure is being waited out. */
  isPending(): boolean;
  /** The governor failed; it is asked again after a growing pause. Says so once per outage. */
  later(error: unknown): void;
  /** The governor answered. */
  succeeded(): void;
  stop(): void;
}

/** When a governor that failed is asked again. */
export function createBackendRetry(
  runtime: Runtime,
  warn: (kind: string, message: string) => void,
  again: () => void,
): BackendRetry {
  let failuresInARow = 0;
  let cancelTimer: CancelTimer | null = null;
  let stopped = false;
  return {
    isPending: () => cancelTimer !== null,
    later(error) {
      if (cancelTimer !== null || stopped) return;
      let pauseMs = FIRST_MS;
      for (let n = 0; n < failuresInARow && pauseMs < MAX_MS; n += 1) pauseMs *= 2;
      if (failuresInARow === 0) warn("outage", `the governor does not answer and is asked again: ${textOf(error)}`);
      failuresInARow += 1;
      cancelTimer = runtime.setTimer(pauseMs, () => {
        cancelTimer = null;
        again();
      });
    },
    succeeded() {
      failuresInARow = 0;
    },
    stop() {
      stopped = true;
      cancelTimer?.();
      cancelTimer = null;
    },
  };
}
