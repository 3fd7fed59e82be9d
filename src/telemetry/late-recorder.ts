import type { CallRecord } from "../domain/record.js";
import type { Recorder } from "../ports/recorder.js";
import type { RecordRenderer } from "./capture.js";

/** Something that went wrong inside a recorder; said once a minute per code by the emitter. */
export interface RecorderProblem {
  readonly code: string;
  readonly message: string;
  /** It tells that a problem is over; nobody needs to hear it who has heard of none. */
  readonly isEnd?: boolean;
}

/**
 * A recorder that renders rows itself when it writes them, so that redaction costs the call nothing,
 * and that reports its problems. Recorders of users get records already rendered.
 */
export interface LateRecorder extends Recorder {
  recordLate(record: CallRecord, commit: boolean, render: RecordRenderer): Promise<void> | undefined;
  /** Returns the function that ends the subscription. */
  onProblem(listener: (problem: RecorderProblem) => void): () => void;
}

export function isLateRecorder(recorder: Recorder): recorder is LateRecorder {
  return typeof (recorder as Partial<LateRecorder>).recordLate === "function";
}
