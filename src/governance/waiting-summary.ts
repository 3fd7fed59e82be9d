import type { WantGroup, WantQueue } from "./want-queue.js";

/** Who waits for a permit in this process. */
export interface WaitingSummary {
  readonly count: number;
  readonly oldestMs: number;
  /**
   * How many wait for what: the gate that is full (`rpm`, `concurrency`, …), else `breaker`, `cooldown`, `fairness`;
   * `backend` while the store does not answer, `queue` before the first answer.
   */
  readonly reasons: Readonly<Record<string, number>>;
  /** How many of each priority. */
  readonly byPriority: Readonly<Record<string, number>>;
}

export function waitingSummary(queue: WantQueue, count: number, oldestMs: number): WaitingSummary {
  const reasons: Record<string, number> = {};
  const byPriority: Record<string, number> = {};
  for (const group of queue.groups.values()) {
    const { entries, untold } = group;
    // Those not told yet stand behind no answer: the tick that asks for them is on its way.
    const unasked = group.paused ? 0 : Math.min(untold.size, entries.length);
    add(reasons, "queue", unasked);
    add(reasons, reasonOf(group), entries.length - unasked);
    for (const { want } of entries) add(byPriority, String(want.priority), 1);
  }
  return { count, oldestMs, reasons, byPriority };
}

function reasonOf({ paused, lastRefusal }: WantGroup): string {
  if (paused) return "backend";
  if (lastRefusal === null) return "queue";
  return lastRefusal.kind === "gate" ? (lastRefusal.gate ?? "gate") : lastRefusal.kind;
}

function add(counts: Record<string, number>, key: string, count: number): void {
  if (count > 0) counts[key] = (counts[key] ?? 0) + count;
}
