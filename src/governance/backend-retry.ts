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

/** Tells people of an outage, and of its end. */
export interface OutageNews {
  /** Answers whether it was said: not more often than other warnings. */
  away(text: string): boolean;
  back(text: string): void;
}

/** When a governor that failed is asked again. */
export function createBackendRetry(runtime: Runtime, news: OutageNews, again: () => void): BackendRetry {
  let failuresInARow = 0;
  let wasTold = false;
  let cancelTimer: CancelTimer | null = null;
  let stopped = false;
  return {
    isPending: () => cancelTimer !== null,
    later(error) {
      if (cancelTimer !== null || stopped) return;
      let pauseMs = FIRST_MS;
      for (let n = 0; n < failuresInARow && pauseMs < MAX_MS; n += 1) pauseMs *= 2;
      if (failuresInARow === 0) {
        wasTold = news.away(`the limits can't be asked, and what may wait for them waits: ${textOf(error)}`);
      }
      failuresInARow += 1;
      cancelTimer = runtime.setTimer(pauseMs, () => {
        cancelTimer = null;
        again();
      });
    },
    succeeded() {
      if (failuresInARow === 0) return;
      failuresInARow = 0;
      if (wasTold) news.back("the limits can be asked again; what waited for them goes on");
      wasTold = false;
    },
    stop() {
      stopped = true;
      cancelTimer?.();
      cancelTimer = null;
    },
  };
}
