import type { CallRecord, OpenAttempt } from "../domain/record.js";

/**
 * Where telemetry is kept. Both calls only enqueue (≤ 2 µs) and never throw: loss is counted, not raised.
 * With `commit: true` the returned promise resolves when the entry is durable; it rejects when it is known to be lost.
 */
export interface Recorder {
  readonly name: string;
  /** An attempt is about to be sent. Never called when the journal is off. */
  open(entry: OpenAttempt, commit: boolean): Promise<void> | undefined;
  /** An attempt, a hit or a call ended. Closes the open entry of the same `callId` in the same transaction. */
  record(record: CallRecord, commit: boolean): Promise<void> | undefined;
  /** Resolves when everything enqueued before the call is written or counted as lost. */
  flush(): Promise<void>;
  /** Flushes, then frees files, threads and timers. */
  close(): Promise<void>;
  stats(): RecorderStats;
}

export interface RecorderStats {
  readonly written: number;
  readonly queued: number;
  /** Rows lost because the queue was full or they could certainly not be written. */
  readonly dropped: number;
}

/** How telemetry text is kept: as is, as hash and length, or not at all. */
export type CaptureMode = "full" | "digest" | "none";

/**
 * What the governance loop sees of telemetry: one emitter in front of all recorders.
 * Neither call ever throws or rejects; a returned promise is a wait the configuration asked for, bounded to 1 s.
 */
export interface Telemetry {
  /** An attempt is about to be sent. With `journal: "before_send"` the promise resolves when the open row is committed. */
  open(entry: OpenAttempt): Promise<void> | undefined;
  /** An attempt, a hit or a call ended. With `durability: "sync"` the promise resolves when the row is committed. */
  record(record: CallRecord): Promise<void> | undefined;
  /** host:pid:random of this process. */
  readonly worker: string;
}
