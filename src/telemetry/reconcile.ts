import type { OpenAttempt } from "../domain/record.js";
import { Books, type Difference } from "./books.js";
import { nanosToNumber, numberToNanos, type StoredRow } from "./columns.js";
import { createLiveness, type LivenessOptions } from "./liveness.js";
import { type OutAnswer, readOutAnswers } from "./out-answers.js";
import { openTelemetryFile } from "./reader.js";
import { type AttemptContext, abandonedRow, answeredRow, terminalRow } from "./repair-rows.js";
import type { TelemetryFile } from "./store.js";

/** Rows of a worker on another host rest this long before it counts as dead. */
export const DEFAULT_STALE_AFTER_MS = 3_600_000;

export interface ReconcileOptions {
  /** SQLite or JSONL file with telemetry. */
  readonly store: string;
  /** OUT file of a batch: its answers are looked up, and checked against the rows. */
  readonly outPath?: string;
  /** Default 1 h. */
  readonly staleAfterMs?: number;
  /** Wall clock, epoch milliseconds. */
  readonly now: number;
  readonly table?: string;
  /** A database without that table is refused, where empty books would say that all is well. Default: nothing was recorded yet. */
  readonly tableRequired?: boolean;
  /** For tests: this host's name and how a process is looked up. */
  readonly liveness?: Pick<LivenessOptions, "host" | "processState">;
}

export interface ReconcileReport {
  /** Distinct calls in rows and journal. */
  readonly calls: number;
  /** Calls that a row ends. */
  readonly ended: number;
  /** Calls still running in living workers. */
  readonly open: number;
  /** Attempts in the journal of living workers, and the tokens they have reserved. */
  readonly openAttempts: number;
  readonly openTokens: number;
  readonly attempts: number;
  /** Sum of the known costs of all rows. */
  readonly cost: number;
  /** Attempts that were answered or used tokens, and whose price is known. */
  readonly attemptsWithPrice: number;
  /** Attempts that were answered or used tokens, but whose price is unknown. */
  readonly attemptsWithoutPrice: number;
  /** What this run added. */
  readonly repaired: {
    /** Attempts sent, outcome unknown, possibly billed. */
    readonly abandoned: number;
    /** Attempts whose answer was found in OUT. */
    readonly answered: number;
    /** Calls that got the row that ends them. */
    readonly ended: number;
  };
  readonly unreadableLines: number;
  readonly differences: readonly Difference[];
  readonly balanced: boolean;
}

/**
 * Gives every attempt of a dead worker its row and every call of one its end, then checks the books (spec 05).
 * Safe to run at any time, beside living workers and twice at once. Throws TelemetryFileError.
 */
export async function reconcileStore(options: ReconcileOptions): Promise<ReconcileReport> {
  const { table } = options;
  const file = openTelemetryFile(options.store, table === undefined ? {} : { table });
  try {
    return await reconcileFile(file, options);
  } finally {
    file.close();
  }
}

async function reconcileFile(file: TelemetryFile, options: ReconcileOptions): Promise<ReconcileReport> {
  const { now, staleAfterMs = DEFAULT_STALE_AFTER_MS, tableRequired = false } = options;
  if (tableRequired) await file.requireTable();
  const isDead = createLiveness({ nowMs: now, staleAfterMs, ...options.liveness });
  const journal = await file.openAttempts();
  const answers = await readOut(options.outPath, journal);
  const ledger = await readLedger(file, journal, answers);
  const dead: OpenAttempt[] = [];
  const living: OpenAttempt[] = [];
  for (const open of journal) (isDead(open.worker, open.startedAtMs) ? dead : living).push(open);
  const repair = planRepair(ledger, dead, isDead, now);
  const closedCallIds = dead.map((open) => open.callId);
  if (repair.rows.length + closedCallIds.length > 0) await file.repair({ rows: repair.rows, closedCallIds });
  for (const row of repair.rows) noteRow(ledger, row);
  checkOut(ledger);
  return summarise(file, ledger.books, living, repair);
}

/** Everything read in one pass over the rows. */
interface Ledger {
  readonly books: Books;
  /** Journal rows by attempt, those without a row. */
  readonly unrecorded: Map<string, OpenAttempt>;
  /** Answers in OUT whose row has not been seen. */
  readonly unseenAnswers: Map<string, number | null>;
  /** Whole answers, only of attempts in the journal. */
  readonly openAnswers: ReadonlyMap<string, OutAnswer>;
  /** Provider and model by scope and source. */
  readonly sources: Map<string, { provider: string | null; model: string | null }>;
}

async function readOut(outPath: string | undefined, journal: readonly OpenAttempt[]) {
  const openIds = new Set(journal.map((open) => open.callId));
  const costs = new Map<string, number | null>();
  const open = new Map<string, OutAnswer>();
  if (outPath === undefined) return { costs, open };
  for await (const answer of readOutAnswers(outPath)) {
    costs.set(answer.callId, answer.cost);
    if (openIds.has(answer.callId)) open.set(answer.callId, answer);
  }
  return { costs, open };
}

