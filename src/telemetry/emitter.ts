import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { CaptureMode, Recorder, RecorderStats, Telemetry } from "../ports/recorder.js";
import type { Runtime } from "../ports/runtime.js";
import { createRecordRenderer, type RecordRenderer } from "./capture.js";
import { type Channel, createChannel, createTelemetryFaults } from "./channel.js";
import { isLateRecorder } from "./late-recorder.js";

/** Whether an attempt is journalled before its end is known, and whether its send waits for that. */
export type JournalMode = "off" | "async" | "before_send";

/** `sync`: a call's end waits until its row is committed. */
export type Durability = "async" | "sync";

export interface TelemetryOptions {
  readonly recorders: readonly Recorder[];
  readonly runtime: Runtime;
  /** host:pid:random of this process. */
  readonly worker: string;
  readonly capture: CaptureMode;
  readonly journal: JournalMode;
  readonly durability: Durability;
  /** Masks every known secret in a text; applied to every text column. */
  readonly redact?: (text: string) => string;
}

export interface TelemetryStats {
  readonly recorders: readonly (RecorderStats & { readonly name: string })[];
  /** Entries a recorder refused by throwing or rejecting. */
  readonly failures: number;
  /** Commits that were not confirmed within 1 s; the call went on. */
  readonly commitTimeouts: number;
}

export interface TelemetryEmitter extends Telemetry {
  /** Resolves when everything recorded so far is written or counted as lost; at the latest after 10 s. Never rejects. */
  flush(): Promise<void>;
  /** Flushes, then closes every recorder; at the latest after 10 s each. Never rejects. */
  close(): Promise<void>;
  stats(): TelemetryStats;
}

/**
 * The one writer of telemetry: hands each entry to every recorder and keeps all of their faults away from the call.
 * Never throws or rejects, whatever a recorder does (throws, rejects, never resolves).
 */
export function createTelemetry(options: TelemetryOptions): TelemetryEmitter {
  const { runtime, worker, journal } = options;
  const render = createRecordRenderer(options);
  const faults = createTelemetryFaults(runtime);
  const channels = options.recorders.map((recorder) => createChannel(recorder, runtime, faults));
  const commitOpen = journal === "before_send";
  const commitRecord = options.durability === "sync";
  return {
    worker,
    open(entry: OpenAttempt) {
      if (journal === "off") return undefined;
      return deliverAll(channels, (recorder) => recorder.open(entry, commitOpen), commitOpen);
    },
    record(record: CallRecord) {
      return deliverAll(channels, (recorder) => write(recorder, record, commitRecord, render), commitRecord);
    },
    async flush() {
      await Promise.all(channels.map((channel) => channel.settle("flush")));
    },
    async close() {
      await Promise.all(channels.map((channel) => channel.settle("close")));
      for (const channel of channels) channel.end();
    },
    stats: () => ({ recorders: channels.map((channel) => channel.stats()), ...faults.counts }),
  };
}

function deliverAll(
  channels: readonly Channel[],
  write: (recorder: Recorder) => Promise<void> | undefined,
  wait: boolean,
): Promise<void> | undefined {
  let waits: Promise<void>[] | undefined;
  for (const channel of channels) {
    const waited = channel.deliver(write, wait);
    if (waited !== undefined) waits = waits === undefined ? [waited] : [...waits, waited];
  }
  if (waits === undefined || waits.length === 1) return waits?.[0];
  return Promise.all(waits).then(() => undefined);
}

function write(
  recorder: Recorder,
  record: CallRecord,
  commit: boolean,
  render: RecordRenderer,
): Promise<void> | undefined {
  if (isLateRecorder(recorder)) return recorder.recordLate(record, commit, render);
  return recorder.record(render(record), commit);
}
