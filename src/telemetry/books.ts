import { type ColumnValue, createdAtMs, numberToNanos, type StoredRow } from "./columns.js";
import { countPrice } from "./priced.js";

export type DifferenceKind =
  /** A call with more than one row that ends it. */
  | "two_finals"
  /** Two rows for one attempt. */
  | "duplicate_attempt"
  /** Money on a row that stands for no attempt, or a negative cost. */
  | "cost"
  /** An answer in OUT without the row of its attempt. */
  | "out_without_row"
  /** An answer whose cost in OUT is another than in its row. */
  | "out_cost";

export interface Difference {
  readonly kind: DifferenceKind;
  readonly requestId: string | null;
  readonly callId: string | null;
  readonly text: string;
}

/** What is known of one call while no row has ended it. */
export interface UnendedCall {
  readonly requestId: string;
  readonly worker: string;
  /** Of the newest row, epoch milliseconds. */
  lastAtMs: number | null;
  /** Highest attempt number so far. */
  attempts: number;
  readonly sample: StoredRow;
}

/**
 * The books of a telemetry file (spec 05): distinct calls = calls ended + calls open, one row per attempt,
 * money only on attempts. Pure: rows go in, differences come out.
 */
export class Books {
  readonly unended = new Map<string, UnendedCall>();
  readonly differences: Difference[] = [];
  attempts = 0;
  attemptsWithPrice = 0;
  attemptsWithoutPrice = 0;
  costNanos = 0n;
  readonly #ended = new Set<string>();
  readonly #attemptNumbers = new Map<string, Set<number>>();
  readonly #abandoned = new Set<string>();

  get ended(): number {
    return this.#ended.size;
  }

  hasEnded(requestId: string): boolean {
    return this.#ended.has(requestId);
  }

  add(row: StoredRow): void {
    if (row.request_id === null || this.#isRepeatedRepair(row)) return;
    const requestId = String(row.request_id);
    this.#addMoney(row, requestId);
    if (row.attempt !== null) this.#addAttempt(row, requestId);
    if (row.final === 1) this.#end(row, requestId);
    else this.#keep(row, requestId);
  }

  /** Two repairs at once append the same row twice to a file that has no primary key. */
  #isRepeatedRepair(row: StoredRow): boolean {
    if (row.outcome !== "abandoned") return false;
    const callId = String(row.call_id);
    if (this.#abandoned.has(callId)) return true;
    this.#abandoned.add(callId);
    return false;
  }

  differ(kind: DifferenceKind, row: { request_id: ColumnValue; call_id: ColumnValue }, text: string): void {
    this.differences.push({ kind, requestId: textOf(row.request_id), callId: textOf(row.call_id), text });
  }

  #addMoney(row: StoredRow, requestId: string): void {
    if (typeof row.cost !== "number") return;
    this.costNanos += numberToNanos(row.cost);
    if (row.cost < 0) this.differ("cost", row, `call ${requestId}: negative cost ${row.cost}`);
    else if (row.cost > 0 && row.attempt === null) {
      this.differ("cost", row, `call ${requestId}: cost ${row.cost} on a row that is no attempt (${row.outcome})`);
    }
  }

  #addAttempt(row: StoredRow, requestId: string): void {
    this.attempts += 1;
    countPrice(this, row);
    // A socket that turned out dead sent nothing: its row shares the number of the attempt that followed.
    if (row.outcome === "stale_socket") return;
    const numbers = this.#attemptNumbers.get(requestId) ?? new Set();
    const attempt = Number(row.attempt);
    if (numbers.has(attempt))
      this.differ("duplicate_attempt", row, `call ${requestId}: two rows for attempt ${attempt}`);
    numbers.add(attempt);
    this.#attemptNumbers.set(requestId, numbers);
  }

  #end(row: StoredRow, requestId: string): void {
    if (this.#ended.has(requestId)) this.differ("two_finals", row, `call ${requestId}: ended by more than one row`);
    this.#ended.add(requestId);
    this.unended.delete(requestId);
    // Numbers are only needed while rows of the call may come; keeping them for ever would be most of the memory.
    this.#attemptNumbers.delete(requestId);
  }

  #keep(row: StoredRow, requestId: string): void {
    if (this.#ended.has(requestId)) return;
    const known = this.unended.get(requestId);
    const madeAtMs = createdAtMs(row);
    const attempt = typeof row.attempt === "number" ? row.attempt : 0;
    if (known === undefined) {
      const worker = String(row.worker ?? "");
      this.unended.set(requestId, { requestId, worker, lastAtMs: madeAtMs, attempts: attempt, sample: row });
      return;
    }
    known.lastAtMs = Math.max(known.lastAtMs ?? 0, madeAtMs ?? 0);
    known.attempts = Math.max(known.attempts, attempt);
  }
}

function textOf(value: ColumnValue): string | null {
  return value === null ? null : String(value);
}