async function readLedger(
  file: TelemetryFile,
  journal: readonly OpenAttempt[],
  answers: Awaited<ReturnType<typeof readOut>>,
): Promise<Ledger> {
  const ledger: Ledger = {
    books: new Books(),
    unrecorded: new Map(journal.map((open) => [open.callId, open])),
    unseenAnswers: answers.costs,
    openAnswers: answers.open,
    sources: new Map(),
  };
  for await (const row of file.rows({ withoutTexts: true })) noteRow(ledger, row);
  return ledger;
}

function noteRow(ledger: Ledger, row: StoredRow): void {
  const callId = String(row.call_id);
  ledger.books.add(row);
  ledger.unrecorded.delete(callId);
  if (row.source_name !== null && row.provider !== null) {
    const { provider, model } = row;
    ledger.sources.set(sourceKey(String(row.scope), String(row.source_name)), {
      provider: String(provider),
      model: model === null ? null : String(model),
    });
  }
  const answerCost = ledger.unseenAnswers.get(callId);
  if (answerCost === undefined) return;
  ledger.unseenAnswers.delete(callId);
  const rowCost = typeof row.cost === "number" ? row.cost : null;
  if (sameCost(answerCost, rowCost)) return;
  ledger.books.differ("out_cost", row, `attempt ${callId}: cost ${answerCost} in OUT, ${rowCost} in its row`);
}

function sameCost(left: number | null, right: number | null): boolean {
  if (left === null || right === null) return left === right;
  return numberToNanos(left) === numberToNanos(right);
}

function sourceKey(scope: string, source: string): string {
  return `${scope}\0${source}`;
}

interface Repair {
  readonly rows: readonly StoredRow[];
  readonly abandoned: number;
  readonly answered: number;
  readonly ended: number;
}

/** Pure: which rows the dead workers owe. */
function planRepair(
  ledger: Ledger,
  dead: readonly OpenAttempt[],
  isDead: (worker: string, writtenAtMs: number | null) => boolean,
  nowMs: number,
): Repair {
  const rows: StoredRow[] = [];
  const counts = { abandoned: 0, answered: 0, ended: 0 };
  const unendedCalls = new Map<string, Parameters<typeof terminalRow>[0]>();
  const endedHere = new Set<string>();
  const addedAttempts = new Map<string, number>();
  for (const call of ledger.books.unended.values()) {
    if (!isDead(call.worker, call.lastAtMs)) continue;
    const { requestId, worker } = call;
    unendedCalls.set(requestId, { requestId, worker, scope: String(call.sample.scope ?? "") });
  }
  for (const open of dead) {
    if (!ledger.unrecorded.has(open.callId)) continue;
    const answer = ledger.openAnswers.get(open.callId);
    const context = contextOf(ledger, open, addedAttempts.get(open.requestId) ?? 0, nowMs);
    addedAttempts.set(open.requestId, (addedAttempts.get(open.requestId) ?? 0) + 1);
    if (answer === undefined) {
      rows.push(abandonedRow(open, context));
      counts.abandoned += 1;
      if (!ledger.books.hasEnded(open.requestId)) unendedCalls.set(open.requestId, open);
    } else {
      rows.push(answeredRow(open, answer, context));
      counts.answered += 1;
      endedHere.add(open.requestId);
    }
  }
  for (const call of unendedCalls.values()) {
    if (endedHere.has(call.requestId)) continue;
    rows.push(terminalRow(call, ledger.books.unended.get(call.requestId)?.sample ?? null, nowMs));
    counts.ended += 1;
  }
  return { rows, ...counts };
}

function contextOf(ledger: Ledger, open: OpenAttempt, added: number, nowMs: number): AttemptContext {
  const call = ledger.books.unended.get(open.requestId);
  const source = ledger.sources.get(sourceKey(open.scope, open.sourceName));
  return {
    sibling: call?.sample ?? null,
    provider: source?.provider ?? null,
    model: source?.model ?? null,
    earlierAttempts: (call?.attempts ?? 0) + added,
    nowMs,
  };
}

function checkOut(ledger: Ledger): void {
  for (const callId of ledger.unseenAnswers.keys()) {
    const row = { request_id: null, call_id: callId };
    ledger.books.differ("out_without_row", row, `attempt ${callId}: its answer is in OUT, but it has no row`);
  }
}

function summarise(file: TelemetryFile, books: Books, living: readonly OpenAttempt[], repair: Repair): ReconcileReport {
  const running = new Set(books.unended.keys());
  for (const { requestId } of living) if (!books.hasEnded(requestId)) running.add(requestId);
  return {
    calls: books.ended + running.size,
    ended: books.ended,
    open: running.size,
    openAttempts: living.length,
    openTokens: living.reduce((sum, open) => sum + open.estTokens, 0),
    attempts: books.attempts,
    cost: nanosToNumber(books.costNanos),
    attemptsWithPrice: books.attemptsWithPrice,
    attemptsWithoutPrice: books.attemptsWithoutPrice,
    repaired: { abandoned: repair.abandoned, answered: repair.answered, ended: repair.ended },
    unreadableLines: file.unreadableLines,
    differences: books.differences,
    balanced: books.differences.length === 0,
  };
}
