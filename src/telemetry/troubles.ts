import { countOf } from "../domain/count-of.js";
import type { RecorderProblem } from "./late-recorder.js";
import type { QueueEntry, RowQueue } from "./row-queue.js";

/** The end of a problem that may pass. */
export const ROWS_KEPT = "; rows are kept and tried again";

/** What a commit rejects with: that its row is lost has been told, with all others. */
export class LostRowError extends Error {}

/** What goes wrong in a recorder: who is told of it, what is lost for it, and the last word about that. */
export interface Troubles {
  /** In plain words; null when the last write succeeded. */
  problem: string | null;
  /** Entries that were lost. */
  readonly dropped: number;
  /** The recorder is being closed: what may pass is not told any more, since it passes or the last word tells it. */
  isEnding: boolean;
  /** All was written; said where rows had been kept for later, with how many of them were lost. */
  succeeded(): void;
  subscribe(listener: (problem: RecorderProblem) => void): () => void;
  report(problem: RecorderProblem): void;
  lose(entry: QueueEntry, reason: string): void;
  /** One more is lost, without a word: it has been said that none can be written any more, so nobody waits for one either. */
  count(): undefined;
  /** Counts an entry as lost without a word. */
  drop(entry: QueueEntry, reason: string): void;
  /** Gives up what the queue holds, and says once how much that is, and why. */
  loseRest(queue: RowQueue): void;
}

/** `prefix` of the codes; `place` as people may see it. */
export function createTroubles(prefix: string, place: string): Troubles {
  const listeners = new Set<(problem: RecorderProblem) => void>();
  let dropped = 0;
  let lostRows = 0;
  /** Rows lost before the outage that is under way; null = there is none. */
  let lostBefore: number | null = null;

  function tell(code: string, message: string, isEnd = false): void {
    for (const listener of listeners) listener({ code: `${prefix}_${code}`, message, isEnd });
  }

  const troubles: Troubles = {
    problem: null,
    isEnding: false,
    get dropped() {
      return dropped;
    },
    succeeded() {
      troubles.problem = null;
      if (lostBefore === null) return;
      const lost = lostRows - lostBefore;
      lostBefore = null;
      const count = lost === 0 ? "none was lost" : `${countOf(lost, "row")} lost meanwhile`;
      tell("BACK", `${place}: rows are written again; ${count}`, true);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    report(problem) {
      troubles.problem = problem.message;
      const mayPass = problem.message.endsWith(ROWS_KEPT);
      if (mayPass) lostBefore ??= lostRows;
      if (troubles.isEnding && mayPass) return;
      for (const listener of listeners) listener(problem);
    },
    count() {
      dropped += 1;
      return undefined;
    },
    drop(entry, reason) {
      dropped += 1;
      if (entry.kind === "record") lostRows += 1;
      entry.commit?.reject(new LostRowError(`telemetry row lost: ${reason}`));
    },
    lose(entry, reason) {
      troubles.drop(entry, reason);
      tell("QUEUE", `rows are lost: ${reason} (${troubles.problem ?? place})`);
    },
    loseRest(queue) {
      const { records } = queue;
      queue.dropAll((entry) => troubles.drop(entry, "it could not be written before the end"));
      if (records > 0) tell("LOST", lostText(records, troubles.problem ?? `${place} can't be written`));
    },
  };
  return troubles;
}

function lostText(rows: number, problem: string): string {
  const count = rows === 1 ? "1 row is lost" : `${rows} rows are lost`;
  const why = problem.replace(ROWS_KEPT, "");
  return `${count}: ${why}. The calls themselves are not affected; mend that, or keep telemetry in another place`;
}
