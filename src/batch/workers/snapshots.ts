import type { BatchSnapshot } from "../types.js";
import type { ToldState } from "./messages.js";
import type { WireError } from "./wire-error.js";

export interface WorkerState {
  /** null: nothing was heard of it lately. */
  readonly told: ToldState | null;
  /** Lines it has. */
  readonly inFlight: number;
}

/**
 * The scope as all workers together see it. Limits and breakers are shared, so any worker's view of the sources will do;
 * who waits and which permits are held each knows for itself alone.
 */
export function mergeSnapshots(
  states: readonly WorkerState[],
  unassigned: number,
  before: BatchSnapshot | null,
): BatchSnapshot | null {
  const heard = states.flatMap(({ told }) => told?.snapshot ?? []);
  const scope = heard[0] ?? before;
  if (scope === null) return null;
  return {
    ...scope,
    waiting: {
      count: heard.reduce((sum, { waiting }) => sum + (waiting?.count ?? 0), unassigned),
      oldestMs: heard.reduce((oldest, { waiting }) => Math.max(oldest, waiting?.oldestMs ?? 0), 0),
    },
    leases: { live: livePermits(states) },
  };
}

/** Permits of all workers. Of one that says nothing, every line counts as being answered. */
export function livePermits(states: readonly WorkerState[]): number {
  return states.reduce((sum, { told, inFlight }) => sum + (told?.live ?? inFlight), 0);
}

/** Why none of them can tell the state of the scope; undefined when one can, or none has said anything. */
export function troubleOf(states: readonly WorkerState[]): WireError | undefined {
  if (states.some(({ told }) => told !== null && told.snapshot !== null)) return undefined;
  return states.find(({ told }) => told?.trouble !== undefined)?.told?.trouble;
}
