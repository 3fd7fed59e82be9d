import type { ScopeSnapshot } from "../domain/tick.js";
import { PolyGatewayError } from "../errors.js";
import type { Runtime } from "../ports/runtime.js";
import type { BatchForm } from "./form.js";
import type { LineAnswer, LineCall, LineKind } from "./kinds/kinds.js";
import type { OutEntry } from "./out-entry.js";

/** What `GatewayClient.snapshot()` gives: the governor's view plus the calls that wait in this process. */
export type BatchSnapshot = ScopeSnapshot & {
  readonly waiting?: { readonly count: number; readonly oldestMs: number };
  /** Permits of these calls alone: the sources' figures are those of all processes that share their limits. */
  readonly leases?: { readonly live: number };
};

/** One worker process of a batch, as its parent sees it. */
export interface BatchWorker {
  /** null between two processes. */
  readonly pid: number | null;
  readonly state: "starting" | "working" | "down";
  readonly inFlight: number;
  /** Calls it ended, whatever came out. */
  readonly finished: number;
  /** Processes that ended in its place before their time. */
  readonly deaths: number;
  /** Lines in flight then: run again by others, possibly paid twice. */
  readonly handedOn: number;
  /** For how long it owes a word; above some seconds it hangs or is stopped. */
  readonly silentMs: number;
}

/**
 * Who makes the calls of a batch: one of src/batch/kinds around a client, or a pool of processes.
 *
 * `call()` must resolve only after the record of the answering attempt is committed (bounded to 1 s), because an OUT line
 * is appended right after it (spec 05): configure the client with `durability: "sync"` and `journal: "before_send"`.
 */
export interface BatchClient {
  readonly scope: string;
  /** The one kind of lines it can make. */
  readonly kind: LineKind;
  /** Configured models of the enabled sources. */
  readonly models: readonly string[];
  call(call: LineCall, signal: AbortSignal): Promise<LineAnswer>;
  /** Rejects with GovernanceBackendError while the limits can't be asked. */
  snapshot(): BatchSnapshot | Promise<BatchSnapshot>;
  /** Permits of these calls, as far as is known without asking anybody: none means that nothing sent is under way. */
  leases(): { readonly live: number } | Promise<{ readonly live: number }>;
  /** The processes that make the calls, where this one doesn't. */
  workers?(): readonly BatchWorker[];
}

export interface BatchOptions {
  /** JSONL file, plain or gzip; `-` reads `stdin`. */
  readonly inPath: string;
  readonly outPath: string;
  readonly client: BatchClient;
  /** How lines are written. Default: as OpenAI's batches write them. */
  readonly form?: BatchForm;
  readonly runtime: Runtime;
  /** Required when `inPath` is `-`. */
  readonly stdin?: NodeJS.ReadableStream;
  /** Lines in flight, an integer ≥ 1. Default 32; the CLI passes `defaultConcurrency(config)` (spec 12 §1). */
  readonly concurrency?: number;
  /** Write results in input order instead of completion order. Default false. */
  readonly ordered?: boolean;
  /** Leave out lines that can't be read instead of refusing to start. They get no OUT line. Default false. */
  readonly skipBadLines?: boolean;
  /** A line whose model no source has counts as broken; otherwise its model is ignored with one note. Default false. */
  readonly strictModel?: boolean;
  /** The lines this run is about, by their ids: the others stay as they are, in OUT too, and are not counted. Default: all. */
  readonly isDue?: (lineId: string) => boolean;
  /** Remove the failure lines from OUT first, so that their lines are tried again. Default false. */
  readonly retryFailed?: boolean;
  /** Give up when nothing succeeded for this long. Default 900 000 (15 min). */
  readonly giveUpAfterMs?: number;
  /** First Ctrl-C: no new line starts, calls in flight end. */
  readonly drainSignal?: AbortSignal;
  /** Second Ctrl-C: calls in flight are cancelled. */
  readonly abortSignal?: AbortSignal;
  /** Called every `progressEveryMs` and once at the end. Must not throw. */
  readonly onProgress?: (progress: BatchProgress) => void;
  /** Default 250. */
  readonly progressEveryMs?: number;
  /** One finished sentence for the user: a warning or a fact about the start. Must not throw. */
  readonly onNote?: (text: string) => void;
  /** Awaited once the lock is held and OUT is repaired, before anything is sent: the place for `reconcile`. */
  readonly onReady?: (ready: BatchReady) => Promise<void>;
  /**
   * Successful and abandoned attempts of earlier runs of this batch, from telemetry (session_id = batch id).
   * Those without a line in OUT are answers that will be paid twice.
   */
  readonly earlierAttempts?: (batchId: string) => AsyncIterable<EarlierAttempt> | Iterable<EarlierAttempt>;
}

