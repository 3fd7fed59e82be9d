import { type FileHandle, open as openFile } from "node:fs/promises";
import { resolve as resolvePath } from "node:path";
import { noOptions, unknownOptions } from "../domain/option-names.js";
import { countProblems, pathProblems } from "../domain/option-values.js";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import { ConfigError } from "../errors.js";
import type { RecorderStats } from "../ports/recorder.js";
import { type RecordRenderer, renderSafely } from "./capture.js";
import { openLine, recordLine } from "./json-lines.js";
import type { LateRecorder, RecorderProblem } from "./late-recorder.js";
import { DEFAULT_QUEUE_SIZE, MAX_QUEUE_SIZE, type QueueEntry, RowQueue } from "./row-queue.js";
import { createTroubles, ROWS_KEPT, type Troubles } from "./troubles.js";

export interface JsonlRecorderOptions {
  /** File that rows are appended to; created when missing, its folder is not. */
  readonly path: string;
  /** Entries kept in memory while the file can't be written; the oldest are lost beyond it. Default 10,000. */
  readonly queueSize?: number;
}

const MAX_BATCH = 1_000;
/** After a failed write this many new entries come before the next try, unless somebody waits. */
const RETRY_AFTER_ENTRIES = 64;
const NEWLINE = 0x0a;

/**
 * Keeps telemetry as lines of JSON, for machines without SQLite. Constructing opens nothing.
 * Rows are appended as soon as the previous write is done; with a commit the file is also synced to disk.
 * A write that fails is tried again; what is lost is counted in `stats()`. Entries given after `close()` open the
 * file again. Throws ConfigError for options out of range.
 */
export class JsonlRecorder implements LateRecorder {
  readonly name = "jsonl";
  /** Absolute path of the file. */
  readonly path: string;
  readonly #queue: RowQueue;
  readonly #troubles: Troubles;
  #file: FileHandle | null = null;
  #writing: Promise<void> | null = null;
  #scheduled = false;
  /** Bytes of a line that a failed write left without its end. */
  #torn = false;
  /** Queue length at which a failing file is tried again; 0 = it doesn't fail. */
  #retryAtSeq = 0;
  #written = 0;

  constructor(options: string | JsonlRecorderOptions) {
    const given = typeof options === "string" ? { path: options } : options;
    const none = noOptions("JsonlRecorder", given);
    if (none !== null) throw new ConfigError([none]);
    const { path, queueSize = DEFAULT_QUEUE_SIZE } = given;
    const problems = [
      ...unknownOptions("JsonlRecorder", given, ["path", "queueSize"]),
      ...pathProblems("JsonlRecorder.path", path, "calls.jsonl"),
      ...countProblems("JsonlRecorder.queueSize", queueSize, MAX_QUEUE_SIZE),
    ];
    if (problems.length > 0) throw new ConfigError(problems);
    this.path = resolvePath(path);
    this.#troubles = createTroubles("JSONL_TELEMETRY", this.path);
    this.#queue = new RowQueue(queueSize, (entry, reason) => this.#troubles.lose(entry, reason));
  }

  open(entry: OpenAttempt, commit: boolean): Promise<void> | undefined {
    const committed = this.#queue.pushOpen(entry, commit);
    this.#writeSoon();
    return committed;
  }

  record(record: CallRecord, commit: boolean): Promise<void> | undefined {
    return this.recordLate(record, commit, renderSafely);
  }

  recordLate(record: CallRecord, commit: boolean, render: RecordRenderer): Promise<void> | undefined {
    const committed = this.#queue.pushRecord(record, render, commit);
    this.#writeSoon();
    return committed;
  }

  onProblem(listener: (problem: RecorderProblem) => void): () => void {
    return this.#troubles.subscribe(listener);
  }

  /** Also resolves after a failed try: the rows then stay queued and are tried again. */
  async flush(): Promise<void> {
    const last = this.#queue.lastSeq;
    while (this.#queue.oldestSeq <= last || this.#writing !== null) {
      const failed = await this.#write();
      if (failed) return;
    }
  }

