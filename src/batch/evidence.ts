import type { LineEvidence } from "./requeue.js";

/** What is remembered about one line on its way. */
export interface LineHistory {
  readonly startedMs: number;
  readonly successesAtStart: number;
  successesWhenExhausted: number | undefined;
  outageRequeues: number;
}

/** Tells an outage from a bad line by what the other lines of the batch saw. */
export interface Evidence {
  readonly lastSuccessMs: number;
  begin(nowMs: number): LineHistory;
  /** Returns true when this success ends an outage. */
  succeeded(history: LineHistory, nowMs: number): boolean;
  /** The line became a failure line. */
  failed(history: LineHistory): void;
  /** An outage put the line back. */
  putBack(history: LineHistory): void;
  about(history: LineHistory, nowMs: number, moreInput: boolean): Omit<LineEvidence, "wholeScopeDead">;
}

export function createEvidence(): Evidence {
  let successes = 0;
  let lastSuccessMs = Number.NEGATIVE_INFINITY;
  let outage = false;
  /** Lines on their way that no outage has put back yet: their ends will tell something. */
  let unproven = 0;

  const leaveUnproven = (history: LineHistory): void => {
    if (history.outageRequeues === 0) unproven--;
  };

  return {
    get lastSuccessMs() {
      return lastSuccessMs;
    },
    begin(nowMs) {
      unproven++;
      return {
        startedMs: nowMs,
        successesAtStart: successes,
        successesWhenExhausted: undefined,
        outageRequeues: 0,
      };
    },
    succeeded(history, nowMs) {
      leaveUnproven(history);
      successes++;
      lastSuccessMs = nowMs;
      const ended = outage;
      outage = false;
      return ended;
    },
    failed: leaveUnproven,
    putBack(history) {
      leaveUnproven(history);
      history.outageRequeues++;
      history.successesWhenExhausted = successes;
      outage = true;
    },
    about(history, nowMs, moreInput) {
      const sinceStart = successes > history.successesAtStart;
      const middleMs = (history.startedMs + nowMs) / 2;
      const others = unproven - (history.outageRequeues === 0 ? 1 : 0);
      return {
        successSinceFirstAttempt: sinceStart,
        freshSuccess:
          history.successesWhenExhausted === undefined
            ? sinceStart && lastSuccessMs >= middleMs
            : successes > history.successesWhenExhausted,
        moreEvidenceComes: moreInput || others > 0,
        outageRequeues: history.outageRequeues,
      };
    },
  };
}