export interface EarlierAttempt {
  /** `parent_call_id` of the row. */
  readonly lineId: string;
  /** `abandoned` = sent, outcome unknown, possibly billed. */
  readonly outcome: "success" | "abandoned";
}

export interface BatchReady {
  /** `session_id` of every row of this batch, the same in every run on this OUT. */
  readonly batchId: string;
  readonly outPath: string;
  /** Lines that will be tried in this run; undefined for a stream. */
  readonly linesToDo: number | undefined;
  /** Result lines already in OUT, one by one. */
  readonly readOut: () => AsyncIterable<OutEntry>;
}

export interface SourceTally {
  readonly answers: number;
  readonly tokens: number;
  readonly cost: number;
}

export interface BatchProgress {
  readonly batchId: string;
  /** Good lines of this run. */
  readonly done: number;
  /** Failure lines of this run. */
  readonly failed: number;
  /** Lines not finished yet; undefined when IN is a stream that has not ended. */
  readonly left: number | undefined;
  /** Lines of IN (broken ones apart); undefined when IN is a stream that has not ended. */
  readonly total: number | undefined;
  /** Lines that OUT had already when the run began. */
  readonly skipped: number;
  /** Of those, failure lines. */
  readonly skippedFailed: number;
  /** Lines that can't be read and were left out (`skipBadLines`). */
  readonly badLines: number;
  readonly inFlight: number;
  /** Lines put back in the queue, waiting for their next try. */
  readonly requeued: number;
  /** Put-backs of this run, all lines together. */
  readonly requeues: number;
  readonly elapsedMs: number;
  /** Finished lines a second over the last half minute; 0 at the start. */
  readonly callsPerSecond: number;
  readonly tokensPerSecond: number;
  readonly tokens: number;
  /** Sends that this run's answers took, the failed ones before them included. */
  readonly attempts: number;
  /** Money of this run's answers in the price table's currency; null when no answer had a price. */
  readonly cost: number | null;
  /** Answers without a known price; when > 0, `cost` is a lower bound. */
  readonly unpriced: number;
  /** `cost` extrapolated to all lines of this run; null when unknown. */
  readonly projectedCost: number | null;
  /** The limits can't be asked, as while Redis is away: calls wait, and nobody knows for how long. */
  readonly limitsAway: boolean;
  /** Time left at the current rate; null when unknown. Time in which the limits were away doesn't count. */
  readonly etaMs: number | null;
  /** Answers by source name. */
  readonly bySource: Readonly<Record<string, SourceTally>>;
  /** Breakers, limits and waiting calls; null until the first one arrived. */
  readonly snapshot: BatchSnapshot | null;
  readonly draining: boolean;
  /** The processes of a batch with several; absent with one. */
  readonly workers?: readonly BatchWorker[];
}

/** 0 all ok · 1 could not run · 2 some lines failed · 3 gave up or was stopped: run the same command again. */
export type BatchExitCode = 0 | 1 | 2 | 3;

export type StopKind =
  | "drained"
  | "aborted"
  | "no_success"
  | "all_sources_dead"
  | "no_sources"
  | "misconfigured"
  | "workers_failed"
  | "write_failed"
  | "input_failed"
  | "input_changed";

export interface BatchSummary extends BatchProgress {
  readonly exitCode: BatchExitCode;
  /** Why the run ended before the end of IN; null = it reached the end. */
  readonly stop: { readonly kind: StopKind; readonly reason: string } | null;
  /** Answers of earlier runs that were recorded but not in OUT: their lines were due again in this run. */
  readonly answersPaidTwice: number;
  /** Attempts of earlier runs whose outcome is unknown and whose lines were due again. */
  readonly possiblyPaidTwice: number;
  /** Answers of this run that could not be written: they will be paid again. */
  readonly answersNotWritten: number;
}

export type RefusalKind =
  | "option"
  | "in_missing"
  | "in_unreadable"
  | "in_broken"
  | "out_is_in"
  | "out_unwritable"
  | "out_foreign"
  | "out_other_in"
  | "locked"
  | "stopped";

/** The batch could not run (exit 1): nothing was sent and OUT holds what it held. */
export class BatchRefusedError extends PolyGatewayError {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string, cause?: unknown) {
    super(message, { code: "config", ...(cause === undefined ? {} : { cause }) });
    this.kind = kind;
    this.name = "BatchRefusedError";
  }
}
