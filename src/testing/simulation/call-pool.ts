import type { Scenario } from "./scenario.js";
import type { PlannedCall, Workload } from "./workload.js";

/** Where closed-loop callers get their next call from: one pool for all workers, or one of its own for each. */
export interface CallPool {
  take(worker: number): PlannedCall | undefined;
  /** The call's worker died: whoever takes its place makes it again. */
  putBack(worker: number, call: PlannedCall): void;
  /** When the first worker's own pool was empty; the others then no longer compete with it. */
  readonly firstEmptyMs: () => number;
}

export function createCallPool(scenario: Scenario, { calls }: Workload, now: () => number): CallPool {
  const pools = scenario.shares === undefined ? [[...calls]] : split(calls, scenario.shares);
  for (const pool of pools) pool.reverse();
  const poolOf = (worker: number): PlannedCall[] => pools[worker % pools.length]!;
  let firstEmptyMs = Infinity;
  return {
    take(worker) {
      const call = poolOf(worker).pop();
      if (call === undefined) firstEmptyMs = Math.min(firstEmptyMs, now());
      return call;
    },
    putBack(worker, call) {
      poolOf(worker).push(call);
    },
    firstEmptyMs: () => firstEmptyMs,
  };
}

function split(calls: readonly PlannedCall[], shares: readonly number[]): PlannedCall[][] {
  const sum = shares.reduce((total, share) => total + share, 0);
  let begin = 0;
  return shares.map((share, index) => {
    const isLast = index === shares.length - 1;
    const end = isLast ? calls.length : begin + Math.round((calls.length * share) / sum);
    const own = calls.slice(begin, end);
    begin = end;
    return own;
  });
}
