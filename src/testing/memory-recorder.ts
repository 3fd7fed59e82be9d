import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { Recorder } from "../ports/recorder.js";

/** Keeps telemetry in memory, for tests. `commitMs` makes every commit take that long on the given clock. */
export interface MemoryRecorder extends Recorder {
  readonly rows: CallRecord[];
  /** Attempts that were opened and not recorded yet. */
  readonly openAttempts: ReadonlyMap<string, OpenAttempt>;
}

export function createMemoryRecorder(commit?: () => Promise<void>): MemoryRecorder {
  const rows: CallRecord[] = [];
  const opened = new Map<string, OpenAttempt>();
  const committed = (wanted: boolean): Promise<void> | undefined =>
    wanted ? (commit?.() ?? Promise.resolve()) : undefined;
  return {
    name: "memory",
    rows,
    openAttempts: opened,
    open(entry, wanted) {
      opened.set(entry.callId, entry);
      return committed(wanted);
    },
    record(record, wanted) {
      opened.delete(record.callId);
      rows.push(record);
      return committed(wanted);
    },
    async flush() {},
    async close() {},
    stats: () => ({ written: rows.length, queued: 0, dropped: 0 }),
  };
}
