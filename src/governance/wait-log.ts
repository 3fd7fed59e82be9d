import type { Refusal } from "../domain/tick.js";

/** What a call waited for, in the words of `perSourceReasons`, `fairness` and `backend`; and how long. */
export interface Wait {
  readonly reason: string;
  readonly waitMs: number;
}

export const NO_WAITS: readonly Wait[] = [];

/** The governor itself did not answer. */
export const BACKEND = "backend";

/**
 * What calls of a kind wait for, over time: of all that stand behind a refused head only the head is asked again, so what
 * one of them waited for is what its kind did. Sums, so that a queue that is never empty keeps no history.
 */
export interface WaitLog {
  /** null = nobody was told yet. */
  reason: string | null;
  sinceMs: number;
  /** Milliseconds of each; what was the reason last stands last. */
  readonly totals: Map<string, number>;
}

export function newWaitLog(): WaitLog {
  return { reason: null, sinceMs: 0, totals: new Map() };
}

/** From now on it is this. */
export function noteReason(log: WaitLog, reason: string, nowMs: number): void {
  if (log.reason === reason) return;
  addUp(log, nowMs);
  log.reason = reason;
}

function addUp(log: WaitLog, nowMs: number): void {
  const { reason, sinceMs, totals } = log;
  log.sinceMs = nowMs;
  if (reason === null) return;
  const totalMs = (totals.get(reason) ?? 0) + nowMs - sinceMs;
  totals.delete(reason);
  totals.set(reason, totalMs);
}

/** How far the sums are when a call begins to wait. */
export type WaitMark = ReadonlyMap<string, number>;

const AT_NOTHING: WaitMark = new Map();

export function markWait(log: WaitLog, nowMs: number): WaitMark {
  addUp(log, nowMs);
  if (log.totals.size === 0) return AT_NOTHING;
  return new Map(log.totals);
}

export function waitsSince(log: WaitLog, mark: WaitMark, nowMs: number): readonly Wait[] {
  addUp(log, nowMs);
  const waits = [...log.totals].map(([reason, totalMs]) => ({ reason, waitMs: totalMs - (mark.get(reason) ?? 0) }));
  return waits.filter(({ reason, waitMs }) => waitMs > 0 || reason === log.reason);
}

/** The waits of a call that asked twice for one attempt. */
export function joinWaits(first: readonly Wait[], then: readonly Wait[]): readonly Wait[] {
  if (first.length === 0) return then;
  const joined = new Map(first.map(({ reason, waitMs }) => [reason, waitMs]));
  for (const { reason, waitMs } of then) {
    const earlierMs = joined.get(reason) ?? 0;
    joined.delete(reason);
    joined.set(reason, earlierMs + waitMs);
  }
  return [...joined].map(([reason, waitMs]) => ({ reason, waitMs }));
}

/** A full gate by its name; of the others the word that sources have for it. */
export function waitReason({ kind, gate }: Refusal): string {
  if (kind === "gate") return gate ?? kind;
  if (kind === "cooldown") return "cooling";
  return kind === "breaker" ? "breaker_open" : kind;
}
