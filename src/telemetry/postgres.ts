import { startTimer } from "../backends/system.js";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { RecorderStats } from "../ports/recorder.js";
import type { CancelTimer } from "../ports/runtime.js";
import { type RecordRenderer, renderSafely } from "./capture.js";
import { FlushWaiters } from "./flush-waiters.js";
import type { LateRecorder, RecorderProblem } from "./late-recorder.js";
import { PostgresDatabase } from "./postgres-database.js";
import { type PostgresRecorderOptions, postgresOptions } from "./postgres-options.js";
import { tableNames } from "./postgres-tables.js";
import { PostgresWriter, type WriteResult } from "./postgres-writer.js";
import { type QueueEntry, RowQueue } from "./row-queue.js";
import { createTroubles, type Troubles } from "./troubles.js";

export type { PostgresClient, PostgresPool } from "./postgres-database.js";
export type { PostgresRecorderOptions } from "./postgres-options.js";

export interface PostgresRecorderStats extends RecorderStats {
  /** The newest trouble with the database, in plain words; null when the last write succeeded. */
  readonly problem: string | null;
}

const FLUSH_ROWS = 64;
/** As many as one statement takes without holding the event loop up. */
const MAX_BATCH = 256;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;
/** What no connection can be made of is looked at again this often: a package may be installed, a file appear. */
const POOL_RETRY_MS = 60_000;
/** A server that is being restarted is back within this time. */
const CLOSE_RETRIES_MS = [250, 500, 1_000, 2_000];
/** A try that takes as long has met nobody: a server that refuses, or one that is there, is quicker. */
const SILENT_MS = 1_500;
/** No try begins later than this; one that waits for a first word takes 2 s more at most. */
const LAST_TRY_MS = 4_000;

/**
 * Keeps telemetry in PostgreSQL, through the optional package `pg`. Constructing loads and connects to nothing.
 *
 * Rows are committed every `flushIntervalMs` or 64 records, at once when a commit is asked for, many in one statement.
 * Whatever the database does (down, hung, restarted, full, without rights), no call notices: rows wait in the queue, are
 * tried again, and what is lost is counted in `stats()`. Only a table that is missing and can't be created ends it.
 * Entries given after `close()` connect again. A pool that was given is never closed. Throws ConfigError for options out
 * of range; addresses are `postgres://`, `postgresql://` or SQLAlchemy's `postgresql+asyncpg://`.
 */
export class PostgresRecorder implements LateRecorder {
  readonly name = "postgres";
  /** The database as people may see it: without password and parameters. */
  readonly place: string;
  readonly #database: PostgresDatabase;
  readonly #writer: PostgresWriter;
  readonly #flushIntervalMs: number;
  readonly #queue: RowQueue;
  readonly #troubles: Troubles;
  #inflight: readonly QueueEntry[] = [];
  readonly #flushes = new FlushWaiters();
  #closing: Promise<void> | null = null;
  #scheduled = false;
  #cancelTick: CancelTimer | null = null;
  #ticked = false;
  #trouble: WriteResult["trouble"] = "none";
  #retryMs = FIRST_RETRY_MS;
  #written = 0;

  constructor(options: string | PostgresRecorderOptions) {
    const { table, queueSize, flushIntervalMs, ...place } = postgresOptions(options);
    this.#database = new PostgresDatabase(place);
    this.place = this.#database.shown;
    this.#troubles = createTroubles("PG_TELEMETRY", this.place);
    this.#writer = new PostgresWriter(this.#database, tableNames(table), (problem) => this.#troubles.report(problem));
    this.#flushIntervalMs = flushIntervalMs;
    this.#queue = new RowQueue(queueSize, (entry, reason) => this.#lose(entry, reason));
  }

