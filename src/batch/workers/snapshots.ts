import type { BatchSnapshot } from "../types.js";

export interface WorkerState {
  /** null: nothing was heard of it lately. */
  readonly snapshot: BatchSnapshot | null;
  /** Lines it has. */
  readonly inFlight: number;
}

/**
 * The scope as all workers together see it. Limits and breakers are shared, so any worker's view of the sources will do;
 * who waits and which permits are held each knows for itself alone. Of a worker that says nothing, every line counts as
 * being answered.
 */
export function mergeSnapshots(
  states: readonly WorkerState[],
  unassigned: number,
  before: BatchSnapshot | null,
): BatchSnapshot | null {
  const heard = states.flatMap(({ snapshot }) => (snapshot === null ? [] : [snapshot]));
  const scope = heard[0] ?? before;
  if (scope === null) return null;
  const silent = states.reduce((sum, state) => sum + (state.snapshot === null ? state.inFlight : 0), 0);
  return {
    ...scope,
    waiting: {
      count: heard.reduce((sum, { waiting }) => sum + (waiting?.count ?? 0), unassigned),
      oldestMs: heard.reduce((oldest, { waiting }) => Math.max(oldest, waiting?.oldestMs ?? 0), 0),
    },
    leases: { live: heard.reduce((sum, snapshot) => sum + permitsOf(snapshot), silent) },
  };
}

/** Permits that this process alone holds; where it doesn't tell, all of the scope. */
export function permitsOf({ leases, sources }: BatchSnapshot): number {
  return leases?.live ?? sources.reduce((sum, { inflight }) => sum + inflight, 0);
}