  async close(): Promise<void> {
    this.#troubles.isEnding = true;
    await this.flush();
    if (this.#retryAtSeq > 0) this.#troubles.loseRest(this.#queue);
    this.#troubles.isEnding = false;
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  stats(): RecorderStats {
    return { written: this.#written, queued: this.#queue.size, dropped: this.#troubles.dropped };
  }

  #writeSoon(): void {
    if (this.#scheduled || this.#writing !== null) return;
    if (this.#queue.lastSeq < this.#retryAtSeq && this.#queue.commits === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#write();
    });
  }

  /** Writes what is queued, or joins the write that runs. Resolves with true when it failed. Never rejects. */
  async #write(): Promise<boolean> {
    this.#writing ??= this.#writeBatch(this.#queue.take(MAX_BATCH)).finally(() => {
      this.#writing = null;
    });
    await this.#writing;
    const failed = this.#retryAtSeq > 0;
    if (!failed && this.#queue.size > 0) this.#writeSoon();
    return failed;
  }

  async #writeBatch(taken: readonly QueueEntry[]): Promise<void> {
    if (taken.length === 0) return;
    const { entries, lines } = this.#render(taken);
    let done = 0;
    try {
      this.#file ??= await this.#openFile();
      const bytes = await this.#append(this.#file, lines, (count) => {
        done = count;
      });
      if (bytes > 0 && entries.some((entry) => entry.commit !== null)) await this.#file.datasync();
      this.#retryAtSeq = 0;
      this.#troubles.succeeded();
      for (const entry of entries) this.#confirm(entry);
    } catch (error) {
      for (const entry of entries.slice(0, done)) this.#confirm(entry);
      this.#retryAtSeq = this.#queue.lastSeq + RETRY_AFTER_ENTRIES;
      this.#queue.restore(entries.slice(done));
      const message = `${this.path} can't be written (${textOf(error)})${ROWS_KEPT}`;
      this.#troubles.report({ code: "JSONL_TELEMETRY_WRITE", message });
      await this.#forgetFile();
    }
  }

  #render(taken: readonly QueueEntry[]): { entries: QueueEntry[]; lines: Buffer[] } {
    const entries: QueueEntry[] = [];
    const lines: Buffer[] = [];
    for (const entry of taken) {
      try {
        lines.push(Buffer.from(entry.kind === "open" ? openLine(entry.open) : recordLine(entry.render(entry.record))));
        entries.push(entry);
      } catch (error) {
        this.#troubles.lose(entry, `a row could not be rendered: ${textOf(error)}`);
      }
    }
    return { entries, lines };
  }

  /** A short write is continued; `onWhole` is told how many lines are whole, so that none is written twice. */
  async #append(file: FileHandle, lines: readonly Buffer[], onWhole: (count: number) => void): Promise<number> {
    if (this.#torn) {
      await file.appendFile("\n");
      this.#torn = false;
    }
    const bytes = Buffer.concat(lines);
    let offset = 0;
    let whole = 0;
    let wholeEnd = 0;
    while (offset < bytes.length) {
      const { bytesWritten } = await file.write(bytes, offset);
      offset += bytesWritten;
      while (whole < lines.length && wholeEnd + (lines[whole] as Buffer).length <= offset) {
        wholeEnd += (lines[whole] as Buffer).length;
        whole += 1;
      }
      this.#torn = offset > wholeEnd;
      onWhole(whole);
    }
    return offset;
  }

  async #openFile(): Promise<FileHandle> {
    const file = await openFile(this.path, "a+");
    try {
      const { size } = await file.stat();
      if (size === 0) return file;
      const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
      // A process killed while writing left half a line: the next one must not be glued to it.
      this.#torn = bytesRead === 1 && buffer[0] !== NEWLINE;
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #forgetFile(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    try {
      await file?.close();
    } catch {
      // The descriptor is gone either way.
    }
  }

  #confirm(entry: QueueEntry): void {
    if (entry.kind === "record") this.#written += 1;
    entry.commit?.resolve();
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