  open(entry: OpenAttempt, commit: boolean): Promise<void> | undefined {
    if (this.#trouble === "hopeless") return this.#troubles.count();
    const committed = this.#queue.pushOpen(entry, commit);
    this.#queued(commit);
    return committed;
  }

  record(record: CallRecord, commit: boolean): Promise<void> | undefined {
    return this.recordLate(record, commit, renderSafely);
  }

  recordLate(record: CallRecord, commit: boolean, render: RecordRenderer): Promise<void> | undefined {
    if (this.#trouble === "hopeless") return this.#troubles.count();
    const committed = this.#queue.pushRecord(record, render, commit);
    this.#queued(commit);
    return committed;
  }

  onProblem(listener: (problem: RecorderProblem) => void): () => void {
    return this.#troubles.subscribe(listener);
  }

  /** Also resolves after a failed try: the rows then stay queued and are tried again. */
  flush(): Promise<void> {
    if (this.#trouble === "pool" || this.#outstandingSeq() > this.#queue.lastSeq) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushes.add(this.#queue.lastSeq, resolve);
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

  stats(): PostgresRecorderStats {
    const queued = this.#queue.size + this.#inflight.length;
    const { dropped, problem } = this.#troubles;
    return { written: this.#written, queued, dropped, problem };
  }

  #queued(commit: boolean): void {
    if (this.#trouble !== "none") {
      if (this.#cancelTick === null) this.#askTick();
    } else if (commit) {
      if (!this.#scheduled) queueMicrotask(() => this.#pump());
    } else if (this.#inflight.length === 0 && (this.#queue.records >= FLUSH_ROWS || this.#cancelTick === null)) {
      this.#pumpSoon();
    }
  }

  /** Later in this turn of the event loop: rendering and sending are no part of the call. */
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
    if (this.#queue.size === 0) {
      this.#flushes.settleAll();
      return;
    }
    const isFailing = this.#trouble !== "none";
    const isTime = this.#ticked || this.#flushes.count > 0 || (!isFailing && this.#queue.commits > 0);
    const isMuch = !isFailing && this.#queue.records >= FLUSH_ROWS;
    // An attempt that ends before its time has come needs no row in the journal.
    if (isTime || isMuch) this.#write(isTime);
    else if (this.#cancelTick === null) this.#askTick();
  }

  #askTick(): void {
    this.#cancelTick?.();
    const isFailing = this.#trouble !== "none";
    const delayMs = isFailing ? (this.#trouble === "pool" ? POOL_RETRY_MS : this.#retryMs) : this.#flushIntervalMs;
    const onTick = () => {
      this.#cancelTick = null;
      this.#ticked = true;
      this.#pump();
    };
    // Rows in hand keep the process alive, unless the database refuses them and nobody waits.
    this.#cancelTick = startTimer(delayMs, onTick, !isFailing);
  }

  #write(withOpens: boolean): void {
    if (withOpens) this.#ticked = false;
    const taken = this.#queue.take(MAX_BATCH, withOpens);
    this.#inflight = taken;
    void this.#writer.write(taken).then((result) => {
      this.#inflight = [];
      this.#onResult(result);
      this.#pump();
    });
  }

  #onResult({ committed, lost, left, trouble }: WriteResult): void {
    this.#trouble = trouble;
    for (const entry of committed) {
      if (entry.kind === "record") this.#written += 1;
      entry.commit?.resolve();
    }
    for (const { entry, reason } of lost) this.#lose(entry, reason);
    if (trouble === "none") {
      this.#retryMs = FIRST_RETRY_MS;
      if (lost.length === 0) this.#troubles.succeeded();
    }
    if (trouble === "hopeless") {
      for (const entry of left) this.#lose(entry, "it can't be written");
      this.#queue.dropAll((entry) => this.#lose(entry, "it can't be written"));
    } else this.#queue.restore(left);
    if (trouble === "none") this.#flushes.settle(this.#outstandingSeq());
    else this.#flushes.settleAll();
    if (trouble !== "retry" && trouble !== "pool") return;
    // A tick that came during the try would begin the next one at once, and the end would take those rows for written.
    this.#ticked = false;
    this.#askTick();
    if (trouble === "retry") this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
  }

  #lose(entry: QueueEntry, reason: string): void {
    // Where it is hopeless, the one warning has been given.
    if (this.#trouble === "hopeless") this.#troubles.drop(entry, reason);
    else this.#troubles.lose(entry, reason);
  }

  #outstandingSeq(): number {
    return this.#inflight[0]?.seq ?? this.#queue.oldestSeq;
  }

  async #close(): Promise<void> {
    this.#database.hurry();
    let isLate = false;
    const cancelLimit = startTimer(LAST_TRY_MS, () => (isLate = true), false);
    let isHopeless = await this.#lastTry();
    for (const delayMs of CLOSE_RETRIES_MS) {
      if (this.#trouble !== "retry" || this.stats().queued === 0 || isLate || isHopeless) break;
      await new Promise<void>((resolve) => startTimer(delayMs, resolve, true));
      isHopeless = await this.#lastTry();
    }
    cancelLimit();
    if (this.#trouble !== "none") this.#troubles.loseRest(this.#queue);
    this.#cancelTick?.();
    this.#cancelTick = null;
    this.#ticked = false;
    await this.#database.close();
    if (this.#queue.size > 0) this.#pumpSoon();
  }

  /** Answers whether another would be in vain: where nothing has ever answered, one silence is enough. */
  async #lastTry(): Promise<boolean> {
    let isSilent = false;
    const cancel = startTimer(SILENT_MS, () => (isSilent = true), false);
    await this.flush();
    cancel();
    return isSilent && this.#written === 0;
  }
}
