import { type ColumnValue, callValues, openValues } from "./columns.js";
import type { RecorderProblem } from "./late-recorder.js";
import type { PostgresDatabase } from "./postgres-database.js";
import { HopelessError, isDenied, isRowFault, isStructural, PoolError } from "./postgres-errors.js";
import { callTarget, openTarget, type StatementRows, type Target, writeStatement } from "./postgres-statement.js";
import { prepareCalls, prepareJournal, type TableNames } from "./postgres-tables.js";
import type { QueueEntry } from "./row-queue.js";
import { ROWS_KEPT } from "./troubles.js";

/** What became of a batch. */
export interface WriteResult {
  readonly committed: readonly QueueEntry[];
  readonly lost: readonly { readonly entry: QueueEntry; readonly reason: string }[];
  /** Not written, and to be tried again. */
  readonly left: readonly QueueEntry[];
  /** `pool`: no connection can be made at all; `hopeless`: it can certainly not be written. */
  readonly trouble: "none" | "retry" | "pool" | "hopeless";
}

interface Rendered {
  readonly entry: QueueEntry;
  readonly values: readonly ColumnValue[];
}

/** Much text in one statement is a long wait for those behind it, and memory on both sides. */
const MAX_BATCH_UNITS = 1_000_000;

/** Puts batches into the two tables; what it learnt of them is forgotten when a statement says otherwise. */
export class PostgresWriter {
  readonly #database: PostgresDatabase;
  readonly #names: TableNames;
  readonly #report: (problem: RecorderProblem) => void;
  #calls: Target | null = null;
  /** null = not looked at yet; "off" = it can't be written, and attempts in flight are not written down. */
  #journal: Target | "off" | null = null;
  /** One warning: nothing changes until somebody installs or corrects something. */
  #poolSaid = false;

  constructor(database: PostgresDatabase, names: TableNames, report: (problem: RecorderProblem) => void) {
    this.#database = database;
    this.#names = names;
    this.#report = report;
  }

