import { givenValue } from "../domain/given-value.js";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { RecordRenderer } from "./capture.js";

export const DEFAULT_QUEUE_SIZE = 10_000;
/** More rows than memory holds. */
export const MAX_QUEUE_SIZE = 10_000_000;

/** What a commit resolves with that was not written: the attempt's record came, and says more. */
export const SUPERSEDED = Symbol("superseded");

/** Told when an entry is durable or known to be lost. */
interface Commit {
  readonly resolve: (how?: typeof SUPERSEDED) => void;
  readonly reject: (error: Error) => void;
}

export interface OpenEntry {
  readonly kind: "open";
  readonly seq: number;
  readonly open: OpenAttempt;
  readonly commit: Commit | null;
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
  const committed = new Promise<unknown>((resolve, reject) => {
    commit = { resolve, reject };
  }) as Promise<void>;
  return { commit, committed };
}

/** A row without its id could be kept nowhere; who gives one hears of it before anything is queued. */
function requireId(entry: { readonly callId: string }, method: string): void {
  const callId: unknown = (entry as { readonly callId?: unknown } | null | undefined)?.callId;
  if (typeof callId === "string" && callId !== "") return;
  const given =
    typeof entry === "object" && entry !== null ? `one whose callId is ${givenValue(callId)}` : givenValue(entry);
  throw new TypeError(`${method}() takes an object with a callId, and was given ${given}: it is not recorded`);
}

/**
 * Bounded queue in front of a store: open rows and records, each first in first out. A full queue loses its oldest entry.
 * An open row whose record is queued before it was taken is never written (spec 05 "Open attempts"), so it pays to take
 * open rows only when their time has come, and records whenever there are enough of them.
 */
export class RowQueue {
  readonly #capacity: number;
  readonly #onDrop: (entry: QueueEntry, reason: string) => void;
  /** By attempt, in the order they came. */
  #opens = new Map<string, OpenEntry>();
  #records: RecordEntry[] = [];
  #head = 0;
  #commits = 0;
  #nextSeq = 1;
  readonly #takenOpens = new Set<string>();

  constructor(capacity: number, onDrop: (entry: QueueEntry, reason: string) => void) {
    this.#capacity = capacity;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#opens.size + this.records;
  }

  /** Records alone. */
  get records(): number {
    return this.#records.length - this.#head;
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
    return Math.min(this.#oldestOpen()?.seq ?? Infinity, this.#records[this.#head]?.seq ?? Infinity);
  }

  /**
   * With `wanted`, the promise resolves when the row is durable and rejects when it is lost. Throws TypeError for what is
   * no entry.
   */
  pushOpen(open: OpenAttempt, wanted: boolean): Promise<void> | undefined {
    requireId(open, "open");
    const { commit, committed } = commitOf(wanted);
    this.#opens.set(open.callId, { kind: "open", seq: this.#nextSeq++, open, commit });
    this.#pushed(commit);
    return committed;
  }

  /** As `pushOpen`; an open row of the same attempt that still waits is not written any more. */
  pushRecord(record: CallRecord, render: RecordRenderer, wanted: boolean): Promise<void> | undefined {
    requireId(record, "record");
    const { commit, committed } = commitOf(wanted);
    const waiting = this.#opens.get(record.callId);
    if (waiting !== undefined) this.#skip(waiting);
    const closesOpen = waiting === undefined && this.#takenOpens.delete(record.callId);
    this.#records.push({ kind: "record", seq: this.#nextSeq++, record, render, commit, closesOpen });
    this.#pushed(commit);
    return committed;
  }

  /** Takes up to `limit` entries, the oldest of each kind; open rows first, and only `withOpens`. */
  take(limit: number, withOpens = true): QueueEntry[] {
    const taken: QueueEntry[] = [];
    if (withOpens) {
      for (const entry of this.#opens.values()) {
        if (taken.length === limit) break;
        this.#removeOpen(entry);
        this.#takenOpens.add(entry.open.callId);
        taken.push(entry);
      }
    }
    while (taken.length < limit && this.records > 0) taken.push(this.#shiftRecord());
    this.#compact();
    return taken;
  }

  /** Puts entries back that could not be written; the queue's bound still holds. */
  restore(entries: readonly QueueEntry[]): void {
    const opens = new Map<string, OpenEntry>();
    const records: RecordEntry[] = [];
    for (const entry of entries) {
      if (entry.kind === "record") records.push(entry);
      // Its record came meanwhile: nothing to journal any more.
      else if (this.#takenOpens.delete(entry.open.callId)) opens.set(entry.open.callId, entry);
      else entry.commit?.resolve(SUPERSEDED);
    }
    for (const entry of [...opens.values(), ...records]) if (entry.commit !== null) this.#commits += 1;
    for (const [callId, entry] of this.#opens) opens.set(callId, entry);
    this.#opens = opens;
    this.#records = [...records, ...this.#records.slice(this.#head)];
    this.#head = 0;
    while (this.size > this.#capacity) this.#dropOldest();
  }

  /** Empties it: what it holds can certainly not be written any more. `drop` is told instead of the queue's own listener. */
  dropAll(drop: (entry: QueueEntry) => void): void {
    while (this.size > 0) drop(this.#removeOldest());
    this.#compact();
  }

  #pushed(commit: Commit | null): void {
    if (commit !== null) this.#commits += 1;
    if (this.size > this.#capacity) this.#dropOldest();
  }

  #oldestOpen(): OpenEntry | undefined {
    for (const entry of this.#opens.values()) return entry;
    return undefined;
  }

  #skip(entry: OpenEntry): void {
    this.#removeOpen(entry);
    entry.commit?.resolve(SUPERSEDED);
  }

  #removeOpen(entry: OpenEntry): void {
    this.#opens.delete(entry.open.callId);
    if (entry.commit !== null) this.#commits -= 1;
  }

  #shiftRecord(): RecordEntry {
    const entry = this.#records[this.#head++]!;
    if (entry.commit !== null) this.#commits -= 1;
    return entry;
  }

  #dropOldest(): void {
    this.#onDrop(this.#removeOldest(), "the telemetry queue is full");
    this.#compact();
  }

  #removeOldest(): QueueEntry {
    const open = this.#oldestOpen();
    if (open === undefined || open.seq > (this.#records[this.#head]?.seq ?? Infinity)) return this.#shiftRecord();
    this.#removeOpen(open);
    return open;
  }

  #compact(): void {
    if (this.#head < 1_024 && this.#head < this.#records.length) return;
    this.#records = this.#records.slice(this.#head);
    this.#head = 0;
  }
}
