import { resolve as resolvePath } from "node:path";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { RecorderStats } from "../ports/recorder.js";
import { type RecordRenderer, renderSafely } from "./capture.js";
import { FlushWaiters } from "./flush-waiters.js";
import type { LateRecorder, RecorderProblem } from "./late-recorder.js";
import { type QueueEntry, RowQueue } from "./row-queue.js";
import { renderBatch } from "./sqlite-batch.js";
import { findDriver } from "./sqlite-driver.js";
import { type SqliteRecorderOptions, sqliteOptions } from "./sqlite-options.js";
import { type BatchResult, type SqliteThread, startSqliteThread } from "./sqlite-thread.js";
import { createTroubles, type Troubles } from "./troubles.js";

export type { SqliteRecorderOptions } from "./sqlite-options.js";

export interface SqliteRecorderStats extends RecorderStats {
  /** The newest trouble with the file, in plain words; null when the last write succeeded. */
  readonly problem: string | null;
}

/** Whether this Node can write SQLite; `remedy` is the command that installs what is missing. */
export function sqliteAvailable(): { ok: true } | { ok: false; reason: string; remedy: string } {
  const driver = findDriver();
  return driver.ok ? { ok: true } : { ok: false, reason: driver.reason, remedy: driver.remedy };
}

const FLUSH_ROWS = 64;
const MAX_BATCH = 1_000;
/** A file that can't be written is tried again this often at most. */
const RETRY_INTERVAL_MS = 500;
const MAX_THREAD_LOSSES = 3;
const CLOSE_TRIES = 3;

/**
 * Keeps telemetry in a SQLite file (WAL), written by a thread of its own. Constructing opens nothing.
 *
 * Rows are committed every `flushIntervalMs` or 64 records, at once when a commit is asked for; everything that comes
 * while a commit runs goes with the next one. Trouble with the file (locked, full, read-only, damaged, deleted)
 * never reaches a call: rows wait in the queue, are tried again, and what is lost is counted in `stats()`.
 * A damaged file is left as it is and a new one is started beside it (`….recovered-1`).
 * Entries given after `close()` start the thread again. Throws ConfigError for options out of range.
 */
export class SqliteRecorder implements LateRecorder {
  readonly name = "sqlite";
  /** Absolute path of the file. */
  readonly path: string;
  readonly #table: string;
  readonly #flushIntervalMs: number;
  readonly #queue: RowQueue;
  readonly #troubles: Troubles;
  #thread: SqliteThread | null = null;
  #inflight: readonly QueueEntry[] = [];
  readonly #flushes = new FlushWaiters();
  #closing: Promise<void> | null = null;
  #scheduled = false;
  #tickAsked = false;
  #ticked = false;
  #failing = false;
  #hopeless = false;
  #threadLosses = 0;
  #written = 0;

  constructor(options: string | SqliteRecorderOptions) {
    const { path, table, queueSize, flushIntervalMs } = sqliteOptions(options);
    this.path = resolvePath(path);
    this.#troubles = createTroubles("SQLITE_TELEMETRY", this.path);
    this.#table = table;
    this.#flushIntervalMs = flushIntervalMs;
    this.#queue = new RowQueue(queueSize, (entry, reason) => this.#troubles.lose(entry, reason));
  }

  open(entry: OpenAttempt, commit: boolean): Promise<void> | undefined {
    const committed = this.#queue.pushOpen(entry, commit);
    this.#queued(commit);
    return committed;
  }

  record(record: CallRecord, commit: boolean): Promise<void> | undefined {
    return this.recordLate(record, commit, renderSafely);
  }

  recordLate(record: CallRecord, commit: boolean, render: RecordRenderer): Promise<void> | undefined {
    const committed = this.#queue.pushRecord(record, render, commit);
    this.#queued(commit);
    return committed;
  }

  onProblem(listener: (problem: RecorderProblem) => void): () => void {
    return this.#troubles.subscribe(listener);
  }

