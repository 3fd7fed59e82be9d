import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { RecordRenderer } from "./capture.js";

/** Told when an entry is durable or known to be lost. */
interface Commit {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface OpenEntry {
  readonly kind: "open";
  readonly seq: number;
  readonly open: OpenAttempt;
  readonly commit: Commit | null;
  /** Its record came before it was written: nothing to journal any more. */
  skipped: boolean;
}

export interface RecordEntry {
  readonly kind: "record";
  readonly seq: number;
  readonly record: CallRecord;
  readonly render: RecordRenderer;
  readonly commit: Commit | null;
  /** An open row of the same attempt may be in the store and has to go. */
  readonly closesOpen: boolean;
}

export type QueueEntry = OpenEntry | RecordEntry;

const NO_COMMIT = { commit: null, committed: undefined } as const;

function commitOf(wanted: boolean): { commit: Commit | null; committed: Promise<void> | undefined } {
  if (!wanted) return NO_COMMIT;
  let commit: Commit | null = null;
  const committed = new Promise<void>((resolve, reject) => {
    commit = { resolve, reject };
  });
  return { commit, committed };
}

/**
 * Bounded first-in first-out queue in front of a store. A full queue loses its oldest entry.
 * An open row whose record is queued before it was taken is never written (spec 05 "Open attempts").
 */
export class RowQueue {
  readonly #capacity: number;
  readonly #onDrop: (entry: QueueEntry) => void;
  #entries: QueueEntry[] = [];
  #head = 0;
  #skipped = 0;
  #commits = 0;
  #nextSeq = 1;
  readonly #waitingOpens = new Map<string, OpenEntry>();
  readonly #takenOpens = new Set<string>();

  constructor(capacity: number, onDrop: (entry: QueueEntry) => void) {
    this.#capacity = capacity;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.length - this.#head - this.#skipped;
  }

  /** Entries whose caller waits for the commit. */
  get commits(): number {
    return this.#commits;
  }

  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** Sequence number of the oldest entry still queued; Infinity when there is none. */
  get oldestSeq(): number {
    return this.#entries[this.#head]?.seq ?? Number.POSITIVE_INFINITY;
  }

  /** With `wanted`, the promise resolves when the row is durable and rejects when it is lost. */
  pushOpen(open: OpenAttempt, wanted: boolean): Promise<void> | undefined {
    const { commit, committed } = commitOf(wanted);
    const entry: OpenEntry = { kind: "open", seq: this.#nextSeq++, open, commit, skipped: false };
    this.#waitingOpens.set(open.callId, entry);
    this.#push(entry);
    return committed;
  }

  /** As `pushOpen`; an open row of the same attempt that still waits is skipped. */
  pushRecord(record: CallRecord, render: RecordRenderer, wanted: boolean): Promise<void> | undefined {
    const { commit, committed } = commitOf(wanted);
    const waiting = this.#waitingOpens.get(record.callId);
    if (waiting !== undefined) this.#skip(waiting);
    const closesOpen = waiting === undefined && this.#takenOpens.delete(record.callId);
    this.#push({ kind: "record", seq: this.#nextSeq++, record, render, commit, closesOpen });
    return committed;
  }

  /** Takes up to `limit` entries from the front. */
  take(limit: number): QueueEntry[] {
    const taken: QueueEntry[] = [];
    while (taken.length < limit && this.#head < this.#entries.length) {
      const entry = this.#shift();
      if (entry === undefined) continue;
      if (entry.kind === "open") this.#takenOpens.add(entry.open.callId);
      taken.push(entry);
    }
    this.#compact();
    return taken;
  }

  /** Puts entries back that could not be written; the queue's bound still holds. */
  restore(entries: readonly QueueEntry[]): void {
    this.#entries = [...entries, ...this.#entries.slice(this.#head)];
    this.#head = 0;
    for (const entry of entries) {
      if (entry.commit !== null) this.#commits += 1;
      // Its record may have been queued meanwhile; that one deletes the row, so the order is kept.
      if (entry.kind === "open" && this.#takenOpens.delete(entry.open.callId)) {
        this.#waitingOpens.set(entry.open.callId, entry);
      }
    }
    while (this.size > this.#capacity) this.#dropOldest();
  }

  /** Loses everything queued: it can certainly not be written. */
  dropAll(): void {
    while (this.size > 0) this.#dropOldest();
    this.#compact();
  }

  #push(entry: QueueEntry): void {
    this.#entries.push(entry);
    if (entry.commit !== null) this.#commits += 1;
    if (this.size > this.#capacity) this.#dropOldest();
  }

  #skip(entry: OpenEntry): void {
    entry.skipped = true;
    this.#skipped += 1;
    this.#waitingOpens.delete(entry.open.callId);
    if (entry.commit === null) return;
    this.#commits -= 1;
    entry.commit.resolve();
  }

  /** Removes the front entry; undefined when it was a skipped one. */
  #shift(): QueueEntry | undefined {
    const entry = this.#entries[this.#head++];
    if (entry === undefined) return undefined;
    if (entry.kind === "open") {
      if (entry.skipped) {
        this.#skipped -= 1;
        return undefined;
      }
      this.#waitingOpens.delete(entry.open.callId);
    }
    if (entry.commit !== null) this.#commits -= 1;
    return entry;
  }

  #dropOldest(): void {
    for (;;) {
      const entry = this.#shift();
      if (entry === undefined) continue;
      this.#onDrop(entry);
      this.#compact();
      return;
    }
  }

  #compact(): void {
    if (this.#head < 1_024 && this.#head < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#head);
    this.#head = 0;
  }
}