  /** Never rejects. */
  async write(taken: readonly QueueEntry[]): Promise<WriteResult> {
    const { rendered, lost, left } = render(taken);
    const committed: QueueEntry[] = [];
    const result = (trouble: WriteResult["trouble"]): WriteResult => {
      const done = new Set([...committed, ...lost.map(({ entry }) => entry)]);
      return {
        committed,
        lost,
        left: [...rendered.map(({ entry }) => entry).filter((e) => !done.has(e)), ...left],
        trouble,
      };
    };
    try {
      await this.#prepare(rendered);
      await this.#writeGroup(rendered, {
        committed: (group) => committed.push(...group.map(({ entry }) => entry)),
        lost: ({ entry }, reason) => lost.push({ entry, reason }),
      });
      return result("none");
    } catch (error) {
      return result(this.#troubleOf(error));
    }
  }

  async #prepare(rows: readonly Rendered[]): Promise<void> {
    if (this.#calls === null) {
      const { columns, incomplete } = await this.#database.run((query) => prepareCalls(query, this.#names));
      if (incomplete !== null) this.#report({ code: "PG_TELEMETRY_COLUMN", message: this.#said(incomplete) });
      this.#calls = callTarget(columns);
    }
    if (this.#journal !== null || !rows.some(({ entry }) => concernsJournal(entry))) return;
    try {
      const { columns, incomplete } = await this.#database.run((query) => prepareJournal(query, this.#names));
      if (incomplete !== null) this.#report({ code: "PG_TELEMETRY_COLUMN", message: this.#said(incomplete) });
      this.#journal = openTarget(columns);
    } catch (error) {
      if (!(error instanceof HopelessError)) throw error;
      this.#journal = "off";
      const message = this.#said(`${error.message}; attempts in flight are not written down, records are`);
      this.#report({ code: "PG_TELEMETRY_CREATE", message });
    }
  }

  /** A row that the table refuses is found by halving, so that its neighbours land. */
  async #writeGroup(group: readonly Rendered[], to: Outcome, anew = true): Promise<void> {
    const journal = this.#journal === "off" ? null : this.#journal;
    if (journal === null && group.every(({ entry }) => entry.kind === "open")) {
      to.committed(group);
      return;
    }
    const { text, values } = writeStatement(this.#names, { calls: this.#calls ?? [], opens: journal }, rowsOf(group));
    try {
      await this.#database.run((query) => query(text, values));
      to.committed(group);
    } catch (error) {
      if (isRowFault(error)) await this.#isolate(group, to, error);
      else if (isStructural(error) && anew) await this.#writeAnew(group, to);
      else throw error;
    }
  }

  async #isolate(group: readonly Rendered[], to: Outcome, error: unknown): Promise<void> {
    const [only] = group;
    if (only !== undefined && group.length === 1) {
      const reason = this.#database.explain(error);
      this.#report({ code: "PG_TELEMETRY_ROW", message: this.#said(`a row is refused and lost: ${reason}`) });
      to.lost(only, "the table refuses this row");
      return;
    }
    const half = Math.ceil(group.length / 2);
    await this.#writeGroup(group.slice(0, half), to);
    await this.#writeGroup(group.slice(half), to);
  }

  /** The tables are not what they were: somebody has changed them, or the rights on them. */
  async #writeAnew(group: readonly Rendered[], to: Outcome): Promise<void> {
    this.#forget();
    await this.#prepare(group);
    await this.#writeGroup(group, to, false);
  }

  #forget(): void {
    this.#calls = null;
    this.#journal = null;
  }

  #troubleOf(error: unknown): WriteResult["trouble"] {
    const reason = error instanceof HopelessError ? error.message : this.#database.explain(error);
    if (error instanceof HopelessError) {
      this.#report({ code: "PG_TELEMETRY_CREATE", message: this.#said(`${reason}. No row can be written`) });
      return "hopeless";
    }
    if (error instanceof PoolError) {
      if (!this.#poolSaid) this.#report({ code: "PG_TELEMETRY_POOL", message: this.#said(`${reason}${ROWS_KEPT}`) });
      this.#poolSaid = true;
      return "pool";
    }
    const [code, what] = this.#calls === null ? ["PG_TELEMETRY_PROBE", "can't be reached"] : WRITING;
    if (isStructural(error)) this.#forget();
    const right = isDenied(error) ? `: the role needs USAGE on the schema and INSERT on ${this.#names.table}` : "";
    const message = `${this.#database.shown} ${what} (${reason})${right}${ROWS_KEPT}`;
    this.#report({ code: code as string, message });
    return "retry";
  }

  #said(text: string): string {
    return `${this.#database.shown}: ${text}`;
  }
}

const WRITING = ["PG_TELEMETRY_QUEUE", "can't be written"];

interface Outcome {
  committed(group: readonly Rendered[]): void;
  lost(row: Rendered, reason: string): void;
}

/** Redaction and limits are applied here. A record whose redaction throws can't be stored safely: it alone is lost. */
function render(taken: readonly QueueEntry[]) {
  const rendered: Rendered[] = [];
  const lost: { entry: QueueEntry; reason: string }[] = [];
  let units = 0;
  for (const [index, entry] of taken.entries()) {
    if (units > MAX_BATCH_UNITS) return { rendered, lost, left: taken.slice(index) };
    try {
      const values = entry.kind === "open" ? openValues(entry.open) : callValues(entry.render(entry.record));
      for (const value of values) if (typeof value === "string") units += value.length;
      rendered.push({ entry, values });
    } catch (error) {
      lost.push({ entry, reason: `a row could not be rendered: ${String(error)}` });
    }
  }
  return { rendered, lost, left: [] };
}

function concernsJournal(entry: QueueEntry): boolean {
  return entry.kind === "open" || entry.closesOpen;
}

function rowsOf(group: readonly Rendered[]): StatementRows {
  const calls: (readonly ColumnValue[])[] = [];
  const opens: (readonly ColumnValue[])[] = [];
  const closed: ColumnValue[] = [];
  for (const { entry, values } of group) {
    if (entry.kind === "open") opens.push(values);
    else calls.push(values);
    if (entry.kind === "record" && entry.closesOpen) closed.push(values[0] ?? null);
  }
  return { calls, opens, closed };
}
