import { setTimeout as sleep } from "node:timers/promises";
import type { RandomStream } from "../../src/testing/seeded-random.js";
import { type Arena, draw, type Fault } from "./fault.js";
import { POSTGRES_FAULTS } from "./postgres-faults.js";
import { CLOCK, FROZEN, FROZEN_KILLED, KILLED } from "./process-faults.js";
import { CUT, FLUSHED, PAUSED, REFUSED, REPLIES_LOST, RESTARTED } from "./redis-faults.js";
import { ALL_ALONG, DOWN, HUNG, SILENT, STORM, TELLING } from "./source-faults.js";

/** Long ones first: each is to have happened once in a short run too. */
const FAULTS: readonly Fault[] = [
  FROZEN,
  RESTARTED,
  ...POSTGRES_FAULTS.slice(0, 2),
  KILLED,
  FROZEN_KILLED,
  DOWN,
  CLOCK,
  STORM,
  SILENT,
  ...POSTGRES_FAULTS.slice(2),
  HUNG,
  REPLIES_LOST,
  TELLING,
  CUT,
  FLUSHED,
  REFUSED,
  PAUSED,
  ...ALL_ALONG,
];

/** Those that can happen with such a store. */
export function faultsWith(store: "postgres" | "sqlite"): readonly Fault[] {
  return FAULTS.filter(({ needs }) => needs === undefined || needs === store);
}

export const isInjected = ({ inject }: Fault): boolean => inject !== undefined;

/**
 * Injects every kind in turn, in an order of the seed's, one each `everyMs` or so, until the moment; waits for the last ones.
 */
export async function strike(
  arena: Arena,
  faults: readonly Fault[],
  everyMs: number,
  untilMs: number,
): Promise<ReadonlyMap<string, number>> {
  const injected = new Map<string, number>();
  const running = new Set<Promise<void>>();
  const lastMs = new Map<string, number>();
  for (let round = 0; Date.now() < untilMs; round += 1) {
    for (const fault of orderOf(faults, round, arena.next)) {
      if (Date.now() >= untilMs) break;
      const { atMostEveryMs = 0 } = fault;
      if (Date.now() - (lastMs.get(fault.id) ?? 0) < atMostEveryMs) continue;
      const one = fault.inject!(arena).then((struck) => {
        if (struck) injected.set(fault.id, (injected.get(fault.id) ?? 0) + 1);
        running.delete(one);
      });
      lastMs.set(fault.id, Date.now());
      running.add(one);
      await sleep(draw(arena.next, everyMs / 2, everyMs * 1.5));
    }
  }
  await Promise.all(running);
  return injected;
}

/** The first round as they stand here. */
function orderOf(faults: readonly Fault[], round: number, next: RandomStream): readonly Fault[] {
  const bag = faults.filter(isInjected);
  if (round === 0) return bag;
  for (let left = bag.length - 1; left > 0; left -= 1) {
    const other = draw(next, 0, left + 1);
    [bag[left], bag[other]] = [bag[other]!, bag[left]!];
  }
  return bag;
}
