import type { CancelTimer, Runtime } from "../ports/runtime.js";

/** The one timer of a queue: when time alone may let somebody go on. */
export interface HintTimer {
  /** Infinity = no timer. */
  set(atMs: number): void;
  /** The moment has come, though the timer has not fired yet. */
  isDue(): boolean;
  stop(): void;
}

export function createHintTimer(runtime: Runtime, onDue: () => void): HintTimer {
  let setToMs = Infinity;
  let cancelTimer: CancelTimer | null = null;

  function stop(): void {
    cancelTimer?.();
    cancelTimer = null;
    setToMs = Infinity;
  }

  return {
    set(atMs) {
      if (atMs === setToMs) return;
      stop();
      if (atMs === Infinity) return;
      setToMs = atMs;
      cancelTimer = runtime.setTimer(Math.max(0, atMs - runtime.now()), () => {
        cancelTimer = null;
        setToMs = Infinity;
        onDue();
      });
    },
    isDue: () => cancelTimer !== null && runtime.now() >= setToMs,
    stop,
  };
}