  /** Also resolves after a failed try: the rows then stay queued and are tried again. */
  flush(): Promise<void> {
    if (this.#hopeless || this.#outstandingSeq() > this.#queue.lastSeq) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushes.add(this.#queue.lastSeq, resolve);
      this.#thread?.hold(true);
      this.#pumpSoon();
    });
  }

  close(): Promise<void> {
    this.#troubles.isEnding = true;
    this.#closing ??= this.#close().finally(() => {
      this.#troubles.isEnding = false;
      this.#closing = null;
    });
    return this.#closing;
  }

  stats(): SqliteRecorderStats {
    const queued = this.#queue.size + this.#inflight.length;
    const { dropped, problem } = this.#troubles;
    return { written: this.#written, queued, dropped, problem };
  }

  #queued(commit: boolean): void {
    if (commit) {
      if (!this.#scheduled) queueMicrotask(() => this.#pump());
      return;
    }
    if (this.#inflight.length === 0 && (this.#queue.records >= FLUSH_ROWS || !this.#tickAsked)) this.#pumpSoon();
  }

  /** Later in this turn of the event loop: rendering and posting are no part of the call. */
  #pumpSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#inflight.length > 0) return;
    if (this.#hopeless) this.#queue.dropAll((entry) => this.#troubles.lose(entry, "it can't be written"));
    if (this.#queue.size === 0) {
      this.#flushes.settleAll();
      this.#thread?.hold(false);
      return;
    }
    const isTime = this.#ticked || this.#flushes.count > 0 || (!this.#failing && this.#queue.commits > 0);
    const isMuch = !this.#failing && this.#queue.records >= FLUSH_ROWS;
    // An attempt that ends before its time has come needs no row in the journal.
    if (isTime || isMuch) this.#post(isTime);
    if (!isTime && !this.#tickAsked) this.#askTick();
  }

  #askTick(): void {
    this.#tickAsked = true;
    const delayMs = this.#failing ? Math.max(RETRY_INTERVAL_MS, this.#flushIntervalMs) : this.#flushIntervalMs;
    this.#startedThread()?.tick(delayMs);
  }

  #post(withOpens: boolean): void {
    if (withOpens) this.#ticked = false;
    const lose = (entry: QueueEntry, reason: string) => this.#troubles.lose(entry, reason);
    const { entries, batch } = renderBatch(this.#queue.take(MAX_BATCH, withOpens), lose);
    if (entries.length === 0) {
      this.#pump();
      return;
    }
    this.#inflight = entries;
    this.#startedThread()?.write(batch);
  }

  #startedThread(): SqliteThread | null {
    try {
      this.#thread ??= startSqliteThread(this.path, this.#table, {
        onDone: (result) => this.#onDone(result),
        onTick: () => this.#onTick(),
        onLost: (reason) => this.#onThreadLost(reason),
      });
      // Rows in hand keep the process alive, unless the file refuses them and nobody waits.
      this.#thread.hold(!this.#failing || this.#flushes.count > 0);
    } catch (error) {
      queueMicrotask(() => this.#onThreadLost(String(error)));
    }
    return this.#thread;
  }

  #onTick(): void {
    this.#tickAsked = false;
    this.#ticked = true;
    this.#pump();
  }

  #onDone(result: BatchResult): void {
    const entries = this.#inflight;
    this.#inflight = [];
    if (result.problem !== null) this.#troubles.report(result.problem);
    else if (result.status === "committed") this.#troubles.succeeded();
    if (result.status === "committed") this.#onCommitted(entries, new Set(result.lost));
    else if (result.status === "retry") this.#onRefused(entries);
    else this.#onHopeless(entries, result.problem?.code === "SQLITE_TELEMETRY_DRIVER");
    this.#pump();
  }

  #onCommitted(entries: readonly QueueEntry[], lost: ReadonlySet<number>): void {
    this.#failing = false;
    this.#threadLosses = 0;
    for (const [index, entry] of entries.entries()) {
      if (lost.has(index)) {
        this.#troubles.lose(entry, "the table refuses this row");
        continue;
      }
      if (entry.kind === "record") this.#written += 1;
      entry.commit?.resolve();
    }
    this.#flushes.settle(this.#outstandingSeq());
  }

  #onRefused(entries: readonly QueueEntry[]): void {
    this.#failing = true;
    // A tick that came during the try would begin the next one at once, and the end would take those rows for written.
    this.#ticked = false;
    this.#queue.restore(entries);
    this.#flushes.settleAll();
    this.#thread?.hold(false);
  }

  #onHopeless(entries: readonly QueueEntry[], forEver: boolean): void {
    this.#hopeless = forEver;
    for (const entry of entries) this.#troubles.lose(entry, "it can't be written");
  }

  #onThreadLost(reason: string): void {
    this.#thread = null;
    this.#tickAsked = false;
    this.#threadLosses += 1;
    const entries = this.#inflight;
    this.#inflight = [];
    this.#troubles.report({ code: "SQLITE_TELEMETRY_THREAD", message: `the writer of ${this.path} ended: ${reason}` });
    if (this.#threadLosses >= MAX_THREAD_LOSSES) this.#onHopeless(entries, true);
    else this.#onRefused(entries);
    this.#pump();
  }

  #outstandingSeq(): number {
    return this.#inflight[0]?.seq ?? this.#queue.oldestSeq;
  }

  async #close(): Promise<void> {
    // A lock may be gone a moment later; each try waits for it as long as SQLite's busy timeout.
    for (let tries = 0; tries < CLOSE_TRIES; tries++) {
      await this.flush();
      if (!this.#failing) break;
    }
    if (this.#failing) this.#troubles.loseRest(this.#queue);
    const thread = this.#thread;
    this.#thread = null;
    this.#tickAsked = false;
    this.#ticked = false;
    await thread?.close();
    if (this.#queue.size > 0) this.#pumpSoon();
  }
}
