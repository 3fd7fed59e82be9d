import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { textOf } from "./backend-errors.js";

const FIRST_MS = 250;
const MAX_MS = 2_000;

/** What a tick carried: `wants` ask for permits; without them it only tells what happened. */
export type TickKind = "wants" | "accounts";

export interface BackendRetry {
  /** A failure is being waited out. */
  isPending(): boolean;
  /** Permits can't be had: the last tick that asked for some failed, whatever was told since. */
  isOutage(): boolean;
  /** The governor failed; it is asked again after a growing pause. Says so once per outage. */
  later(error: unknown, kind: TickKind): void;
  /**
   * The governor answered. That it takes accounts says nothing about permits: a full Redis books what happened and gives
   * nothing out (spec 02 §5).
   */
  succeeded(kind: TickKind): void;
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
  let isOutage = false;
  let wasTold = false;
  let cancelTimer: CancelTimer | null = null;
  let stopped = false;
  return {
    isPending: () => cancelTimer !== null,
    isOutage: () => isOutage,
    later(error, kind) {
      isOutage ||= kind === "wants";
      if (cancelTimer !== null || stopped) return;
      let pauseMs = FIRST_MS;
      for (let n = 0; n < failuresInARow && pauseMs < MAX_MS; n += 1) pauseMs *= 2;
      if (failuresInARow === 0) {
        const text = `the limits can't be asked, and what may wait for them waits: ${textOf(error)}`;
        wasTold = news.away(text) || wasTold;
      }
      failuresInARow += 1;
      cancelTimer = runtime.setTimer(pauseMs, () => {
        cancelTimer = null;
        again();
      });
    },
    succeeded(kind) {
      if (kind === "accounts" && isOutage) return;
      failuresInARow = 0;
      if (kind === "accounts") return;
      isOutage = false;
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
